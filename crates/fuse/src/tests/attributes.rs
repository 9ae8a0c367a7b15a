//! Attributes: times, modes, owners, extended attributes, ioctls.

use super::kernel::{Kernel, Op, ROOT, body, u32_at, u64_at};
use super::{Attr, EINVAL, ENODATA, ENOTTY, EPERM, ERANGE, O_RDWR, attr, empty, ext4, mounted};
use crate::options::Options;

const MODE: u32 = 1;
const UID: u32 = 1 << 1;
const GID: u32 = 1 << 2;
const ATIME: u32 = 1 << 4;
const MTIME: u32 = 1 << 5;
const MTIME_NOW: u32 = 1 << 8;

/// `struct fuse_setattr_in`.
fn set(kernel: &Kernel, node: u64, valid: u32, times: [(i64, u32); 2], mode: u32) -> Attr {
    let [(atime, atime_nanos), (mtime, mtime_nanos)] = times;
    let asked = body()
        .u32(valid)
        .u32(0)
        .u64(0)
        .u64(0)
        .u64(0)
        .u64(atime.cast_unsigned())
        .u64(mtime.cast_unsigned())
        .u64(0)
        .u32(atime_nanos)
        .u32(mtime_nanos)
        .u32(0)
        .u32(mode)
        .u32(0)
        .u32(1234)
        .u32(5678)
        .u32(0);
    let answer = kernel.ask(Op::Setattr, node, asked).unwrap();
    let answer = attr(&answer[16..]);
    // What is answered is what is there.
    assert_eq!(kernel.getattr(node).unwrap(), answer);
    answer
}

#[test]
fn times_survive_before_1970_and_at_the_ends_of_what_a_disk_holds() {
    /// The first and the last second of ext4's inodes of 256 bytes.
    const ENDS: [i64; 2] = [-(1 << 31), (1 << 34) - (1 << 31) - 1];
    let kernel = mounted();
    let file = kernel.create(ROOT, b"file", O_RDWR).unwrap().0.node;
    let kept = [(-2, 800_000_000), (-1, 0), (0, 1), (1 << 33, 999_999_999), (ENDS[0], 0)];
    for time in kept {
        let now = set(&kernel, file, ATIME | MTIME, [time, time], 0);
        assert_eq!((now.times[0], now.nanos[0]), time);
        assert_eq!((now.times[1], now.nanos[1]), time);
    }
    // Beyond, as ext4 of the kernel does it: the end.
    for (asked, end) in [(i64::MAX, ENDS[1]), (i64::MIN + 1, ENDS[0]), (1 << 40, ENDS[1])] {
        let now = set(&kernel, file, MTIME, [(0, 0), (asked, 0)], 0);
        assert_eq!(now.times[1], end, "{asked}");
    }
    // What is not named stays; what is to be now is now.
    let before = kernel.getattr(file).unwrap();
    let now = set(&kernel, file, MTIME | MTIME_NOW, [(7, 7), (7, 7)], 0);
    assert_eq!(now.times[0], before.times[0]);
    assert!(now.times[1] > 1_700_000_000 && now.times[2] > 1_700_000_000);
}

#[test]
fn modes_and_owners_are_what_was_set() {
    let kernel = mounted();
    let file = kernel.create(ROOT, b"file", O_RDWR).unwrap().0.node;
    // The bits of the type, which the kernel sends along, change nothing.
    let now = set(&kernel, file, MODE, [(0, 0); 2], 0o040_640);
    assert_eq!(now.mode, 0o100_640);
    let now = set(&kernel, file, UID | GID, [(0, 0); 2], 0);
    assert_eq!((now.uid, now.gid, now.mode), (1234, 5678, 0o100_640));
    // Nothing at all.
    let now = set(&kernel, file, 0, [(0, 0); 2], 0);
    assert_eq!((now.uid, now.size), (1234, 0));
}

#[test]
fn who_makes_something_owns_it() {
    let mut kernel =
        Kernel::with(ext4(), Options { threads: 1, allow_other: true, ..Options::default() });
    (kernel.uid, kernel.gid) = (1000, 100);
    let made = kernel.mkdir(ROOT, b"dir").unwrap().attr;
    assert_eq!((made.uid, made.gid), (1000, 100));
    // The umask is ours to apply: 0o027 of 0o777.
    let made = kernel.ask(Op::Mkdir, ROOT, body().u32(0o777).u32(0o027).name(b"masked")).unwrap();
    assert_eq!(attr(&made[40..]).mode, 0o40750);
}

