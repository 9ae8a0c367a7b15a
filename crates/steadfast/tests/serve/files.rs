//! Devices and volumes as files.

use std::os::unix::fs::FileExt;
use std::process::Command;

use super::{Desk, pattern};

#[test]
fn two_writers_in_one_block_do_not_lose_each_others_bytes() {
    let mut desk = Desk::new(&["a"], "[volume.d10]\ncomponents = [\"a\"]\n");
    desk.start();
    let (one, two) = (desk.file("dsk/d10"), desk.file("rdsk/d10"));
    let write = |file: &std::fs::File, first: u64| {
        for at in (first..1 << 12).step_by(2) {
            file.write_all_at(&[first as u8 + 1], at).unwrap();
        }
    };
    std::thread::scope(|scope| {
        scope.spawn(|| write(&one, 0));
        scope.spawn(|| write(&two, 1));
    });
    let expected: Vec<u8> = (0..1 << 12).map(|n| (n % 2) as u8 + 1).collect();
    assert!(desk.read("dsk/d10", 0, 1 << 12) == expected);
}

#[test]
fn dd_writes_and_a_file_keeps_its_size() {
    let mut desk = Desk::new(&["a"], "[ramdisk.r0]\nsize = \"1m\"\n");
    desk.start();
    std::fs::write(desk.path().join("in"), pattern(2, 300_001)).unwrap();
    let dd = |of: &str, more: &[&str]| {
        let (from, to) = (desk.path().join("in"), desk.tree().join(of));
        let mut dd = Command::new("dd");
        dd.arg(format!("if={}", from.display())).arg(format!("of={}", to.display())).args(more);
        dd.output().unwrap()
    };
    let out = dd("ramdisk/r0", &["bs=1000", "conv=fsync"]);
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    assert!(desk.read("dsk/r0", 0, 300_001) == pattern(2, 300_001));
    assert_eq!(desk.tree().join("dsk/r0").metadata().unwrap().len(), 1 << 20);
    let out = dd("ramdisk/r0", &["bs=1000", "seek=1000"]);
    let errors = String::from_utf8_lossy(&out.stderr).into_owned();
    assert!(!out.status.success() && errors.contains("No space left"), "{errors}");
}

#[test]
fn a_hole_reads_as_zeros_whatever_its_ends() {
    use rustix::fs::{FallocateFlags, fallocate};
    let mut desk = Desk::new(&["a"], "[volume.d10]\ncomponents = [\"a\"]\n");
    desk.start();
    let file = desk.file("dsk/d10");
    let mut data = pattern(3, 1 << 20);
    file.write_all_at(&data, 0).unwrap();
    let punch = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
    fallocate(&file, punch, 1001, 700_000).unwrap();
    data[1001..701_001].fill(0);
    assert!(desk.read("dsk/d10", 0, 1 << 20) == data);
}

#[test]
fn a_component_is_written_to_by_its_volume_alone() {
    let mut desk = Desk::new(&["a"], "[volume.d10]\ncomponents = [\"a\"]\n");
    desk.start();
    desk.read("dsk/a", 0, 4096);
    let refused = std::fs::OpenOptions::new().write(true).open(desk.tree().join("dsk/a"));
    assert_eq!(refused.unwrap_err().kind(), std::io::ErrorKind::ResourceBusy);
    desk.bad("host remove-device a", 2, "a: is a component of 'd10'");
}
