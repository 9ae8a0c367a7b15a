//! The power goes while a journal is attached, detached or moved: with the old journal or the
//! new one the file system mounts, everything is in it, and e2fsck finds nothing wrong.

use std::sync::Arc;

use steadfast_block::BlockDevice;
use steadfast_block::rng::Rng;
use steadfast_devices::filter::record::DeviceId;
use steadfast_devices::filter::{CacheSettings, Record, RecordLog, Recording, WriteCache};
use steadfast_devices::source::Ram;
use steadfast_ext4::{Ext4, MountOptions};
use steadfast_ext4_check as check;
use steadfast_ext4_format::ondisk::{Features, RoCompat};
use steadfast_ext4_mkfs::Options;
use steadfast_ext4_tune::{JournalDevice, LossPolicy, NewJournal, attach, detach, move_to};
use steadfast_host::Mount;
use steadfast_runtime::Sim;

use crate::losses::{dirty, repair};
use crate::machine::{
    Images, Start, Stores, assert_files, build, build_with, devices, dynamic, journal, mount,
    named_card,
};

type Change = fn(&Arc<dyn BlockDevice>, &[JournalDevice; 2]);

/// Records a change.
fn run(stores: &Stores, change: Change) -> Recording {
    let stores = stores.clone();
    Sim::new(1)
        .run(move || {
            let log = RecordLog::new();
            let recorded = devices(&stores).map(|ram| {
                let cached = Arc::new(WriteCache::new(Arc::new(ram), CacheSettings::default()));
                Arc::new(Record::new(cached, &log)) as Arc<dyn BlockDevice>
            });
            let cards = [1, 2].map(|i| JournalDevice {
                device: Arc::clone(&recorded[i]),
                number: 0,
                accept_volatile: false,
            });
            change(&recorded[0], &cards);
            log.take()
        })
        .unwrap()
}

/// The instants at which something was written or flushed, the last ones first: what matters
/// comes after the long erasing of a log.
fn cuts(recording: &Recording) -> Vec<u64> {
    let (first, last) = (recording.first_crash_point(), recording.last_crash_point());
    let soak = std::env::var("STEADFAST_SOAK").is_ok();
    let all = (first + 1..=last).rev();
    if soak {
        return all.collect();
    }
    let late = all.clone().take(34);
    let mut rng = Rng::new(last);
    let early = (0..6).map(move |_| first + 1 + rng.below(last - first));
    late.chain(early).collect()
}

/// `tidy`: a moment is left in which e2fsck has something to do, without asking.
fn explore(start: Start, upstream: bool, tidy: bool, change: Change) {
    explore_on(Sim::new(1).run(move || build(start, upstream)).unwrap(), start, tidy, change);
}

/// Contents of the devices that a cut may leave.
fn left(stores: &Stores, recording: &Recording, cut: u64, keep: u64, rng: &mut Rng) -> Stores {
    let mut devices = (0..).map(DeviceId);
    stores.each_ref().map(|base| {
        // OK to unwrap: there are more numbers than devices.
        recording.at(devices.next().unwrap(), cut).contents(base, 0, keep, rng)
    })
}

fn explore_on(stores: Stores, start: Start, tidy: bool, change: Change) {
    let recording = run(&stores, change);
    let images = Images::new();
    let mut rng = Rng::new(7);
    for (i, cut) in cuts(&recording).into_iter().enumerate() {
        let keep = [0, 100, 50][i % 3];
        let left = left(&stores, &recording, cut, keep, &mut rng);
        let what = format!("{start:?}, cut {cut} of {}, keep {keep}", recording.last_crash_point());
        let machine = devices(&left);
        let card = named_card(&machine);
        judge(&images, &machine, card, tidy, &what);
        if i % 8 == 0 {
            kernel(&images, &devices(&left), card, &what);
        }
    }
}

fn judge(images: &Images, machine: &[Ram; 3], card: Option<usize>, tidy: bool, what: &str) {
    let (mine, context) = (machine.clone(), what.to_string());
    Sim::new(1)
        .run(move || {
            let journal = card.map(|i| dynamic(&mine[i]));
            let fs =
                mount(&dynamic(&mine[0]), journal).unwrap_or_else(|e| panic!("{context}: {e}"));
            assert_files(&fs, &context);
            fs.unmount().unwrap();
        })
        .unwrap();
    let disk = images.dump(&machine[0].store(), "disk");
    let card = card.map(|i| images.dump(&machine[i].store(), "card"));
    images.e2fsck(&disk, card.as_deref(), tidy, what);
}

/// The kernel mounts it too.
fn kernel(images: &Images, machine: &[Ram; 3], card: Option<usize>, what: &str) {
    let disk = images.dump(&machine[0].store(), "kernel-disk");
    let card = card.map(|i| images.dump(&machine[i].store(), "kernel-card"));
    let mount = Mount::of_image(&disk, card.as_deref(), "").unwrap();
    let read = std::fs::read(mount.path().join("file2")).map(|d| d.len());
    mount.unmount().unwrap_or_else(|e| panic!("{what}: {e}"));
    assert_eq!(read.unwrap(), 21_000, "{what}");
    // The kernel's journal is given as a loop device: e2fsck would mend its number first.
    images.e2fsck(&disk, card.as_deref(), true, what);
}

fn attach_inside(disk: &Arc<dyn BlockDevice>, _: &[JournalDevice; 2]) {
    attach(disk, &NewJournal::Internal { blocks: Some(1100) }).unwrap();
}

