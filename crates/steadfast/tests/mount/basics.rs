//! What works on a mount.

use std::fs::{self, File, OpenOptions};
use std::io::{Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt, PermissionsExt, symlink};
use std::os::unix::process::CommandExt;

use rustix::fs::{RenameFlags, renameat_with};
use rustix::io::Errno;

use super::bench::{Bench, lives};

#[test]
fn files_and_folders_come_back_after_unmount() {
    let Some(b) = Bench::with_image("64m") else { return };
    b.good("mount disk.img m");
    let m = b.at();
    let data: Vec<u8> = (0..3_000_001u32).map(|i| (i % 251) as u8).collect();
    fs::create_dir_all(m.join("a/b")).unwrap();
    fs::write(m.join("a/b/big"), &data).unwrap();
    fs::write(m.join("old"), "text").unwrap();
    fs::rename(m.join("old"), m.join("a/new")).unwrap();
    fs::hard_link(m.join("a/new"), m.join("link")).unwrap();
    symlink("a/b/big", m.join("sym")).unwrap();
    assert_eq!(fs::metadata(m.join("link")).unwrap().nlink(), 2);
    assert_eq!(fs::metadata(m.join("sym")).unwrap().len(), data.len() as u64);
    let process = b.process();
    b.good("umount m");
    assert!(!lives(process), "umount returns when the process has ended");
    b.e2fsck_is_clean("disk.img");
    b.good("mount disk.img m -o ro");
    assert_eq!(fs::read(m.join("sym")).unwrap(), data);
    assert_eq!(fs::read_to_string(m.join("link")).unwrap(), "text");
    let refused = fs::write(m.join("new"), "x").unwrap_err();
    assert_eq!(refused.raw_os_error(), Some(Errno::ROFS.raw_os_error()));
    b.good("umount m");
}

#[test]
fn attributes_are_what_was_set() {
    let Some(b) = Bench::with_image("32m") else { return };
    b.good("mount disk.img m");
    let file = b.at().join("f");
    fs::write(&file, "0123456789").unwrap();
    fs::set_permissions(&file, fs::Permissions::from_mode(0o6755)).unwrap();
    assert_eq!(fs::metadata(&file).unwrap().mode() & 0o7777, 0o6755);
    std::os::unix::fs::chown(&file, Some(1000), Some(1001)).unwrap();
    let meta = fs::metadata(&file).unwrap();
    assert_eq!((meta.uid(), meta.gid()), (1000, 1001));
    assert_eq!(meta.mode() & 0o7777, 0o755, "giving away takes the set-id bits");
    let handle = OpenOptions::new().write(true).open(&file).unwrap();
    handle.set_len(4).unwrap();
    assert_eq!(fs::read_to_string(&file).unwrap(), "0123");
    let before_1970 = std::time::UNIX_EPOCH - std::time::Duration::from_millis(1500);
    handle.set_modified(before_1970).unwrap();
    let meta = fs::metadata(&file).unwrap();
    assert_eq!((meta.mtime(), meta.mtime_nsec()), (-2, 500_000_000));
    let long = "x".repeat(256);
    let refused = fs::create_dir(b.at().join(long)).unwrap_err();
    assert_eq!(refused.raw_os_error(), Some(Errno::NAMETOOLONG.raw_os_error()));
    let dir = File::open(b.at()).unwrap();
    fs::write(b.at().join("g"), "g").unwrap();
    let refused = renameat_with(&dir, "f", &dir, "g", RenameFlags::NOREPLACE);
    assert_eq!(refused, Err(Errno::EXIST));
    renameat_with(&dir, "f", &dir, "g", RenameFlags::EXCHANGE).unwrap();
    assert_eq!(fs::read_to_string(b.at().join("f")).unwrap(), "g");
    drop((handle, dir));
    b.good("umount m");
    b.e2fsck_is_clean("disk.img");
}

