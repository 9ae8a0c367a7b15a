//! The smallest machine: a disk of 4 MiB, and another one for an external journal.
//!
//! Runs are recorded on modelled flash disks whose caches are volatile, where requests are in
//! flight for a while and several at a time: what waits for too little shows. Recovery is judged
//! on RAM disks, where nothing takes time.

use std::sync::Arc;
use std::time::Duration;

use steadfast_block::BlockDevice;
use steadfast_devices::filter::record::{Durability, Record, RecordLog};
use steadfast_devices::model::ssd::SsdCache;
use steadfast_devices::model::{Model, ModelParams, SsdParams};
use steadfast_devices::source::Ram;
use steadfast_devices::store::Store;
use steadfast_ext4::Ext4;
use steadfast_ext4::mkfs::{
    JournalChoice, JournalDeviceOptions, Options, make, make_journal_device,
};
use steadfast_ext4::ondisk::Compat;
use steadfast_runtime::{Sim, sleep};
use steadfast_vfs::{FileSystem, NewNode, TransactMask};

use super::sequence::Sequence;
use crate::explore::{Booted, Machine, Recorded};
use crate::mixed::Setup;
use crate::mixed::judge::{Done, History, MixedJudge};
use crate::mixed::machine::memory;
use crate::mixed::operation::Operation;
use crate::mixed::run::{Worker, folder_name, note};

const EPOCH: u64 = 1_704_067_200;
const DISK: u64 = 4 << 20;
/// The same with blocks of 4096 bytes: the log has as many.
const DISK_OF_PAGES: u64 = 16 << 20;
/// The fewest blocks of a log, and superblocks, of 1 KiB. What looks beyond the log's end reads all
/// of it.
const CARD: u64 = 1032 << 10;
/// What fast commits have of a log of its own, beside that.
const FAST_AREA: u64 = 256 << 10;
/// The fewest that there may be.
const JOURNAL_BLOCKS: u32 = 1024;
const INODES: u32 = 64;
/// After its operations a run waits so long: old data is written and committed by then.
const QUIET: Duration = Duration::from_secs(45);

/// The smallest machine with a set-up, formatted.
#[derive(Clone)]
pub struct SmallMachine {
    /// What is on it. Its block size should be 1024, the smallest.
    pub setup: Setup,
    formatted: Vec<Store>,
}

/// A run of a sequence.
pub(super) struct Run {
    pub recorded: Recorded,
    /// The first cut: what is there at the start is durable.
    pub begin: u64,
    /// When each operation was started and acknowledged, the closing unmount's too.
    pub progress: Vec<(u64, u64)>,
}

fn words(error: impl std::fmt::Display) -> String {
    error.to_string()
}

impl SmallMachine {
    /// Formats the disks.
    ///
    /// # Errors
    /// In words.
    pub fn new(setup: Setup) -> Result<Self, String> {
        // What was there before: to be seen by nobody.
        let old = |size: u64| {
            let mut store = Store::new(size);
            for at in (0..size).step_by(1 << 13) {
                store.write_slice(at, &steadfast_block::pattern::bytes(0xdead, at, 1 << 13));
            }
            Ram::from_store("disk", store).persistent()
        };
        let disk = old(if setup.block_size < 4096 { DISK } else { DISK_OF_PAGES });
        let id = |n: u8| uuid::Uuid::from_bytes([n; 16]);
        let mut options = Options::new(id(1), id(2), EPOCH);
        options.block_size = Some(setup.block_size);
        options.inodes = Some(INODES);
        if setup.fast_commits {
            options.features.compat |= Compat::FAST_COMMIT;
        }
        options.journal = JournalChoice::InternalOf(JOURNAL_BLOCKS);
        let mut rams = vec![disk];
        if setup.external {
            let card = CARD + if setup.fast_commits { FAST_AREA } else { 0 };
            rams.push(old(card * u64::from(setup.block_size) / 1024));
            let device: Arc<dyn BlockDevice> = Arc::new(rams[1].clone());
            let mut journal = JournalDeviceOptions::random(EPOCH);
            journal.uuid = id(3);
            journal.block_size = setup.block_size;
            make_journal_device(&device, &journal).map_err(words)?;
            options.journal = JournalChoice::External { device, accept_volatile: false };
        }
        let device: Arc<dyn BlockDevice> = Arc::new(rams[0].clone());
        make(&device, &options).map_err(words)?;
        Ok(SmallMachine { setup, formatted: rams.iter().map(Ram::store).collect() })
    }

    fn is_memory(&self, device: usize) -> bool {
        self.setup.memory_journal && Some(device) == self.journal() || self.setup.dax && device == 0
    }

    fn mount(&self, devices: &[Arc<dyn BlockDevice>]) -> Result<Arc<Ext4>, String> {
        let options = self.setup.options(devices.get(1).cloned());
        Ext4::mount(Arc::clone(&devices[0]), options).map_err(words)
    }

