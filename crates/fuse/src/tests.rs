//! The bridge under requests as the kernel sends them, and as it does not ([`kernel`]): over ext4
//! in memory, and over a file system that fails, waits or panics by a script ([`scripted`]).

mod attributes;
mod files;
mod folders;
mod handshake;
mod kernel;
mod nameless;
mod names;
mod points;
mod protected;
mod scripted;
mod slow;
mod wrong;

use std::sync::Arc;

use steadfast_block::BlockDevice;
use steadfast_devices::source::Ram;
use steadfast_ext4::{Ext4, MountOptions};
use steadfast_ext4_mkfs::{Options, make};
use steadfast_vfs::FileSystem;

use self::kernel::{Answer, Kernel, Op, body, u32_at, u64_at};

/// A new ext4 in memory.
fn ext4() -> Arc<dyn FileSystem> {
    let device: Arc<dyn BlockDevice> = Arc::new(Ram::new("disk", 32 << 20));
    make(&device, &Options::random(1_700_000_000)).unwrap();
    Ext4::mount(device, MountOptions::default()).unwrap()
}

/// A kernel with a new ext4 mounted.
fn mounted() -> Kernel {
    Kernel::over(ext4())
}

/// `struct fuse_entry_out`: number, generation, and the attributes behind both times of validity.
struct Entry {
    node: u64,
    generation: u64,
    entry_valid: u64,
    attr: Attr,
}

/// `struct fuse_attr`.
#[derive(Debug, PartialEq, Eq)]
struct Attr {
    ino: u64,
    size: u64,
    blocks: u64,
    times: [i64; 3],
    nanos: [u32; 3],
    mode: u32,
    nlink: u32,
    uid: u32,
    gid: u32,
    rdev: u32,
}

const ATTR: usize = 88;
const ENTRY: usize = 40 + ATTR;

fn attr(b: &[u8]) -> Attr {
    assert!(b.len() >= ATTR);
    let time = |at| u64_at(b, at).cast_signed();
    Attr {
        ino: u64_at(b, 0),
        size: u64_at(b, 8),
        blocks: u64_at(b, 16),
        times: [time(24), time(32), time(40)],
        nanos: [u32_at(b, 48), u32_at(b, 52), u32_at(b, 56)],
        mode: u32_at(b, 60),
        nlink: u32_at(b, 64),
        uid: u32_at(b, 68),
        gid: u32_at(b, 72),
        rdev: u32_at(b, 76),
    }
}

fn entry(b: &[u8]) -> Entry {
    let (node, generation) = (u64_at(b, 0), u64_at(b, 8));
    Entry { node, generation, entry_valid: u64_at(b, 16), attr: attr(&b[40..]) }
}

impl Kernel {
    fn lookup(&self, dir: u64, name: &[u8]) -> Result<Entry, i32> {
        let answer = self.ask(Op::Lookup, dir, body().name(name))?;
        assert_eq!(answer.len(), ENTRY);
        Ok(entry(&answer))
    }

    fn getattr(&self, node: u64) -> Result<Attr, i32> {
        // struct fuse_getattr_in
        let answer = self.ask(Op::Getattr, node, body().u32(0).u32(0).u64(0))?;
        assert_eq!(answer.len(), 16 + ATTR);
        Ok(attr(&answer[16..]))
    }

    fn mkdir(&self, dir: u64, name: &[u8]) -> Result<Entry, i32> {
        // struct fuse_mkdir_in: mode, umask
        self.ask(Op::Mkdir, dir, body().u32(0o755).u32(0).name(name)).map(|b| entry(&b))
    }

    /// Makes a file; its entry and handle.
    fn create(&self, dir: u64, name: &[u8], flags: u32) -> Result<(Entry, u64), i32> {
        // struct fuse_create_in: flags, mode, umask, open_flags
        let asked = body().u32(flags | O_CREAT).u32(0o100_644).u32(0).u32(0).name(name);
        let answer = self.ask(Op::Create, dir, asked)?;
        assert_eq!(answer.len(), ENTRY + 16);
        Ok((entry(&answer), u64_at(&answer, ENTRY)))
    }

    fn open(&self, node: u64, flags: u32) -> Result<u64, i32> {
        let answer = self.ask(Op::Open, node, body().u32(flags).u32(0))?;
        assert_eq!(answer.len(), 16);
        Ok(u64_at(&answer, 0))
    }

    fn read(&self, node: u64, fh: u64, offset: u64, size: u32) -> Answer {
        // struct fuse_read_in: fh, offset, size, read_flags, lock_owner, flags, padding
        let asked = body().u64(fh).u64(offset).u32(size).u32(0).u64(0).u32(0).u32(0);
        let answer = self.ask(Op::Read, node, asked)?;
        assert!(answer.len() <= size as usize);
        Ok(answer)
    }

    fn write_at(&self, node: u64, fh: u64, offset: u64, data: &[u8]) -> Result<u32, i32> {
        // struct fuse_write_in: fh, offset, size, write_flags, lock_owner, flags, padding
        let size = u32::try_from(data.len()).unwrap();
        let asked = body().u64(fh).u64(offset).u32(size).u32(0).u64(0).u32(0).u32(0);
        let answer = self.ask(Op::Write, node, asked.bytes(data))?;
        assert_eq!(answer.len(), 8);
        Ok(u32_at(&answer, 0))
    }

    fn fsync(&self, node: u64, fh: u64) -> Result<(), i32> {
        empty(self.ask(Op::Fsync, node, body().u64(fh).u32(0).u32(0)))
    }

    fn release(&self, node: u64, fh: u64) -> Result<(), i32> {
        empty(self.ask(Op::Release, node, body().u64(fh).u32(O_RDWR).u32(0).u64(0)))
    }

    fn unlink(&self, dir: u64, name: &[u8]) -> Result<(), i32> {
        empty(self.ask(Op::Unlink, dir, body().name(name)))
    }

    fn rename(
        &self,
        (from_dir, from): (u64, &[u8]),
        (to_dir, to): (u64, &[u8]),
        flags: u32,
    ) -> Result<(), i32> {
        // struct fuse_rename2_in: newdir, flags, padding
        let asked = body().u64(to_dir).u32(flags).u32(0).name(from).name(to);
        empty(self.ask(Op::Rename2, from_dir, asked))
    }

    fn forget(&self, node: u64, lookups: u64) {
        self.send(Op::Forget, node, body().u64(lookups));
    }
}

/// An answer without anything in it.
fn empty(answer: Answer) -> Result<(), i32> {
    assert_eq!(answer?, b"");
    Ok(())
}

const O_RDWR: u32 = 2;
const O_CREAT: u32 = 0o100;
const O_EXCL: u32 = 0o200;
const O_TRUNC: u32 = 0o1000;

const EPERM: i32 = 1;
const ENOENT: i32 = 2;
const EIO: i32 = 5;
const EBADF: i32 = 9;
const EACCES: i32 = 13;
const EEXIST: i32 = 17;
const ENOTDIR: i32 = 20;
const EINVAL: i32 = 22;
const EFBIG: i32 = 27;
const ERANGE: i32 = 34;
const ENAMETOOLONG: i32 = 36;
const ENOSYS: i32 = 38;
const ENOTEMPTY: i32 = 39;
const ENODATA: i32 = 61;
const ESTALE: i32 = 116;
const ENOTTY: i32 = 25;
const ENXIO: i32 = 6;
