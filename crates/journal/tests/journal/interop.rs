//! Logs exchanged with the kernel and e2fsprogs: what they wrote we replay to the same image as
//! e2fsck; what we wrote e2fsck and the kernel replay to the same image as we do.
//!
//! Needs mke2fs, debugfs, e2fsck, and for the tests that mount also root.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;

use bytes::Bytes;
use steadfast_host::Mount;
use steadfast_journal::external::{
    ExternalOptions, Owner, attach, format_device, open_device, open_for,
};
use steadfast_journal::{
    Checksums, Config, FormatOptions, FsBlock, Journal, Log, LogBlock, LogExtent, Tid, Update,
    format, recover,
};
use tempfile::TempDir;
use uuid::Uuid;

use crate::disk::Disk;
use crate::rng::Rng;

/// Runs a tool under a time limit; its output. Panics unless the exit code is in `codes`.
fn tool_with(input: &str, codes: &[i32], args: &[&str]) -> String {
    use std::io::Write;
    let mut child = Command::new("timeout")
        .args(["-s", "KILL", "120"])
        .args(args)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    let out = child.wait_with_output().unwrap();
    let text = String::from_utf8_lossy(&[out.stdout, out.stderr].concat()).into_owned();
    let code = out.status.code().unwrap_or(-1);
    assert!(codes.contains(&code), "{args:?}: exit {code}\n{text}");
    text
}

fn tool(args: &[&str]) -> String {
    tool_with("", &[0], args)
}

/// An image file in its own folder.
struct Image {
    dir: TempDir,
    block_size: usize,
}

impl Image {
    fn path(&self) -> PathBuf {
        self.dir.path().join("fs.img")
    }

    fn text(&self) -> String {
        self.path().to_str().unwrap().into()
    }

    /// A 32-MiB file system with a 4-MiB journal, or one of 1024 blocks if that is larger.
    fn make(block_size: usize, options: &[&str]) -> Image {
        let image = Image { dir: TempDir::new().unwrap(), block_size };
        let file = std::fs::File::create(image.path()).unwrap();
        file.set_len(if block_size == 4096 { 64 } else { 32 } << 20).unwrap();
        let (bs, size) = (block_size.to_string(), (block_size / 1024).max(2).to_string());
        let journal = format!("size={size}");
        let path = image.text();
        let mut args = vec!["mke2fs", "-q", "-F", "-t", "ext4", "-b", &bs];
        args.extend(["-E", "lazy_itable_init=0,lazy_journal_init=0"]);
        if !options.contains(&"^has_journal") {
            args.extend(["-J", &journal]);
        }
        args.extend(options.iter().flat_map(|o| ["-O", o]));
        args.push(&path);
        tool(&args);
        image
    }

    fn bytes(&self) -> Vec<u8> {
        std::fs::read(self.path()).unwrap()
    }

    fn put(&self, bytes: &[u8]) {
        std::fs::write(self.path(), bytes).unwrap();
    }

    /// Another image with these bytes: whoever had this one, a loop device that is being let go
    /// of, may still write to it.
    fn anew(&self, bytes: &[u8]) -> Image {
        let image = Image { dir: TempDir::new().unwrap(), block_size: self.block_size };
        image.put(bytes);
        image
    }

    fn debugfs(&self, commands: &str) -> String {
        tool_with(commands, &[0], &["debugfs", "-w", "-f", "-", &self.text()])
    }

    /// Where the journal's file lies.
    fn extents(&self) -> Vec<LogExtent> {
        let text = tool(&["debugfs", "-R", "ex <8>", &self.text()]);
        let mut out = Vec::new();
        for line in text.lines() {
            let n: Vec<u64> = line
                .split(|c: char| !c.is_ascii_digit())
                .filter(|w| !w.is_empty())
                .map(|w| w.parse().unwrap())
                .collect();
            // level/depth entry/entries first - last first - last length; leaves only.
            if let [level, depth, _, _, first, last, at, ..] = n[..]
                && level == depth
            {
                out.push(LogExtent {
                    log_block: LogBlock(first as u32),
                    device_block: at,
                    len: (last - first + 1) as u32,
                });
            }
        }
        out
    }

