//! Fast commits that we wrote, cut at random instants: we and the kernel replay the same tree, and
//! neither replay leaves anything for e2fsck to find.
//!
//! So does e2fsck (1.47), where nothing else is in the log that it must not forget: it writes the
//! group descriptors back as they were before the replay, whoever wrote the fast commits.

use std::sync::Arc;

use bytes::Bytes;
use steadfast_block::BlockDevice;
use steadfast_block::rng::Rng;
use steadfast_devices::filter::record::DeviceId;
use steadfast_devices::filter::{CacheSettings, Record, RecordLog, Recording, WriteCache};
use steadfast_devices::source::Ram;
use steadfast_ext4::{Ext4, MountOptions};
use steadfast_runtime::Sim;
use steadfast_vfs::{FileSystem, FsError, Ino, NewNode, OpenFlags, RenameFlags, SetAttr};

use super::fast_commits::{FEATURES, assert_same, mounted_once};
use super::fast_work::tree;
use super::stage::{Contents, Shape, Stage, with_card};
use crate::sparse_image::can_mount;

const RW: OpenFlags = OpenFlags::READ.union(OpenFlags::WRITE);

fn bytes(seed: u64, len: u64) -> Bytes {
    (0..len).map(|i| (i.wrapping_mul(seed * 2 + 1) >> 3) as u8 | 1).collect()
}

/// Files in a few directories, and what is done to them.
struct Work<'a> {
    fs: &'a Ext4,
    rng: Rng,
    dirs: Vec<Ino>,
    names: Vec<(Ino, String)>,
}

impl Work<'_> {
    fn some(&mut self) -> (Ino, String) {
        self.names[self.rng.below(self.names.len() as u64) as usize].clone()
    }

    fn new_name(&mut self, n: u64) -> (Ino, String) {
        let dir = self.dirs[self.rng.below(self.dirs.len() as u64) as usize];
        (dir, format!("n{n}-{}", "x".repeat(self.rng.below(80) as usize)))
    }

    fn inode(&self, (dir, name): &(Ino, String)) -> Ino {
        self.fs.lookup(*dir, name.as_bytes()).unwrap().ino
    }

    fn write(&mut self, ino: Ino, n: u64, at: u64, len: u64) {
        let direct = self.rng.percent(10);
        let (flags, at, len) = match direct {
            true => (RW | OpenFlags::DIRECT, at / 4096 * 4096, len.next_multiple_of(4096)),
            false => (RW, at, len),
        };
        let fh = self.fs.open(ino, flags).unwrap();
        self.fs.write(fh, at, bytes(n, len)).unwrap();
        if self.rng.percent(70) {
            self.fs.fsync(fh, n.is_multiple_of(2)).unwrap();
        }
        self.fs.release(fh).unwrap();
    }

    fn step(&mut self, n: u64) {
        let (old, new) = (self.some(), self.new_name(n));
        let some = self.inode(&old);
        match self.rng.below(20) {
            0..5 => {
                let (attr, fh) =
                    self.fs.create(new.0, new.1.as_bytes(), NewNode::default(), RW).unwrap();
                self.fs.release(fh).unwrap();
                self.names.push(new);
                let len = self.rng.below(30_000);
                self.write(attr.ino, n, 0, 1 + len);
            }
            5..9 => {
                let size = self.fs.getattr(some).unwrap().size;
                let len = 1 + self.rng.below(9_000);
                self.write(some, n, size, len);
            }
            9..11 => {
                let (at, len) = (self.rng.below(200_000), 1 + self.rng.below(9_000));
                self.write(some, n, at, len);
            }
            11..13 => {
                let (from, to) = (old.1.as_bytes(), new.1.as_bytes());
                self.fs.rename((old.0, from), (new.0, to), RenameFlags::empty()).unwrap();
                self.fs.fsyncdir(new.0).unwrap();
                self.names.retain(|name| *name != old);
                self.names.push(new);
            }
            13..15 => match self.fs.link(some, new.0, new.1.as_bytes()) {
                Ok(_) => self.names.push(new),
                Err(e) => panic!("{e}"),
            },
            15..17 => {
                let many = self.fs.getattr(some).unwrap().nlink > 1;
                if many || (self.rng.percent(20) && self.names.len() > 4) {
                    self.fs.unlink(old.0, old.1.as_bytes()).unwrap();
                    self.names.retain(|name| *name != old);
                    self.fs.fsyncdir(old.0).unwrap();
                }
            }
            17 => {
                let size = self.rng.percent(30).then(|| self.rng.below(20_000));
                let mode = Some(0o600 + self.rng.below(64) as u16);
                self.fs.setattr(some, SetAttr { size, mode, ..SetAttr::default() }).unwrap();
            }
            18 if self.rng.percent(30) => {
                match self.fs.mkdir(new.0, new.1.as_bytes(), NewNode::default()) {
                    Ok(attr) => self.dirs.push(attr.ino),
                    Err(FsError::Exists) => {}
                    Err(e) => panic!("{e}"),
                }
            }
            _ => {
                let fh = self.fs.open(some, RW).unwrap();
                self.fs.fsync(fh, false).unwrap();
                self.fs.release(fh).unwrap();
            }
        }
    }
}

