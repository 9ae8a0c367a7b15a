//! What a request asks for.

use bitflags::bitflags;
use zerocopy::{FromBytes, Immutable, KnownLayout};

use super::arguments::{ArgumentError, Arguments};
use super::attributes::{SetAttr, SetattrIn};

/// The numbers of operations (`enum fuse_opcode`).
#[expect(missing_docs, reason = "they are named as in the kernel")]
pub mod opcode {
    pub const LOOKUP: u32 = 1;
    pub const FORGET: u32 = 2;
    pub const GETATTR: u32 = 3;
    pub const SETATTR: u32 = 4;
    pub const READLINK: u32 = 5;
    pub const SYMLINK: u32 = 6;
    pub const MKNOD: u32 = 8;
    pub const MKDIR: u32 = 9;
    pub const UNLINK: u32 = 10;
    pub const RMDIR: u32 = 11;
    pub const RENAME: u32 = 12;
    pub const LINK: u32 = 13;
    pub const OPEN: u32 = 14;
    pub const READ: u32 = 15;
    pub const WRITE: u32 = 16;
    pub const STATFS: u32 = 17;
    pub const RELEASE: u32 = 18;
    pub const FSYNC: u32 = 20;
    pub const SETXATTR: u32 = 21;
    pub const GETXATTR: u32 = 22;
    pub const LISTXATTR: u32 = 23;
    pub const REMOVEXATTR: u32 = 24;
    pub const FLUSH: u32 = 25;
    pub const INIT: u32 = 26;
    pub const OPENDIR: u32 = 27;
    pub const READDIR: u32 = 28;
    pub const RELEASEDIR: u32 = 29;
    pub const FSYNCDIR: u32 = 30;
    pub const ACCESS: u32 = 34;
    pub const CREATE: u32 = 35;
    pub const INTERRUPT: u32 = 36;
    pub const BMAP: u32 = 37;
    pub const DESTROY: u32 = 38;
    pub const IOCTL: u32 = 39;
    pub const POLL: u32 = 40;
    pub const BATCH_FORGET: u32 = 42;
    pub const FALLOCATE: u32 = 43;
    pub const READDIRPLUS: u32 = 44;
    pub const RENAME2: u32 = 45;
    pub const LSEEK: u32 = 46;
    pub const COPY_FILE_RANGE: u32 = 47;
    pub const SYNCFS: u32 = 50;
    pub const TMPFILE: u32 = 51;
    pub const STATX: u32 = 52;
    pub const COPY_FILE_RANGE_64: u32 = 53;
}

bitflags! {
    /// FUSE_WRITE_*.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub struct WriteFlags: u32 {
        /// Written back from the page cache: the handle is any one that may write.
        const CACHE = 1;
        /// Set-id bits go.
        const KILL_SUIDGID = 1 << 2;
        const _ = !0;
    }

    /// FUSE_IOCTL_*.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub struct IoctlFlags: u32 {
        /// Of a caller of 32 bits.
        const OF_32_BITS = 1 << 3;
        const _ = !0;
    }

    /// FOPEN_*: what the kernel may do with an open file.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub struct OpenReply: u32 {
        /// Reads and writes go past its page cache.
        const DIRECT_IO = 1;
        /// It keeps the pages that it has.
        const KEEP_CACHE = 1 << 1;
        /// It need not say when a descriptor is closed.
        const NOFLUSH = 1 << 5;
        /// Direct writes at the same time.
        const PARALLEL_DIRECT_WRITES = 1 << 6;
        const _ = !0;
    }
}

