//! The home mark: a journal that is put back as it was earlier in the same mount is detected by it,
//! at one write a checkpoint; the kernel and e2fsck neither mind it nor are minded. Needs root, for
//! loop mounts.

use std::process::Command;
use std::sync::Arc;

use bytes::Bytes;
use steadfast_block::BlockDevice;
use steadfast_devices::filter::Stat;
use steadfast_devices::source::Ram;
use steadfast_devices::store::Store;
use steadfast_ext4::mount::replay;
use steadfast_ext4::next_extent;
use steadfast_ext4::{DataMode, Ext4, MountOptions};
use steadfast_ext4_check as check;
use steadfast_ext4_format::ondisk::{Features, InodeNo, RoCompat, SUPERBLOCK_OFFSET, Superblock};
use steadfast_ext4_mkfs::Options;
use steadfast_ext4_tune::{LossPolicy, detach, status};
use steadfast_host::Mount;
use steadfast_runtime::Sim;
use steadfast_vfs::{FileSystem, NewNode, OpenFlags, TransactMask};

use crate::machine::{Images, Start, assert_files, build_with, devices, dynamic, journal, put};

const RW: OpenFlags = OpenFlags::READ.union(OpenFlags::WRITE);
const MODES: [DataMode; 4] =
    [DataMode::Writeback, DataMode::Ordered, DataMode::Journal, DataMode::Transact];

/// The features of mke2fs, and the same without checksums.
fn feature_sets() -> [Features; 2] {
    let mut plain = Options::debian_features();
    plain.ro_compat.remove(RoCompat::METADATA_CSUM);
    [Options::upstream_features(), plain]
}

fn options(data: DataMode, card: &Ram) -> MountOptions {
    let mut options =
        MountOptions { data, journal_device: Some(dynamic(card)), ..MountOptions::default() };
    options.transact.mask = TransactMask::FSYNC | TransactMask::SYNC | TransactMask::VOLFULL;
    options.page_cache.memory_bytes = 4 << 20;
    options
}

fn mount_on(machine: &[Ram; 3], data: DataMode) -> steadfast_ext4::Result<Arc<Ext4>> {
    Ext4::mount(dynamic(&machine[0]), options(data, &machine[1]))
}

fn mark_of(store: &Store) -> Option<u32> {
    let superblock = Superblock::parse(&store.read(SUPERBLOCK_OFFSET, 1024)).unwrap();
    superblock.home_mark().map(|tid| tid.0)
}

fn data(n: u8) -> Bytes {
    vec![n; 9000].into()
}

fn has(fs: &Ext4, name: &str) -> bool {
    fs.lookup(fs.root(), name.as_bytes()).is_ok()
}

/// A run that is cut while it is mounted, and the journal as it was in between.
struct Run {
    machine: [Ram; 3],
    /// The card before the file system was mounted, and with one file; nothing was home then.
    clean: Store,
    early: Store,
    /// With everything home, and marked clean.
    emptied: Store,
}

impl Run {
    fn new(start: [Store; 3], mode: DataMode) -> Run {
        Sim::new(1)
            .run(move || {
                let machine = devices(&start);
                let clean = machine[1].store();
                let fs = mount_on(&machine, mode).unwrap();
                put(&fs, "a", &data(1));
                let early = machine[1].store();
                put(&fs, "b", &data(2));
                fs.journal().unwrap().checkpoint_all().unwrap();
                let emptied = machine[1].store();
                put(&fs, "c", &data(3));
                fs.journal().unwrap().checkpoint_committed().unwrap();
                put(&fs, "d", &data(4));
                drop(fs);
                // As a power cut leaves it.
                let stores = machine.map(|ram| ram.store());
                Run { machine: devices(&stores), clean, early, emptied }
            })
            .unwrap()
    }

    /// The machine with another journal.
    fn with(&self, card: &Store) -> [Ram; 3] {
        let [disk, _, other] = self.machine.clone().map(|ram| ram.store());
        devices(&[disk, card.clone(), other])
    }
}