/// How a run is made.
#[derive(Debug, Clone, Copy)]
struct How {
    block_size: u32,
    external: bool,
    delayed_allocation: bool,
    /// Nothing but fast commits after a transaction that holds a change of one inode.
    only_fast: bool,
}

const PLAIN: How =
    How { block_size: 4096, external: false, delayed_allocation: true, only_fast: false };

/// What a fast commit can record, and nothing else.
fn only_fast_work(work: &mut Work<'_>) {
    let fs = work.fs;
    fs.journal().unwrap().checkpoint_all().unwrap();
    let (old, root) = (work.names[0].clone(), fs.root());
    let old_inode = work.inode(&old);
    fs.setattr(old_inode, SetAttr { mode: Some(0o640), ..SetAttr::default() }).unwrap();
    fs.fsyncdir(old.0).unwrap();
    let fh = fs.open(old_inode, RW).unwrap();
    fs.fsync(fh, false).unwrap();
    fs.release(fh).unwrap();
    let before = fs.journal().unwrap().stats();
    for n in 0..12u64 {
        let name = format!("new{n}");
        let (attr, fh) = fs.create(root, name.as_bytes(), NewNode::default(), RW).unwrap();
        fs.write(fh, 0, bytes(n, 3000 * n)).unwrap();
        fs.fsync(fh, false).unwrap();
        fs.write(fh, 40_000, bytes(n, 2000)).unwrap();
        fs.fsync(fh, true).unwrap();
        fs.release(fh).unwrap();
        let (dir, other) = (work.dirs[1], format!("other{n}"));
        match n % 3 {
            0 => drop(fs.link(attr.ino, dir, other.as_bytes()).unwrap()),
            1 => {
                let none = RenameFlags::empty();
                fs.rename((root, name.as_bytes()), (dir, other.as_bytes()), none).unwrap();
            }
            _ => {
                fs.link(attr.ino, dir, other.as_bytes()).unwrap();
                fs.unlink(root, name.as_bytes()).unwrap();
            }
        }
        fs.fsyncdir(dir).unwrap();
    }
    let after = fs.journal().unwrap().stats();
    assert_eq!(after.commits, before.commits, "all of it is in fast commits");
    assert!(after.fast_commits >= before.fast_commits + 30);
}

fn work(fs: &Ext4, seed: u64, only_fast: bool) {
    let root = fs.root();
    let mut dirs = vec![root];
    let mut names = Vec::new();
    for n in 0..3u64 {
        let dir = fs.mkdir(root, format!("d{n}").as_bytes(), NewNode::default()).unwrap().ino;
        let name = format!("old{n}");
        let (_, fh) = fs.create(dir, name.as_bytes(), NewNode::default(), RW).unwrap();
        fs.write(fh, 0, bytes(n, 30_000)).unwrap();
        fs.release(fh).unwrap();
        dirs.push(dir);
        names.push((dir, name));
    }
    fs.sync().unwrap();
    let mut work = Work { fs, rng: Rng::new(seed), dirs, names };
    if only_fast {
        only_fast_work(&mut work);
    } else {
        (0..120).for_each(|n| work.step(n));
    }
}