/// What a request asks for. Numbers are the kernel's: inodes by the number that it was given, open
/// files by the one that the answer to OPEN gave; flags and modes as of the system call.
#[derive(Debug, Clone, Copy)]
#[expect(missing_docs, reason = "they are named as in the kernel")]
pub enum Operation<'a> {
    Lookup {
        name: &'a [u8],
    },
    Getattr {
        fh: Option<u64>,
    },
    Setattr(SetAttr),
    Readlink,
    Symlink {
        name: &'a [u8],
        target: &'a [u8],
    },
    Mknod {
        name: &'a [u8],
        mode: u32,
        umask: u32,
        rdev: u32,
    },
    Mkdir {
        name: &'a [u8],
        mode: u32,
        umask: u32,
    },
    Unlink {
        name: &'a [u8],
    },
    Rmdir {
        name: &'a [u8],
    },
    Rename {
        name: &'a [u8],
        to_dir: u64,
        to_name: &'a [u8],
        flags: u32,
    },
    /// The inode is `from`, the folder the request's.
    Link {
        from: u64,
        name: &'a [u8],
    },
    Open {
        flags: i32,
    },
    Read {
        fh: u64,
        offset: u64,
        size: u32,
        flags: i32,
    },
    Write {
        fh: u64,
        offset: u64,
        data: &'a [u8],
        write_flags: WriteFlags,
        flags: i32,
    },
    Statfs,
    Release {
        fh: u64,
    },
    Fsync {
        fh: u64,
        data_only: bool,
    },
    Setxattr {
        name: &'a [u8],
        value: &'a [u8],
        flags: i32,
    },
    /// Of at most `size` bytes; 0: only its length.
    Getxattr {
        name: &'a [u8],
        size: u32,
    },
    Listxattr {
        size: u32,
    },
    Removexattr {
        name: &'a [u8],
    },
    Flush {
        fh: u64,
    },
    Opendir,
    Readdir {
        offset: u64,
        size: u32,
    },
    Readdirplus {
        offset: u64,
        size: u32,
    },
    Releasedir,
    Fsyncdir,
    Access,
    Create {
        name: &'a [u8],
        flags: i32,
        mode: u32,
        umask: u32,
    },
    Bmap,
    Ioctl {
        command: u32,
        flags: IoctlFlags,
        data: &'a [u8],
        out_size: u32,
    },
    Poll,
    Fallocate {
        fh: u64,
        offset: u64,
        length: u64,
        mode: i32,
    },
    Lseek {
        fh: u64,
        offset: i64,
        whence: i32,
    },
    CopyFileRange {
        from: u64,
        from_offset: u64,
        to_node: u64,
        to: u64,
        to_offset: u64,
        len: u64,
        /// The answer has 64 bits (COPY_FILE_RANGE_64).
        wide: bool,
    },
    Syncfs,
    Tmpfile {
        flags: i32,
        mode: u32,
        umask: u32,
    },
    Statx {
        fh: Option<u64>,
    },
    /// Of a newer kernel, or none.
    Unknown,
}

/// `struct fuse_forget_one`, and `struct fuse_forget_in` with its inode: an inode of which the
/// kernel forgets so many entries.
#[derive(Debug, Clone, Copy, PartialEq, Eq, FromBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct ForgetCount {
    /// By the number that the kernel was given.
    pub nodeid: u64,
    /// How many entries it had been given.
    pub nlookup: u64,
}

/// GETATTR_FH: the handle is one.
const GETATTR_FH: u32 = 1;
/// FUSE_FSYNC_FDATASYNC.
const FDATASYNC: u32 = 1;

