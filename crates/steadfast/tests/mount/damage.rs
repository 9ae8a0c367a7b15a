//! A damaged image through the mount: errors and read-only, never the end of the process.

use std::fs;
use std::os::unix::fs::FileExt;

use rustix::io::Errno;

use super::bench::{Bench, lives};

/// Where a file or directory begins on the disk: debugfs's word for it.
fn block_of(b: &Bench, path: &str) -> u64 {
    let said = b.debugfs(&format!("bmap {path} 0"));
    said.trim().parse().unwrap_or_else(|_| panic!("debugfs says: {said}"))
}

#[test]
fn a_damaged_folder_makes_it_read_only_and_the_process_lives() {
    let Some(b) = Bench::with_image("32m") else { return };
    b.good("mount disk.img m");
    fs::create_dir(b.at().join("bad")).unwrap();
    fs::write(b.at().join("bad/file"), "x").unwrap();
    fs::write(b.at().join("good"), "still readable").unwrap();
    b.good("umount m");
    let block = block_of(&b, "/bad");
    let image = fs::OpenOptions::new().write(true).open(b.path("disk.img")).unwrap();
    image.write_all_at(&[0xff; 24], block * 1024 + 12).unwrap();
    drop(image);

    b.good("mount disk.img m --log log");
    let process = b.process();
    let damaged = fs::read_dir(b.at().join("bad")).map(|d| d.filter_map(Result::err).count());
    assert!(!matches!(damaged, Ok(0)), "the damage is seen");
    let refused = fs::write(b.at().join("new"), "x").unwrap_err();
    assert_eq!(refused.raw_os_error(), Some(Errno::ROFS.raw_os_error()));
    assert_eq!(fs::read_to_string(b.at().join("good")).unwrap(), "still readable");
    let status = b.status();
    assert_eq!(status["state"], "read-only");
    assert!(status["read_only_because"].as_str().unwrap().contains("corrupt"), "{status}");
    let log = fs::read_to_string(b.path("log")).unwrap();
    for once in ["is read-only from now on: corrupt", "readdir: corrupt"] {
        assert_eq!(log.lines().filter(|l| l.contains(once)).count(), 1, "{log}");
    }
    assert!(lives(process));
    let said = b.bad("umount m", 1);
    assert!(said.contains("read-only"), "{said}");
}

#[test]
fn a_name_that_points_to_the_file_systems_own_inodes_is_listed() {
    let Some(b) = Bench::with_image("32m") else { return };
    fs::write(b.path("text"), "readable").unwrap();
    let out = b.command("debugfs", &["-w", "-R", "write text good", "disk.img"]);
    assert!(out.status.success());
    // 2 is the root; 1, 9 and the like have no type.
    for number in 1..=10 {
        b.command("debugfs", &["-w", "-R", &format!("ln <{number}> own{number}"), "disk.img"]);
    }
    b.good("mount disk.img m --log log");
    let listed = fs::read_dir(b.at()).unwrap().map(|e| e.unwrap().file_name());
    let mut names: Vec<String> = listed.map(|n| n.into_string().unwrap()).collect();
    names.sort();
    assert_eq!(names.len(), 12, "{names:?}");
    assert_eq!(fs::read_to_string(b.at().join("good")).unwrap(), "readable");
    assert_eq!(b.status()["state"], "writable", "nobody has followed such a name");
    let followed = fs::metadata(b.at().join("own8")).unwrap_err();
    assert_eq!(followed.raw_os_error(), Some(Errno::UCLEAN.raw_os_error()));
    b.bad("umount m", 1);
}

#[test]
fn flipped_bytes_never_take_the_process_down() {
    let Some(b) = Bench::with_image("8m") else { return };
    b.good("mount disk.img m");
    for i in 0..40 {
        fs::create_dir_all(b.at().join(format!("d{}", i % 5))).unwrap();
        fs::write(b.at().join(format!("d{}/f{i}", i % 5)), vec![i; 3000]).unwrap();
    }
    b.good("umount m");
    let whole = fs::read(b.path("disk.img")).unwrap();
    let mut seed = 1u64;
    let mut random = |below: u64| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (seed >> 33) % below
    };
    let mut mounted = 0;
    for round in 0..12 {
        let mut image = whole.clone();
        // The first MiB holds the descriptors, the bitmaps and the inodes.
        for _ in 0..40 {
            image[(2048 + random((1 << 20) - 2048)) as usize] ^= 1 << random(8);
        }
        fs::write(b.path("disk.img"), &image).unwrap();
        let out = b.run("mount disk.img m");
        if !out.status.success() {
            continue;
        }
        mounted += 1;
        let process = b.process();
        walk(&b.at());
        // What fails is reported; that something does is not the question.
        let _ = fs::write(b.at().join("new"), vec![9; 100_000]);
        let _ = fs::remove_dir_all(b.at().join("d1"));
        let _ = fs::rename(b.at().join("d2"), b.at().join("d3/sub"));
        assert!(lives(process), "round {round}");
        assert_ne!(b.status()["state"], "down", "round {round}");
        let ended = b.run("umount m").status.code();
        assert!(matches!(ended, Some(0 | 1)), "round {round}: {ended:?}");
    }
    assert!(mounted > 3, "only {mounted} could be mounted");
}

fn walk(dir: &std::path::Path) {
    let Ok(entries) = fs::read_dir(dir) else { return };
    for entry in entries.flatten() {
        if entry.file_type().is_ok_and(|t| t.is_dir()) {
            walk(&entry.path());
        } else {
            let _ = fs::read(entry.path());
        }
    }
}

/// An image that is cut short under its mount has lost data, and the unmount reports it.
#[test]
fn an_image_that_was_cut_short_is_reported_at_unmounting() {
    let Some(b) = Bench::with_image("64m") else { return };
    b.good("mount disk.img m");
    let image = std::fs::OpenOptions::new().write(true).open(b.path("disk.img")).unwrap();
    image.set_len(4096).unwrap();
    let said = b.bad("umount m", 1);
    assert!(said.contains("cut short: ") && said.contains("of 67108864 bytes"), "{said}");
}

/// What is mounted is neither cut nor removed by commands that write any file.
#[test]
fn an_image_in_use_is_refused_by_those_who_write_files() {
    let Some(b) = Bench::with_image("16m") else { return };
    b.good("mount disk.img m");
    for line in [
        "dd if=/dev/zero of=disk.img bs=4k count=1",
        "iozone -s 64 -r 16 -i 0 -f disk.img",
        "iozone -t 1 -s 64 -r 16 -i 0 -F disk.img",
    ] {
        let out = b.run(line);
        let said = String::from_utf8_lossy(&out.stderr).into_owned();
        assert!(!out.status.success() && said.contains("is in use"), "{line}: {said}");
        assert_eq!(b.path("disk.img").metadata().unwrap().len(), 16 << 20, "{line}");
    }
    b.good("umount m");
    b.e2fsck_is_clean("disk.img");
    b.good("dd if=/dev/zero of=disk.img bs=4k count=1");
}
