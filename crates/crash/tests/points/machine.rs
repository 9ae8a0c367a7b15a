//! Devices, and a file system with data=transact on them.

use std::sync::Arc;
use std::time::Duration;

use steadfast_block::BlockDevice;
use steadfast_block::rng::Rng;
use steadfast_devices::filter::record::DeviceId;
use steadfast_devices::filter::{
    CacheSettings, Durability, Record, RecordLog, Recording, WriteCache,
};
use steadfast_devices::model::ssd::SsdCache;
use steadfast_devices::model::{ModelParams, NvramParams, SsdParams};
use steadfast_devices::source::Ram;
use steadfast_devices::store::Store;
use steadfast_ext4::{DataMode, Ext4, MountOptions};
use steadfast_ext4_mkfs::{
    JournalChoice, JournalDeviceOptions, Options, make, make_journal_device,
};
use steadfast_vfs::TransactPolicy;

const DISK_SECTORS: u64 = 24 << 11;

/// How a file system is made.
#[derive(Debug, Clone, Copy)]
pub struct Setup {
    pub external: bool,
    pub block_size: u32,
    /// Files are mapped by indirect blocks, as in ext3.
    pub block_maps: bool,
    /// The disk's cache ignores flushes.
    pub lying: bool,
}

impl Setup {
    pub fn options(&self, journal: &Arc<dyn BlockDevice>) -> MountOptions {
        let mut options = MountOptions {
            data: DataMode::Transact,
            transact: TransactPolicy::MANUAL,
            journal_device: self.external.then(|| Arc::clone(journal)),
            ..MountOptions::default()
        };
        options.page_cache.memory_bytes = 4 << 20;
        options
    }

    pub fn mount(&self, devices: &[Arc<dyn BlockDevice>; 2]) -> Arc<Ext4> {
        let [disk, card] = devices;
        Ext4::mount(Arc::clone(disk), self.options(card)).unwrap_or_else(|e| panic!("mount: {e}"))
    }
}

/// The devices of a run, recorded from when the file system has been made.
pub struct Machine {
    pub devices: [Arc<dyn BlockDevice>; 2],
    pub log: RecordLog,
    pub bases: [Store; 2],
}

impl Machine {
    pub fn new(setup: Setup) -> Machine {
        let disk = SsdParams {
            sectors: DISK_SECTORS,
            write_cache: SsdCache::Volatile,
            ..SsdParams::default()
        };
        let disk = ModelParams::Ssd(disk).build("disk").unwrap();
        let card = NvramParams { size_mib: 8, initialised: true, ..NvramParams::default() };
        let card = ModelParams::Nvram(card).build("card").unwrap();
        let disk_device: Arc<dyn BlockDevice> = disk.clone();
        let card_device: Arc<dyn BlockDevice> = card.clone();
        let mut options = Options::random(1_700_000_000);
        if setup.block_maps {
            options.features = Options::ext2_features();
        }
        options.block_size = Some(setup.block_size);
        options.journal = JournalChoice::InternalOf(1024);
        if setup.external {
            let mut journal = JournalDeviceOptions::random(1_700_000_000);
            journal.block_size = setup.block_size;
            make_journal_device(&card_device, &journal).unwrap();
            let device = Arc::clone(&card_device);
            options.journal = JournalChoice::External { device, accept_volatile: false };
        }
        make(&disk_device, &options).unwrap();
        let log = RecordLog::new();
        let durability = if setup.lying {
            let drains_within = Duration::from_millis(20);
            Durability::Lying { cache_bytes: 1 << 20, drains_within }
        } else {
            Durability::of(&disk_device.info())
        };
        let bases = [disk.contents(), card.contents()];
        let devices = [
            Arc::new(Record::with_durability(disk_device, &log, durability)) as _,
            Arc::new(Record::new(card_device, &log)) as _,
        ];
        Machine { devices, log, bases }
    }

    pub fn recorded(self) -> Recorded {
        Recorded { recording: self.log.take(), bases: self.bases }
    }
}

/// What a run leaves.
pub struct Recorded {
    pub recording: Recording,
    bases: [Store; 2],
}

impl Recorded {
    /// Contents of the devices that a cut may leave.
    pub fn contents(&self, cut: u64, keep: u64, rng: &mut Rng) -> [Store; 2] {
        let mut left = |i: usize| {
            let at = self.recording.at(DeviceId(i as u32), cut);
            at.contents(&self.bases[i], 0, keep, rng)
        };
        [left(0), left(1)]
    }
}

/// Devices with these contents, recorded, behind caches that a second cut can empty.
pub fn powered_on(contents: &[Store; 2]) -> (Machine, [Ram; 2]) {
    let rams = [0, 1].map(|i| Ram::from_store("device", contents[i].clone()).persistent());
    let log = RecordLog::new();
    let devices = [0, 1].map(|i| {
        let cached = WriteCache::new(Arc::new(rams[i].clone()), CacheSettings::default());
        Arc::new(Record::new(Arc::new(cached), &log)) as Arc<dyn BlockDevice>
    });
    (Machine { devices, log, bases: contents.clone() }, rams)
}
