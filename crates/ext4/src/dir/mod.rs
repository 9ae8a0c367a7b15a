//! Directories: linear and indexed.
