//! Checks the structure of a file system, reading only.