/// Runs the work on what `stage` has; how many fast commits it took.
fn recorded(base: &Contents, seed: u64, how: How) -> (Recording, u64) {
    let base = base.clone();
    Sim::new(seed)
        .run(move || {
            let log = RecordLog::new();
            let (disk, card) = base.devices();
            let [disk, card] = [Some(disk), card].map(|ram: Option<Ram>| {
                ram.map(|ram| {
                    let settings = CacheSettings::default();
                    let cached = Arc::new(WriteCache::new(Arc::new(ram), settings));
                    Arc::new(Record::new(cached, &log)) as Arc<dyn BlockDevice>
                })
            });
            let mut options = MountOptions { journal_device: card, ..MountOptions::default() };
            options.journal.fast_commits = true;
            options.delayed_allocation = how.delayed_allocation;
            let fs = Ext4::mount(disk.unwrap(), options).unwrap();
            work(&fs, seed, how.only_fast);
            let stats = fs.journal().unwrap().stats();
            let recording = log.take();
            fs.unmount().unwrap();
            (recording, stats.fast_commits)
        })
        .unwrap()
}

fn explore(how: How, seed: u64) {
    if !can_mount() {
        return;
    }
    let soak = std::env::var("STEADFAST_SOAK").ok().and_then(|v| v.parse().ok()).unwrap_or(1u64);
    let How { block_size, external, .. } = how;
    let cuts = 6;
    let stage = Stage::mke2fs(Shape { block_size, features: FEATURES, external });
    let base = stage.contents();
    let mut replayed = 0;
    for seed in (0..soak.max(1)).map(|round| seed + 100 * round) {
        let (recording, fast) = recorded(&base, seed, how);
        assert!(fast >= 10, "{fast} fast commits");
        let mut rng = Rng::new(seed);
        let (first, last) = (recording.first_crash_point(), recording.last_crash_point());
        for i in 0..cuts {
            // Rather at the end, where there is something to lose.
            let share = if how.only_fast { 7 } else { 9 };
            let cut = last - rng.below((last - first) * share / 10);
            let keep = [0, 50, 100][i % 3];
            let cut_off = Contents {
                disk: recording.at(DeviceId(0), cut).contents(&base.disk, 0, keep, &mut rng),
                card: base
                    .card
                    .as_ref()
                    .map(|c| recording.at(DeviceId(1), cut).contents(c, 0, keep, &mut rng)),
            };
            let what = format!("seed {seed}, cut {cut} of {last}, keep {keep}");
            replayed += u64::from(same_for_all(&stage, &cut_off, how.only_fast, &what) > 0);
        }
    }
    assert!(replayed * 3 >= soak.max(1) * cuts as u64, "{replayed} cuts left fast commits");
}

/// Compares the replays; how many fast commits there were.
fn same_for_all(stage: &Stage, cut_off: &Contents, e2fsck: bool, what: &str) -> u32 {
    let (disk, card) = cut_off.devices();
    let device: Arc<dyn BlockDevice> = Arc::new(disk);
    let how = with_card(card.as_ref(), MountOptions::default());
    let report = steadfast_ext4::mount::replay(&device, &how).unwrap();
    stage.put(&mounted_once(cut_off));
    stage.assert_clean(&format!("{what}: ours"));
    let shown = || {
        let mount = stage.mount("rw");
        tree(mount.path())
    };
    let ours = shown();
    stage.put(cut_off);
    assert_same(&shown(), &ours, &format!("{what}: the kernel's"));
    stage.assert_clean(&format!("{what}: the kernel's"));
    if e2fsck {
        stage.put(cut_off);
        stage.replay_with_e2fsck();
        stage.repair();
        assert_same(&shown(), &ours, &format!("{what}: e2fsck's"));
    }
    report.map_or(0, |report| report.fast_commits)
}

#[test]
fn the_kernel_replays_what_we_wrote() {
    explore(PLAIN, 1);
}

#[test]
fn the_kernel_replays_what_we_wrote_in_small_blocks() {
    explore(How { block_size: 1024, delayed_allocation: false, ..PLAIN }, 2);
}

#[test]
fn the_kernel_replays_what_we_wrote_to_an_external_journal() {
    explore(How { block_size: 1024, external: true, ..PLAIN }, 3);
}

#[test]
fn e2fsck_replays_what_we_wrote() {
    explore(How { only_fast: true, ..PLAIN }, 4);
}
