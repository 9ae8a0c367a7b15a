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
        let message = String::from_utf8_lossy(&out.stderr);
        assert!(out.status.success() && message.contains("not persistent"), "{line}: {out:?}");
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
    let recovered = b.good("status m");
    assert!(recovered.contains("  recovered  ") && recovered.contains("replayed, "), "{recovered}");
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
    // Its map is damaged: it is reported, and where.
    let file = fs::OpenOptions::new().write(true).open(&y).unwrap();
    let size = file.metadata().unwrap().len() - (128 << 10);
    file.write_all_at(&[0x5a; 64], size - 4096 - 64 * 256).unwrap();
    drop(file);
    let out = b.run(&format!("pmem check {y}"));
    let message = String::from_utf8_lossy(&out.stdout);
    assert!(out.status.code() == Some(1) && message.contains("byte"), "{out:?}");
}

/// A label at the end of an image, which a user of the image may have written, and at the end of a
/// file that holds nothing else.
#[test]
fn an_fsdax_namespace_holds_files_in_place_and_is_checked() {
    let Some((b, folder)) = in_memory() else { return };
    let x = folder.path().join("x").display().to_string();
    b.good(&format!("pmem create --emulate 96m --mode fsdax {x}"));
    let listed = b.good(&format!("pmem list {}", folder.path().display()));
    assert!(listed.contains("fsdax"), "{listed}");
    let info = b.good(&format!("pmem info {x}"));
    assert!(info.contains("from byte 2097152 on"), "{info}");
    let document = b.good(&format!("pmem info --json {x}"));
    let document: serde_json::Value = serde_json::from_str(&document).unwrap();
    // It ends with a whole 2 MiB, at 94, and begins at one, behind 64 bytes for each page.
    assert_eq!(document["fsdax"]["bytes"], 92 << 20);
    assert!(b.good(&format!("pmem check {x}")).contains("clean"));
    b.good(&format!("mkfs {x}"));
    b.good(&format!("mount -o dax=always {x} m"));
    fs::write(b.at().join("f"), vec![7; 300_000]).unwrap();
    b.good("umount m");
    assert_eq!(b.good(&format!("cat {x} /f")), "\u{7}".repeat(300_000));
    // What another kernel or e2fsck would see: the data, by itself.
    let range = fs::read(&x).unwrap();
    let data = folder.path().join("data");
    fs::write(&data, &range[2 << 20..94 << 20]).unwrap();
    let checked = std::process::Command::new("e2fsck").arg("-fn").arg(&data).output().unwrap();
    assert!(checked.status.success(), "{checked:?}");
    // Its info block damaged: refused by everything that would write, and nothing to repair with.
    let file = fs::OpenOptions::new().write(true).open(&x).unwrap();
    file.write_all_at(&[9], 4096 + 1000).unwrap();
    for line in ["cat X /f", "mkfs -F X", "mount X m", "pmem check X"] {
        let message = b.bad(&line.replace('X', &x), 1);
        assert!(message.contains("checksum is wrong"), "{line}: {message}");
    }
    assert!(b.bad(&format!("pmem check --repair {x}"), 2).contains("no copy"));
    assert_eq!(fs::read(&x).unwrap()[2 << 20..], range[2 << 20..], "what is refused stays");
    b.good(&format!("pmem destroy --force {x}"));
    for (options, why) in [("--align 8k", "pages of 8192"), ("--align 1g", "left for data")] {
        let message = b.bad(&format!("pmem create --emulate 96m --mode fsdax {options} {x}"), 2);
        assert!(message.contains(why), "{message}");
        assert!(!folder.path().join("x").exists());
    }
}

