//! Devices, and a file system with data=transact on them.

use std::sync::Arc;
use std::time::Duration;

use steadfast_block::BlockDevice;
use steadfast_crash::explore::{self as crash, BootedMachine, CutSource};
use steadfast_crash::judge::Judge;
use steadfast_devices::filter::{CacheSettings, Durability, Record, RecordLog, WriteCache};
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

    /// What the run leaves.
    pub fn recorded(self, judge: Arc<dyn Judge>) -> CutSource {
        CutSource { recording: self.log.take(), bases: self.bases.into(), judge }
    }
}

impl crash::RebootTarget for Setup {
    /// Where it is recorded, the devices are behind caches that a second cut can empty.
    fn power_on(
        &self,
        contents: Vec<Store>,
        log: Option<&RecordLog>,
    ) -> steadfast_crash::Result<BootedMachine> {
        let ram = |store: Store| Ram::from_store("device", store).persistent();
        let rams: Vec<Ram> = contents.into_iter().map(ram).collect();
        let device = |ram: &Ram| -> Arc<dyn BlockDevice> {
            let cached = || WriteCache::new(Arc::new(ram.clone()), CacheSettings::default());
            match log {
                Some(log) => Arc::new(Record::new(Arc::new(cached()), log)),
                None => Arc::new(ram.clone()),
            }
        };
        let devices = [device(&rams[0]), device(&rams[1])];
        let options = self.options(&devices[1]);
        let fs = Ext4::mount(Arc::clone(&devices[0]), options).map_err(|e| e.to_string())?;
        let mounted = Arc::clone(&fs);
        let shut_down = move || {
            mounted.unmount().map_err(|e| e.to_string())?;
            devices.iter().try_for_each(|d| d.flush()).map_err(|e| e.to_string())?;
            Ok(rams.iter().map(Ram::store).collect())
        };
        Ok(BootedMachine { fs, shut_down: Box::new(shut_down), disk: None })
    }

    fn journal(&self) -> Option<usize> {
        self.external.then_some(1)
    }
}
