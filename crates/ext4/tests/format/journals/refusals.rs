//! Journals that are not this file system's, or not to be trusted, and file systems of a later
//! time: each refused with a message that says what is wrong, and neither device changed.

use std::sync::Arc;

use steadfast_block::BlockDevice;
use steadfast_devices::model::Model;
use steadfast_devices::model::nvram::{Battery, Nvram, NvramParams};
use steadfast_devices::source::Ram;
use steadfast_ext4::mount::replay;
use steadfast_ext4::{Ext4, MountOptions};
use steadfast_ext4_format::ondisk::{SUPERBLOCK_LEN, SUPERBLOCK_OFFSET, Superblock};
use steadfast_ext4_mkfs::{JournalChoice, JournalDeviceOptions, Options};
use steadfast_ext4_mkfs::{make, make_journal_device};
use steadfast_runtime::Sim;
use steadfast_vfs::{FileSystem, NewNode, OpenFlags};
use zerocopy::IntoBytes;

use super::stage::with_card;
use crate::sparse_image::uuid;

const TIME: u64 = 1_700_000_000;
const MIB: u64 = 1 << 20;

fn device(ram: &Ram) -> Arc<dyn BlockDevice> {
    Arc::new(ram.clone())
}

fn journal_device(id: u128, block_size: u32) -> Ram {
    let card = Ram::new("card", 8 * MIB).persistent();
    let mut options = JournalDeviceOptions::new(uuid(id), TIME);
    options.block_size = block_size;
    make_journal_device(&device(&card), &options).unwrap();
    card
}

fn file_system(id: u128, journal: JournalChoice) -> Ram {
    let disk = Ram::new("disk", 32 * MIB).persistent();
    let mut options = Options::new(uuid(id), uuid(77), TIME);
    options.block_size = Some(4096);
    options.journal = journal;
    make(&device(&disk), &options).unwrap();
    disk
}

/// A file system and its journal's device.
fn pair() -> (Ram, Ram) {
    let card = journal_device(1, 4096);
    let journal = JournalChoice::External { device: device(&card), accept_volatile: false };
    (file_system(2, journal), card)
}

/// The same pair with a log that needs recovery.
fn dirty_pair() -> (Ram, Ram) {
    let (disk, card) = pair();
    let (d, c) = (disk.clone(), card.clone());
    let dirty = Sim::new(1).run(move || {
        let options = with_card(Some(&c), MountOptions::default());
        let fs = Ext4::mount(device(&d), options).unwrap();
        let rw = OpenFlags::READ | OpenFlags::WRITE;
        let (_, fh) = fs.create(fs.root(), b"file", NewNode::default(), rw).unwrap();
        fs.fsync(fh, false).unwrap();
        (d.store(), c.store())
    });
    let (disk_now, card_now) = dirty.unwrap();
    disk.replace(disk_now);
    card.replace(card_now);
    (disk, card)
}

/// Mounts to write, mounts to read and replays; all are refused and change nothing. The messages
/// have these parts.
fn assert_refused(disk: &Ram, card: Option<&Ram>, parts: &[&str]) {
    let before = (disk.store(), card.map(Ram::store));
    let options =
        |read_only| with_card(card, MountOptions { read_only, ..MountOptions::default() });
    let errors = [
        Ext4::mount(device(disk), options(false)).map(drop).unwrap_err(),
        Ext4::mount(device(disk), options(true)).map(drop).unwrap_err(),
        replay(&device(disk), &options(false)).unwrap_err(),
    ];
    for error in errors {
        let text = error.to_string();
        for part in parts {
            assert!(text.contains(part), "{part:?} is not in {text:?}");
        }
    }
    assert!(before == (disk.store(), card.map(Ram::store)), "something was written");
}

fn poke(ram: &Ram, at: u64, bytes: &[u8]) {
    let mut store = ram.store();
    store.write_slice(at, bytes);
    ram.replace(store);
}

/// Changes the superblock, so that its checksum is right.
fn alter(disk: &Ram, change: impl FnOnce(&mut Superblock)) {
    let bytes = disk.store().read(SUPERBLOCK_OFFSET, SUPERBLOCK_LEN as u64);
    let mut sb = Superblock::parse(&bytes).unwrap();
    change(&mut sb);
    sb.update_checksum();
    poke(disk, SUPERBLOCK_OFFSET, sb.as_bytes());
}

#[test]
fn what_is_no_journal() {
    let (disk, _) = pair();
    let blank = Ram::new("blank", 8 * MIB).persistent();
    assert_refused(&disk, Some(&blank), &["blank", "not a journal device"]);
    let other = file_system(3, JournalChoice::Internal);
    assert_refused(&disk, Some(&other), &["not a journal device", "file system of its own"]);
    assert_refused(&disk, Some(&disk), &["not a journal device"]);
    let tiny = Ram::new("tiny", 1024).persistent();
    assert_refused(&disk, Some(&tiny), &["tiny", "too small"]);
}

#[test]
fn another_ones_journal() {
    for (disk, card) in [pair(), dirty_pair()] {
        assert_refused(&disk, None, &["on another device", &uuid(1).to_string()]);
        let wrong = journal_device(9, 4096);
        let (theirs, ours) = (uuid(9).to_string(), uuid(1).to_string());
        assert_refused(&disk, Some(&wrong), &["another journal", &theirs, &ours]);
        // A copy of the file system under another identity still names this journal.
        let copy = Ram::from_store("copy", disk.store()).persistent();
        alter(&copy, |sb| sb.uuid = *uuid(4).as_bytes());
        assert_refused(
            &copy,
            Some(&card),
            &["in use by another file system", &uuid(2).to_string()],
        );
    }
}

