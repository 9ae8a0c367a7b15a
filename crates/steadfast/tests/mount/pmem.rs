//! Ranges of memory: made, formatted, mounted with files in place, killed, taken away.

use std::fs;
use std::os::unix::fs::FileExt;

use rustix::process::{Signal, kill_process};
use tempfile::TempDir;

use super::bench::{Bench, lives, until};

/// A bench, and a folder in memory.
fn in_memory() -> Option<(Bench, TempDir)> {
    let b = Bench::with_image("1m")?;
    Some((b, tempfile::tempdir_in("/dev/shm").unwrap()))
}

#[test]
fn a_range_is_made_mounted_in_place_and_says_that_it_is_not_persistent() {
    let Some((b, folder)) = in_memory() else { return };
    let x = folder.path().join("x").display().to_string();
    let said = |line: &str| {
        let out = b.run(line);
        let told = String::from_utf8_lossy(&out.stderr);
        assert!(out.status.success() && told.contains("not persistent"), "{line}: {out:?}");
    };
    said(&format!("pmem create --emulate 96m {x}"));
    let listed = b.good(&format!("pmem list {}", folder.path().display()));
    assert!(listed.contains("raw") && listed.contains("not persistent"), "{listed}");
    assert!(b.good(&format!("pmem info {x}")).contains("words of 8 bytes"));
    said(&format!("mkfs {x}"));
    said(&format!("mount -o dax=always {x} m"));
    assert!(b.good("status m").contains("dax=always"));
    let data: Vec<u8> = (0..300_001u32).map(|i| (i % 251) as u8 | 1).collect();
    fs::write(b.at().join("f"), &data).unwrap();
    let file = fs::OpenOptions::new().read(true).write(true).open(b.at().join("f")).unwrap();
    file.write_all_at(b"in the middle", 100_000).unwrap();
    file.sync_all().unwrap();
    // A program's mapping is the kernel's page cache; what it writes arrives all the same.
    let mut expected = data;
    expected[100_000..100_013].copy_from_slice(b"in the middle");
    assert_eq!(fs::read(b.at().join("f")).unwrap(), expected);
    drop(file);
    let held = b.bad(&format!("pmem destroy --force {x}"), 2);
    assert!(held.contains("in use"), "{held}");
    b.good("umount m");
    let checked = std::process::Command::new("e2fsck").args(["-fn", &x]).output().unwrap();
    assert!(checked.status.success(), "{checked:?}");
    let refused = b.bad(&format!("pmem destroy {x}"), 2);
    assert!(refused.contains("holds a file system"), "{refused}");
    b.good(&format!("pmem destroy --force {x}"));
    assert!(!folder.path().join("x").exists());
}

#[test]
fn a_killed_mount_in_place_keeps_what_was_synced() {
    let Some((b, folder)) = in_memory() else { return };
    let x = folder.path().join("x").display().to_string();
    b.good(&format!("pmem create --emulate 96m {x}"));
    b.good(&format!("mkfs {x}"));
    b.good(&format!("mount -o dax=always {x} m"));
    let file = fs::File::create(b.at().join("kept")).unwrap();
    for n in 0..200u64 {
        file.write_all_at(&[n as u8; 1000], n * 1000).unwrap();
    }
    file.sync_all().unwrap();
    let process = b.process();
    kill_process(process, Signal::KILL).unwrap();
    until("the process ends", || !lives(process));
    drop(file);
    b.good("umount m");
    b.good(&format!("mount -o dax=always {x} m"));
    let kept = fs::read(b.at().join("kept")).unwrap();
    assert_eq!(kept.len(), 200_000);
    assert!(kept.chunks(1000).zip(0..200u8).all(|(part, n)| part.iter().all(|b| *b == n)));
    b.good("umount m");
    b.good(&format!("check {x}"));
}

#[test]
fn a_sector_namespace_holds_a_file_system_and_is_checked() {
    let Some((b, folder)) = in_memory() else { return };
    let y = folder.path().join("y").display().to_string();
    b.good(&format!("pmem create --emulate 96m --mode sector --sector 512 {y}"));
    b.good(&format!("mkfs {y}"));
    b.good(&format!("mount {y} m"));
    fs::write(b.at().join("f"), vec![7; 200_000]).unwrap();
    b.good("umount m");
    assert!(b.good(&format!("pmem check {y}")).contains("clean"));
    assert!(b.good(&format!("check {y}")).contains("clean"));
    // Nothing can be used in place there.
    let refused = b.bad(&format!("mount -o dax=always {y} m"), 2);
    assert!(refused.contains("is not memory"), "{refused}");
    // Its map is damaged: told, and where.
    let file = fs::OpenOptions::new().write(true).open(&y).unwrap();
    let size = file.metadata().unwrap().len() - (128 << 10);
    file.write_all_at(&[0x5a; 64], size - 4096 - 64 * 256).unwrap();
    drop(file);
    let out = b.run(&format!("pmem check {y}"));
    let told = String::from_utf8_lossy(&out.stdout);
    assert!(out.status.code() == Some(1) && told.contains("byte"), "{out:?}");
}

#[test]
fn what_is_no_range_is_refused_and_stays() {
    let Some((b, folder)) = in_memory() else { return };
    let file = folder.path().join("file");
    fs::write(&file, [1; 5000]).unwrap();
    let path = file.display().to_string();
    for (line, status, what) in [
        (format!("pmem create --emulate 1m {path}"), 2, "File exists"),
        (format!("pmem create --emulate 64k {path}2"), 2, "label of 128k"),
        (format!("pmem create --emulate much {path}2"), 2, "--emulate much"),
        (format!("pmem create --emulate 1m --mode sector --sector 520 {path}2"), 2, "512 or 4096"),
        ("pmem create --emulate 1m /no/such/folder/x".to_owned(), 2, "No such file"),
        (format!("pmem create --emulate 1m --name {} {path}2", "n".repeat(64)), 2, "63"),
        (format!("pmem destroy {path}"), 2, "no label"),
        (format!("pmem info {path}3"), 2, "No such file"),
        (format!("pmem list {path}"), 2, "Not a directory"),
        ("pmem info /dev/null".to_owned(), 2, "no DAX device"),
        (format!("mount -o dax=sometimes {path} m"), 2, "never, inode or always"),
    ] {
        let told = b.bad(&line, status);
        assert!(told.contains(what), "{line}: {told}");
    }
    assert_eq!(fs::read(&file).unwrap(), [1; 5000]);
    assert!(!folder.path().join("file2").exists());
}
