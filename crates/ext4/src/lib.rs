//! ext4 on disk: read, write, make and check.

pub mod alloc;
pub mod check;
pub mod dir;
pub mod error;
pub mod extents;
pub mod file;
pub mod inode;
pub mod meta;
pub mod mkfs;
pub mod mount;
pub mod namespace;
pub mod ondisk;
