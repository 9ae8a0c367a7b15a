//! The same on memory, which keeps single words: journals attached, detached, moved and replayed
//! there, with a cut in the middle of each write.
//!
//! Of a write in doubt that changes the superblock every set of words is tried: what is read must
//! be the superblock before it or the one after it, or the log must hold it. Some of the sets are
//! mounted too, and all files read.

// The figures are for people.
#![allow(clippy::print_stdout)]

use std::sync::Arc;

use steadfast_block::BlockDevice;
use steadfast_block::rng::Rng;
use steadfast_devices::filter::record::{Action, CutEffect, DeviceId};
use steadfast_devices::filter::{Record, RecordLog, Recording};
use steadfast_devices::source::Ram;
use steadfast_ext4::mount::{replay, replayed_blocks};
use steadfast_ext4::{Ext4, MountOptions};
use steadfast_ext4_check as check;
use steadfast_ext4_format::ondisk::{SUPERBLOCK_LEN, SUPERBLOCK_OFFSET, Superblock};
use steadfast_ext4_mkfs::{
    JournalChoice, JournalDeviceOptions, Options, make, make_journal_device,
};
use steadfast_ext4_tune::{JournalDevice, LossPolicy, NewJournal, attach, detach, move_to};
use steadfast_runtime::Sim;

use crate::losses::dirty;
use crate::machine::{
    CARD_BYTES, DISK_BYTES, Images, Start, Stores, assert_files, build, devices, dynamic, journal,
    mount, named_card,
};

const WORD: u64 = 8;
/// The last instants of a change; before them is the long erasing of a log.
const CUTS: usize = 90;
/// More words than any step of a superblock changes.
const WORDS_MAX: usize = 18;

type Change = fn(&Arc<dyn BlockDevice>, &[JournalDevice; 2]);

fn cards(machine: &[Arc<dyn BlockDevice>; 3]) -> [JournalDevice; 2] {
    [1, 2].map(|i| JournalDevice {
        device: Arc::clone(&machine[i]),
        number: 0,
        accept_volatile: false,
    })
}

fn memory(stores: &Stores) -> [Ram; 3] {
    devices(stores).map(Ram::with_atomic_words)
}

fn run(stores: &Stores, change: Change) -> Recording {
    let stores = stores.clone();
    Sim::new(1)
        .run(move || {
            let log = RecordLog::new();
            let recorded = memory(&stores)
                .map(|ram| Arc::new(Record::new(Arc::new(ram), &log)) as Arc<dyn BlockDevice>);
            change(&recorded[0], &cards(&recorded));
            log.take()
        })
        .unwrap()
}

/// A word in doubt.
struct Word {
    device: usize,
    offset: u64,
    new: Vec<u8>,
}

/// What is beyond doubt at a cut, and the words that are not.
fn at_cut(stores: &Stores, recording: &Recording, cut: u64) -> (Stores, Vec<Word>) {
    let mut sure = stores.clone();
    let mut words = Vec::new();
    for (device, store) in sure.iter_mut().enumerate() {
        let at = recording.at(DeviceId(device as u32), cut);
        *store = at.contents(store, 0, 0, &mut Rng::new(1));
        for event in recording.events().iter().filter(|e| e.device.0 as usize == device) {
            let (Action::Write { offset, data, .. } | Action::Store { offset, data }) =
                &event.action
            else {
                continue;
            };
            if at.fate(event) != Some(CutEffect::InDoubt) {
                continue;
            }
            let data = data.unpack();
            for (i, new) in data.chunks(WORD as usize).enumerate() {
                let offset = offset + i as u64 * WORD;
                if store.read(offset, WORD) != new {
                    words.push(Word { device, offset, new: new.to_vec() });
                }
            }
        }
    }
    (sure, words)
}

fn with(sure: &Stores, words: &[Word], chosen: impl Fn(usize) -> bool) -> Stores {
    let mut stores = sure.clone();
    for (_, word) in words.iter().enumerate().filter(|(n, _)| chosen(*n)) {
        stores[word.device].write_slice(word.offset, &word.new);
    }
    stores
}