#[test]
fn a_label_is_believed_where_nothing_reaches_over_it() {
    let Some((b, folder)) = in_memory() else { return };
    let (x, image) = (folder.path().join("x"), folder.path().join("image"));
    let disk = b.path("labelled.img").display().to_string();
    b.good(&format!("pmem create --emulate 64m {}", x.display()));
    let label = fs::read(&x).unwrap().split_off((64 << 20) - (128 << 10));
    let labelled = |path: &str| {
        let file = fs::OpenOptions::new().write(true).open(path).unwrap();
        file.write_all_at(&label, file.metadata().unwrap().len() - (128 << 10)).unwrap();
    };
    // In a file system that is in all of the file it is contents, on a disk and in memory.
    for path in [disk.clone(), image.display().to_string()] {
        b.good(&format!("mkfs -b 4096 --size 64m {path}"));
        labelled(&path);
        b.good(&format!("mount -o dax=never {path} m"));
        fs::write(b.at().join("f"), "hello").unwrap();
        b.good("umount m");
        assert_eq!(b.good(&format!("cat {path} /f")), "hello");
        // In place too.
        b.good(&format!("mount -o dax=always {path} m"));
        b.good("umount m");
        assert!(b.good(&format!("pmem info {path}")).contains("no label"));
        let folder = std::path::Path::new(&path).parent().unwrap().display().to_string();
        assert!(!b.good(&format!("pmem list {folder}")).contains(&path));
        let kept = b.bad(&format!("pmem destroy --force {path}"), 2);
        assert!(kept.contains("but contents"), "{kept}");
        assert!(b.bad(&format!("pmem check {path}"), 2).contains("no sector namespace"));
    }
    let raw = b.good(&format!("pmem info raw:{}", x.display()));
    assert!(raw.contains("67108864 bytes") && raw.contains("no label"), "{raw}");
    // Without one the file is a range, on a disk too.
    fs::File::create(&disk).unwrap().set_len(64 << 20).unwrap();
    labelled(&disk);
    b.good(&format!("mkfs {disk}"));
    let blocks = |path: &str| b.good(&format!("info {path}"));
    assert!(blocks(&disk).contains("16352"), "less the label");
    assert!(blocks(&format!("pmem:{disk}")).contains("16352"), "less the label");
    b.good(&format!("mount -o dax=always {disk} m"));
    b.good("umount m");
    b.good(&format!("mkfs -F -b 4096 raw:{disk}"));
    // It reaches over the label's place by now.
    assert!(blocks(&disk).contains("16384"));
}

/// An info block that is left from another time, in what holds a file system.
#[test]
fn a_file_system_beside_an_info_block_is_refused_until_one_is_named() {
    let Some((b, folder)) = in_memory() else { return };
    let (x, y) = (folder.path().join("x"), folder.path().join("y"));
    let (x, y) = (x.display().to_string(), y.display().to_string());
    b.good(&format!("pmem create --emulate 64m --mode sector {y}"));
    // Of 1 KiB blocks, the fifth of which is free for descriptors to come.
    b.good(&format!("mkfs -b 1024 --size 64m {x}"));
    let stale = fs::read(&y).unwrap()[4096..8192].to_vec();
    let file = fs::OpenOptions::new().write(true).open(&x).unwrap();
    file.write_all_at(&stale, 4096).unwrap();
    drop(file);
    let message = b.bad(&format!("check pmem:{x}"), 2).replace('\n', " ");
    assert!(message.contains(&format!("raw:{x}")) && message.contains("count=1"), "{message}");
    b.good(&format!("ls raw:{x} /"));
    // As it is, by requests, nobody looks for one.
    b.good(&format!("ls {x} /"));
    // The namespace is what is meant: its first 4096 bytes are nobody's.
    let file = fs::OpenOptions::new().write(true).open(&x).unwrap();
    file.write_all_at(&[0; 4096], 0).unwrap();
    drop(file);
    let message = b.bad(&format!("mkfs raw:{x}"), 2).replace('\n', " ");
    assert!(message.contains("sector namespace") && message.contains("-F"), "{message}");
}

#[test]
fn a_lost_info_block_is_found_and_written_anew() {
    let Some((b, folder)) = in_memory() else { return };
    let y = folder.path().join("y").display().to_string();
    b.good(&format!("pmem create --emulate 64m --mode sector {y}"));
    b.good(&format!("mkfs {y}"));
    let lose = |path: &str| {
        let file = fs::OpenOptions::new().write(true).open(path).unwrap();
        file.write_all_at(&[0; 4096], 4096).unwrap();
    };
    lose(&y);
    let check = |line: &str| {
        let out = b.run(line);
        (out.status.code(), String::from_utf8_lossy(&out.stdout).replace('\n', " "))
    };
    let (status, text) = check(&format!("pmem check {y}"));
    assert!(status == Some(1) && text.contains("pmem check --repair"), "{text}");
    let (status, text) = check(&format!("pmem check --repair {y}"));
    assert!(status == Some(0) && text.contains("1 block written anew"), "{text}");
    assert!(text.contains("clean"), "{text}");
    assert!(b.good(&format!("check {y}")).contains("clean"));
    let (status, text) = check(&format!("pmem check -R {y}"));
    assert!(status == Some(0) && !text.contains("anew"), "{text}");
    // Something else is there by now: the copy alone does not overwrite it.
    lose(&y);
    let superblock = {
        let image = folder.path().join("image").display().to_string();
        b.good(&format!("mkfs --size 64m {image}"));
        fs::read(image).unwrap()[..4096].to_vec()
    };
    let file = fs::OpenOptions::new().write(true).open(&y).unwrap();
    file.write_all_at(&superblock, 0).unwrap();
    drop(file);
    let refused = b.bad(&format!("pmem check --repair {y}"), 2).replace('\n', " ");
    assert!(refused.contains("holds a file system") && refused.contains("--force"), "{refused}");
    let (status, text) = check(&format!("pmem check --repair --force {y}"));
    assert!(status == Some(0) && text.contains("1 block written anew"), "{text}");
    b.bad(&format!("pmem check --force {y}"), 2);
    // What is no namespace, and never was.
    let x = folder.path().join("x").display().to_string();
    b.good(&format!("pmem create --emulate 64m {x}"));
    for line in ["pmem check", "pmem check --repair"] {
        let refused = b.bad(&format!("{line} {x}"), 2);
        assert!(refused.contains("no sector namespace"), "{line}: {refused}");
    }
}