    /// The image in memory and the log in it.
    fn load(&self) -> (Arc<Disk>, Log) {
        let disk = Disk::plain("image", self.bytes());
        let log = Log::internal(disk.device(), self.block_size as u32, self.extents()).unwrap();
        (disk, log)
    }

    /// Replays the journal with e2fsck, without a check.
    fn e2fsck_replay(&self) {
        tool_with("", &[0, 1], &["e2fsck", "-y", "-E", "journal_only", &self.text()]);
    }

    /// Replays a copy with e2fsck and the image in memory with ours, and compares everything
    /// but the two superblocks, which e2fsck stamps.
    fn compare_replays(&self) -> steadfast_journal::RecoveryReport {
        let (disk, log) = self.load();
        let report = recover(&log, &*disk).unwrap();
        self.e2fsck_replay();
        let log_superblock = self.extents()[0].device_block as usize * self.block_size;
        assert_same(&disk.bytes(), &self.bytes(), &[(1024, 1024), (log_superblock, 1024)]);
        report
    }
}

/// Compares two images outside some ranges (offset, length).
fn assert_same(ours: &[u8], theirs: &[u8], but: &[(usize, usize)]) {
    assert_eq!(ours.len(), theirs.len());
    for (i, (a, b)) in ours.chunks(512).zip(theirs.chunks(512)).enumerate() {
        let at = i * 512;
        if a != b && !but.iter().any(|(from, len)| (*from..from + len).contains(&at)) {
            panic!("the images differ at byte {at}");
        }
    }
}

#[test]
fn journals_written_by_debugfs() {
    for (block_size, feature, open) in [
        (1024, "64bit,metadata_csum", "jo -c -v 3"),
        (4096, "64bit,metadata_csum", "jo -c -v 2"),
        (2048, "^64bit,metadata_csum", "jo -c -v 3"),
        (1024, "^64bit,metadata_csum", "jo -c -v 2"),
        (4096, "64bit,^metadata_csum", "jo"),
        (1024, "^64bit,^metadata_csum", "jo"),
    ] {
        let image = Image::make(block_size, &[feature]);
        // One block begins with the magic number, so that it is escaped.
        let mut contents = vec![0; 40 * block_size];
        let mut rng = Rng::new(3);
        contents.iter_mut().for_each(|b| *b = rng.next() as u8);
        contents[block_size..block_size + 4].copy_from_slice(&0xc03b_3998u32.to_be_bytes());
        let file = image.dir.path().join("contents");
        std::fs::write(&file, &contents).unwrap();
        let file = file.display();
        let blocks: Vec<String> = (0..40).map(|i| (6000 + i * 3).to_string()).collect();
        let (all, some) = (blocks.join(","), blocks[..5].join(","));
        image.debugfs(&format!(
            "{open}\njw -b {all} {file}\njw -r {some}\njw -b {} {file}\njc\n",
            blocks[2]
        ));
        let report = image.compare_replays();
        assert!(report.transactions >= 2 && report.revoked == 5, "{report:?}");
        // Block 2 was written again after its revoke.
        let at = (6000 + 2 * 3) * block_size;
        assert_eq!(image.bytes()[at..at + block_size], contents[..block_size]);
    }
}

/// Writes, rewrites and revokes blocks from `first` on, for several turns of a small log, and
/// leaves the journal as after a power cut.
fn write_with_ours(journal: &Journal, block_size: usize, first: u64, updates: u64) {
    let mut rng = Rng::new(updates);
    for n in 0..updates {
        let mut update = Update::default();
        let count = if n % 16 == 0 { 200 } else { 1 + rng.below(20) };
        for _ in 0..count {
            let b = FsBlock(first + rng.below(400) as u64);
            let mut bytes: Vec<u8> = (0..block_size).map(|i| (i as u64 * n + b.0) as u8).collect();
            if rng.chance(20) {
                bytes[..4].copy_from_slice(&0xc03b_3998u32.to_be_bytes());
            }
            update.writes.push((b, Bytes::from(bytes)));
        }
        update.revokes.push(FsBlock(first + 400 + rng.below(300) as u64));
        // Journaled first, so that there is something to revoke.
        let b = FsBlock(first + 400 + rng.below(300) as u64);
        update.writes.push((b, Bytes::from(vec![n as u8; block_size])));
        let tid = journal.submit(update).unwrap();
        if n % 3 == 0 {
            journal.commit(tid).unwrap();
        }
    }
    journal.commit(journal.running_tid()).unwrap();
    journal.abandon();
}

