//! A disk that fails for a while: who gets the error, what is kept, what is lost.
//!
//! The image lies on a tmpfs that is full, with holes where writes are to fail: filling a hole
//! needs memory that there is not. Everywhere else it works, and it is well again once the filler
//! is gone.

use std::fs::{self, File};
use std::io::{Read, Write};
use std::os::unix::fs::FileExt;
use std::path::PathBuf;

use rustix::mount::{MountFlags, UnmountFlags, mount, unmount};
use rustix::process::{Signal, kill_process};

use super::bench::{Bench, lives, text, until};

const PAGE: u64 = 4096;
const EIO: Option<i32> = Some(5);

/// A bench whose image is on such a disk.
struct Failing {
    bench: Bench,
}

impl Failing {
    fn new() -> Option<Failing> {
        let bench = Bench::new()?;
        let tmpfs = bench.path("t");
        fs::create_dir(&tmpfs).unwrap();
        mount("tmpfs", &tmpfs, "tmpfs", MountFlags::empty(), c"size=24m").unwrap();
        let failing = Failing { bench };
        failing.command("mke2fs", &["-q", "-t", "ext4", "-b", "4096", "t/disk.img", "16m"]);
        failing.command("fallocate", &["-l", "16m", "t/disk.img"]);
        Some(failing)
    }

    /// Runs a program that must succeed; what it says.
    fn command(&self, program: &str, arguments: &[&str]) -> String {
        let out = self.bench.command(program, arguments);
        assert!(out.status.success(), "{program}: {}", text(&out.stderr));
        text(&out.stdout)
    }

    /// From the next filling on writes to these blocks of the image fail.
    fn spoil(&self, first: u64, count: u64) {
        let (at, len) = ((first * PAGE).to_string(), (count * PAGE).to_string());
        self.command("fallocate", &["-p", "-o", &at, "-l", &len, "t/disk.img"]);
    }

    /// The same for all blocks that are free.
    fn spoil_free_blocks(&self) {
        let groups = self.command("dumpe2fs", &["t/disk.img"]);
        let free = groups.lines().filter_map(|l| l.trim().strip_prefix("Free blocks: "));
        for range in free.flat_map(|l| l.split(", ")).filter(|r| !r.is_empty()) {
            let (first, last) = range.split_once('-').unwrap_or((range, range));
            let (Ok(first), Ok(last)) = (first.parse::<u64>(), last.parse::<u64>()) else {
                continue;
            };
            self.spoil(first, last - first + 1);
        }
    }

    /// Where a file's block is.
    fn block_of(&self, file: &str, block: u64) -> u64 {
        let request = format!("bmap {file} {block}");
        self.command("debugfs", &["-R", &request, "t/disk.img"]).trim().parse().unwrap()
    }

    fn filler(&self) -> PathBuf {
        self.bench.path("t/filler")
    }

    /// Writes to holes fail from now on.
    fn fail(&self) {
        let mut filler = File::create(self.filler()).unwrap();
        while filler.write_all(&[1; PAGE as usize]).is_ok() {}
    }

    /// All is well again.
    fn heal(&self) {
        fs::remove_file(self.filler()).unwrap();
    }

    /// A file of three pages, all of them durable; writes to the second fail from now on.
    fn with_a_bad_page(&self) {
        self.bench.good("mount t/disk.img m");
        fs::create_dir(self.bench.at().join("d")).unwrap();
        fs::write(self.bench.at().join("d/file"), [b'o'; 3 * PAGE as usize]).unwrap();
        self.bench.good("umount m");
        self.spoil(self.block_of("/d/file", 1), 1);
        self.fail();
    }

    fn log(&self) -> String {
        fs::read_to_string(self.bench.path("log")).unwrap()
    }

    fn file(&self) -> PathBuf {
        self.bench.at().join("d/file")
    }

    /// Overwrites the bad page.
    fn overwrite(&self) -> File {
        let file = fs::OpenOptions::new().read(true).write(true).open(self.file()).unwrap();
        file.write_all_at(&[b'n'; PAGE as usize], PAGE).unwrap();
        file
    }