/// Whoever would replay the log refuses, and nothing is written.
fn assert_refused(machine: &[Ram; 3], mode: DataMode, what: &str) {
    let before = machine.clone().map(|ram| ram.store());
    let machine = machine.clone();
    let (refusals, machine) = Sim::new(2)
        .run(move || {
            let (disk, card) = (dynamic(&machine[0]), journal(&machine[1]));
            let mut refusals = Vec::new();
            for read_only in [false, true] {
                let options = MountOptions { read_only, ..options(mode, &machine[1]) };
                refusals.push(Ext4::mount(Arc::clone(&disk), options.clone()).map(drop));
                refusals.push(replay(&disk, &options).map(drop));
            }
            let shown = status(&disk, Some(&card)).unwrap();
            assert_eq!(shown.home_mark.map(|tid| tid.0), mark_of(&machine[0].store()));
            assert!(shown.home_mark.is_some() && shown.problem.unwrap().contains("older"));
            refusals.push(detach(&disk, Some(&card), LossPolicy::Refuse).map(drop));
            (refusals, machine)
        })
        .unwrap();
    for refusal in refusals {
        let why = refusal.expect_err(what).to_string();
        assert!(why.contains("older than the file system"), "{what}: {why}");
        assert!(why.contains("ends with transaction"), "{what}: {why}");
    }
    let unchanged = machine.iter().zip(&before).all(|(ram, store)| ram.store() == *store);
    assert!(unchanged, "{what}: something was written");
}

#[test]
fn a_journal_from_earlier_in_the_mount_is_refused_by_name() {
    for (mode, features) in MODES.into_iter().flat_map(|m| feature_sets().map(|f| (m, f))) {
        let run = Run::new(build_with(Start::External, features), mode);
        for (card, when) in
            [(&run.clean, "before"), (&run.early, "with one file"), (&run.emptied, "emptied")]
        {
            assert_refused(&run.with(card), mode, &format!("{mode:?}, {when}"));
        }
        // The right one.
        let machine = run.machine.clone();
        Sim::new(3)
            .run(move || {
                let fs = mount_on(&machine, mode).unwrap();
                assert_files(&fs, "recovered");
                assert!(["a", "b", "c", "d"].iter().all(|name| has(&fs, name)), "{mode:?}");
                fs.unmount().unwrap();
                assert_eq!(mark_of(&machine[0].store()), None, "{mode:?}: a clean one has none");
                // Whatever journal now comes back is thrown away.
                machine[1].replace(run.early.clone());
                let fs = mount_on(&machine, mode).unwrap();
                assert!(has(&fs, "d"), "{mode:?}");
                fs.unmount().unwrap();
            })
            .unwrap();
    }
}

/// One write with FUA before the first home write, one flush after the last, as without a mark.
#[test]
fn a_checkpoint_costs_one_write_more() {
    for mode in MODES {
        let stores = build_with(Start::External, Options::upstream_features());
        let ran = Sim::new(1).run(move || {
            let [disk, card, _] = devices(&stores);
            let disk = Arc::new(Stat::new(Arc::new(disk.with_volatile_cache())));
            let device: Arc<dyn BlockDevice> = disk.clone();
            let fs = Ext4::mount(device, options(mode, &card)).unwrap();
            let journal = fs.journal().unwrap();
            for n in 0..5u8 {
                put(&fs, &format!("n{n}"), &data(n));
                for expected in [1, 0] {
                    let (before, home) = (disk.counters(), journal.stats());
                    journal.checkpoint_committed().unwrap();
                    let (made, after) = (disk.counters().since(&before), journal.stats());
                    let home_writes = after.home_writes - home.home_writes;
                    assert_eq!(home_writes > 0, expected == 1, "{mode:?}");
                    assert_eq!(made.fua_writes, expected, "{mode:?}: marks");
                    assert_eq!(made.write.done, expected + home_writes, "{mode:?}: writes");
                    assert_eq!(made.flush.done, expected, "{mode:?}: flushes");
                }
            }
            fs.unmount().unwrap();
        });
        ran.unwrap();
    }
}

