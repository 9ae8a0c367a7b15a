//! The interface itself.

use bytes::Bytes;

use crate::{
    Advice, Attr, DirBlock, Dirent, Fallocate, Fh, FileExtent, FileType, FsError, Ino, NewNode,
    OpenFlags, RenameFlags, Result, SeekTo, SetAttr, SetXattr, Shutdown, StatFs, TransactPolicy,
};

fn unsupported<T>(what: &str) -> Result<T> {
    Err(FsError::Unsupported { what: format!("{what} on this file system") })
}

/// A mounted file system.
///
/// Operations are atomic towards each other as POSIX wants: a name operation is seen whole or not
/// at all, a write is seen whole by a later read. An operation that fails has changed nothing,
/// except that a write may have been done in part, which its return value says.
pub trait FileSystem: Send + Sync {
    /// The root directory.
    fn root(&self) -> Ino;

    /// Whether a name is found by its very bytes only. Where it is not, nobody above may remember
    /// names: a change of one spelling changes them all.
    fn names_have_one_spelling(&self) -> bool {
        true
    }

    /// Finds `name` in `dir`; "." and ".." work.
    fn lookup(&self, dir: Ino, name: &[u8]) -> Result<Attr>;

    /// Attributes of an inode.
    fn getattr(&self, ino: Ino) -> Result<Attr>;

    /// Attributes of an inode of which only the number is known, as a file handle keeps it.
    /// Refused (ESTALE) where no file or directory with a name has that number.
    fn by_number(&self, ino: Ino) -> Result<Attr> {
        self.getattr(ino)
    }

    /// Keeps an inode for a caller that goes on to use its number, as the kernel of a mount does
    /// with every node that it has looked up: until the caller has let go of it, the number is no
    /// other inode's, and works with all operations, whether the inode has a name or not. Holds are
    /// counted, and gone after a crash or an unmount. Returns the attributes. The default is for a
    /// file system whose inodes stay by themselves.
    ///
    /// # Errors
    /// Not found: it is gone already.
    fn hold(&self, ino: Ino) -> Result<Attr> {
        self.getattr(ino)
    }

    /// Holds the number of an inode that cannot be read now: it is given to no other meanwhile.
    fn hold_number(&self, _ino: Ino) {}

    /// Gives back so many holds (FUSE_FORGET). Whether it was the last. Neither fails nor waits
    /// for a device: what has no name is deleted later, but before [`statfs`](Self::statfs)
    /// answers, or an operation finds no space.
    fn let_go(&self, _ino: Ino, _holds: u64) -> bool {
        true
    }

    /// Gives back all holds on all inodes.
    fn let_go_all(&self) {}

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
    /// names, is open or is held.
    fn unlink(&self, dir: Ino, name: &[u8]) -> Result<()>;

    /// Removes an empty directory.
    fn rmdir(&self, dir: Ino, name: &[u8]) -> Result<()>;

    /// Moves a name of a directory, replacing the target as rename(2) does unless `flags` say
    /// otherwise.
    fn rename(&self, from: (Ino, &[u8]), to: (Ino, &[u8]), flags: RenameFlags) -> Result<()>;

    /// Opens a regular file.
    fn open(&self, ino: Ino, flags: OpenFlags) -> Result<Fh>;

    /// A descriptor of the handle is being closed, by close(2) or the end of its process; others
    /// may remain. What closing promises ([`TransactMask::CLOSE`]) holds when this returns.
    ///
    /// [`TransactMask::CLOSE`]: crate::TransactMask::CLOSE
    fn flush(&self, _fh: Fh) -> Result<()> {
        Ok(())
    }

    /// Closes a handle. The file's contents are not made durable by this.
    fn release(&self, fh: Fh) -> Result<()>;

    /// Reads up to `len` bytes at `offset`; fewer at the end of the file, none beyond it.
    fn read(&self, fh: Fh, offset: u64, len: usize) -> Result<Bytes>;