#[test]
fn another_user_and_what_a_write_takes_away() {
    let Some(b) = Bench::with_image("32m") else { return };
    // Temporary folders are for their owner only.
    let everybody = fs::Permissions::from_mode(0o755);
    fs::set_permissions(b.path(""), everybody).unwrap();
    b.good("mount disk.img m -o allow_other,suid");
    let (file, secret) = (b.at().join("f"), b.at().join("secret"));
    fs::write(&file, "x").unwrap();
    fs::write(&secret, "x").unwrap();
    fs::set_permissions(&file, fs::Permissions::from_mode(0o4777)).unwrap();
    fs::set_permissions(&secret, fs::Permissions::from_mode(0o600)).unwrap();
    let nobody = |command: &str| {
        let mut shell = std::process::Command::new("sh");
        shell.args(["-c", command]).current_dir(b.at()).uid(65534).gid(65534);
        shell.stderr(std::process::Stdio::null()).status().unwrap().success()
    };
    assert!(nobody("echo y >> f"));
    assert_eq!(fs::metadata(&file).unwrap().mode() & 0o7777, 0o777);
    assert!(!nobody("cat secret"));
    assert!(!nobody("rm secret"));
    b.good("umount m");
    b.e2fsck_is_clean("disk.img");
}

#[test]
fn a_removed_folder_can_still_be_stood_in() {
    let Some(b) = Bench::with_image("32m") else { return };
    b.good("mount disk.img m");
    fs::create_dir(b.at().join("d")).unwrap();
    let inside = File::open(b.at().join("d")).unwrap();
    fs::remove_dir(b.at().join("d")).unwrap();
    let meta = inside.metadata().unwrap();
    assert!(meta.is_dir());
    assert_eq!(meta.nlink(), 0);
    drop(inside);
    b.good("umount m");
}

#[test]
fn appending_direct_and_unlinked_files() {
    let Some(b) = Bench::with_image("32m") else { return };
    b.good("mount disk.img m");
    let at = b.at();
    let mut log = OpenOptions::new().create(true).append(true).open(at.join("log")).unwrap();
    log.write_all(b"one ").unwrap();
    fs::write(at.join("log"), "changed ").unwrap();
    log.write_all(b"two").unwrap();
    assert_eq!(fs::read_to_string(at.join("log")).unwrap(), "changed two");

    // Unlinked while open: it lives on.
    let mut open =
        OpenOptions::new().read(true).write(true).create_new(true).open(at.join("gone")).unwrap();
    open.write_all(b"still here").unwrap();
    fs::remove_file(at.join("gone")).unwrap();
    assert_eq!(open.metadata().unwrap().nlink(), 0);
    let mut text = String::new();
    open.seek(SeekFrom::Start(0)).unwrap();
    open.read_to_string(&mut text).unwrap();
    assert_eq!(text, "still here");

    // O_DIRECT beside a cached handle of the same file.
    let direct = rustix::fs::OFlags::DIRECT.bits() as i32;
    let file = OpenOptions::new()
        .read(true)
        .write(true)
        .create_new(true)
        .custom_flags(direct)
        .open(at.join("direct"))
        .unwrap();
    let memory = vec![7u8; 3 * 4096];
    let start = memory.as_ptr().align_offset(4096);
    file.write_all_at(&memory[start..start + 8192], 0).unwrap();
    let cached = File::open(at.join("direct")).unwrap();
    let mut seen = vec![0; 8192];
    cached.read_exact_at(&mut seen, 0).unwrap();
    assert!(seen.iter().all(|b| *b == 7));
    let memory = vec![9u8; 2 * 4096];
    let start = memory.as_ptr().align_offset(4096);
    file.write_all_at(&memory[start..start + 4096], 4096).unwrap();
    cached.read_exact_at(&mut seen, 0).unwrap();
    assert!(seen[..4096].iter().all(|b| *b == 7) && seen[4096..].iter().all(|b| *b == 9));
    drop((open, log, file, cached));
    b.good("umount m");
    b.e2fsck_is_clean("disk.img");
}
