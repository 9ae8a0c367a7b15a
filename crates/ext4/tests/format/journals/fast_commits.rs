//! Fast commits that the kernel left: our replay shows the tree that was made durable, which is
//! also what the kernel's own replay shows, and leaves nothing for e2fsck to find.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use steadfast_block::BlockDevice;
use steadfast_block::rng::Rng;
use steadfast_devices::source::Ram;
use steadfast_ext4::mount::{replay, replayed_blocks};
use steadfast_ext4::{Ext4, MountOptions};
use steadfast_ext4_check::check;
use steadfast_journal::RecoveryReport;

use super::fast_work::{Seen, prepare, sync, tree, work};
use super::stage::{Contents, Shape, Stage, with_card};
use crate::sparse_image::can_mount;

pub const FEATURES: &str = "metadata_csum,64bit,fast_commit";

/// A file system with fast commits in its journal, and the tree that they make durable.
pub struct Left {
    pub stage: Stage,
    pub dirty: Contents,
    pub tree: BTreeMap<PathBuf, Seen>,
}

/// Has the kernel do some work and then nothing more.
pub fn left(shape: Shape, options: &str, work: impl FnOnce(&Path)) -> Left {
    let stage = Stage::mke2fs(shape);
    // The kernel must not commit by itself while the images are copied.
    let mount = stage.mount(&format!("rw,commit=9999{options}"));
    prepare(mount.path());
    work(mount.path());
    let tree = tree(mount.path());
    let dirty = stage.contents();
    drop(mount);
    Left { stage, dirty, tree }
}

impl Left {
    /// Replays what was left.
    fn replayed(&self) -> (Contents, RecoveryReport) {
        let (disk, card) = self.dirty.devices();
        let device: Arc<dyn BlockDevice> = Arc::new(disk.clone());
        let how = || with_card(card.as_ref(), MountOptions::default());
        let seen = replayed_blocks(&device, &how()).unwrap();
        let findings = check(&device, Some(&seen)).unwrap().findings;
        assert_eq!(findings, [], "our check, over what would be replayed");
        let report = replay(&device, &how()).unwrap().expect("a dirty journal");
        for (block, image) in &seen {
            let size = image.len() as u64;
            let same = device.read(block.0 * size, size).unwrap() == *image;
            // The superblock says afterwards that nothing is to be replayed.
            assert!(same || block.0 * size <= 1024, "block {block} is not as foretold");
        }
        assert!(replay(&device, &how()).unwrap().is_none(), "replayed twice");
        let contents = Contents { disk: disk.store(), card: card.as_ref().map(Ram::store) };
        (contents, report)
    }

    /// Shows the tree by the kernel.
    pub fn shown(&self, contents: &Contents) -> BTreeMap<PathBuf, Seen> {
        self.stage.put(contents);
        let mount = self.stage.mount("rw");
        tree(mount.path())
    }

    /// Compares the trees; returns how many fast commits there were.
    fn compare(&self, what: &str, with_kernel: bool) -> u32 {
        let (ours, report) = self.replayed();
        let mounted = mounted_once(&ours);
        self.stage.put(&mounted);
        self.stage.assert_clean(what);
        assert_same(&self.shown(&mounted), &self.tree, &format!("{what}: ours"));
        if with_kernel && report.fast_commits > 0 {
            assert_same(&self.shown(&self.dirty), &self.tree, &format!("{what}: the kernel's"));
        }
        report.fast_commits
    }
}

/// After a mount and unmount by us, which deletes orphans.
pub fn mounted_once(contents: &Contents) -> Contents {
    let (disk, card) = contents.devices();
    let how = with_card(card.as_ref(), MountOptions::default());
    let fs = Ext4::mount(Arc::new(disk.clone()), how).unwrap();
    fs.unmount().unwrap();
    Contents { disk: disk.store(), card: card.as_ref().map(Ram::store) }
}

pub fn assert_same(found: &BTreeMap<PathBuf, Seen>, made: &BTreeMap<PathBuf, Seen>, what: &str) {
    let beyond = |a: &BTreeMap<PathBuf, Seen>, b: &BTreeMap<PathBuf, Seen>| {
        a.keys().filter(|name| !b.contains_key(*name)).cloned().collect::<Vec<_>>()
    };
    let differ = [beyond(found, made), beyond(made, found)];
    assert!(differ.iter().all(Vec::is_empty), "{what}: too many and missing: {differ:?}");
    for (name, seen) in found {
        assert_eq!(*seen, made[name], "{what}: {name:?}");
    }
}

fn shape(block_size: u32, external: bool) -> Shape {
    Shape { block_size, features: FEATURES, external }
}

#[test]
fn random_work() {
    if !can_mount() {
        return;
    }
    let mut total = 0;
    for (seed, block_size, operations) in [(1, 4096, 12), (2, 1024, 25), (3, 4096, 30)] {
        let left = left(shape(block_size, false), "", |dir| work(dir, seed, operations));
        total += left.compare(&format!("seed {seed}"), false);
    }
    assert!(total >= 10, "the kernel has made {total} fast commits");
}