fn superblock(bytes: &[u8]) -> Superblock {
    Superblock::parse_mended(bytes).unwrap()
}

/// Every set of the words in doubt of the superblock: it is the old one or the new one. Gives how
/// many there were, and what is left where it is neither: recovery has written it, and finds it in
/// the log again.
fn every_superblock(sure: &Stores, words: &[Word], what: &str) -> (u64, Vec<Stores>) {
    every_one_at(SUPERBLOCK_OFFSET, sure, words, what)
}

/// As [`every_superblock`], of the copy at byte `from`.
fn every_one_at(from: u64, sure: &Stores, words: &[Word], what: &str) -> (u64, Vec<Stores>) {
    let place = from..from + SUPERBLOCK_LEN as u64;
    let of: Vec<&Word> =
        words.iter().filter(|w| w.device == 0 && place.contains(&w.offset)).collect();
    if of.is_empty() {
        return (0, Vec::new());
    }
    assert!(of.len() <= WORDS_MAX, "{what}: {} words of the superblock", of.len());
    let mut bytes = sure[0].read(from, SUPERBLOCK_LEN as u64).to_vec();
    let old = superblock(&bytes);
    let before = bytes.clone();
    let (mut found, mut damaged) = (Vec::new(), Vec::new());
    for set in 0..1u64 << of.len() {
        if set > 0 {
            // In Gray's order one word changes at a time.
            let word = of[set.trailing_zeros() as usize];
            let at = (word.offset - from) as usize;
            let range = at..at + WORD as usize;
            let is_old = bytes[range.clone()] == before[range.clone()];
            let now = if is_old { &word.new[..] } else { &before[range.clone()] };
            bytes[range].copy_from_slice(now);
        }
        let is = superblock(&bytes);
        if !is.checksum_ok() {
            let mut left = sure.clone();
            left[0].write_slice(from, &bytes);
            damaged.push(left);
        } else if !found.contains(&is) {
            found.push(is);
        }
    }
    let new = {
        let mut bytes = before;
        for word in &of {
            let at = (word.offset - from) as usize;
            bytes[at..at + WORD as usize].copy_from_slice(&word.new);
        }
        superblock(&bytes)
    };
    assert!(old.checksum_ok() && new.checksum_ok(), "{what}");
    assert!(found.iter().all(|sb| *sb == old || *sb == new), "{what}: {} found", found.len());
    (1 << of.len(), damaged)
}

/// What a mount finds, after the change was made again if it has not been made.
fn judge(images: &Images, left: &Stores, again: Option<Change>, e2fsck: bool, what: &str) {
    let machine = memory(left);
    let (mine, context) = (machine.clone(), what.to_string());
    let card = Sim::new(1)
        .run(move || {
            let devices = mine.each_ref().map(dynamic);
            if let Some(again) = again {
                again(&devices[0], &cards(&devices));
                // Nothing is left that others do not know.
                let raw = devices[0].read(SUPERBLOCK_OFFSET, SUPERBLOCK_LEN as u64).unwrap();
                let is = Superblock::parse_unchecked(&raw).unwrap();
                assert!(is.checksum_ok() && is == superblock(&raw), "{context}");
            }
            let card = named_card(&mine);
            let journal = card.map(|i| dynamic(&mine[i]));
            let fs = mount(&devices[0], journal).unwrap_or_else(|e| panic!("{context}: {e}"));
            assert_files(&fs, &context);
            fs.unmount().unwrap();
            card
        })
        .unwrap();
    if e2fsck {
        let disk = images.dump(&machine[0].store(), "disk");
        let card = card.map(|i| images.dump(&machine[i].store(), "card"));
        images.e2fsck(&disk, card.as_deref(), true, what);
    }
}

