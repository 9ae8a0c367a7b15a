//! The interface itself.

use bytes::Bytes;

use crate::{Attr, DirEntry, Fh, Ino, NewNode, OpenFlags, RenameFlags, Result, SetAttr, StatFs};

/// A mounted file system.
///
/// Operations are atomic towards each other as POSIX wants: a name operation is seen whole or not
/// at all, a write is seen whole by a later read. An operation that fails has changed nothing,
/// except that a write may have been done in part, which its return value says.
pub trait FileSystem: Send + Sync {
    /// The root directory.
    fn root(&self) -> Ino;

    /// Finds `name` in `dir`; "." and ".." work.
    fn lookup(&self, dir: Ino, name: &[u8]) -> Result<Attr>;

    /// Attributes of an inode.
    fn getattr(&self, ino: Ino) -> Result<Attr>;

    /// Changes attributes and returns the new ones.
    fn setattr(&self, ino: Ino, set: SetAttr) -> Result<Attr>;

    /// Makes an empty regular file and opens it. Fails if the name exists.
    fn create(&self, dir: Ino, name: &[u8], node: NewNode, flags: OpenFlags) -> Result<(Attr, Fh)>;

    /// Makes a directory.
    fn mkdir(&self, dir: Ino, name: &[u8], node: NewNode) -> Result<Attr>;

    /// Makes a symbolic link to `target`.
    fn symlink(&self, dir: Ino, name: &[u8], target: &[u8], node: NewNode) -> Result<Attr>;

    /// The target of a symbolic link.
    fn readlink(&self, ino: Ino) -> Result<Vec<u8>>;

    /// Gives the inode another name.
    fn link(&self, ino: Ino, dir: Ino, name: &[u8]) -> Result<Attr>;

    /// Removes the name of a file that is not a directory. The inode lives on while it has other
    /// names or is open.
    fn unlink(&self, dir: Ino, name: &[u8]) -> Result<()>;

    /// Removes an empty directory.
    fn rmdir(&self, dir: Ino, name: &[u8]) -> Result<()>;

    /// Moves a name, replacing the target as rename(2) does unless `flags` say otherwise.
    fn rename(
        &self,
        from_dir: Ino,
        from: &[u8],
        to_dir: Ino,
        to: &[u8],
        flags: RenameFlags,
    ) -> Result<()>;

    /// Opens a regular file.
    fn open(&self, ino: Ino, flags: OpenFlags) -> Result<Fh>;

    /// Closes a handle. The file's contents are not made durable by this.
    fn release(&self, fh: Fh) -> Result<()>;

    /// Reads up to `len` bytes at `offset`; fewer at the end of the file, none beyond it.
    fn read(&self, fh: Fh, offset: u64, len: usize) -> Result<Bytes>;

    /// Writes `data` at `offset` (at the end with APPEND) and returns how many bytes were
    /// written. With SYNC or DSYNC it is durable on return.
    fn write(&self, fh: Fh, offset: u64, data: Bytes) -> Result<usize>;

    /// Makes the file durable: contents, and all metadata or (`data_only`) what is needed to read
    /// the contents back. An error of an earlier write-back of this file is reported here, once
    /// for each handle.
    fn fsync(&self, fh: Fh, data_only: bool) -> Result<()>;

    /// Entries of `dir` after the position `from` (0 = the start), as many as fit; empty at the
    /// end. Includes "." and "..".
    fn readdir(&self, dir: Ino, from: u64) -> Result<Vec<DirEntry>>;

    /// Makes a directory's names durable.
    fn fsyncdir(&self, dir: Ino) -> Result<()>;

    /// Space and limits.
    fn statfs(&self) -> Result<StatFs>;

    /// Makes everything durable.
    fn sync(&self) -> Result<()>;
}