    /// Writes `data` at `offset` (at the end with APPEND) and returns how many bytes were
    /// written. With SYNC or DSYNC it is durable on return.
    fn write(&self, fh: Fh, offset: u64, data: Bytes) -> Result<usize>;

    /// As [`write`](Self::write), of a call that says for itself how: SYNC, DSYNC and DIRECT of
    /// `how` hold in place of those that the file was opened with (pwritev2(2); O_DIRECT changed
    /// by fcntl(2)), and WRITTEN_BACK is known from nowhere else. The default is for a file system
    /// that writes what is direct as it does everything else.
    fn write_as(&self, fh: Fh, offset: u64, data: Bytes, how: OpenFlags) -> Result<usize> {
        let written = self.write(fh, offset, data)?;
        if how.intersects(OpenFlags::SYNC | OpenFlags::DSYNC) {
            self.fsync(fh, !how.contains(OpenFlags::SYNC))?;
        }
        Ok(written)
    }

    /// As [`read`](Self::read), past the page cache if `direct` is set, whatever the file was
    /// opened with. The default is as for [`write_as`](Self::write_as).
    fn read_as(&self, fh: Fh, offset: u64, len: usize, _direct: bool) -> Result<Bytes> {
        self.read(fh, offset, len)
    }

    /// As [`read_as`](Self::read_as), into the caller's memory: as many bytes as it has room for.
    /// Returns how many have come. A file system that need not gather them first saves a copy.
    fn read_into(&self, fh: Fh, offset: u64, out: &mut [u8], direct: bool) -> Result<usize> {
        let read = self.read_as(fh, offset, out.len(), direct)?;
        out[..read.len()].copy_from_slice(&read);
        Ok(read.len())
    }

    /// Makes the file durable: contents, and all metadata or (`data_only`) what is needed to read
    /// the contents back. An error of an earlier write-back of this file is reported here, once
    /// for each handle.
    fn fsync(&self, fh: Fh, data_only: bool) -> Result<()>;

    /// Entries of `dir` after the position `from` (0 = the start), as many as fit; empty at the
    /// end. Includes "." and "..". No name is empty, or has '/' or NUL in it. Entries that make no
    /// sense are left out; then there is an error at the end, so that nobody takes the rest for
    /// all.
    fn readdir(&self, dir: Ino, from: u64) -> Result<Vec<Dirent>>;

    /// What can be read of the first block of `dir` at or after its byte `from` (0 = the start),
    /// "." and ".." too, in no order; `None` behind the last one, and where a directory has no
    /// blocks. For those who want what a damaged directory still holds, when `readdir` fails.
    fn readdir_block(&self, _dir: Ino, _from: u64) -> Result<Option<DirBlock>> {
        Ok(None)
    }

    /// The caller, who holds nothing, will not use this inode number again before another lookup:
    /// cached state of it may be dropped.
    fn forget_inode(&self, _ino: Ino) {}

    /// Makes a directory's names durable.
    fn fsyncdir(&self, dir: Ino) -> Result<()>;

    /// Space and limits.
    fn statfs(&self) -> Result<StatFs>;

    /// Makes everything durable.
    fn sync(&self) -> Result<()>;

    /// Makes a device node, a FIFO, a socket or an empty regular file. Beside the type is the
    /// number, major << 32 | minor, of a device node.
    fn mknod(&self, _dir: Ino, _name: &[u8], _: (FileType, u64), _: NewNode) -> Result<Attr> {
        unsupported("device nodes, FIFOs and sockets")
    }

    /// Makes a regular file without a name and opens it (O_TMPFILE); `link` may name it later.
    fn tmpfile(&self, _dir: Ino, _node: NewNode, _flags: OpenFlags) -> Result<(Attr, Fh)> {
        unsupported("files without a name (O_TMPFILE)")
    }

    /// Allocates, punches, zeroes or shifts `len` bytes at `offset`.
    fn fallocate(&self, _fh: Fh, _what: Fallocate, _offset: u64, _len: u64) -> Result<()> {
        unsupported("fallocate")
    }

