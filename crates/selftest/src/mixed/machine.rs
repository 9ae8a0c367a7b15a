//! The machine of the mixed workload: a flash disk whose cache is volatile, and a card for an
//! external journal.

use std::sync::Arc;
use std::time::Duration;

use steadfast_block::BlockDevice;
use steadfast_crash::Result;
use steadfast_crash::explore::ext4::{booted, fill, make, mount, recorded, words};
use steadfast_crash::explore::{BootedMachine, CutSource, RebootTarget};
use steadfast_crash::risk::old_contents;
use steadfast_devices::filter::record::{Durability, RecordLog};
use steadfast_devices::filter::{Effect, Fault, FaultRule, Ops};
use steadfast_devices::model::{Model, ModelParams, NvramParams};
use steadfast_devices::store::Store;
use steadfast_ext4::{DataMode, Dax, MountOptions};
use steadfast_ext4_format::ondisk::{Compat, Incompat};
use steadfast_ext4_format::superblock;
use steadfast_ext4_mkfs::{JournalChoice, JournalDeviceOptions, Options};
use steadfast_runtime::Sim;
use steadfast_vfs::{FileSystem, TransactMask, TransactPolicy};
use steadfast_volume::Mirror;

use super::generate::WorkloadMix;
use super::judge::{MixedJudge, Promises};
use super::mirrored::{LEGS, MirrorDisk};
use super::run::{Script, record};
use crate::devices::{EPOCH, flash, held, memory};

/// How long the power is off.
const OFF_SECONDS: u64 = 60;
/// Size of the card, with nothing but a journal on it.
const CARD_MIB: u32 = 8;
/// Blocks of an internal journal.
const JOURNAL_BLOCKS: u32 = 1024;

/// One write in so many is late, until so many have been made,
const STRAGGLER_EVERY: u64 = 7;
const STRAGGLERS_END: u64 = 1400;
/// by this much: longer than a commit.
const STRAGGLER_DELAY: Duration = Duration::from_millis(3);

/// A disk that acknowledges flushes without doing them.
const LYING: Durability =
    Durability::Lying { cache_bytes: 1 << 20, drains_within: Duration::from_millis(20) };

/// A set-up to be cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Setup {
    /// The data mode.
    pub data: DataMode,
    /// Whether the journal is on the card.
    pub external: bool,
    /// The card is memory: of what was not persisted (flushed) a cut keeps any aligned words of 8
    /// bytes, not sectors.
    pub memory_journal: bool,
    /// The disk is memory, and files are used in place where their data does not go through the
    /// log: of what was not persisted and fenced a cut keeps any words.
    pub dax: bool,
    /// Asynchronous commits.
    pub async_commit: bool,
    /// Bytes a block.
    pub block_size: u32,
    /// Delayed allocation.
    pub delayed_allocation: bool,
    /// The disk acknowledges flushes without doing them: the control.
    pub lying: bool,
    /// An fsync is a fast commit where it can be.
    pub fast_commits: bool,
    /// Which operations make transaction points, with data=transact.
    pub points: Option<TransactMask>,
    /// Checkpoints begin when so many hundredths of the log are in use. A short run comes to none
    /// with the journal's own 50.
    pub checkpoint_percent: u8,
    /// Names and blocks come and go all the time: more is freed and taken anew.
    pub churn: bool,
    /// Some writes to the disk take much longer than others, as on flash that collects garbage:
    /// later ones overtake them. The modelled disk by itself answers nearly in order, which hides
    /// that somebody did not wait.
    pub stragglers: bool,
    /// Next to nothing is kept in memory of inodes, names and metadata: what is needed again is
    /// read anew.
    pub small_caches: bool,
    /// The journal makes a transaction of each update, and brings it home before the next: an
    /// operation that takes several can be cut between any two.
    pub lone_updates: bool,
    /// Small files and folders are in their inodes.
    pub inline_data: bool,
    /// The disk is a mirror of two.
    pub mirror: Option<MirrorDisk>,
    /// A bug that is to be found.
    #[cfg(feature = "planted-bugs")]
    pub planted: Option<steadfast_crash::planted::StackBug>,
}

impl Setup {
    /// data=ordered on an internal journal, 4 KiB blocks.
    pub const PLAIN: Setup = Setup {
        data: DataMode::Ordered,
        external: false,
        memory_journal: false,
        dax: false,
        async_commit: false,
        block_size: 4096,
        delayed_allocation: true,
        lying: false,
        fast_commits: false,
        points: None,
        checkpoint_percent: 50,
        churn: false,
        stragglers: false,
        small_caches: false,
        lone_updates: false,
        inline_data: false,
        mirror: None,
        #[cfg(feature = "planted-bugs")]
        planted: None,
    };