fn config(checksums: Checksums, wide: bool) -> Config {
    // The log stays well filled, so that it goes round and there is much to replay.
    let (checkpoint_start_fraction, checkpoint_stop_fraction) = (0.9, 0.6);
    Config {
        checksums: Some(checksums),
        wide,
        accept_volatile: true,
        checkpoint_start_fraction,
        checkpoint_stop_fraction,
        ..Config::default()
    }
}

/// A log that we made in place of mke2fs's, whose numbers wrap, written with one flush a commit.
#[test]
fn a_journal_that_we_made_with_async_commit() {
    let image = Image::make(1024, &["64bit,metadata_csum"]);
    let shown = tool(&["dumpe2fs", "-h", &image.text()]);
    let (disk, log) = image.load();
    let mut options = FormatOptions::new(uuid_of(&shown, "Filesystem UUID"));
    options.sequence = Tid(u32::MAX - 30);
    format(&log, &options).unwrap();
    image.put(&disk.bytes());
    tool_with("", &[0], &["e2fsck", "-fn", &image.text()]);
    let config = Config { async_commit: true, ..config(Checksums::V3, true) };
    let journal = Journal::open(log, disk.device(), config).unwrap();
    write_with_ours(&journal, 1024, 7000, 150);
    image.put(&disk.bytes());
    image.debugfs("feature needs_recovery\n");
    let dirty = image.bytes();
    let report = image.compare_replays();
    assert!(report.range.unwrap().1.0 < 1000, "{report:?}");
    let after_e2fsck = image.bytes();
    image.put(&dirty);
    drop(mount(&image.path(), "data=writeback,journal_async_commit"));
    let range = 7000 * 1024..7700 * 1024;
    assert!(image.bytes()[range.clone()] == after_e2fsck[range], "kernel replay");
}

#[test]
fn our_journals_replayed_by_e2fsck_and_the_kernel() {
    for (block_size, feature, checksums, wide, kernel) in [
        (1024, "64bit,metadata_csum", Checksums::V3, true, true),
        (4096, "64bit,metadata_csum", Checksums::V3, true, true),
        (1024, "64bit,metadata_csum", Checksums::V2, true, false),
        (4096, "^64bit,metadata_csum", Checksums::V2, false, false),
        (2048, "^64bit,metadata_csum", Checksums::V3, false, true),
        (4096, "^64bit,^metadata_csum", Checksums::V1, false, true),
        (1024, "64bit,^metadata_csum", Checksums::V1, true, false),
        (1024, "64bit,^metadata_csum", Checksums::None, true, true),
    ] {
        let image = Image::make(block_size, &[feature]);
        let (disk, log) = image.load();
        let journal = Journal::open(log, disk.device(), config(checksums, wide)).unwrap();
        // Beyond the file system's own blocks, before its end: nobody uses them.
        write_with_ours(&journal, block_size, 7000, 150);
        image.put(&disk.bytes());
        image.debugfs("feature needs_recovery\n");
        let dirty = image.bytes();
        let report = image.compare_replays();
        assert!(report.transactions > 1, "{report:?}");
        let after_e2fsck = image.bytes();
        tool_with("", &[0], &["e2fsck", "-fn", &image.text()]);
        if kernel {
            image.put(&dirty);
            drop(mount(&image.path(), ""));
            let range = 7000 * block_size..7700 * block_size;
            assert!(image.bytes()[range.clone()] == after_e2fsck[range], "kernel replay");
            tool_with("", &[0], &["e2fsck", "-fn", &image.text()]);
        }
    }
}

fn mount(image: &Path, options: &str) -> Mount {
    Mount::of_image(image, None, options).unwrap()
}