    fn second_page(&self) -> u8 {
        let mut page = [0; 1];
        File::open(self.file()).unwrap().read_exact_at(&mut page, PAGE).unwrap();
        page[0]
    }
}

impl Drop for Failing {
    fn drop(&mut self) {
        let _ = unmount(self.bench.at(), UnmountFlags::DETACH);
        let _ = unmount(self.bench.path("t"), UnmountFlags::DETACH);
    }
}

#[test]
fn a_background_write_that_fails_is_reported_with_file_and_range() {
    for heals in [true, false] {
        let Some(f) = Failing::new() else { return };
        let b = &f.bench;
        f.with_a_bad_page();
        b.good("mount t/disk.img m -o commit=1 --log log");
        drop(f.overwrite());
        until("the failure is logged", || f.log().contains("could not be written"));
        let said = f.log();
        assert!(said.contains("/d/file (inode 13), bytes 4096 to 8191,"), "{said}");
        let status = b.status();
        assert_eq!(status["state"], "failing");
        let part = &status["unwritten"][0];
        assert_eq!(
            (&part["path"], &part["from"], &part["to"]),
            (&"/d/file".into(), &PAGE.into(), &(2 * PAGE).into())
        );
        assert_eq!((&part["lost"], &status["unwritten_bytes"]), (&false.into(), &PAGE.into()));
        let shown = b.good("status m");
        assert!(shown.contains("in memory only: /d/file, bytes 4096 to 8191"), "{shown}");
        assert!(shown.contains("failing: ") && !shown.contains("writable"), "{shown}");
        assert!(shown.contains("4096 bytes of data are in memory only"), "{shown}");
        assert!(shown.contains("not promised any more: the bytes in memory only"), "{shown}");
        assert!(shown.contains("ago: writing /d/file (inode 13), bytes 4096 to 8191:"), "{shown}");
        if heals {
            f.heal();
        }
        let said = b.bad("umount m", 1);
        let expected = match heals {
            true => "data failed; what they were to write was written later",
            false => "lost: /d/file (inode 13), bytes 4096 to 8191",
        };
        assert!(said.contains(expected), "{said}");
        assert!(f.log().contains(expected), "{}", f.log());
        if !heals {
            f.heal();
        }
        b.good("mount t/disk.img m");
        assert_eq!(f.second_page(), if heals { b'n' } else { 0 });
        b.good("umount m");
        b.e2fsck_is_clean("t/disk.img");
    }
}

#[test]
fn fsync_fails_until_the_page_is_on_disk() {
    let Some(f) = Failing::new() else { return };
    let b = &f.bench;
    f.with_a_bad_page();
    b.good("mount t/disk.img m --log log");
    let file = f.overwrite();
    for _ in 0..3 {
        assert_eq!(file.sync_all().unwrap_err().raw_os_error(), EIO);
        assert_eq!(f.second_page(), b'n', "what is read is what a later fsync may save");
    }
    let status = b.status();
    assert_eq!(status["state"], "failing");
    assert!(status["promised_no_more"].as_str().unwrap().contains("fsync"), "{status}");
    f.heal();
    file.sync_all().unwrap();
    let status = b.status();
    assert_eq!(status["state"], "writable");
    assert!(status["promised_no_more"].is_null() && status["failing_because"].is_null());
    assert!(status["last_failure"]["what"].as_str().unwrap().contains("/d/file"), "{status}");
    let process = b.process();
    kill_process(process, Signal::KILL).unwrap();
    until("the process ends", || !lives(process));
    drop(file);
    b.good("umount m");
    b.good("mount t/disk.img m");
    assert_eq!(f.second_page(), b'n', "fsync has said that it is there");
    b.good("umount m");
    b.e2fsck_is_clean("t/disk.img");
}