    /// Records a sequence in a simulation of its own: its operations, the quiet time after them,
    /// and the unmount.
    pub(super) fn record(&self, sequence: &Sequence) -> Result<Run, String> {
        let (machine, sequence) = (self.clone(), sequence.clone());
        Sim::new(1).run(move || machine.simulate(&sequence)).map_err(words)?
    }

    fn simulate(&self, sequence: &Sequence) -> Result<Run, String> {
        let log = RecordLog::new();
        log.pause(true);
        let mut models: Vec<Arc<dyn Model>> = Vec::new();
        let mut devices: Vec<Arc<dyn BlockDevice>> = Vec::new();
        for (number, contents) in self.formatted.iter().enumerate() {
            let params = SsdParams {
                sectors: contents.size() / 512,
                write_cache: SsdCache::Volatile,
                ..SsdParams::default()
            };
            let model = match self.is_memory(number) {
                true => Arc::new(memory("disk", contents.size())),
                false => ModelParams::Ssd(params).build("disk").map_err(words)?,
            };
            model.set_contents(contents.clone()).map_err(words)?;
            let device = Arc::clone(&model) as Arc<dyn BlockDevice>;
            let durability = match self.setup.lying {
                true => Durability::Lying { cache_bytes: 1 << 20, drains_within: QUIET },
                false => Durability::OnFlush,
            };
            devices.push(Arc::new(Record::with_durability(device, &log, durability)));
            models.push(model);
        }
        let fs = self.mount(&devices)?;
        let shared: Arc<dyn FileSystem> = Arc::clone(&fs) as Arc<dyn FileSystem>;
        let node = NewNode { mode: 0o755, ..NewNode::default() };
        let folder = shared.mkdir(shared.root(), folder_name(0).as_bytes(), node).map_err(words)?;
        let worker = Worker { fs: shared, folder: folder.ino, task: 0 };
        let mut done: Vec<Done> = Vec::new();
        let carry_out = |done: &mut Vec<Done>, op: &Operation| {
            let index = done.len();
            let started = note(&log, 0, index, 0);
            worker.carry_out(index, op).map_err(|e| format!("{sequence}: {op:?}: {e}"))?;
            let acknowledged = note(&log, 0, index, 1);
            done.push(Done { op: op.clone(), started, acknowledged });
            Ok::<(), String>(())
        };
        let durable = match self.setup.points {
            Some(_) => Operation::Transact,
            None => Operation::Sync,
        };
        for op in sequence.start.operations().iter().chain([&durable]) {
            carry_out(&mut done, op)?;
        }
        let before = done.len();
        // Everything so far is beyond doubt.
        devices.iter().try_for_each(|d| d.flush()).map_err(words)?;
        let bases = models.iter().map(|m| m.contents()).collect();
        log.pause(false);
        let begin = note(&log, 0, before, 2).tick;
        for op in &sequence.operations {
            carry_out(&mut done, op)?;
        }
        sleep(QUIET);
        drop(worker);
        let started = note(&log, 0, done.len(), 0);
        fs.unmount().map_err(|e| format!("{sequence}: unmounting: {e}"))?;
        let acknowledged = note(&log, 0, done.len(), 1);
        // An unmount is a sync, or a transaction point where the policy says so.
        if self.setup.points.is_none_or(|mask| mask.contains(TransactMask::UMOUNT)) {
            done.push(Done { op: durable, started, acknowledged });
        }
        let recording = log.take();
        let ticks = |d: &Done| (d.started.tick, d.acknowledged.tick);
        let progress = done[before..].iter().map(ticks).collect();
        let judge = MixedJudge::new(History { tasks: vec![done] }, self.setup.promises());
        Ok(Run { recorded: Recorded { bases, recording, judge: Arc::new(judge) }, begin, progress })
    }
}

impl Machine for SmallMachine {
    fn power_on(&self, contents: Vec<Store>, log: Option<&RecordLog>) -> Result<Booted, String> {
        let ram = |(number, store): (usize, Store)| {
            let ram = Ram::from_store("disk", store).persistent();
            if self.is_memory(number) { ram.with_atomic_words() } else { ram }
        };
        let rams: Vec<Ram> = contents.into_iter().enumerate().map(ram).collect();
        let devices: Vec<Arc<dyn BlockDevice>> = rams
            .iter()
            .map(|ram| -> Arc<dyn BlockDevice> {
                match log {
                    Some(log) => {
                        let cached = ram.clone().with_volatile_cache();
                        Arc::new(Record::new(Arc::new(cached), log))
                    }
                    None => Arc::new(ram.clone()),
                }
            })
            .collect();
        let fs = self.mount(&devices)?;
        let mounted = Arc::clone(&fs);
        let shut_down = move || {
            mounted.unmount().map_err(words)?;
            Ok(rams.iter().map(Ram::store).collect())
        };
        Ok(Booted { fs, shut_down: Box::new(shut_down) })
    }

    fn journal(&self) -> Option<usize> {
        self.setup.external.then_some(1)
    }
}