macro_rules! arguments {
    ($($(#[$doc:meta])* struct $name:ident { $($field:ident: $kind:ty),* $(,)? })*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, FromBytes, Immutable, KnownLayout)]
        #[repr(C)]
        struct $name { $($field: $kind),* }
    )*};
}

arguments! {
    struct GetattrIn { flags: u32, dummy: u32, fh: u64 }
    struct MknodIn { mode: u32, rdev: u32, umask: u32, padding: u32 }
    struct MkdirIn { mode: u32, umask: u32 }
    struct RenameIn { newdir: u64 }
    struct Rename2In { newdir: u64, flags: u32, padding: u32 }
    struct LinkIn { oldnodeid: u64 }
    struct OpenIn { flags: u32, open_flags: u32 }
    struct CreateIn { flags: u32, mode: u32, umask: u32, open_flags: u32 }
    struct ReleaseIn { fh: u64, flags: u32, release_flags: u32, lock_owner: u64 }
    struct FlushIn { fh: u64, unused: u32, padding: u32, lock_owner: u64 }
    /// Also READDIR's and READDIRPLUS's.
    struct ReadIn {
        fh: u64,
        offset: u64,
        size: u32,
        read_flags: u32,
        lock_owner: u64,
        flags: u32,
        padding: u32,
    }
    struct WriteIn {
        fh: u64,
        offset: u64,
        size: u32,
        write_flags: u32,
        lock_owner: u64,
        flags: u32,
        padding: u32,
    }
    struct FsyncIn { fh: u64, fsync_flags: u32, padding: u32 }
    /// Without FUSE_SETXATTR_EXT.
    struct SetxattrIn { size: u32, flags: u32 }
    struct GetxattrIn { size: u32, padding: u32 }
    struct IoctlIn { fh: u64, flags: u32, cmd: u32, arg: u64, in_size: u32, out_size: u32 }
    struct FallocateIn { fh: u64, offset: u64, length: u64, mode: u32, padding: u32 }
    struct LseekIn { fh: u64, offset: u64, whence: u32, padding: u32 }
    struct CopyFileRangeIn {
        fh_in: u64,
        off_in: u64,
        nodeid_out: u64,
        fh_out: u64,
        off_out: u64,
        len: u64,
        flags: u64,
    }
    struct StatxIn { getattr_flags: u32, reserved: u32, fh: u64, sx_flags: u32, sx_mask: u32 }
    struct AccessIn { mask: u32, padding: u32 }
    struct BmapIn { block: u64, blocksize: u32, padding: u32 }
    struct PollIn { fh: u64, kh: u64, flags: u32, events: u32 }
    struct ForgetIn { nlookup: u64 }
    struct BatchForgetIn { count: u32, dummy: u32 }
}

impl<'a> Operation<'a> {
    /// Of an operation's number and arguments.
    pub(crate) fn of(number: u32, mut args: Arguments<'a>) -> Result<Operation<'a>, ArgumentError> {
        let args = &mut args;
        let handle = |flags: u32, fh| (flags & GETATTR_FH != 0).then_some(fh);
        Ok(match number {
            opcode::LOOKUP => Operation::Lookup { name: args.name()? },
            opcode::GETATTR => {
                let GetattrIn { flags, fh, .. } = args.structure()?;
                Operation::Getattr { fh: handle(flags, fh) }
            }
            opcode::SETATTR => Operation::Setattr(args.structure::<SetattrIn>()?.into()),
            opcode::READLINK => Operation::Readlink,
            opcode::SYMLINK => Operation::Symlink { name: args.name()?, target: args.name()? },
            opcode::MKNOD => {
                let MknodIn { mode, rdev, umask, .. } = args.structure()?;
                Operation::Mknod { name: args.name()?, mode, umask, rdev }
            }
            opcode::MKDIR => {
                let MkdirIn { mode, umask } = args.structure()?;
                Operation::Mkdir { name: args.name()?, mode, umask }
            }
            opcode::UNLINK => Operation::Unlink { name: args.name()? },
            opcode::RMDIR => Operation::Rmdir { name: args.name()? },
            opcode::RENAME => {
                let RenameIn { newdir: to_dir } = args.structure()?;
                let (name, to_name) = (args.name()?, args.name()?);
                Operation::Rename { name, to_dir, to_name, flags: 0 }
            }
            opcode::RENAME2 => {
                let Rename2In { newdir: to_dir, flags, .. } = args.structure()?;
                Operation::Rename { name: args.name()?, to_dir, to_name: args.name()?, flags }
            }
            opcode::LINK => {
                let LinkIn { oldnodeid: from } = args.structure()?;
                Operation::Link { from, name: args.name()? }
            }
            opcode::OPEN => {
                let OpenIn { flags, .. } = args.structure()?;
                Operation::Open { flags: flags.cast_signed() }
            }
            opcode::READ => {
                let ReadIn { fh, offset, size, flags, .. } = args.structure()?;
                Operation::Read { fh, offset, size, flags: flags.cast_signed() }
            }
            opcode::WRITE => {
                let WriteIn { fh, offset, size, write_flags, flags, .. } = args.structure()?;
                let data = args.bytes(size as usize)?;
                let write_flags = WriteFlags::from_bits_retain(write_flags);
                Operation::Write { fh, offset, data, write_flags, flags: flags.cast_signed() }
            }
            opcode::STATFS => Operation::Statfs,
            opcode::RELEASE => {
                let ReleaseIn { fh, .. } = args.structure()?;
                Operation::Release { fh }
            }
            opcode::FSYNC => {
                let FsyncIn { fh, fsync_flags, .. } = args.structure()?;
                Operation::Fsync { fh, data_only: fsync_flags & FDATASYNC != 0 }
            }
            opcode::SETXATTR => {
                let SetxattrIn { size, flags } = args.structure()?;
                let (name, value) = (args.name()?, args.bytes(size as usize)?);
                Operation::Setxattr { name, value, flags: flags.cast_signed() }
            }
            opcode::GETXATTR => {
                let GetxattrIn { size, .. } = args.structure()?;
                Operation::Getxattr { name: args.name()?, size }
            }
            opcode::LISTXATTR => {
                let GetxattrIn { size, .. } = args.structure()?;
                Operation::Listxattr { size }
            }
            opcode::REMOVEXATTR => Operation::Removexattr { name: args.name()? },
            opcode::FLUSH => {
                let FlushIn { fh, .. } = args.structure()?;
                Operation::Flush { fh }
            }
            opcode::OPENDIR => args.structure::<OpenIn>().map(|_| Operation::Opendir)?,
            opcode::READDIR | opcode::READDIRPLUS => {
                let ReadIn { offset, size, .. } = args.structure()?;
                match number {
                    opcode::READDIR => Operation::Readdir { offset, size },
                    _ => Operation::Readdirplus { offset, size },
                }
            }
            opcode::RELEASEDIR => args.structure::<ReleaseIn>().map(|_| Operation::Releasedir)?,
            opcode::FSYNCDIR => args.structure::<FsyncIn>().map(|_| Operation::Fsyncdir)?,
            opcode::ACCESS => args.structure::<AccessIn>().map(|_| Operation::Access)?,
            opcode::CREATE => {
                let CreateIn { flags, mode, umask, .. } = args.structure()?;
                Operation::Create { name: args.name()?, flags: flags.cast_signed(), mode, umask }
            }
            opcode::BMAP => args.structure::<BmapIn>().map(|_| Operation::Bmap)?,
            opcode::IOCTL => {
                let IoctlIn { flags, cmd, in_size, out_size, .. } = args.structure()?;
                let flags = IoctlFlags::from_bits_retain(flags);
                let data = args.bytes(in_size as usize)?;
                Operation::Ioctl { command: cmd, flags, data, out_size }
            }
            opcode::POLL => args.structure::<PollIn>().map(|_| Operation::Poll)?,
            opcode::FALLOCATE => {
                let FallocateIn { fh, offset, length, mode, .. } = args.structure()?;
                Operation::Fallocate { fh, offset, length, mode: mode.cast_signed() }
            }
            opcode::LSEEK => {
                let LseekIn { fh, offset, whence, .. } = args.structure()?;
                let (offset, whence) = (offset.cast_signed(), whence.cast_signed());
                Operation::Lseek { fh, offset, whence }
            }
            opcode::COPY_FILE_RANGE | opcode::COPY_FILE_RANGE_64 => {
                let c: CopyFileRangeIn = args.structure()?;
                Operation::CopyFileRange {
                    from: c.fh_in,
                    from_offset: c.off_in,
                    to_node: c.nodeid_out,
                    to: c.fh_out,
                    to_offset: c.off_out,
                    len: c.len,
                    wide: number == opcode::COPY_FILE_RANGE_64,
                }
            }
            opcode::SYNCFS => Operation::Syncfs,
            opcode::TMPFILE => {
                // The name of the folder's own entry comes behind it, empty.
                let CreateIn { flags, mode, umask, .. } = args.structure()?;
                Operation::Tmpfile { flags: flags.cast_signed(), mode, umask }
            }
            opcode::STATX => {
                let StatxIn { getattr_flags, fh, .. } = args.structure()?;
                Operation::Statx { fh: handle(getattr_flags, fh) }
            }
            _ => Operation::Unknown,
        })
    }

    /// Whether another user than who mounted may ask it where the mount is not for all: of a file
    /// that somebody who may has opened, and what the kernel does by itself.
    pub(crate) fn is_of_open_file(&self) -> bool {
        matches!(
            self,
            Operation::Read { .. }
                | Operation::Write { .. }
                | Operation::Readdir { .. }
                | Operation::Readdirplus { .. }
                | Operation::Fsync { .. }
                | Operation::Fsyncdir
                | Operation::Release { .. }
                | Operation::Releasedir
        )
    }
}

impl ForgetCount {
    /// Of FORGET and BATCH_FORGET, which have no answer; `nodeid`: the request's.
    pub(crate) fn all(
        number: u32,
        nodeid: u64,
        mut args: Arguments<'_>,
        forget: &mut dyn FnMut(ForgetCount),
    ) -> Result<(), ArgumentError> {
        if number == opcode::FORGET {
            let ForgetIn { nlookup } = args.structure()?;
            forget(ForgetCount { nodeid, nlookup });
            return Ok(());
        }
        let BatchForgetIn { count, .. } = args.structure()?;
        for _ in 0..count {
            forget(args.structure()?);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_that_are_too_short_are_malformed() {
        for number in 0..60 {
            for len in 0..64 {
                let bytes = vec![0; len];
                // Neither may panic.
                let _ = Operation::of(number, Arguments::contiguous(&bytes));
                let _ = ForgetCount::all(number, 1, Arguments::contiguous(&bytes), &mut |_| {});
            }
        }
        let whole: Vec<u8> = [7u64, 0].iter().flat_map(|n| n.to_ne_bytes()).collect();
        let write = Operation::of(opcode::WRITE, Arguments::contiguous(&whole));
        assert!(matches!(write, Err(ArgumentError)), "a write without its size");
        assert!(matches!(
            Operation::of(opcode::OPEN, Arguments::contiguous(&whole)),
            Ok(Operation::Open { flags: 7 })
        ));
    }

    #[test]
    fn a_batch_that_claims_more_than_it_has_ends() {
        let batch: Vec<u8> =
            [u64::from(u32::MAX), 5, 1].iter().flat_map(|n| n.to_ne_bytes()).collect();
        let mut seen = Vec::new();
        let outcome =
            ForgetCount::all(opcode::BATCH_FORGET, 0, Arguments::contiguous(&batch), &mut |one| {
                seen.push(one)
            });
        assert_eq!(outcome, Err(ArgumentError));
        assert_eq!(seen, [ForgetCount { nodeid: 5, nlookup: 1 }]);
    }
}