/// Without `again` nothing is made again.
fn explore(name: &str, stores: &Stores, change: Change, again: Option<Change>) {
    let recording = run(stores, change);
    let images = Images::new();
    let mut rng = Rng::new(9);
    let (mut torn, mut mounted, mut mended) = (0, 0, 0);
    for cut in (recording.first_crash_point() + 1..=recording.last_crash_point()).rev().take(CUTS) {
        let what = format!("{name}, cut {cut} of {}", recording.last_crash_point());
        let (sure, words) = at_cut(stores, &recording, cut);
        let (sets, damaged) = every_superblock(&sure, &words, &what);
        torn += sets;
        for left in damaged.iter().step_by(damaged.len().div_ceil(8).max(1)) {
            (mounted, mended) = (mounted + 1, mended + 1);
            judge(&images, left, None, false, &format!("{what}, superblock in the log"));
        }
        let draws = if words.is_empty() { 1 } else { 5 };
        for draw in 0..draws {
            let bits: Vec<bool> = words.iter().map(|_| rng.percent(50)).collect();
            let left = with(&sure, &words, |n| match draw {
                0 => false,
                1 => true,
                _ => bits[n],
            });
            mounted += 1;
            judge(&images, &left, None, mounted % 16 == 0, &format!("{what}, draw {draw}"));
            if again.is_some() && draw % 2 == 0 {
                judge(&images, &left, again, false, &format!("{what}, draw {draw}, again"));
            }
        }
    }
    println!(
        "FIGURES: {name} on memory: {torn} superblocks, {mounted} mounted, {mended} from the log"
    );
    assert!(torn > 50, "{name}: {torn} torn superblocks");
}

fn built(start: Start, upstream: bool) -> Stores {
    Sim::new(1).run(move || build(start, upstream)).unwrap()
}

fn attach_outside(disk: &Arc<dyn BlockDevice>, cards: &[JournalDevice; 2]) {
    attach(disk, &NewJournal::External(cards[0].clone())).unwrap();
}

#[test]
fn an_external_journal_is_attached() {
    let stores = built(Start::None, false);
    let again: Change = |disk, cards| {
        // It has one by then, or gets it.
        let _ = attach(disk, &NewJournal::External(cards[0].clone()));
        detach(disk, Some(&cards[0]), LossPolicy::Refuse).unwrap();
        attach_outside(disk, cards);
    };
    explore("external attached", &stores, attach_outside, Some(again));
}

#[test]
fn an_internal_journal_is_attached() {
    let stores = built(Start::None, false);
    let change: Change = |disk, _| {
        attach(disk, &NewJournal::Internal { blocks: Some(1100) }).unwrap();
    };
    explore("internal attached", &stores, change, None);
}

#[test]
fn an_external_journal_is_detached() {
    let change: Change = |disk, cards| {
        detach(disk, Some(&cards[0]), LossPolicy::Refuse).unwrap();
    };
    explore("external detached", &built(Start::External, true), change, None);
}

#[test]
fn an_internal_journal_is_detached() {
    let change: Change = |disk, _| {
        detach(disk, None, LossPolicy::Refuse).unwrap();
    };
    for upstream in [false, true] {
        explore("internal detached", &built(Start::Internal, upstream), change, None);
    }
}

