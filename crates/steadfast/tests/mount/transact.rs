//! Transaction points of a mount: by hand, by mask, back again, and over a killed process.

use std::fs;
use std::os::unix::fs::FileExt;

use rustix::process::{Signal, kill_process};

use super::bench::{Bench, lives, until};

#[test]
fn a_killed_mount_comes_back_at_the_last_point() {
    let Some(b) = Bench::with_image("64m") else { return };
    b.good("mount disk.img m -o data=transact,transact=none");
    assert_eq!(b.status()["transact"], "none");
    let at = b.at();
    let data: Vec<u8> = (0..500_000u32).map(|i| (i % 241) as u8).collect();
    fs::write(at.join("kept"), &data).unwrap();
    fs::write(at.join("also"), "also").unwrap();
    b.good("transact m");
    let file = fs::OpenOptions::new().write(true).open(at.join("kept")).unwrap();
    file.write_all_at(&[0xff; 100_000], 1000).unwrap();
    // Without the bit it does nothing, and says that all is well.
    file.sync_all().unwrap();
    fs::write(at.join("lost"), "lost").unwrap();
    fs::remove_file(at.join("also")).unwrap();
    drop(file);
    let process = b.process();
    kill_process(process, Signal::KILL).unwrap();
    until("the process ends", || !lives(process));
    b.good("umount m");
    let message = said(&b, "mount disk.img m -o data=transact");
    assert!(message.contains("disk.img: had not been unmounted: "), "{message}");
    assert!(b.status()["recovered"]["transactions"].is_u64(), "{}", b.status());
    assert!(fs::read(at.join("kept")).unwrap() == data, "the overwrite is not there");
    assert_eq!(fs::read_to_string(at.join("also")).unwrap(), "also");
    assert!(!at.join("lost").exists());
    // Unmounting is a point unless the mask says that it is not.
    fs::write(at.join("late"), "late").unwrap();
    b.good("umount m");
    b.e2fsck_is_clean("disk.img");
    b.good("mount disk.img m -o ro");
    assert_eq!(fs::read_to_string(at.join("late")).unwrap(), "late");
    b.good("umount m");
}

#[test]
fn a_rollback_is_seen_at_once() {
    let Some(b) = Bench::with_image("64m") else { return };
    b.good("mount disk.img m -o data=transact,transact=none");
    let at = b.at();
    fs::create_dir(at.join("dir")).unwrap();
    fs::write(at.join("dir/file"), "before").unwrap();
    fs::write(at.join("gone"), "gone").unwrap();
    b.good("transact m");
    fs::write(at.join("dir/file"), "changed, and longer").unwrap();
    fs::write(at.join("new"), "new").unwrap();
    fs::remove_file(at.join("gone")).unwrap();
    fs::rename(at.join("dir"), at.join("moved")).unwrap();
    assert!(!at.join("gone").exists() && !at.join("dir").exists());
    let open = fs::File::open(at.join("new")).unwrap();
    let said = b.bad("rollback m", 1);
    let who = format!("process {} (", std::process::id());
    assert!(said.contains("files are open") && said.contains(&who), "{said}");
    drop(open);
    let point = b.status()["last_point"].clone();
    let said = b.good("rollback m");
    let expected = format!("(transaction {}): ", point["transaction"]);
    assert!(said.contains("disk.img: went back to the transaction point of 20"), "{said}");
    assert!(said.contains(&expected) && said.contains("KiB of data, "), "{said}");
    assert!(said.ends_with(" taken back\n") && !said.contains(" 0 KiB of data"), "{said}");
    assert!(b.good("rollback m").ends_with(": nothing had changed since\n"));
    assert_eq!(b.status()["last_point"]["transaction"], point["transaction"]);
    assert!(b.good("status m").contains("last point transaction"), "{}", b.good("status m"));
    assert_eq!(fs::read_to_string(at.join("dir/file")).unwrap(), "before");
    assert_eq!(fs::metadata(at.join("dir/file")).unwrap().len(), 6);
    assert_eq!(fs::read_to_string(at.join("gone")).unwrap(), "gone");
    assert!(!at.join("new").exists() && !at.join("moved").exists());
    let names: Vec<_> = fs::read_dir(&at).unwrap().map(|e| e.unwrap().file_name()).collect();
    assert_eq!(names.len(), 3, "{names:?}");
    b.good("umount m");
    b.e2fsck_is_clean("disk.img");
}