/// Creates, rewrites and removes files and folders, with many fsyncs.
fn work_in(dir: &Path, rounds: usize) {
    use std::io::Write;
    let mut rng = Rng::new(rounds as u64);
    for n in 0..rounds {
        let sub = dir.join(format!("d{}", n % 7));
        std::fs::create_dir_all(&sub).unwrap();
        let mut file = std::fs::File::create(sub.join(format!("f{n}"))).unwrap();
        file.write_all(&vec![n as u8; rng.below(20_000) + 1]).unwrap();
        if rng.chance(40) {
            file.sync_all().unwrap();
        }
        if n % 7 == 6 {
            // Their blocks are revoked, and soon somebody else's.
            std::fs::remove_dir_all(dir.join(format!("d{}", rng.below(7)))).ok();
        }
    }
    let last = std::fs::File::create(dir.join("last")).unwrap();
    last.sync_all().unwrap();
}

#[test]
fn journals_written_by_the_kernel() {
    for (block_size, feature, options) in [
        (4096, "64bit,metadata_csum", ""),
        (1024, "64bit,metadata_csum", "data=journal"),
        (4096, "64bit,metadata_csum", "data=journal"),
        (1024, "^64bit,^metadata_csum", "journal_checksum"),
        (4096, "64bit,metadata_csum", "data=writeback,journal_async_commit"),
        (2048, "^64bit,^metadata_csum", ""),
    ] {
        let image = Image::make(block_size, &[feature]);
        let mount = mount(&image.path(), options);
        work_in(mount.path(), 120);
        let dirty = image.bytes();
        drop(mount);
        let report = image.anew(&dirty).compare_replays();
        assert!(report.transactions > 3, "{options}: {report:?}");
        assert_eq!(report.findings, [], "{options}");
    }
}

/// A loop device that ends with the value. It is kept open, so that nobody can detach it.
struct Loop {
    path: String,
    file: PathBuf,
    open: std::fs::File,
}

impl Loop {
    fn new(file: &Path) -> Loop {
        let out = tool(&["losetup", "--show", "-f", file.to_str().unwrap()]);
        let path: String = out.trim().into();
        let open = std::fs::File::options().read(true).write(true).open(&path).unwrap();
        Loop { path, file: file.into(), open }
    }

    /// Through the device, so that its cache knows.
    fn put(&self, bytes: &[u8]) {
        std::fs::write(&self.path, bytes).unwrap();
        self.open.sync_all().unwrap();
    }

    /// Past the device: the kernel writes logged blocks around its cache.
    fn bytes(&self) -> Vec<u8> {
        self.open.sync_all().unwrap();
        std::fs::read(&self.file).unwrap()
    }
}

impl Drop for Loop {
    fn drop(&mut self) {
        // Takes effect when `open` is closed, just after this.
        let _ = Command::new("losetup").args(["-d", &self.path]).status();
    }
}

fn uuid_of(text: &str, field: &str) -> Uuid {
    let line = text.lines().find(|l| l.starts_with(field)).unwrap();
    line.rsplit_once(' ').unwrap().1.parse().unwrap()
}