/// A file system gives its internal journal up for none. At every cut it has the journal, and all
/// blocks of it, or neither, once it is replayed; nothing is left to e2fsck. Where nothing is torn
/// that e2fsck does not know, it does the same by itself.
#[test]
fn an_internal_journal_given_up_is_whole_or_gone() {
    // Without an orphan file, whose number the superblock keeps for a moment: a finding.
    let stores = built(Start::Internal, false);
    let change: Change = |disk, _| {
        detach(disk, None, LossPolicy::Refuse).unwrap();
    };
    let recording = run(&stores, change);
    let images = Images::new();
    let (mut rng, mut seen, mut theirs) = (Rng::new(3), [0; 2], 0);
    let mut free = [None; 2];
    for cut in (recording.first_crash_point() + 1..=recording.last_crash_point()).rev().take(CUTS) {
        let what = format!("given up, cut {cut} of {}", recording.last_crash_point());
        let (sure, words) = at_cut(&stores, &recording, cut);
        for draw in 0..if words.is_empty() { 1 } else { 4 } {
            let bits: Vec<bool> = words.iter().map(|_| rng.percent(50)).collect();
            let left = with(&sure, &words, |n| draw == 1 || draw > 1 && bits[n]);
            let machine = memory(&left);
            let disk = dynamic(&machine[0]);
            let context = what.clone();
            let (has_journal, blocks) = Sim::new(1)
                .run(move || {
                    // As it is seen before anything is written.
                    let overlay = replayed_blocks(&disk, &MountOptions::default()).unwrap();
                    let report = check::check(&disk, Some(&overlay)).unwrap();
                    assert_eq!(report.findings.len(), 0, "{context}: {:?}", report.findings);
                    let looking = MountOptions { read_only: true, ..MountOptions::default() };
                    let fs = Ext4::mount(Arc::clone(&disk), looking).unwrap();
                    assert_files(&fs, &context);
                    fs.unmount().unwrap();
                    replay(&disk, &MountOptions::default()).unwrap();
                    let report = check::check(&disk, None).unwrap();
                    assert_eq!(report.findings.len(), 0, "{context}: {:?}", report.findings);
                    let info = check::info(&disk).unwrap();
                    let has = info.features.iter().any(|name| name == "has_journal");
                    assert!(report.unmounted_cleanly && !info.needs_recovery, "{context}");
                    (usize::from(has), info.free_blocks)
                })
                .unwrap();
            seen[has_journal] += 1;
            assert_eq!(*free[has_journal].get_or_insert(blocks), blocks, "{what}");
            if seen[has_journal] % 8 == 1 {
                let disk = images.dump(&machine[0].store(), "disk");
                // Not even to be tidied.
                images.e2fsck(&disk, None, false, &what);
            }
            let raw = left[0].read(SUPERBLOCK_OFFSET, SUPERBLOCK_LEN as u64);
            if Superblock::parse_unchecked(&raw).unwrap().checksum_ok() {
                theirs += 1;
                let disk = images.dump(&left[0], "disk");
                images.e2fsck(&disk, None, true, &format!("{what}, by e2fsck"));
            }
        }
    }
    println!("FIGURES: given up: {seen:?} without and with the journal, {theirs} by e2fsck");
    assert!(seen.iter().all(|times| *times > 10) && theirs > 10, "{seen:?}, {theirs}");
    let [gone, there] = free.map(|blocks| blocks.unwrap());
    assert!(gone >= there + 1024, "{gone} and {there} free blocks");
}

#[test]
fn the_journal_moves() {
    let out: Change = |disk, cards| {
        move_to(disk, None, &NewJournal::External(cards[0].clone())).unwrap();
    };
    explore("moved out", &built(Start::Internal, true), out, None);
    let inside: Change = |disk, cards| {
        let new = NewJournal::Internal { blocks: Some(1100) };
        move_to(disk, Some(&cards[0]), &new).unwrap();
    };
    explore("moved in", &built(Start::External, false), inside, None);
    let on: Change = |disk, cards| {
        move_to(disk, Some(&cards[0]), &NewJournal::External(cards[1].clone())).unwrap();
    };
    explore("moved on", &built(Start::External, true), on, None);
}

fn replay_on(disk: &Arc<dyn BlockDevice>, cards: &[JournalDevice; 2]) {
    let journal_device = Some(Arc::clone(&cards[0].device));
    let options = MountOptions { journal_device, ..MountOptions::default() };
    replay(disk, &options).unwrap();
}

#[test]
fn a_journal_is_replayed() {
    let stores = dirty(true).map(|ram| ram.store());
    explore("replayed", &stores, replay_on, Some(replay_on));
}