/// The blocks of a file, first and count.
fn blocks(fs: &Ext4, name: &str) -> Vec<(u64, u64)> {
    let ino = fs.lookup(fs.root(), name.as_bytes()).unwrap().ino;
    let txn = fs.look();
    let (mut out, mut at) = (Vec::new(), 0);
    while let Some(e) = next_extent(&txn, InodeNo(ino.0 as u32), at).unwrap() {
        out.push((e.start, u64::from(e.len)));
        at = e.end();
    }
    out
}

/// Writes a file in as many pieces as it takes, and makes it durable.
fn put_all(fs: &Ext4, name: &str, data: &Bytes) {
    let (_, fh) = fs.create(fs.root(), name.as_bytes(), NewNode::default(), RW).unwrap();
    let mut done = 0;
    while done < data.len() {
        done += fs.write(fh, done as u64, data.slice(done..)).unwrap();
    }
    fs.fsync(fh, false).unwrap();
    fs.release(fh).unwrap();
}

/// Data goes in place before its transaction commits. Blocks of a file that a journal from before
/// still has are not written by others until the mark says that such a journal is too old.
#[test]
fn freed_blocks_rest_until_the_mark_has_reached_them() {
    for mode in [DataMode::Writeback, DataMode::Ordered, DataMode::Transact] {
        let stores = build_with(Start::External, Options::upstream_features());
        let ran = Sim::new(1).run(move || {
            let machine = devices(&stores);
            let fs = mount_on(&machine, mode).unwrap();
            let large = Bytes::from(vec![7; 18 << 20]);
            put_all(&fs, "victim", &large);
            let before = blocks(&fs, "victim");
            let early = machine[1].store();
            fs.unlink(fs.root(), b"victim").unwrap();
            fs.sync().unwrap();
            // There is room in other blocks.
            put(&fs, "other", &data(9));
            let overlaps = |name: &str| {
                let now = blocks(&fs, name);
                now.iter().any(|(s, n)| before.iter().any(|(b, m)| *s < b + m && *b < s + n))
            };
            assert!(!overlaps("other"), "{mode:?}");
            let now = machine.clone().map(|ram| ram.store());
            let back = devices(&[now[0].clone(), early.clone(), now[2].clone()]);
            let again = mount_on(&back, mode).unwrap();
            let ino = again.lookup(again.root(), b"victim").unwrap().ino;
            let fh = again.open(ino, OpenFlags::READ).unwrap();
            assert!(again.read(fh, 0, large.len()).unwrap() == large, "{mode:?}");
            again.release(fh).unwrap();
            again.unmount().unwrap();
            // And none in other blocks: a checkpoint makes it.
            put_all(&fs, "large", &large);
            assert!(overlaps("large"), "{mode:?}: as large as all that is free");
            drop(fs);
            let now = machine.clone().map(|ram| ram.store());
            (back[0].clone(), devices(&[now[0].clone(), early, now[2].clone()]))
        });
        let (_, put_back) = ran.unwrap();
        assert_refused(&put_back, mode, &format!("{mode:?}, reused"));
    }
}

fn said(command: &mut Command) -> String {
    let out = command.output().unwrap();
    let text = [&out.stdout[..], &out.stderr].concat();
    format!("{}{}", out.status, String::from_utf8_lossy(&text))
}