#[test]
fn directories_and_names_that_change_hands() {
    if !can_mount() {
        return;
    }
    let left = left(shape(4096, false), "", |dir| {
        fs::create_dir(dir.join("new")).unwrap();
        for n in 0..100 {
            // More than one block of names.
            let name = format!("{n}-{}", "y".repeat(100));
            fs::hard_link(dir.join("d2/old2"), dir.join("new").join(name)).unwrap();
        }
        fs::create_dir(dir.join("new/below")).unwrap();
        sync(&dir.join("new/3-".to_string() + &"y".repeat(100)));
        // The inode's number goes to another file, and the name to another inode.
        fs::remove_file(dir.join("d0/old0")).unwrap();
        fs::write(dir.join("d0/other"), vec![7; 9000]).unwrap();
        fs::rename(dir.join("d0/other"), dir.join("d1/old1")).unwrap();
        sync(&dir.join("d1/old1"));
        fs::create_dir(dir.join("gone")).unwrap();
        fs::remove_dir(dir.join("gone")).unwrap();
        fs::write(dir.join("end"), "end").unwrap();
        sync(&dir.join("end"));
    });
    assert!(left.compare("directories", false) >= 2);
}

#[test]
fn an_open_file_that_lost_its_name() {
    if !can_mount() {
        return;
    }
    let left = left(shape(4096, false), "", |dir| {
        let file = OpenOptions::new().read(true).write(true).open(dir.join("d1/old1")).unwrap();
        fs::remove_file(dir.join("d1/old1")).unwrap();
        file.write_all_at(&[9; 20_000], 50_000).unwrap();
        file.sync_all().unwrap();
        let young = File::create(dir.join("young")).unwrap();
        fs::remove_file(dir.join("young")).unwrap();
        young.write_all_at(&[8; 5000], 0).unwrap();
        young.sync_all().unwrap();
        fs::write(dir.join("end"), "end").unwrap();
        sync(&dir.join("end"));
        // Closed here, they are deleted, but nothing of that is committed.
    });
    assert!(left.compare("unnamed", false) >= 1);
}

#[test]
fn as_the_kernel_replays_them() {
    if !can_mount() {
        return;
    }
    let left = left(shape(4096, false), "", |dir| {
        for n in 0..5u8 {
            let path = dir.join(format!("f{n}"));
            fs::write(&path, vec![n + 1; 10_000]).unwrap();
            sync(&path);
        }
        fs::rename(dir.join("f0"), dir.join("d1/moved")).unwrap();
        fs::hard_link(dir.join("f1"), dir.join("second")).unwrap();
        fs::remove_file(dir.join("f2")).unwrap();
        let file = OpenOptions::new().write(true).open(dir.join("f3")).unwrap();
        file.set_len(100).unwrap();
        file.write_all_at(b"further", 200_000).unwrap();
        file.sync_all().unwrap();
    });
    assert!(left.compare("simple", true) >= 5);
}

#[test]
fn external_journal() {
    if !can_mount() {
        return;
    }
    // The kernel makes room for fast commits in an external journal, too.
    let left = left(shape(1024, true), "", |dir| work(dir, 5, 8));
    left.compare("external", false);
}

#[test]
fn damaged_fast_commits_leave_an_older_state() {
    if !can_mount() {
        return;
    }
    let left = left(shape(1024, false), "", |dir| work(dir, 6, 12));
    let area = fast_area(&left);
    let mut rng = Rng::new(3);
    for round in 0..120 {
        let (disk, _) = left.dirty.devices();
        let device: Arc<dyn BlockDevice> = Arc::new(disk.clone());
        for _ in 0..1 + round % 3 {
            // Mostly where something stands.
            let block = area[(rng.below(1 + round) as usize).min(area.len() - 1)];
            let at = block * 1024 + rng.below(1024) / 512 * 512;
            let mut sector = device.read(at, 512).unwrap().to_vec();
            match rng.below(3) {
                0 => sector[rng.below(512) as usize] ^= 1 << rng.below(8),
                1 => sector.fill(0),
                _ => sector.fill_with(|| rng.below(256) as u8),
            }
            device.write_fua(at, sector.into()).unwrap();
        }
        let report = replay(&device, &MountOptions::default()).unwrap().unwrap();
        assert!(report.fast_commits <= area.len() as u32);
        let contents = mounted_once(&Contents { disk: disk.store(), card: None });
        let device: Arc<dyn BlockDevice> = Arc::new(contents.devices().0);
        assert_eq!(check(&device, None).unwrap().findings, [], "round {round}");
    }
}

/// The blocks of the fast-commit area, on the disk.
fn fast_area(left: &Left) -> Vec<u64> {
    let first = left.stage.journal_superblock().unwrap();
    // The journal lies in one piece; its size and that of the area as given to mke2fs.
    let (log, area) = (1024 + 64, 64);
    (first + log - area + 1..first + log).collect()
}