/// The two writes of a mount and its end that the log does not hold.
#[test]
fn mounted_and_unmounted() {
    let mounted: Change = |disk, cards| {
        let external = check::info(disk).unwrap().external_journal.is_some();
        let journal = external.then(|| Arc::clone(&cards[0].device));
        mount(disk, journal).unwrap();
    };
    let unmounted: Change = |disk, cards| {
        let external = check::info(disk).unwrap().external_journal.is_some();
        let journal = external.then(|| Arc::clone(&cards[0].device));
        mount(disk, journal).unwrap().unmount().unwrap();
    };
    for start in [Start::Internal, Start::External] {
        for upstream in [false, true] {
            let stores = built(start, upstream);
            explore(&format!("mounted, {start:?}"), &stores, mounted, None);
            explore(&format!("unmounted, {start:?}"), &stores, unmounted, None);
        }
    }
}

/// A journal that is needed is given up: what e2fsck repairs then has a superblock.
#[test]
fn a_lost_journal_is_given_up() {
    let stores = dirty(true).map(|ram| ram.store());
    let recording = run(&stores, |disk, _| {
        detach(disk, None, LossPolicy::Accept).unwrap();
    });
    let mut torn = 0;
    for cut in recording.first_crash_point() + 1..=recording.last_crash_point() {
        let (sure, words) = at_cut(&stores, &recording, cut);
        let (sets, damaged) = every_superblock(&sure, &words, "given up");
        assert!(damaged.is_empty());
        torn += sets;
    }
    assert!(torn > 1000, "{torn}");
}

/// Who repairs the file system with a copy finds the old journal or the new one.
#[test]
fn copies_are_not_torn() {
    let stores = Sim::new(1)
        .run(|| {
            let machine = devices(&built_small());
            let mut options = JournalDeviceOptions::random(1_700_000_000);
            options.block_size = 1024;
            make_journal_device(&dynamic(&machine[1]), &options).unwrap();
            machine.map(|ram| ram.store())
        })
        .unwrap();
    let recording = run(&stores, attach_outside);
    // Groups of 8192 blocks; sparse_super has copies in 1 and 3.
    let places = [1, 3].map(|group| (1 + group * 8192) * 1024);
    let mut torn = 0;
    for cut in recording.first_crash_point() + 1..=recording.last_crash_point() {
        let (sure, words) = at_cut(&stores, &recording, cut);
        for place in places {
            let (sets, damaged) = every_one_at(place, &sure, &words, "a copy");
            assert!(damaged.is_empty());
            torn += sets;
        }
    }
    assert!(torn > 200, "{torn}");
}

/// In blocks of 1 KiB, without a journal.
fn built_small() -> Stores {
    let disk = Ram::new("disk", DISK_BYTES).persistent();
    let mut options = Options::random(1_700_000_000);
    options.block_size = Some(1024);
    options.journal = JournalChoice::None;
    make(&dynamic(&disk), &options).unwrap();
    let card = || Ram::new("card", CARD_BYTES).persistent().store();
    [disk.store(), card(), card()]
}

/// The control: without the record the same cuts leave superblocks that are damaged.
#[test]
fn written_in_one_piece_it_would_be_torn() {
    let old = built(Start::None, false)[0].read(SUPERBLOCK_OFFSET, SUPERBLOCK_LEN as u64);
    let machine = devices(&built(Start::None, false));
    let mine = machine.clone();
    Sim::new(1)
        .run(move || attach(&dynamic(&mine[0]), &NewJournal::External(journal(&mine[1]))).unwrap())
        .unwrap();
    let new = machine[0].store().read(SUPERBLOCK_OFFSET, SUPERBLOCK_LEN as u64);
    let mut torn = old.to_vec();
    torn[..512].copy_from_slice(&new[..512]);
    torn[0x60..0x68].copy_from_slice(&old[0x60..0x68]);
    torn[0x58..0x60].copy_from_slice(&old[0x58..0x60]);
    let found = Superblock::parse_mended(&torn).unwrap();
    assert!(!found.checksum_ok(), "the journal's name without the feature");
}