/// e2fsck replays what has a mark, and the kernel mounts it; neither says a word about it, and
/// what the kernel leaves is never refused because of a mark of ours.
#[test]
fn the_kernel_and_e2fsck_come_in_between() {
    for (mode, features) in MODES.into_iter().flat_map(|m| feature_sets().map(|f| (m, f))) {
        let run = Run::new(build_with(Start::External, features), mode);
        let what = format!("{mode:?}");
        let images = Images::new();
        let disk = images.dump(&run.machine[0].store(), "disk");
        let card = images.dump(&run.machine[1].store(), "card");
        assert!(mark_of(&run.machine[0].store()).is_some(), "{what}");
        let dump = said(Command::new("dumpe2fs").arg("-h").arg(&disk));
        assert!(dump.starts_with("exit status: 0"), "{what}: {dump}");
        assert!(!dump.contains("Journal backup") && !dump.contains("invalid"), "{what}: {dump}");
        images.e2fsck(&disk, Some(&card), true, &what);
        // The kernel, on what was cut.
        let disk = images.dump(&run.machine[0].store(), "disk");
        let card = images.dump(&run.machine[1].store(), "card");
        let mounted = Mount::of_image(&disk, Some(&card), "").unwrap();
        for name in ["a", "b", "c", "d"] {
            assert!(mounted.path().join(name).exists(), "{what}: {name}");
        }
        std::fs::write(mounted.path().join("kernel"), [5; 9000]).unwrap();
        assert!(Command::new("sync").arg("-f").arg(mounted.path()).status().unwrap().success());
        let crashed = [&disk, &card].map(|path| Store::import(path).unwrap());
        mounted.unmount().unwrap();
        images.e2fsck(&disk, Some(&card), false, &format!("{what}, after the kernel"));
        let left = [&disk, &card].map(|path| Store::import(path).unwrap());
        for (state, [disk, card]) in [("crashed", crashed), ("unmounted", left)] {
            let what = format!("{what}, the kernel {state}");
            let stores = [disk, card, run.machine[2].store()];
            let again = Run::after(stores, mode, &what);
            assert_refused(&again.with(&again.early), mode, &what);
        }
    }
}

impl Run {
    /// As [`new`](Self::new), of what the kernel has left.
    fn after(stores: [Store; 3], mode: DataMode, what: &str) -> Run {
        let (machine, text) = (devices(&stores), what.to_owned());
        let stores = Sim::new(4)
            .run(move || {
                let fs = mount_on(&machine, mode).unwrap_or_else(|e| panic!("{text}: {e}"));
                assert!(["a", "d", "kernel"].iter().all(|name| has(&fs, name)), "{text}");
                for name in ["a", "b", "c", "d"] {
                    fs.unlink(fs.root(), name.as_bytes()).unwrap();
                }
                fs.sync().unwrap();
                fs.unmount().unwrap();
                machine.map(|ram| ram.store())
            })
            .unwrap();
        Run::new(stores, mode)
    }
}

/// A journal of the same name that was made anew is as old as can be.
#[test]
fn a_journal_made_anew_is_refused_and_one_attached_is_not() {
    let run =
        Run::new(build_with(Start::External, Options::upstream_features()), DataMode::Ordered);
    let machine = run.with(&run.early);
    Sim::new(5)
        .run(move || {
            let (disk, card) = (dynamic(&machine[0]), journal(&machine[1]));
            detach(&disk, Some(&card), LossPolicy::Accept).unwrap();
            assert!(check::check(&disk, None).is_ok());
            assert_eq!(mark_of(&machine[0].store()), None);
        })
        .unwrap();
    let node = NewNode::default();
    let machine = run.machine.clone();
    Sim::new(6)
        .run(move || {
            // Recovered, and given another journal: the old one's numbers mean nothing to it.
            let (disk, other) = (dynamic(&machine[0]), journal(&machine[2]));
            let old = journal(&machine[1]);
            let new = steadfast_ext4_tune::NewJournal::External(other);
            steadfast_ext4_tune::move_to(&disk, Some(&old), &new).unwrap();
            let fs = Ext4::mount(disk, options(DataMode::Ordered, &machine[2])).unwrap();
            fs.create(fs.root(), b"e", node, OpenFlags::WRITE).unwrap();
            fs.sync().unwrap();
            drop(fs);
            let stores = machine.clone().map(|ram| ram.store());
            let machine = devices(&stores);
            let disk = dynamic(&machine[0]);
            let fs = Ext4::mount(disk, options(DataMode::Ordered, &machine[2])).unwrap();
            assert!(has(&fs, "d") && has(&fs, "e"));
            fs.unmount().unwrap();
        })
        .unwrap();
}