/// The flag by which files are used in place, as chattr and as xfs_io set it (FS_XFLAG_DAX). That a
/// file is in place cannot be seen through FUSE: what a program maps is not.
#[test]
fn the_flag_for_files_in_place_is_set_shown_and_inherited() {
    let Some((b, folder)) = in_memory() else { return };
    let x = folder.path().join("x").display().to_string();
    b.good(&format!("pmem create --emulate 64m {x}"));
    b.good(&format!("mkfs {x}"));
    b.good(&format!("mount {x} m"));
    fs::create_dir(b.at().join("d")).unwrap();
    fs::write(b.at().join("f"), [1; 5000]).unwrap();
    let [set, get] = [0x401c_5820, 0x801c_581f];
    let extended = |path: &str| b.ioctl(path, get, "'a28', ''").unwrap()[..8].to_owned();
    assert_eq!(extended("m/f"), "00000000");
    b.ioctl("m/f", set, "'L4a12', 0x8000, 0, 0, 0, ''").unwrap();
    assert_eq!(extended("m/f"), "00800000");
    let chattr = b.command("chattr", &["+x", "m/d"]);
    assert!(chattr.status.success(), "{chattr:?}");
    assert_eq!(extended("m/d"), "00800000");
    fs::write(b.at().join("d/inherits"), [2; 5000]).unwrap();
    for path in ["m/f", "m/d/inherits"] {
        let listed = b.command("lsattr", &[path]).stdout;
        let listed = String::from_utf8_lossy(&listed).into_owned();
        assert!(listed.split(' ').next().unwrap().contains('x'), "{listed}");
        assert_eq!(fs::read(b.path(path)).unwrap().len(), 5000);
        let none = rustix::fs::StatxFlags::empty();
        let at = rustix::fs::AtFlags::empty();
        let stated = rustix::fs::statx(rustix::fs::CWD, b.path(path), at, none).unwrap();
        assert_eq!(stated.stx_attributes.bits() & 0x20_0000, 0, "STATX_ATTR_DAX");
    }
    // Taken away by its extended name; other flags stay.
    b.command("chattr", &["+d", "m/f"]);
    b.ioctl("m/f", set, "'L4a12', 0x80, 0, 0, 0, ''").unwrap();
    assert_eq!(extended("m/f"), "80000000");
    b.good("umount m");
    b.good(&format!("check {x}"));
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
        let message = b.bad(&line, status);
        assert!(message.contains(what), "{line}: {message}");
    }
    assert_eq!(fs::read(&file).unwrap(), [1; 5000]);
    assert!(!folder.path().join("file2").exists());
}

/// Memory that refuses a store: the tmpfs behind a range is full.
#[test]
fn a_store_that_fails_is_in_the_status() {
    let Some(b) = Bench::new() else { return };
    fs::create_dir(b.path("small")).unwrap();
    let small = b.command("mount", &["-t", "tmpfs", "-o", "size=24m", "none", "small"]);
    assert!(small.status.success(), "{small:?}");
    let _gone = unmounted_at_the_end(b.path("small"));
    b.good("pmem create --emulate 64m small/x");
    b.good("mkfs small/x");
    b.good("mount -o dax=always small/x m");
    assert_eq!(b.status()["state"], "writable");
    let dd = b.command("dd", &["if=/dev/urandom", "of=m/f", "bs=1M", "count=40", "conv=fsync"]);
    assert!(!dd.status.success(), "{dd:?}");
    let status = b.status();
    assert_eq!(status["state"], "failing", "{status:#}");
    assert!(status["failed_writes"].as_u64().unwrap() > 0, "{status:#}");
    let failure = status["last_failure"]["what"].as_str().unwrap();
    assert!(failure.contains("/f (inode"), "{failure}");
    // OK to ignore: there may be no room for the journal either.
    let _ = b.run("umount m");
}

/// Unmounts a folder when it is dropped.
fn unmounted_at_the_end(at: std::path::PathBuf) -> impl Drop {
    struct Unmounts(std::path::PathBuf);
    impl Drop for Unmounts {
        fn drop(&mut self) {
            let _ = rustix::mount::unmount(&self.0, rustix::mount::UnmountFlags::DETACH);
        }
    }
    Unmounts(at)
}
