//! Inodes in memory.