#[test]
fn values_of_attributes_fit_or_are_refused() {
    let kernel = mounted();
    let file = kernel.create(ROOT, b"file", O_RDWR).unwrap().0.node;
    // struct fuse_setxattr_in: size, flags; name; value
    let set = |name: &[u8], value: &[u8], flags: u32| {
        let size = u32::try_from(value.len()).unwrap();
        empty(kernel.ask(Op::Setxattr, file, body().u32(size).u32(flags).name(name).bytes(value)))
    };
    let get = |op, name: &[u8], size: u32| {
        let asked = body().u32(size).u32(0);
        kernel.ask(op, file, if name.is_empty() { asked } else { asked.name(name) })
    };
    set(b"user.a", b"value", 0).unwrap();
    set(b"user.empty", b"", 0).unwrap();
    // Size 0 asks how long it is.
    assert_eq!(u32_at(&get(Op::Getxattr, b"user.a", 0).unwrap(), 0), 5);
    assert_eq!(get(Op::Getxattr, b"user.a", 4), Err(ERANGE));
    assert_eq!(get(Op::Getxattr, b"user.a", 5).unwrap(), b"value");
    assert_eq!(get(Op::Getxattr, b"user.a", u32::MAX).unwrap(), b"value");
    assert_eq!(get(Op::Getxattr, b"user.empty", 10).unwrap(), b"");
    assert_eq!(get(Op::Getxattr, b"user.none", 10), Err(ENODATA));
    assert_eq!(u32_at(&get(Op::Listxattr, b"", 0).unwrap(), 0), 18);
    assert_eq!(get(Op::Listxattr, b"", 17), Err(ERANGE));
    let names = get(Op::Listxattr, b"", 18).unwrap();
    assert_eq!(names.split(|b| *b == 0).filter(|n| !n.is_empty()).count(), 2);
    let (create, replace) = (1, 2);
    assert_eq!(set(b"user.a", b"x", create), Err(17));
    assert_eq!(set(b"user.none", b"x", replace), Err(ENODATA));
    assert_eq!(set(b"user.a", b"x", 4), Err(EINVAL));
    assert!(set(b"nonsense", b"x", 0).is_err() && set(b"user.", b"x", 0).is_err());
    assert!(set(&[b"user.".as_slice(), &[b'n'; 300]].concat(), b"x", 0).is_err());
    assert!(set(b"user.big", &[1; 100_000], 0).is_err());
    empty(kernel.ask(Op::Removexattr, file, body().name(b"user.a"))).unwrap();
    assert_eq!(kernel.ask(Op::Removexattr, file, body().name(b"user.a")), Err(ENODATA));
}

/// `struct fuse_ioctl_in`: fh, flags, cmd, arg, in_size, out_size.
pub(super) fn ioctl(
    kernel: &Kernel,
    node: u64,
    (command, flags): (u32, u32),
    data: &[u8],
    out: u32,
) -> Result<Vec<u8>, i32> {
    let size = u32::try_from(data.len()).unwrap();
    let asked = body().u64(0).u32(flags).u32(command).u64(0).u32(size).u32(out).bytes(data);
    let answer = kernel.ask(Op::Ioctl, node, asked)?;
    // struct fuse_ioctl_out: result, flags, in_iovs, out_iovs
    assert_eq!(u32_at(&answer, 0), 0);
    assert!(answer.len() - 16 <= out as usize, "{} bytes for {out}", answer.len() - 16);
    Ok(answer[16..].to_vec())
}