/// A file system with a journal on another image, made and dirtied by the kernel; the journal
/// device made by mke2fs or by us.
fn external_round(block_size: usize, device_by_us: bool) {
    let image = Image::make(block_size, &["^has_journal"]);
    let journal_file = image.dir.path().join("journal.img");
    let journal_bytes = 1500 * block_size;
    let text = journal_file.to_str().unwrap();
    std::fs::write(&journal_file, vec![0; journal_bytes]).unwrap();
    if device_by_us {
        let disk = Disk::plain("journal", vec![0xaa; journal_bytes]);
        // e2fsck looks for the journal by its UUID among all block devices: one that a test has
        // left, which was killed, must not have the same.
        let mut format = FormatOptions::new(Uuid::new_v4());
        format.checksums = Checksums::None;
        format.wide = false;
        let options = ExternalOptions {
            block_size: block_size as u32,
            label: "ours".into(),
            unix_seconds: 1_700_000_000,
            blocks: None,
            format,
        };
        format_device(disk.device(), &options).unwrap();
        std::fs::write(&journal_file, disk.bytes()).unwrap();
        let shown = tool(&["dumpe2fs", text]);
        assert!(shown.contains("journal_dev") && shown.contains("ours"), "{shown}");
    } else {
        let bs = block_size.to_string();
        tool(&["mke2fs", "-q", "-F", "-O", "journal_dev", "-b", &bs, text]);
    }
    // One device throughout: where its number does not match the file system's hint, e2fsck
    // mends that and then checks, and changes, everything.
    let journal = Loop::new(&journal_file);
    let device = format!("device={}", journal.path);
    {
        let fs = Loop::new(&image.path());
        tool(&["tune2fs", "-O", "has_journal", "-J", &device, &fs.path]);
    }
    let mount = mount(&image.path(), "");
    work_in(mount.path(), 100);
    let (dirty_fs, dirty_journal) = (image.bytes(), journal.bytes());
    drop(mount);
    let image = image.anew(&dirty_fs);
    journal.put(&dirty_journal);
    let shown = tool(&["dumpe2fs", "-h", &image.text()]);
    let owner = Owner {
        fs_uuid: uuid_of(&shown, "Filesystem UUID"),
        journal_uuid: uuid_of(&shown, "Journal UUID"),
        block_size: block_size as u32,
    };
    let (fs, log_disk) = (Disk::plain("fs", dirty_fs), Disk::plain("journal", dirty_journal));
    let found = open_for(log_disk.device(), &owner).unwrap();
    let report = recover(&found.log, &*fs).unwrap();
    assert!(report.transactions > 3, "{report:?}");
    e2fsck_replay_external(&image, &journal);
    assert_same(&fs.bytes(), &image.bytes(), &[(1024, 1024)]);
    continue_with_ours(&image, &journal, &owner);
}

fn e2fsck_replay_external(image: &Image, journal: &Loop) {
    let fs = Loop::new(&image.path());
    let args = ["e2fsck", "-y", "-E", "journal_only", "-j", &journal.path, &fs.path];
    let said = tool_with("", &[0, 1], &args);
    assert!(!said.contains("Pass 1"), "{said}");
}

/// Ours goes on where e2fsck left off; e2fsck replays it as we do.
fn continue_with_ours(image: &Image, loop_device: &Loop, owner: &Owner) {
    let block_size = image.block_size;
    let disks = [image.bytes(), loop_device.bytes()].map(|b| Disk::plain("again", b));
    let found = open_for(disks[1].device(), owner).unwrap();
    let config = config(Checksums::V3, true);
    let journal = Journal::open(found.log, disks[0].device(), config).unwrap();
    // Free blocks, near the end.
    let first = (disks[0].bytes().len() / block_size) as u64 - 800;
    write_with_ours(&journal, block_size, first, 60);
    image.put(&disks[0].bytes());
    loop_device.put(&disks[1].bytes());
    image.debugfs("feature needs_recovery\n");
    let log = open_device(disks[1].device()).unwrap().log;
    assert!(recover(&log, &*disks[0]).unwrap().transactions > 1);
    e2fsck_replay_external(image, loop_device);
    assert_same(&disks[0].bytes(), &image.bytes(), &[(1024, 1024)]);
}

#[test]
fn external_journals_of_the_kernel() {
    external_round(1024, false);
    external_round(4096, false);
}

#[test]
fn external_devices_that_we_made() {
    external_round(1024, true);
    external_round(4096, true);
}

#[test]
fn a_device_made_by_mke2fs_can_be_attached() {
    let dir = TempDir::new().unwrap();
    let file = dir.path().join("journal.img");
    std::fs::write(&file, vec![0; 2 << 20]).unwrap();
    tool(&["mke2fs", "-q", "-F", "-O", "journal_dev", "-b", "1024", file.to_str().unwrap()]);
    let disk = Disk::plain("journal", std::fs::read(&file).unwrap());
    let fs = Uuid::from_u128(5);
    let found = attach(disk.device(), fs, 1024).unwrap();
    assert_eq!((found.superblock.users(), found.superblock.sequence()), (vec![fs], Tid(1)));
}