#[test]
fn a_background_commit_that_fails_is_reported() {
    let Some(f) = Failing::new() else { return };
    let b = &f.bench;
    let log = f.block_of("<8>", 1);
    b.good("mount t/disk.img m -o commit=1 --log log");
    // Where the next transactions go: the first piece of the log.
    f.spoil(log, 9);
    f.fail();
    fs::create_dir(b.at().join("d")).unwrap();
    until("the failure is logged", || f.log().contains("read-only from now on"));
    let status = b.status();
    assert_eq!(status["state"], "read-only");
    assert!(status["journal"]["error"].is_string(), "{status}");
    assert!(status["promised_no_more"].as_str().unwrap().contains("before the failure"));
    assert_eq!(f.log().matches("read-only from now on").count(), 1, "{}", f.log());
    f.heal();
    b.bad("umount m", 1);
}

/// The data is on the disk, and the transaction that says where is not.
#[test]
fn unmounting_names_the_files_whose_transaction_is_lost() {
    let Some(f) = Failing::new() else { return };
    let b = &f.bench;
    let log = f.block_of("<8>", 1);
    b.good("mount t/disk.img m -o commit=600,nodelalloc");
    fs::write(b.at().join("kept"), "durable").unwrap();
    File::open(b.at().join("kept")).unwrap().sync_all().unwrap();
    // The rest of the log's first half: not where data goes.
    f.spoil(log + 1, 500);
    f.fail();
    fs::create_dir(b.at().join("d")).unwrap();
    fs::write(b.at().join("d/lost"), "in no transaction").unwrap();
    let sync = File::open(b.at().join("d/lost")).unwrap().sync_all();
    assert_eq!(sync.unwrap_err().raw_os_error(), EIO);
    f.heal();
    let said = b.bad("umount m", 1);
    assert!(said.contains("is lost, among it data of /d/lost (inode "), "{said}");
    assert!(!said.contains("kept"), "{said}");
}

#[test]
fn with_transaction_points_a_failed_write_shows_in_the_status() {
    let Some(f) = Failing::new() else { return };
    let b = &f.bench;
    f.with_a_bad_page();
    f.heal();
    // An overwrite goes to a free block.
    f.spoil_free_blocks();
    f.fail();
    b.good("mount t/disk.img m -o data=transact,transact=fsync --log log");
    assert_eq!(b.status()["state"], "writable");
    let file = f.overwrite();
    for _ in 0..2 {
        assert_eq!(file.sync_all().unwrap_err().raw_os_error(), EIO);
    }
    drop(file);
    let status = b.status();
    assert_eq!(status["state"], "failing");
    let why = status["points_fail_because"].as_str().unwrap();
    assert!(why.contains("rollback"), "{why}");
    assert!(b.good("status m").contains("failing: "), "{}", b.good("status m"));
    assert!(f.log().contains("/d/file (inode 13), bytes 4096 to 8191,"), "{}", f.log());
    f.heal();
    let said = b.bad("umount m", 1);
    assert!(said.contains("went back to the last transaction point and discarded"), "{said}");
    b.good("mount t/disk.img m");
    let mut all = Vec::new();
    File::open(f.file()).unwrap().read_to_end(&mut all).unwrap();
    assert_eq!((all.len() as u64, all[0], all[PAGE as usize]), (3 * PAGE, b'o', 0));
    b.good("umount m");
    b.e2fsck_is_clean("t/disk.img");
}

/// The point of a rename fails, and the rename is there until a rollback: the kernel shows neither
/// what was before the one nor what was before the other.
#[test]
fn after_a_rename_whose_point_fails_the_names_are_as_they_are() {
    let Some(f) = Failing::new() else { return };
    let b = &f.bench;
    f.with_a_bad_page();
    f.heal();
    f.spoil_free_blocks();
    f.fail();
    b.good("mount t/disk.img m -o data=transact,transact=rename");
    drop(f.overwrite());
    let (old, new) = (f.file(), b.at().join("d/new"));
    assert!(old.exists() && !new.exists());
    assert_eq!(fs::rename(&old, &new).unwrap_err().raw_os_error(), EIO);
    assert!(!old.exists() && new.exists());
    f.heal();
    b.good("rollback m");
    assert!(old.exists() && !new.exists());
    // Writes have failed, though nothing is lost that the rollback had not taken.
    b.bad("umount m", 1);
    b.e2fsck_is_clean("t/disk.img");
}
