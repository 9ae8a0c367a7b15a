//! Makes a file system.