    pub(crate) fn options(&self) -> MountOptions {
        let mut options = MountOptions {
            data: self.data,
            delayed_allocation: self.delayed_allocation,
            transact: TransactPolicy {
                mask: self.points.unwrap_or(TransactMask::empty()),
                timed: None,
            },
            simulated_epoch: EPOCH,
            ..MountOptions::default()
        };
        let logged = matches!(self.data, DataMode::Journal | DataMode::Transact);
        options.dax = if self.dax && !logged { Dax::Always } else { Dax::Never };
        options.journal.async_commit = self.async_commit;
        options.journal.fast_commits = self.fast_commits;
        let checkpoint = f64::from(self.checkpoint_percent) / 100.0;
        options.journal.checkpoint_start_fraction = checkpoint;
        if self.checkpoint_percent < Setup::PLAIN.checkpoint_percent {
            // Some transactions go home, and some stay.
            options.journal.checkpoint_stop_fraction = checkpoint / 2.0;
        }
        options.page_cache.memory_bytes = 8 << 20;
        if self.small_caches {
            (options.inode_cache, options.metadata_cache_blocks) = (1, 1);
            options.page_cache.memory_bytes = 0;
        }
        if self.lone_updates {
            options.journal.image_bytes_max = 1;
        }
        #[cfg(feature = "planted-bugs")]
        if let Some(planted) = self.planted {
            planted.into_options(&mut options);
        }
        options
    }

    /// Makes a file system with the features that the set-up needs.
    pub(crate) fn make(
        &self,
        devices: &[Arc<dyn BlockDevice>],
        mut options: Options,
        journal: impl FnOnce(u64) -> JournalDeviceOptions,
    ) -> steadfast_ext4::Result<()> {
        options.block_size = Some(self.block_size);
        if self.fast_commits {
            options.features.compat |= Compat::FAST_COMMIT;
        }
        make(devices, options, journal)?;
        if self.inline_data {
            // Our mkfs does not make it. Nothing that is there yet has to be in its inode.
            let mut superblock = superblock::find(&*devices[0])?.superblock;
            let mut features = superblock.features();
            features.incompat |= Incompat::INLINE_DATA;
            superblock.set_features(features);
            superblock::write(&*devices[0], &mut superblock)?;
        }
        Ok(())
    }

    pub(crate) fn promises(&self) -> Promises {
        let stale_allowed = self.data == DataMode::Writeback;
        Promises { stale_allowed, points: self.points }
    }
}

/// Builds the set-up's machine; see the module's text.
#[derive(Debug, Clone, Copy)]
pub struct MixedMachine {
    /// What is on it.
    pub setup: Setup,
    /// Bytes of the disk.
    pub disk_bytes: u64,
}

/// The devices of a machine.
struct MachineDevices {
    /// Each by itself, in the order in which they are recorded.
    models: Vec<Arc<dyn Model>>,
    /// What is mounted: disk and card.
    devices: Vec<Arc<dyn BlockDevice>>,
    /// The disk, if it is a mirror.
    mirror: Option<Mirror>,
}

impl MixedMachine {
    /// The devices by themselves: the disk, or those that the mirror is made of, then the card.
    fn models(&self) -> steadfast_crash::Result<Vec<Arc<dyn Model>>> {
        let (disks, bytes) = match self.setup.mirror {
            Some(_) => (LEGS, MirrorDisk::leg_bytes(self.disk_bytes)),
            None => (1, self.disk_bytes),
        };
        let mut models: Vec<Arc<dyn Model>> = Vec::new();
        for n in 0..disks {
            let name = if disks == 1 { "disk".to_owned() } else { format!("disk{n}") };
            models.push(match self.setup.dax {
                true => Arc::new(memory(&name, bytes)),
                false => flash(&name, bytes)?,
            });
        }
        if self.setup.external && self.setup.memory_journal {
            models.push(Arc::new(memory("card", u64::from(CARD_MIB) << 20)));
        } else if self.setup.external {
            let (size_mib, initialised) = (CARD_MIB, true);
            let card = NvramParams { size_mib, initialised, ..NvramParams::default() };
            models.push(ModelParams::Nvram(card).build("card").map_err(words)?);
        }
        Ok(models)
    }

    /// Switches on: with these contents, or new. What is asked of the devices is recorded, if there
    /// is a log.
    fn build(
        &self,
        contents: Option<Vec<Store>>,
        log: Option<&RecordLog>,
    ) -> steadfast_crash::Result<MachineDevices> {
        let models = self.models()?;
        let is_new = contents.is_none();
        let disks = if self.setup.mirror.is_some() { LEGS } else { 1 };
        // What was there before: to be seen by nobody.
        let old = || vec![old_contents(models[0].info().size); disks];
        fill(&models, contents.unwrap_or_else(old))?;
        let mut devices: Vec<Arc<dyn BlockDevice>> = models
            .iter()
            .map(|m| -> Arc<dyn BlockDevice> {
                let device: Arc<dyn BlockDevice> = Arc::clone(m) as Arc<dyn BlockDevice>;
                let device = if self.setup.stragglers { with_stragglers(device) } else { device };
                match log {
                    Some(log) => recorded(device, log, self.setup.lying.then_some(LYING)),
                    None => device,
                }
            })
            .collect();
        let Some(mirrored) = self.setup.mirror else {
            return Ok(MachineDevices { models, devices, mirror: None });
        };
        let disks: Vec<_> = devices.drain(..LEGS).collect();
        let mirror = match is_new {
            true => mirrored.create(&disks, self.disk_bytes)?,
            false => mirrored.assemble(&disks, self.disk_bytes)?,
        };
        devices.insert(0, Arc::new(mirror.clone()));
        Ok(MachineDevices { models, devices, mirror: Some(mirror) })
    }

