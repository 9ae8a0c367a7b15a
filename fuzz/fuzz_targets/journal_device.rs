//! A journal device: its ext superblock and the journal's superblock behind it, with the file
//! system that it belongs to. The input changes both; each that says it has a checksum gets a right
//! one, which the fuzzer could not guess.
#![cfg_attr(feature = "libfuzzer", no_main)]

use std::sync::{Arc, OnceLock};

use steadfast_block::BlockDevice;
use steadfast_devices::source::Ram;
use steadfast_devices::store::Store;
use steadfast_ext4::{Ext4, MountOptions};
use steadfast_ext4_mkfs::{
    JournalChoice, JournalDeviceOptions, Options, make, make_journal_device,
};
use steadfast_fuzz::input::pieces;
use steadfast_fuzz::usage::use_all;
use steadfast_journal::external::{
    Owner, attach, detach, open_device, open_for, reattach, release,
};
use steadfast_runtime::Sim;
use uuid::Uuid;

const BLOCK: u32 = 1024;
const BYTES: u64 = 2 << 20;
/// Where the two superblocks are, and how long they are.
const PLACES: [u64; 2] = [1024, 2048];
const LEN: usize = 1024;
/// In the ext superblock: the bit of `metadata_csum`, the UUID, the checksum.
const RO_FEATURES: usize = 0x64;
const METADATA_CSUM: u8 = 0x04;
const EXT_SUM: usize = 0x3fc;
/// In the journal's: the bits of its checksums (`csum_v2`, `csum_v3`), and its checksum.
const J_FEATURES: usize = 0x2b;
const J_CHECKSUMS: u8 = 0x18;
const J_SUM: usize = 0xfc;

/// The file system, its journal, and who is whose.
pub struct Pair {
    disk: Store,
    pub log: Store,
    owner: Owner,
}

pub fn pair() -> &'static Pair {
    static PAIR: OnceLock<Pair> = OnceLock::new();
    PAIR.get_or_init(|| {
        let made = Sim::new(1).run(|| {
            let (disk, log) = (Ram::new("disk", 2 * BYTES), Ram::new("log", BYTES));
            let (disk, log) = (disk.persistent(), log.persistent());
            let (device, journal): (Arc<dyn BlockDevice>, Arc<dyn BlockDevice>) =
                (Arc::new(disk.clone()), Arc::new(log.clone()));
            let mut options = Options::random(1_700_000_000);
            options.block_size = Some(BLOCK);
            let journal_options = JournalDeviceOptions {
                block_size: BLOCK,
                zeros: true,
                ..JournalDeviceOptions::random(1_700_000_000)
            };
            make_journal_device(&journal, &journal_options).expect("a journal device");
            options.journal =
                JournalChoice::External { device: Arc::clone(&journal), accept_volatile: false };
            make(&device, &options).expect("an image");
            let found = open_device(journal).expect("a journal device");
            let owner =
                Owner { fs_uuid: options.uuid, journal_uuid: found.uuid, block_size: BLOCK };
            Pair { disk: disk.store(), log: log.store(), owner }
        });
        made.expect("it ends")
    })
}

fn put_sum(bytes: &mut [u8], sum: [u8; 4], at: usize) {
    bytes[at..at + 4].copy_from_slice(&sum);
}

fn changed(input: &[u8]) -> Store {
    let mut log = pair().log.clone();
    let mut superblocks = PLACES.map(|at| log.read(at, LEN as u64).to_vec());
    for (number, bytes) in pieces(input) {
        let len = bytes.len().min(LEN);
        superblocks[number % 2][..len].copy_from_slice(&bytes[..len]);
    }
    let [ext, journal] = &mut superblocks;
    if ext[RO_FEATURES + 1] & METADATA_CSUM != 0 {
        let sum = !crc32c::crc32c(&ext[..EXT_SUM]);
        put_sum(ext, sum.to_le_bytes(), EXT_SUM);
    }
    if journal[J_FEATURES] & J_CHECKSUMS != 0 {
        put_sum(journal, [0; 4], J_SUM);
        let sum = !crc32c::crc32c(journal);
        put_sum(journal, sum.to_be_bytes(), J_SUM);
    }
    PLACES.iter().zip(&superblocks).for_each(|(at, bytes)| log.write_slice(*at, bytes));
    log
}

pub fn run(input: &[u8]) {
    let log = changed(input);
    let device = |log: &Store| -> Arc<dyn BlockDevice> {
        Arc::new(Ram::from_store("log", log.clone()).persistent())
    };
    let owner = &pair().owner;
    let opened = open_device(device(&log)).is_ok();
    if open_for(device(&log), owner).is_ok() {
        assert!(opened, "what is opened for its owner is a journal device");
    }
    let other = Uuid::from_u128(7);
    for user in [owner.fs_uuid, other] {
        drop(attach(device(&log), user, BLOCK));
        drop(reattach(device(&log), user, BLOCK));
        drop(detach(device(&log), user));
        drop(release(device(&log), user, Some(other)));
    }
    let disk = pair().disk.clone();
    let ended = Sim::new(1).run(move || {
        let log: Arc<dyn BlockDevice> = Arc::new(Ram::from_store("log", log).persistent());
        let disk = Ram::from_store("disk", disk).persistent();
        let options = MountOptions { journal_device: Some(log), ..MountOptions::default() };
        let Ok(fs) = Ext4::mount(Arc::new(disk), options) else { return };
        use_all(&*fs);
        drop(fs.unmount());
    });
    ended.expect("a mount ends");
}

steadfast_fuzz::target!(run);
