//! Open files: handles, offsets at their limits, sizes, ranges.

use super::kernel::{Kernel, Op, ROOT, body, u32_at, u64_at};
use super::{EBADF, EFBIG, EINVAL, ENOSYS, ENXIO, O_RDWR, O_TRUNC, attr, empty, ext4, mounted};
use crate::options::Options;

/// Largest file of ext4 with blocks of 1 KiB or 4 KiB is below this.
const TOO_FAR: u64 = 1 << 45;

fn with_file() -> (Kernel, u64, u64) {
    let kernel = mounted();
    let (file, fh) = kernel.create(ROOT, b"file", O_RDWR).unwrap();
    (kernel, file.node, fh)
}

#[test]
fn what_is_written_is_read_at_every_offset() {
    let (kernel, file, fh) = with_file();
    let data: Vec<u8> = (0..60_000_u32).map(|n| (n % 251) as u8).collect();
    assert_eq!(kernel.write_at(file, fh, 0, &data), Ok(60_000));
    assert_eq!(kernel.write_at(file, fh, 100_000, b"behind a hole"), Ok(13));
    for (offset, size) in [(0, 4096), (1, 1), (59_999, 10), (4095, 8193), (0, 60_000)] {
        let read = kernel.read(file, fh, offset, size).unwrap();
        let from = usize::try_from(offset).unwrap();
        let mut wanted = data[from..data.len().min(from + size as usize)].to_vec();
        wanted.resize(size as usize, 0);
        assert_eq!(read, wanted, "{size} bytes at {offset}");
    }
    assert_eq!(kernel.read(file, fh, 70_000, 100).unwrap(), [0; 100]);
    // At the end there is less, and behind it nothing.
    assert_eq!(kernel.read(file, fh, 100_000, 4096).unwrap(), b"behind a hole");
    assert_eq!(kernel.read(file, fh, 100_013, 4096).unwrap(), b"");
    assert_eq!(kernel.read(file, fh, 0, 0).unwrap(), b"");
    assert_eq!(kernel.write_at(file, fh, 7, b""), Ok(0));
    kernel.fsync(file, fh).unwrap();
    assert_eq!(kernel.getattr(file).unwrap().size, 100_013);
}

#[test]
fn offsets_at_their_limits_are_refused_and_change_nothing() {
    let (kernel, file, fh) = with_file();
    kernel.write_at(file, fh, 0, b"four").unwrap();
    let largest = u64::MAX >> 1;
    for offset in [TOO_FAR, largest - 1, largest] {
        assert_eq!(kernel.read(file, fh, offset, 4096).unwrap(), b"", "{offset}");
        assert_eq!(kernel.write_at(file, fh, offset, b"x"), Err(EFBIG), "{offset}");
        let errno = kernel.ask(Op::Setattr, file, set_size(offset)).unwrap_err();
        assert!(matches!(errno, EFBIG | EINVAL), "{offset}: {errno}");
    }
    // Negative ones, as the kernel never sends them.
    for offset in [largest + 1, u64::MAX] {
        assert_eq!(kernel.read(file, fh, offset, 4096), Err(EINVAL), "{offset}");
        assert_eq!(kernel.write_at(file, fh, offset, b"x"), Err(EINVAL), "{offset}");
        assert!(kernel.ask(Op::Setattr, file, set_size(offset)).is_err(), "{offset}");
    }
    assert_eq!(kernel.getattr(file).unwrap().size, 4);
    assert_eq!(kernel.read(file, fh, 0, u32::MAX >> 12).unwrap(), b"four");
}

/// `struct fuse_setattr_in` with FATTR_SIZE.
fn set_size(size: u64) -> super::kernel::Body {
    body().u32(1 << 3).u32(0).u64(0).u64(size).bytes(&[0; 64])
}

#[test]
fn a_file_is_cut_and_grown() {
    let (kernel, file, fh) = with_file();
    kernel.write_at(file, fh, 0, &[7; 9000]).unwrap();
    for size in [5000, 0, 20_000, 4097] {
        let now = kernel.ask(Op::Setattr, file, set_size(size)).unwrap();
        assert_eq!(attr(&now[16..]).size, size);
    }
    assert_eq!(kernel.read(file, fh, 0, 8192).unwrap(), [0; 4097]);
    kernel.write_at(file, fh, 0, &[7; 9000]).unwrap();
    // FUSE_ATOMIC_O_TRUNC: the open itself cuts.
    let second = kernel.open(file, O_RDWR | O_TRUNC).unwrap();
    assert_eq!(kernel.getattr(file).unwrap().size, 0);
    assert_eq!(kernel.read(file, fh, 0, 100).unwrap(), b"");
    kernel.release(file, second).unwrap();
}

#[test]
fn handles_that_are_not_open_are_refused() {
    let (kernel, file, fh) = with_file();
    let read_only = kernel.open(file, 0).unwrap();
    assert_eq!(kernel.write_at(file, read_only, 0, b"x"), Err(EBADF));
    kernel.release(file, fh).unwrap();
    for gone in [fh, fh + 1000, u64::MAX] {
        assert_eq!(kernel.read(file, gone, 0, 10), Err(EBADF));
        assert_eq!(kernel.write_at(file, gone, 0, b"x"), Err(EBADF));
        assert_eq!(kernel.fsync(file, gone), Err(EBADF));
        // struct fuse_fallocate_in: fh, offset, length, mode, padding
        let grow = body().u64(gone).u64(0).u64(100).u32(0).u32(0);
        assert_eq!(kernel.ask(Op::Fallocate, file, grow), Err(EBADF));
        let _ = kernel.release(file, gone);
    }
    // A folder is no file.
    let errno = kernel.open(ROOT, O_RDWR).unwrap_err();
    assert_eq!(errno, 21);
    assert_eq!(kernel.read(file, read_only, 0, 10).unwrap(), b"");
}