    fn make(&self, devices: &[Arc<dyn BlockDevice>]) -> steadfast_crash::Result<()> {
        let mut options = Options::random(EPOCH);
        options.journal = JournalChoice::InternalOf(JOURNAL_BLOCKS);
        self.setup.make(devices, options, JournalDeviceOptions::random).map_err(words)?;
        devices.iter().try_for_each(|d| d.flush()).map_err(words)
    }

    /// Runs the workload in a simulation of its own: `tasks` tasks of `operations` operations.
    ///
    /// # Errors
    /// If anything in it fails, in words.
    pub fn record(&self, seed: u64, tasks: usize, operations: usize) -> Result<CutSource> {
        self.record_script(seed, &self.script(seed, tasks, operations))
    }

    /// What [`record`](Self::record) runs.
    pub fn script(&self, seed: u64, tasks: usize, operations: usize) -> Script {
        let Setup { points, fast_commits, churn, .. } = self.setup;
        let like = WorkloadMix { transact: points.is_some(), fast_commits, churn };
        Script::drawn(seed, tasks, operations, like)
    }

    /// Runs a script in a simulation of its own, whose seed this is.
    ///
    /// # Errors
    /// If anything in it fails, in words.
    pub fn record_script(&self, seed: u64, script: &Script) -> Result<CutSource> {
        let (machine, script) = (*self, script.clone());
        let ran = Sim::new(seed).run(move || machine.simulate(&script));
        ran.map_err(|e| e.to_string())?
    }

    fn simulate(&self, script: &Script) -> steadfast_crash::Result<CutSource> {
        let log = RecordLog::new();
        log.pause(true);
        let MachineDevices { models, devices, mirror } = self.build(None, Some(&log))?;
        self.make(&devices)?;
        let fs = mount(&devices, self.setup.options())?;
        let shared: Arc<dyn FileSystem> = Arc::clone(&fs) as Arc<dyn FileSystem>;
        let mut bases = Vec::new();
        let begin = || {
            // Everything so far is beyond doubt.
            bases = held(&models);
            log.pause(false);
        };
        let transact = self.setup.points.is_some();
        let history = record(&shared, &log, script, transact, begin)?;
        let made = fs.journal().map_or(0, |journal| journal.stats().fast_commits);
        if self.setup.fast_commits && made == 0 && !script.may_fail {
            return Err("no fast commit was made".into());
        }
        let recording = log.take();
        drop(shared);
        fs.unmount().map_err(|e| format!("unmounting: {e}"))?;
        mirror.map_or(Ok(()), |m| m.close()).map_err(|e| e.to_string())?;
        let judge = Arc::new(MixedJudge::new(history, self.setup.promises()));
        Ok(CutSource { bases, recording, judge })
    }
}

/// Delays single writes; see [`Setup::stragglers`].
fn with_stragglers(device: Arc<dyn BlockDevice>) -> Arc<dyn BlockDevice> {
    let fault = Fault::new(device);
    for nth in (STRAGGLER_EVERY..STRAGGLERS_END).step_by(STRAGGLER_EVERY as usize) {
        let late = Effect::Delay(STRAGGLER_DELAY);
        fault.faults().add(FaultRule::new(Ops::WRITE, late).nth(nth));
    }
    Arc::new(fault)
}

impl RebootTarget for MixedMachine {
    fn power_on(
        &self,
        contents: Vec<Store>,
        log: Option<&RecordLog>,
    ) -> steadfast_crash::Result<BootedMachine> {
        let MachineDevices { models, devices, mirror } = self.build(Some(contents), log)?;
        let mut options = self.setup.options();
        options.simulated_epoch += OFF_SECONDS;
        let fs = mount(&devices, options)?;
        let (size, mirrored) = (self.disk_bytes, self.setup.mirror);
        Ok(booted(fs, move || match (mirrored, mirror) {
            (Some(mirrored), Some(mirror)) => Ok(vec![mirrored.shut_down(&mirror, size)?]),
            _ => Ok(held(&models)),
        }))
    }

    fn journal(&self) -> Option<usize> {
        self.setup.external.then_some(1)
    }
}