    /// The first data or hole at or after `offset`; ENXIO if there is none.
    fn seek(&self, _fh: Fh, _offset: u64, _to: SeekTo) -> Result<u64> {
        unsupported("SEEK_DATA and SEEK_HOLE")
    }

    /// Says how a range of an open file will be used. A file system may ignore it, and does so
    /// unless it says otherwise.
    fn advise(&self, _fh: Fh, _offset: u64, _len: u64, _advice: Advice) -> Result<()> {
        Ok(())
    }

    /// The pieces of `[offset, offset + len)` bytes that have storage, in order.
    fn extents(&self, _ino: Ino, _offset: u64, _len: u64) -> Result<Vec<FileExtent>> {
        unsupported("listing extents")
    }

    /// An extended attribute's value, by its full name ("user.mime_type").
    fn getxattr(&self, _ino: Ino, _name: &[u8]) -> Result<Vec<u8>> {
        unsupported("extended attributes")
    }

    /// Sets an extended attribute.
    fn setxattr(&self, _ino: Ino, _name: &[u8], _value: &[u8], _how: SetXattr) -> Result<()> {
        unsupported("extended attributes")
    }

    /// Full names of all extended attributes.
    fn listxattr(&self, _ino: Ino) -> Result<Vec<Vec<u8>>> {
        unsupported("extended attributes")
    }

    /// Removes an extended attribute; ENODATA if it is not there.
    fn removexattr(&self, _ino: Ino, _name: &[u8]) -> Result<()> {
        unsupported("extended attributes")
    }

    /// The inode's flags as FS_IOC_GETFLAGS shows them (`lsattr`).
    fn inode_flags(&self, _ino: Ino) -> Result<u32> {
        unsupported("inode flags")
    }

    /// Changes the inode's flags as FS_IOC_SETFLAGS does (`chattr`).
    fn set_inode_flags(&self, _ino: Ino, _flags: u32) -> Result<()> {
        unsupported("inode flags")
    }

    /// The inode's project; 0 where none is kept.
    fn project(&self, _ino: Ino) -> Result<u32> {
        Ok(0)
    }

    /// Moves the inode to another project.
    fn set_project(&self, _ino: Ino, _project: u32) -> Result<()> {
        unsupported("projects")
    }

    /// The file system's label.
    fn label(&self) -> Result<Vec<u8>> {
        unsupported("a label")
    }

    /// Changes the label.
    fn set_label(&self, _label: &[u8]) -> Result<()> {
        unsupported("a label")
    }

    /// Makes a transaction point: what is there now, data and metadata, is what any later power
    /// cut leaves at the least.
    fn transact(&self) -> Result<()> {
        unsupported("transaction points")
    }

    /// Goes back to the last transaction point. Refused (EBUSY) while files are open.
    fn rollback(&self) -> Result<()> {
        unsupported("transaction points")
    }

    /// When transaction points are made by themselves.
    fn transact_policy(&self) -> Result<TransactPolicy> {
        unsupported("transaction points")
    }

    /// Changes when transaction points are made by themselves.
    fn set_transact_policy(&self, _policy: TransactPolicy) -> Result<()> {
        unsupported("transaction points")
    }

    /// Begins a group of operations that become durable together or not at all: until the group
    /// ends no transaction point is made, and what would need one fails with ENOSPC. One group at
    /// a time (EBUSY).
    fn begin_group(&self) -> Result<()> {
        unsupported("atomic groups")
    }

    /// Ends the group with a transaction point, or (`commit` false) takes it back as
    /// [`rollback`](Self::rollback) does. A group that must go back while files are open fails
    /// (EBUSY), and goes back when the last of them is closed; until then nothing is changed, and
    /// fsync and sync fail.
    fn end_group(&self, _commit: bool) -> Result<()> {
        unsupported("atomic groups")
    }

    /// Goes down at once: every later operation fails with EIO.
    fn shutdown(&self, _how: Shutdown) -> Result<()> {
        unsupported("shutdown")
    }
}
