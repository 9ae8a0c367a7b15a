//! Storage of files: what allocation promises, and what is refused.

use steadfast::{Error, FileSystem, Image, OpenOptions};

const BLOCK: u64 = 4096;

fn memory() -> FileSystem {
    Image::in_memory(16 << 20).mount().unwrap()
}

fn errno<T: std::fmt::Debug>(done: Result<T, Error>) -> i32 {
    done.unwrap_err().errno()
}

#[test]
fn ranges_that_cannot_be_are_refused_as_by_the_kernel_and_change_nothing() {
    let fs = memory();
    let file = fs.create("/file").unwrap();
    file.write_all_at(&[7; 3 * BLOCK as usize], 0).unwrap();
    for (failed, what) in [
        (errno(file.allocate(0, 0)), "no bytes"),
        (errno(file.punch_hole(0, 0)), "no bytes"),
        (errno(file.collapse_range(1, BLOCK)), "not aligned"),
        (errno(file.collapse_range(2 * BLOCK, BLOCK)), "to the end"),
        (errno(file.insert_range(3 * BLOCK, BLOCK)), "at the end"),
        (errno(file.insert_range(0, 1)), "not aligned"),
    ] {
        assert_eq!(failed, libc::EINVAL, "{what}");
    }
    assert_eq!(errno(file.allocate(i64::MAX as u64, 2)), libc::EFBIG);
    assert_eq!(errno(file.allocate(0, u64::MAX)), libc::EINVAL);
    // Negative as an off_t.
    for at in [1 << 63, u64::MAX] {
        assert_eq!(errno(file.write_at(b"x", at)), libc::EINVAL);
        assert_eq!(errno(fs.open("/file").unwrap().read_at(&mut [0], at)), libc::EINVAL);
        assert_eq!(errno(file.set_len(at)), libc::EINVAL);
        assert_eq!(errno(file.allocate(at, 1)), libc::EINVAL);
    }
    assert_eq!(errno(file.write_at(b"x", i64::MAX as u64)), libc::EFBIG);
    assert_eq!(errno(file.allocate(0, 1 << 62)), libc::EFBIG);
    assert_eq!(errno(file.allocate(0, 1 << 30)), libc::ENOSPC);
    drop(file);
    let kept = fs.read("/file").unwrap();
    assert!(kept[..3 * BLOCK as usize].iter().all(|b| *b == 7));

    let reader = fs.open("/file").unwrap();
    assert_eq!(errno(reader.allocate(0, 1)), libc::EBADF);
    assert_eq!(errno(reader.punch_hole(0, 1)), libc::EBADF);
    assert_eq!(reader.seek_hole(u64::MAX).unwrap(), None);
    assert_eq!(reader.seek_data(u64::MAX).unwrap(), None);
    let folder = fs.open("/").unwrap();
    assert_eq!(errno(folder.allocate(0, 1)), libc::EISDIR);
    assert_eq!(errno(folder.seek_data(0)), libc::EISDIR);
    drop((reader, folder));
    fs.unmount().unwrap();
}

#[test]
fn what_was_allocated_is_there_when_all_else_is_full() {
    let fs = memory();
    let kept = fs.create("/kept").unwrap();
    kept.allocate_keep_size(0, 1 << 20).unwrap();
    let all = fs.create("/all").unwrap();
    let mut at = 0;
    while all.write_all_at(&[1; 1 << 16], at).is_ok() && all.sync_data().is_ok() {
        at += 1 << 16;
    }
    kept.write_all_at(&[2; 1 << 20], 0).unwrap();
    kept.sync_all().unwrap();
    drop((kept, all));
    assert_eq!(fs.read("/kept").unwrap(), [2; 1 << 20]);
    fs.unmount().unwrap();
}

#[test]
fn a_copy_finds_data_and_holes_by_turns() {
    let fs = memory();
    let options = OpenOptions::new().read(true).write(true).create(true).clone();
    let file = options.open(&fs, "/sparse").unwrap();
    file.write_all_at(&[1; BLOCK as usize], 4 * BLOCK).unwrap();
    file.write_all_at(&[2; BLOCK as usize], 9 * BLOCK).unwrap();
    file.set_len(20 * BLOCK).unwrap();
    let (mut found, mut at) = (Vec::new(), 0);
    while let Some(data) = file.seek_data(at).unwrap() {
        at = file.seek_hole(data).unwrap().unwrap();
        found.push((data / BLOCK, at / BLOCK));
    }
    assert_eq!(found, [(4, 5), (9, 10)]);
    file.sync_all().unwrap();
    let extents = file.extents(0, u64::MAX).unwrap();
    let stored: Vec<u64> = extents.iter().map(|e| e.logical / BLOCK).collect();
    assert_eq!(stored, [4, 9]);
    drop(file);
    fs.unmount().unwrap();
}
