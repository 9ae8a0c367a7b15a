//! The operations of a mounted file system, as [`FileSystem`](steadfast_vfs::FileSystem) asks for
//! them.

mod access_times;
mod attributes;
mod data;
mod flags;
mod holds;
mod inodes;
mod names;
mod operations;
mod trouble;
mod xattrs;