#[test]
fn a_file_without_a_name_lives_until_it_is_closed() {
    let (kernel, file, fh) = with_file();
    kernel.write_at(file, fh, 0, b"still here").unwrap();
    kernel.unlink(ROOT, b"file").unwrap();
    assert_eq!(kernel.lookup(ROOT, b"file").unwrap().node, 0);
    assert_eq!(kernel.getattr(file).unwrap().nlink, 0);
    assert_eq!(kernel.read(file, fh, 0, 100).unwrap(), b"still here");
    kernel.fsync(file, fh).unwrap();
    kernel.release(file, fh).unwrap();
    assert_eq!(kernel.getattr(file).unwrap().nlink, 0);
    kernel.forget(file, 1);
    // Not before what is forgotten has been deleted.
    kernel.ask(Op::Statfs, ROOT, body()).unwrap();
    assert!(kernel.getattr(file).is_err());
}

#[test]
fn holes_are_punched_and_found() {
    const KEEP_SIZE: u32 = 1;
    const PUNCH_HOLE: u32 = 2;
    let (kernel, file, fh) = with_file();
    kernel.write_at(file, fh, 0, &[7; 32 << 10]).unwrap();
    kernel.fsync(file, fh).unwrap();
    let allocate = |offset: u64, len: u64, mode: u32| {
        empty(kernel.ask(Op::Fallocate, file, body().u64(fh).u64(offset).u64(len).u32(mode).u32(0)))
    };
    allocate(8 << 10, 8 << 10, PUNCH_HOLE | KEEP_SIZE).unwrap();
    // struct fuse_lseek_in: fh, offset, whence, padding
    let seek = |offset: u64, whence: u32| {
        let found = kernel.ask(Op::Lseek, file, body().u64(fh).u64(offset).u32(whence).u32(0))?;
        assert_eq!(found.len(), 8);
        Ok::<u64, i32>(u64_at(&found, 0))
    };
    let (data, hole) = (3, 4);
    assert_eq!(seek(0, hole), Ok(8 << 10));
    assert_eq!(seek(8 << 10, data), Ok(16 << 10));
    assert_eq!(seek(17 << 10, hole), Ok(32 << 10));
    for offset in [32 << 10, u64::MAX >> 1, u64::MAX] {
        assert_eq!(seek(offset, data), Err(ENXIO), "{offset}");
    }
    assert_eq!(seek(0, 9), Err(EINVAL));
    assert!(allocate(0, 4096, PUNCH_HOLE).is_err(), "a hole that would change the size");
    assert!(allocate(0, 4096, 1 << 12).is_err());
    assert_eq!(allocate(0, 0, 0), Err(EINVAL));
    let errno = allocate(u64::MAX >> 1, 4096, 0).unwrap_err();
    assert!(matches!(errno, EFBIG | EINVAL), "{errno}");
    allocate(0, 64 << 10, 0).unwrap();
    assert_eq!(kernel.getattr(file).unwrap().size, 64 << 10);
}

/// With writeback_cache the kernel reads through files that are open for writing only, and knows
/// sizes and pages that we do not.
#[test]
fn write_back_caching_reads_what_it_writes_and_seeks_itself() {
    const O_WRONLY: u32 = 1;
    const O_APPEND: u32 = 0o2000;
    let options = Options { threads: 1, writeback_cache: true, ..Options::default() };
    let kernel = Kernel::with(ext4(), options);
    let (file, made) = kernel.create(ROOT, b"file", O_WRONLY | O_APPEND).unwrap();
    kernel.write_at(file.node, made, 0, b"some text").unwrap();
    let again = kernel.open(file.node, O_WRONLY | O_APPEND).unwrap();
    for fh in [made, again] {
        // A page has its own place, whatever O_APPEND says.
        kernel.write_at(file.node, fh, 0, b"SOME").unwrap();
        assert_eq!(kernel.read(file.node, fh, 0, 4096).unwrap(), b"SOME text");
    }
    for whence in [3, 4] {
        let asked = body().u64(again).u64(0).u32(whence).u32(0);
        assert_eq!(kernel.ask(Op::Lseek, file.node, asked), Err(ENOSYS));
    }
    // Without it the two stay apart.
    let kernel = mounted();
    let (file, fh) = kernel.create(ROOT, b"file", O_WRONLY).unwrap();
    assert_eq!(kernel.read(file.node, fh, 0, 4096), Err(EBADF));
}

#[test]
fn a_range_is_copied_as_far_as_it_goes() {
    let (kernel, from, fh) = with_file();
    kernel.write_at(from, fh, 0, &[5; 10_000]).unwrap();
    let (to, to_fh) = kernel.create(ROOT, b"copy", O_RDWR).unwrap();
    // struct fuse_copy_file_range_in
    let copy = |at: u64, len: u64, to_at: u64, to_fh: u64| {
        let asked = body().u64(fh).u64(at).u64(to.node).u64(to_fh).u64(to_at).u64(len).u64(0);
        kernel.ask(Op::CopyFileRange, from, asked).map(|answer| u32_at(&answer, 0))
    };
    assert_eq!(copy(1000, 5000, 0, to_fh), Ok(5000));
    assert_eq!(copy(9000, u64::MAX >> 1, 5000, to_fh), Ok(1000));
    assert_eq!(copy(10_000, 100, 0, to_fh), Ok(0));
    assert_eq!(copy(0, 100, 0, to_fh + 999), Err(EBADF));
    assert_eq!(copy(0, 100, TOO_FAR, to_fh), Err(EFBIG));
    assert_eq!(kernel.read(to.node, to_fh, 0, 10_000).unwrap(), [5; 6000]);
}