#[test]
fn the_mask_changes_while_it_is_mounted() {
    let Some(b) = Bench::with_image("64m") else { return };
    b.good("mount disk.img m -o data=transact,transact=none");
    let at = b.at();
    let commits = || b.status()["journal"]["commits"].as_u64().unwrap();
    let before = commits();
    fs::write(at.join("one"), "1").unwrap();
    assert_eq!(commits(), before);
    let said = b.good("transact m --mask create,timed=20ms");
    assert_eq!(said.trim(), "transact=create,timed=20ms (was: none)");
    fs::write(at.join("two"), "2").unwrap();
    assert!(commits() > before);
    let shown = b.good("status m");
    assert!(shown.contains("transact, durable at transaction points: create,timed"), "{shown}");
    assert!(!shown.contains("commit every"), "{shown}");
    let now = commits();
    fs::OpenOptions::new().append(true).open(at.join("two")).unwrap().write_at(b"3", 1).unwrap();
    until("a point by time", || commits() > now);
    assert!(b.bad("transact m --mask creat", 2).contains("'creat'"));
    assert!(b.bad("transact nowhere", 2).contains("nowhere"));
    b.good("umount m");
    b.good("mount disk.img m");
    for line in ["transact m", "transact m --mask none", "rollback m"] {
        let said = b.bad(line, 2);
        assert!(said.contains("no transaction points with data=ordered"), "{said}");
    }
    b.good("umount m");
}

#[test]
fn unmounting_is_a_point_in_every_mask_but_no_umount() {
    let Some(b) = Bench::with_image("64m") else { return };
    for mask in ["none", "rename,fsync,timed=5m"] {
        b.good(&format!("mount disk.img m -o data=transact,transact={mask}"));
        fs::write(b.at().join(mask), "kept").unwrap();
        assert_eq!(said(&b, "umount m"), "");
        b.good("mount disk.img m -o ro");
        assert_eq!(fs::read_to_string(b.at().join(mask)).unwrap(), "kept");
        b.good("umount m");
    }
}

#[test]
fn what_unmounting_discards_is_reported() {
    let Some(b) = Bench::with_image("64m") else { return };
    let message = said(&b, "mount disk.img m -o data=transact,transact=create,no-umount --log log");
    assert!(message.contains("no-umount") && message.contains("will discard"), "{message}");
    assert_eq!(b.status()["transact"], "create,no-umount");
    let mut file = fs::File::create(b.at().join("file")).unwrap();
    std::io::Write::write_all(&mut file, &vec![1; 300 << 10]).unwrap();
    drop(file);
    let message = said(&b, "umount m");
    assert!(message.contains("discarded 300 KiB of data"), "{message}");
    let log = fs::read_to_string(b.path("log")).unwrap();
    assert!(log.contains("discarded 300 KiB of data"), "{log}");
    b.e2fsck_is_clean("disk.img");
    b.good("mount disk.img m -o ro");
    assert_eq!(fs::metadata(b.at().join("file")).unwrap().len(), 0);
    b.good("umount m");
    // Nothing came after the last point: nothing is said.
    b.good("mount disk.img m -o data=transact,transact=default,no-umount");
    b.good("transact m");
    assert_eq!(said(&b, "umount m"), "");
}

/// The standard error of a command that must succeed.
fn said(b: &Bench, line: &str) -> String {
    let out = b.run(line);
    let said = super::bench::text(&out.stderr);
    assert!(out.status.success(), "{line}: {said}");
    said
}
