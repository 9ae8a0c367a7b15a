//! The operations of a mounted file system, as [`FileSystem`](steadfast_vfs::FileSystem) asks for
//! them.

mod access_times;
mod attributes;
mod flags;
mod label;
mod numbers;
mod operations;
mod projects;
mod shutdown;
mod trouble;
mod xattrs;