#[test]
fn ioctls_answer_in_the_callers_size_and_notify_the_kernel_of_changes() {
    const GETFLAGS: u32 = 0x8008_6601;
    const SETFLAGS: u32 = 0x4008_6602;
    const NODUMP: u32 = 0x40;
    let kernel = mounted();
    let file = kernel.create(ROOT, b"file", O_RDWR).unwrap().0.node;
    let ioctl = |command, data: &[u8], out| ioctl(&kernel, file, (command, 0), data, out);
    let before = u32_at(&ioctl(GETFLAGS, b"", 8).unwrap(), 0);
    ioctl(SETFLAGS, &(before | NODUMP).to_ne_bytes(), 0).unwrap();
    assert_eq!(u32_at(&ioctl(GETFLAGS, b"", 4).unwrap(), 0), before | NODUMP);
    // FUSE_NOTIFY_INVAL_INODE (2): the number, attributes only.
    let notices = kernel.notices();
    assert_eq!(notices.len(), 1);
    assert_eq!((notices[0].0, u64_at(&notices[0].1, 0)), (2, file));
    assert_eq!(u64_at(&notices[0].1, 8).cast_signed(), -1);
    // Too short an argument, one that is no flag, a command of nobody.
    assert_eq!(ioctl(SETFLAGS, &[0; 3], 0), Err(EINVAL));
    assert_eq!(ioctl(0x1234_5678, &[0; 8], 8), Err(ENOTTY));
    assert_eq!(ioctl(GETFLAGS, b"", 0).unwrap(), b"");
    // FS_IOC_GETVERSION, FS_IOC_FSGETXATTR, FS_IOC_GETFSLABEL
    assert_eq!(ioctl(0x8008_7601, b"", 8).unwrap().len(), 8);
    assert_eq!(ioctl(0x801c_581f, b"", 28).unwrap().len(), 28);
    assert_eq!(ioctl(0x8100_9431, b"", 256).unwrap().len(), 256);
}

/// Kernels before 5.13 hand these on unchecked, and later ones those of 32 bits.
#[test]
fn ioctls_change_nothing_that_is_not_the_callers() {
    /// FUSE_IOCTL_32BIT: of a caller or a kernel of 32 bits.
    const NARROW: u32 = 1 << 3;
    const NODUMP: u32 = 0x40;
    let mut kernel =
        Kernel::with(ext4(), Options { threads: 1, allow_other: true, ..Options::default() });
    (kernel.uid, kernel.gid) = (1000, 1000);
    let file = kernel.create(ROOT, b"file", O_RDWR).unwrap().0.node;
    let flags =
        |kernel: &Kernel| u32_at(&ioctl(kernel, file, (0x8008_6601, 0), b"", 4).unwrap(), 0);
    let before = flags(&kernel);
    let set = |kernel: &Kernel, number: (u32, u32), to: u32| {
        // struct fsxattr is longer.
        ioctl(kernel, file, number, &body().u32(to).bytes(&[0; 24]).0, 0)
    };
    // SETFLAGS of both widths and FSSETXATTR, each with "not to be dumped", immutable, append-only.
    let words = [before | NODUMP, before | 0x10, before | 0x20];
    let numbers = [
        ((0x4008_6602, 0), words),
        ((0x4004_6602, NARROW), words),
        ((0x401c_5820, 0), [0x80, 0x8, 0x10]),
    ];
    // Another user, of whom nothing else is known.
    (kernel.uid, kernel.gid, kernel.pid) = (1001, 1000, 0);
    for (number, [nodump, ..]) in numbers {
        assert_eq!(set(&kernel, number, nodump), Err(EPERM), "{number:x?}");
        assert_eq!(flags(&kernel), before);
    }
    // The owner; but what needs more than that he has not.
    kernel.uid = 1000;
    for (number, [nodump, immutable, append]) in numbers {
        assert_eq!(set(&kernel, number, immutable), Err(EPERM), "{number:x?}");
        assert_eq!(set(&kernel, number, append), Err(EPERM), "{number:x?}");
        set(&kernel, number, nodump).unwrap();
        assert_eq!(flags(&kernel), before | NODUMP);
        set(&kernel, (0x4008_6602, 0), before).unwrap();
    }
    assert_eq!(set(&kernel, (0x4008_6602, 0), before | 0x4000), Err(EPERM));
    // A caller of 64 bits has no numbers of 32 bits, whoever it is.
    (kernel.uid, kernel.pid) = (0, std::process::id());
    for number in [0x8004_6601, 0x4004_6602, 0x8004_7601] {
        assert_eq!(ioctl(&kernel, file, (number, 0), &[0; 4], 4), Err(ENOTTY), "{number:x}");
    }
    assert_eq!(ioctl(&kernel, file, (0x8004_7601, NARROW), b"", 4).unwrap().len(), 4);
    assert_eq!(flags(&kernel), before);
}