/// `s_nr_users` of the journal's superblock, which is in the second block; no checksum yet.
const NR_USERS: u64 = 4096 + 0x40;

#[test]
fn a_journal_of_several_or_of_nobody() {
    let (disk, card) = pair();
    poke(&card, NR_USERS, &2u32.to_be_bytes());
    poke(&card, 4096 + 0x110, uuid(5).as_bytes());
    assert_refused(&disk, Some(&card), &["used by 2 file systems"]);
    poke(&card, NR_USERS, &0u32.to_be_bytes());
    assert_refused(&disk, Some(&card), &["attached to no file system"]);
    // A number that cannot be.
    poke(&card, NR_USERS, &u32::MAX.to_be_bytes());
    assert_refused(&disk, Some(&card), &[]);
}

#[test]
fn blocks_of_another_size() {
    let (disk, _) = pair();
    let small = journal_device(1, 1024);
    assert_refused(&disk, Some(&small), &["1024-byte blocks", "4096-byte blocks"]);
}

#[test]
fn a_journal_that_is_cut_short() {
    let (disk, card) = dirty_pair();
    for size in [4096, 8192, 64 * 1024, 4 * MIB, 8 * MIB - 4096] {
        let cut = Ram::new("cut", size).persistent();
        let kept = card.store().read(0, size);
        cut.write(0, kept.into()).unwrap();
        assert_refused(&disk, Some(&cut), &[]);
    }
}

#[test]
fn an_image_that_is_cut_short() {
    let disk = file_system(6, JournalChoice::Internal);
    for size in [512, 1024, 1536, 2048, 4096, 65536, 16 * MIB, 32 * MIB - 512] {
        let cut = Ram::new("cut", size).persistent();
        cut.write(0, disk.store().read(0, size).into()).unwrap();
        assert_refused(&cut, None, &[]);
    }
}

#[test]
fn features_nobody_knows_yet() {
    for (disk, card) in [(file_system(6, JournalChoice::Internal), None), {
        let (disk, card) = dirty_pair();
        (disk, Some(card))
    }] {
        let good = disk.store();
        let bit = 1 << 30;
        alter(&disk, |sb| sb.feature_incompat.set(sb.feature_incompat.get() | bit));
        assert_refused(&disk, card.as_ref(), &["FEATURE_I30", "not supported"]);
        disk.replace(good.clone());
        alter(&disk, |sb| sb.feature_ro_compat.set(sb.feature_ro_compat.get() | bit));
        assert_refused(&disk, card.as_ref(), &["FEATURE_R30", "not supported"]);
        disk.replace(good);
        alter(&disk, |sb| sb.revision.set(2));
        assert_refused(&disk, card.as_ref(), &["revision 2"]);
    }
    // Of the journal: bit 30 of its incompatible features.
    let (disk, card) = pair();
    poke(&card, 4096 + 0x28, &(1u32 << 30).to_be_bytes());
    assert_refused(&disk, Some(&card), &["journal feature"]);
}

/// What a card in this state says when a journal is to be made on it, when a file system is to
/// use that, and when it is mounted.
fn card_says(spoil: fn(&mut NvramParams), parts: &[&str]) {
    let mut params = NvramParams { size_mib: 8, ..NvramParams::default() };
    spoil(&mut params);
    let nvram = Arc::new(Nvram::new("nvram", &params).unwrap());
    let card = Arc::clone(&nvram) as Arc<dyn BlockDevice>;
    let has = |text: String| {
        for part in parts {
            assert!(text.contains(part), "{part:?} is not in {text:?}");
        }
    };
    let before = nvram.contents();
    let mut how = JournalDeviceOptions::new(uuid(1), TIME);
    has(make_journal_device(&card, &how).unwrap_err().to_string());
    assert!(before == nvram.contents(), "the refused card was written");
    how.accept_volatile = true;
    // Overwriting all of it would initialise the card.
    how.zeros = true;
    make_journal_device(&card, &how).unwrap();

    let disk = Ram::new("disk", 32 * MIB).persistent();
    let mut options = Options::new(uuid(2), uuid(77), TIME);
    options.block_size = Some(4096);
    options.journal = JournalChoice::External { device: card.clone(), accept_volatile: false };
    let before = (disk.store(), nvram.contents());
    has(make(&device(&disk), &options).unwrap_err().to_string());
    assert!(before == (disk.store(), nvram.contents()), "a refused mkfs has written");
    options.journal = JournalChoice::External { device: card.clone(), accept_volatile: true };
    make(&device(&disk), &options).unwrap();

    let mut options = MountOptions { journal_device: Some(card), ..MountOptions::default() };
    let before = (disk.store(), nvram.contents());
    let refused = Ext4::mount(device(&disk), options.clone()).map(drop).unwrap_err();
    has(refused.to_string());
    has(replay(&device(&disk), &options).map(drop).unwrap_err().to_string());
    assert!(before == (disk.store(), nvram.contents()), "a refused mount has written");
    options.journal.accept_volatile = true;
    let fs = Ext4::mount(device(&disk), options).unwrap();
    fs.mkdir(fs.root(), b"dir", NewNode::default()).unwrap();
    fs.unmount().unwrap();
}

#[test]
fn a_card_that_is_not_to_be_trusted() {
    type Spoil = fn(&mut NvramParams);
    let cases: [(Spoil, &[&str]); 3] = [
        (|p| p.batteries = [Battery::Failed, Battery::Failed], &["nvram", "battery 1 has failed"]),
        (|p| p.batteries = [Battery::Charging, Battery::Failed], &["nvram", "charging"]),
        (|p| p.initialised = false, &["nvram", "never been initialised"]),
    ];
    for (spoil, parts) in cases {
        Sim::new(1).run(move || card_says(spoil, parts)).unwrap();
    }
}
