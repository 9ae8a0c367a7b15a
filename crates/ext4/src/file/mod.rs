//! File contents: the paths of reads and writes.
