//! What reaches the disk by other ways than write(2), and by time alone.

use std::fs;
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::time::Duration;

use rustix::fs::{FallocateFlags, SeekFrom, XattrFlags};
use rustix::process::{Signal, kill_process};

use super::bench::{Bench, lives, text, until};

#[test]
fn pages_written_through_a_mapping_are_kept() {
    let Some(b) = Bench::with_image("64m") else { return };
    b.good("mount disk.img m");
    let out = b.command(
        "fio",
        &[
            "--name=map",
            "--filename=m/mapped",
            "--rw=randwrite",
            "--bs=4k",
            "--size=4m",
            "--ioengine=mmap",
            "--verify=crc32c",
            "--do_verify=1",
            "--end_fsync=1",
            "--minimal",
        ],
    );
    assert!(out.status.success(), "{}{}", text(&out.stdout), text(&out.stderr));
    let before = fs::read(b.at().join("mapped")).unwrap();
    b.good("umount m");
    b.e2fsck_is_clean("disk.img");
    b.good("mount disk.img m");
    assert!(before == fs::read(b.at().join("mapped")).unwrap());
    b.good("umount m");
}

#[test]
fn without_any_sync_the_timer_writes() {
    let Some(b) = Bench::with_image("32m") else { return };
    b.good("mount disk.img m -o commit=1");
    fs::write(b.at().join("file"), vec![5; 300_000]).unwrap();
    until("nothing is dirty", || b.status()["dirty_bytes"] == 0);
    std::thread::sleep(Duration::from_millis(1500));
    let process = b.process();
    kill_process(process, Signal::KILL).unwrap();
    until("the process dies", || !lives(process));
    b.good("umount m");
    b.good("mount disk.img m");
    assert_eq!(fs::read(b.at().join("file")).unwrap(), vec![5; 300_000]);
    b.good("umount m");
    b.e2fsck_is_clean("disk.img");
}

#[test]
fn space_attributes_and_holes() {
    let Some(b) = Bench::with_image("32m") else { return };
    b.good("mount disk.img m");
    let at = b.at();
    let file = fs::OpenOptions::new()
        .read(true)
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(at.join("f"))
        .unwrap();
    rustix::fs::fallocate(&file, FallocateFlags::KEEP_SIZE, 0, 1 << 20).unwrap();
    assert_eq!(file.metadata().unwrap().len(), 0);
    assert!(file.metadata().unwrap().blocks() >= 2048);
    file.set_len(1 << 20).unwrap();
    file.write_all_at(&[1; 4096], 512 << 10).unwrap();
    file.sync_all().unwrap();
    rustix::fs::fallocate(
        &file,
        FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE,
        0,
        256 << 10,
    )
    .unwrap();
    let data = rustix::fs::seek(&file, SeekFrom::Data(0)).unwrap();
    assert!((256 << 10..=512 << 10).contains(&data), "data at {data}");
    rustix::fs::setxattr(at.join("f"), "user.colour", b"blue", XattrFlags::CREATE).unwrap();
    let mut value = [0; 16];
    let len = rustix::fs::getxattr(at.join("f"), "user.colour", &mut value).unwrap();
    assert_eq!(&value[..len], b"blue");
    drop(file);
    b.good("umount m");
    b.e2fsck_is_clean("disk.img");
}

#[test]
fn an_external_journal_is_found_by_its_uuid() {
    let Some(b) = Bench::new() else { return };
    for journal in ["other.img", "journal.img"] {
        b.good(&format!("mkfs -b 4096 -O journal_dev {journal} --size 8m"));
    }
    b.good("mkfs -b 4096 -J device=journal.img disk.img --size 64m");
    let said = b.bad("mount disk.img m", 2);
    assert!(said.contains("journal"), "{said}");
    let said = b.bad("mount disk.img m -o journal=other.img,accept_volatile", 2);
    assert!(said.contains("journal"), "{said}");
    b.good("mount disk.img m -o journal=other.img,journal=journal.img,accept_volatile");
    fs::write(b.at().join("f"), "x").unwrap();
    let journal = &b.status()["journal"];
    assert_eq!(journal["external"], true);
    assert!(journal["device"].as_str().unwrap().ends_with("journal.img"), "{journal}");
    b.good("umount m");
    b.good("check disk.img --journal journal.img");
}

#[test]
fn a_scenario_is_mounted_in_real_time() {
    let Some(b) = Bench::new() else { return };
    let scenario = include_str!("../../../lab/scenarios/nvram-journal.toml");
    fs::write(b.path("s.toml"), scenario).unwrap();
    let said = b.bad("mount --stack s.toml m", 2);
    assert!(said.contains("--variant"), "{said}");
    let listed = b.good("lab list");
    assert!(listed.contains("external"), "{listed}");
    b.good("mount --stack s.toml --variant external m");
    fs::write(b.at().join("f"), "on models of devices").unwrap();
    assert_eq!(b.status()["journal"]["external"], true);
    b.good("umount m");
}