#[test]
fn an_internal_journal_is_attached() {
    explore(Start::None, false, true, attach_inside);
}

/// In clusters of 16 blocks, of which a journal takes whole ones: 1100 blocks are 68 and a part.
fn clustered(start: Start) -> Stores {
    let features = Options::upstream_features().union(Features::by_name("bigalloc").unwrap());
    Sim::new(1).run(move || build_with(start, features)).unwrap()
}

#[test]
fn an_internal_journal_is_attached_in_clusters() {
    // Without a journal there is no orphan file.
    let mut features = Options::debian_features();
    features.ro_compat |= RoCompat::BIGALLOC;
    let stores = Sim::new(1).run(move || build_with(Start::None, features)).unwrap();
    explore_on(stores, Start::None, true, attach_inside);
}

#[test]
fn the_journal_moves_out_of_clusters() {
    explore_on(clustered(Start::Internal), Start::Internal, false, |disk, cards| {
        let moved = move_to(disk, None, &NewJournal::External(cards[0].clone())).unwrap();
        assert_eq!(moved.freed_blocks, 1200);
    });
}

#[test]
fn an_external_journal_is_attached() {
    explore(Start::None, false, false, |disk, cards| {
        attach(disk, &NewJournal::External(cards[0].clone())).unwrap();
    });
}

#[test]
fn an_internal_journal_is_detached() {
    explore(Start::Internal, true, true, |disk, _| {
        let gone = detach(disk, None, LossPolicy::Refuse).unwrap();
        assert_eq!(gone.freed_blocks, 1200);
    });
}

#[test]
fn an_external_journal_is_detached() {
    explore(Start::External, true, false, |disk, cards| {
        assert!(detach(disk, Some(&cards[0]), LossPolicy::Refuse).unwrap().released);
    });
}

#[test]
fn the_journal_moves_out() {
    explore(Start::Internal, true, false, |disk, cards| {
        let moved = move_to(disk, None, &NewJournal::External(cards[0].clone())).unwrap();
        assert_eq!(moved.freed_blocks, 1200);
    });
}

#[test]
fn the_journal_moves_in() {
    explore(Start::External, false, true, |disk, cards| {
        let new = NewJournal::Internal { blocks: Some(1100) };
        move_to(disk, Some(&cards[0]), &new).unwrap();
    });
}

#[test]
fn the_journal_moves_to_another_device() {
    explore(Start::External, true, false, |disk, cards| {
        move_to(disk, Some(&cards[0]), &NewJournal::External(cards[1].clone())).unwrap();
    });
}

/// A mount records in the superblock the number of the device that the journal was found on.
#[test]
fn a_mount_finds_the_journal_elsewhere() {
    explore(Start::External, true, true, |disk, cards| {
        let mut options = MountOptions {
            journal_device: Some(Arc::clone(&cards[0].device)),
            journal_number: 0x0702,
            ..MountOptions::default()
        };
        options.page_cache.memory_bytes = 4 << 20;
        let fs = Ext4::mount(Arc::clone(disk), options).unwrap();
        let number = || check::info(disk).unwrap().superblock.journal_device.get();
        assert_eq!(number(), 0x0702);
        fs.unmount().unwrap();
        assert_eq!(number(), 0x0702);
        // Who does not know the number leaves it alone.
        mount(disk, Some(Arc::clone(&cards[0].device))).unwrap().unmount().unwrap();
        assert_eq!(number(), 0x0702);
    });
}

/// A journal that is needed is given up: up to then it is the old one; from then on e2fsck repairs
/// what is left, in one go once the change is complete.
#[test]
fn a_lost_journal_is_given_up() {
    let stores = dirty(true).map(|ram| ram.store());
    let recording = run(&stores, |disk, _| {
        detach(disk, None, LossPolicy::Accept).unwrap();
    });
    let images = Images::new();
    let mut rng = Rng::new(11);
    for (i, cut) in cuts(&recording).into_iter().step_by(2).enumerate() {
        let keep = [0, 100, 50][i % 3];
        let left = left(&stores, &recording, cut, keep, &mut rng);
        let mut machine = devices(&left);
        let card = named_card(&machine);
        let what = format!("cut {cut} of {}, keep {keep}", recording.last_crash_point());
        if card.is_none() {
            machine[0] =
                repair(&machine[0], if cut == recording.last_crash_point() { 1 } else { 2 });
        }
        judge(&images, &machine, card, true, &what);
    }
}

/// A change that was cut is simply made again.
#[test]
fn what_was_cut_is_done_again() {
    let stores = Sim::new(1).run(|| build(Start::Internal, true)).unwrap();
    let out: Change = |disk, cards| {
        move_to(disk, None, &NewJournal::External(cards[0].clone())).unwrap();
    };
    let recording = run(&stores, out);
    let mut rng = Rng::new(3);
    for cut in cuts(&recording).into_iter().step_by(3) {
        let machine = devices(&left(&stores, &recording, cut, 50, &mut rng));
        let mine = machine.clone();
        Sim::new(1)
            .run(move || {
                let disk = dynamic(&mine[0]);
                if named_card(&mine).is_none() {
                    let new = NewJournal::External(journal(&mine[1]));
                    move_to(&disk, None, &new).unwrap();
                }
                let fs = mount(&disk, Some(dynamic(&mine[1]))).unwrap();
                assert_files(&fs, "again");
                fs.unmount().unwrap();
            })
            .unwrap();
    }
}
