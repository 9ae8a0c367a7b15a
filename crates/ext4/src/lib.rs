//! ext4 on disk: read, write, make and check.