/// Requests that wait before the disk are counted: a slow disk with writeback throttling, and a
/// writer.
#[test]
fn the_queue_of_a_scheduler_is_in_the_status() {
    let Some(b) = Bench::new() else { return };
    let scenario = r#"
        version = 2
        name = "queued"
        title = "A disk with a scheduler"
        [workload]
        files = {}
        cuts = 0
        [device.disk]
        kind = "hdd"
        sectors = 1048576
        [scheduler.s]
        policy = "deadline"
        depth = 1
        queue_kb = 4096
        wbt_lat_ms = 75
        [[variant]]
        name = "v"
        label = "deadline and throttling"
        disk = "disk"
        scheduler = "s"
    "#;
    fs::write(b.path("s.toml"), scenario).unwrap();
    b.good("mount --stack s.toml m");
    fs::write(b.at().join("f"), vec![1; 8 << 20]).unwrap();
    fs::File::open(b.at().join("f")).unwrap().sync_all().unwrap();
    let status = b.status();
    let queue = &status["queue"];
    assert_eq!((&queue["policy"], &queue["bytes_max"]), (&"deadline".into(), &(4 << 20).into()));
    // All that was written has gone through it, and what waits now is nothing.
    assert!(queue["write_bytes_most"].as_u64().unwrap() > 0, "{queue}");
    assert_eq!(queue["writes"]["bytes"], 0, "{queue}");
    assert!(queue["writes_let_in"].as_u64().unwrap() >= 1, "{queue}");
    let said = b.good("status m");
    assert!(said.contains("queue") && said.contains("throttled  to"), "{said}");
    assert!(said.lines().all(|l| l.chars().count() <= 80 || l.contains('/')), "{said}");
    b.good("umount m");
}

/// The machine of a variant is the mount's, as it is that of a run: its memory, and that reading
/// changes no times; a setup's too. What is given beside stands over both.
#[test]
fn a_variants_machine_is_the_mounts() {
    let Some(b) = Bench::new() else { return };
    fs::write(b.path("s.toml"), include_str!("../dd/one_stack.toml")).unwrap();
    fs::write(b.path("setup.toml"), include_str!("../dd/setup.toml")).unwrap();
    for (file, source) in [("s.toml", "one-stack/small"), ("setup.toml", "setup.toml")] {
        b.good(&format!("mount --stack {file} m"));
        let status = b.status();
        assert_eq!(status["cache"]["bytes_max"], 8 << 20, "{status}");
        assert_eq!(status["source"], source, "{status}");
        let words = status["options_in_force"].to_string();
        assert!(words.contains("\"noatime\""), "{words}");
        b.good("umount m");
    }
    b.good("mount --stack s.toml m -o relatime,cache=16m");
    let status = b.status();
    assert_eq!(status["cache"]["bytes_max"], 16 << 20, "{status}");
    let words = status["options_in_force"].to_string();
    assert!(words.contains("\"relatime\""), "{words}");
    b.good("umount m");
}

/// `tune2fs -o` and `-E mount_opts=`: the owner's choice holds where nothing else is said, as with
/// the kernel's ext4.
#[test]
fn what_a_superblock_asks_for_holds_unless_it_is_said_otherwise() {
    let Some(b) = Bench::new() else { return };
    let mode = |options: &str| {
        b.good(&format!("mount disk.img m {options}"));
        let words = b.status()["options_in_force"].to_string();
        b.good("umount m");
        let modes = ["writeback", "ordered", "journal", "transact"];
        let mode = modes.into_iter().find(|mode| words.contains(&format!("\"data={mode}\"")));
        (mode.unwrap(), words)
    };
    let tuned = |words: &[&str]| {
        let _ = fs::remove_file(b.path("disk.img"));
        b.good("mkfs disk.img --size 64m");
        let out = b.command("tune2fs", &[words, &["disk.img"]].concat());
        assert!(out.status.success(), "{out:?}");
    };
    tuned(&["-o", "journal_data"]);
    assert_eq!(mode("").0, "journal");
    assert_eq!(mode("-o data=ordered").0, "ordered");
    fs::write(b.path("file"), "contents").unwrap();
    b.good("put disk.img file /file");
    tuned(&["-o", "journal_data_writeback", "-E", "mount_opts=data=journal"]);
    assert_eq!(mode("").0, "journal");
    tuned(&["-E", "mount_opts=commit=9"]);
    assert!(mode("").1.contains("\"commit=9\""));
    assert!(mode("-o commit=7").1.contains("\"commit=7\""));
    tuned(&["-E", "mount_opts=noatme"]);
    let out = b.run("mount disk.img m");
    let said = String::from_utf8_lossy(&out.stderr).into_owned();
    assert!(out.status.success() && said.contains("'noatme' are left out"), "{said}");
    b.good("umount m");
    b.e2fsck_is_clean("disk.img");
}
