//! The smallest machine: a disk of 4 MiB, and another one for an external journal.
//!
//! Runs are recorded on modelled flash disks whose caches are volatile, where requests are in
//! flight for a while and several at a time: what waits for too little shows. Recovery is judged
//! on RAM disks, where nothing takes time.

use std::sync::Arc;
use std::time::Duration;

use steadfast_block::BlockDevice;
use steadfast_crash::Result;
use steadfast_crash::explore::ext4::{blocks, fill, mount, recorded, words};
use steadfast_crash::explore::ram::{boot, cached};
use steadfast_crash::explore::{BootedMachine, CutSource, RebootTarget};
use steadfast_crash::judge::Judge;
use steadfast_crash::risk::old_contents;
use steadfast_devices::filter::record::{Durability, Moment, RecordLog};
use steadfast_devices::model::Model;
use steadfast_devices::source::Ram;
use steadfast_devices::store::Store;
use steadfast_ext4::Ext4;
use steadfast_ext4_mkfs::{JournalChoice, JournalDeviceOptions, Options};
use steadfast_runtime::{Preemption, Sim, sleep, spawn};
use steadfast_suite::operation::Operation;
use steadfast_vfs::{FileSystem, NewNode, OpenFlags, TransactMask};

use super::sequence::Sequence;
use crate::devices::{EPOCH, flash, held, memory};
use crate::mixed::Setup;
use crate::mixed::judge::{History, MixedJudge, OperationAck};
use crate::mixed::run::{Worker, folder_name, note};

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
/// Blocks of the log that are left where it is about to go round: fewer than a transaction takes.
const LOG_LEFT: u64 = 6;
/// After its operations a run waits so long: old data is written and committed by then.
const QUIET: Duration = Duration::from_secs(45);

/// Steps of the date where tasks are preempted: longer than all that they do.
const DATE_STEP: Duration = Duration::from_secs(20);

/// The smallest machine with a set-up, formatted.
#[derive(Clone)]
pub struct SmallMachine {
    /// What is on it. Its block size should be 1024, the smallest.
    pub setup: Setup,
    formatted: Vec<Store>,
    /// The log is about to go round when a run begins.
    log_near_end: bool,
}

/// A run of a sequence.
pub(super) struct SequenceRun {
    pub recorded: CutSource,
    /// The same judge as is recorded, which looks first and judges then, and is asked what its
    /// verdicts depend on.
    pub judge: Arc<MixedJudge>,
    /// The first cut: what is there at the start is durable.
    pub begin: u64,
    /// When each operation of each task was started and acknowledged, the closing unmount's too.
    pub progress: Vec<Vec<(u64, u64)>>,
}

impl SmallMachine {
    /// Formats the disks.
    ///
    /// # Errors
    /// In words.
    pub fn new(setup: Setup) -> Result<Self> {
        // What was there before: to be seen by nobody.
        let old = |size: u64| Ram::from_store("disk", old_contents(size)).persistent();
        let disk = old(if setup.block_size < 4096 { DISK } else { DISK_OF_PAGES });
        let id = |n: u8| uuid::Uuid::from_bytes([n; 16]);
        let mut options = Options::new(id(1), id(2), EPOCH);
        options.inodes = Some(INODES);
        options.journal = JournalChoice::InternalOf(JOURNAL_BLOCKS);
        let mut rams = vec![disk];
        if setup.external {
            let card = CARD + if setup.fast_commits { FAST_AREA } else { 0 };
            rams.push(old(card * u64::from(setup.block_size) / 1024));
        }
        let journal = |time| JournalDeviceOptions::new(id(3), time);
        setup.make(&blocks(&rams), options, journal).map_err(words)?;
        let formatted = rams.iter().map(Ram::store).collect();
        Ok(SmallMachine { setup, formatted, log_near_end: false })
    }

    /// The same machine, but that the log goes round in each run: what is to be recorded begins a
    /// few blocks before its end. For data=journal, which can fill a log.
    #[must_use]
    pub(crate) fn with_log_near_end(self) -> Self {
        SmallMachine { log_near_end: true, ..self }
    }

    fn is_memory(&self, device: usize) -> bool {
        self.setup.memory_journal && Some(device) == self.journal() || self.setup.dax && device == 0
    }

    /// Records sequences in a simulation of their own, each carried out by a task in a folder of
    /// its own: their operations, the quiet time after them, and the unmount. While they work,
    /// tasks are preempted as the schedule says, which also names the task that begins.
    pub(super) fn record(
        &self,
        sequences: &[Sequence],
        preemption: Option<(&Preemption, usize)>,
    ) -> Result<SequenceRun> {
        let (machine, sequences) = (self.clone(), sequences.to_vec());
        let preemption = preemption.map(|(preemption, begins)| (preemption.clone(), begins));
        let mut sim = Sim::new(1);
        if preemption.is_some() {
            // Whoever was put aside writes the same times down.
            sim = sim.date_step(DATE_STEP);
        }
        sim.run(move || machine.simulate(&sequences, preemption)).map_err(words)?
    }

    fn simulate(
        &self,
        sequences: &[Sequence],
        preemption: Option<(Preemption, usize)>,
    ) -> steadfast_crash::Result<SequenceRun> {
        let log = RecordLog::new();
        log.pause(true);
        let (models, devices) = self.recorded_devices(&log)?;
        let fs = mount(&devices, self.setup.options())?;
        let shared: Arc<dyn FileSystem> = Arc::clone(&fs) as Arc<dyn FileSystem>;
        let mut tasks = Vec::new();
        for task in 0..sequences.len() {
            let node = NewNode { mode: 0o755, ..NewNode::default() };
            let folder = shared.mkdir(shared.root(), folder_name(task).as_bytes(), node);
            let folder = folder.map_err(words)?.ino;
            let worker = Worker { fs: Arc::clone(&shared), folder, task };
            tasks.push(Task { worker, log: log.clone(), done: Vec::new() });
        }
        drop(shared);
        for (task, sequence) in tasks.iter_mut().zip(sequences) {
            sequence.start.operations().iter().try_for_each(|op| task.carry_out(op))?;
        }
        let durable = match self.setup.points {
            Some(_) => Operation::Transact,
            None => Operation::Sync,
        };
        tasks.iter_mut().try_for_each(|task| task.carry_out(&durable))?;
        let before: Vec<usize> = tasks.iter().map(|task| task.done.len()).collect();
        if self.log_near_end {
            fill_log(&fs)?;
        }
        if preemption.is_some() {
            // What follows is of another date.
            sleep(DATE_STEP);
        }
        // Everything so far is beyond doubt.
        devices.iter().try_for_each(|d| d.flush()).map_err(words)?;
        let bases = held(&models);
        log.pause(false);
        let begin = note(&log, 0, before[0], 2).tick;
        let mut tasks = carried_out(tasks, sequences, preemption)?;
        sleep(QUIET);
        let started: Vec<_> = tasks.iter().map(|task| task.note(0)).collect();
        let mut done: Vec<Vec<OperationAck>> = Vec::new();
        let ends = |task: &mut Task| std::mem::take(&mut task.done);
        let of_tasks: Vec<Vec<OperationAck>> = tasks.iter_mut().map(ends).collect();
        drop(tasks);
        fs.unmount().map_err(|e| format!("{}: unmounting: {e}", in_words(sequences)))?;
        for (task, (mut of_task, started)) in of_tasks.into_iter().zip(started).enumerate() {
            let acknowledged = note(&log, task, of_task.len(), 1);
            // An unmount is a sync, or a transaction point where the policy says so.
            if self.setup.points.is_none_or(|mask| mask.contains(TransactMask::UMOUNT)) {
                of_task.push(OperationAck { op: durable.clone(), started, acknowledged });
            }
            done.push(of_task);
        }
        let recording = log.take();
        let ticks = |d: &OperationAck| (d.started.tick, d.acknowledged.tick);
        let progress = done.iter().zip(before);
        let progress = progress.map(|(done, before)| done[before..].iter().map(ticks).collect());
        let progress = progress.collect();
        let judge = Arc::new(MixedJudge::new(History { tasks: done }, self.setup.promises()));
        let recorded = CutSource { bases, recording, judge: Arc::clone(&judge) as Arc<dyn Judge> };
        Ok(SequenceRun { recorded, begin, progress, judge })
    }

    /// The devices, formatted, and what is mounted: each recorded.
    #[allow(clippy::type_complexity)]
    fn recorded_devices(
        &self,
        log: &RecordLog,
    ) -> steadfast_crash::Result<(Vec<Arc<dyn Model>>, Vec<Arc<dyn BlockDevice>>)> {
        let model =
            |(number, contents): (usize, &Store)| -> steadfast_crash::Result<Arc<dyn Model>> {
                match self.is_memory(number) {
                    true => Ok(Arc::new(memory("disk", contents.size()))),
                    false => flash("disk", contents.size()),
                }
            };
        let models = self.formatted.iter().enumerate().map(model);
        let models = models.collect::<steadfast_crash::Result<Vec<_>>>()?;
        fill(&models, self.formatted.clone())?;
        let durability = match self.setup.lying {
            true => Durability::Lying { cache_bytes: 1 << 20, drains_within: QUIET },
            false => Durability::OnFlush,
        };
        let devices = models.iter().map(|model| Arc::clone(model) as Arc<dyn BlockDevice>);
        let devices = devices.map(|device| recorded(device, log, Some(durability))).collect();
        Ok((models, devices))
    }
}

/// Most blocks that a transaction takes beside those of data.
const OVERHEAD: u64 = 16;

/// Writes and commits until so few blocks of the log are left that the next transactions go round.
fn fill_log(fs: &Ext4) -> steadfast_crash::Result<()> {
    let journal = fs.journal().ok_or("no journal")?;
    let node = NewNode { mode: 0o644, ..NewNode::default() };
    let rw = OpenFlags::READ | OpenFlags::WRITE;
    let (_, fh) = fs.create(fs.root(), b"filler", node, rw).map_err(words)?;
    let block = u64::from(journal.log().block_size());
    loop {
        let capacity = u64::from(journal.usage().1);
        let left = capacity - journal.stats().logged_blocks % capacity;
        if left <= LOG_LEFT {
            break;
        }
        // A quarter of the log is the most that a transaction takes, with what describes it.
        let blocks = (left - LOG_LEFT).saturating_sub(OVERHEAD).clamp(1, capacity / 8);
        let data = vec![left as u8; (blocks * block) as usize];
        fs.write(fh, 0, data.into()).map_err(words)?;
        fs.fsync(fh, false).map_err(words)?;
    }
    fs.release(fh).map_err(words)?;
    // Time for the checkpoint to end.
    sleep(Duration::from_secs(1));
    Ok(())
}

/// Sequences in words.
pub(super) fn in_words(sequences: &[Sequence]) -> String {
    match sequences {
        [one] => one.to_string(),
        all => {
            let line = |(task, s): (usize, &Sequence)| format!("task {task}: {s}");
            all.iter().enumerate().map(line).collect::<Vec<_>>().join("; ")
        }
    }
}

/// Who carries out a sequence.
struct Task {
    worker: Worker,
    log: RecordLog,
    done: Vec<OperationAck>,
}

impl Task {
    fn note(&self, end: u64) -> Moment {
        note(&self.log, self.worker.task, self.done.len(), end)
    }

    fn carry_out(&mut self, op: &Operation) -> steadfast_crash::Result<()> {
        let started = self.note(0);
        self.worker.carry_out(self.done.len(), op).map_err(|e| format!("{op}: {e}"))?;
        let acknowledged = self.note(1);
        self.done.push(OperationAck { op: op.clone(), started, acknowledged });
        Ok(())
    }
}

/// Has the tasks carry out their sequences: one by itself, several side by side.
fn carried_out(
    mut tasks: Vec<Task>,
    sequences: &[Sequence],
    preemption: Option<(Preemption, usize)>,
) -> steadfast_crash::Result<Vec<Task>> {
    let failed = |sequence: &Sequence, why: steadfast_crash::CrashError| {
        steadfast_crash::CrashError::Run(format!("{sequence}: {why}"))
    };
    if let ([task], [sequence], None) = (&mut tasks[..], sequences, &preemption) {
        let done = sequence.operations.iter().try_for_each(|op| task.carry_out(op));
        return done.map_err(|why| failed(sequence, why)).map(|()| tasks);
    }
    let mut working: Vec<(Task, Sequence)> =
        tasks.into_iter().zip(sequences.iter().cloned()).collect();
    if let Some((preemption, begins)) = &preemption {
        // Who is started first runs first.
        working[..=*begins].rotate_right(1);
        preemption.start();
    }
    let spawned: Vec<_> = working
        .into_iter()
        .map(|(mut task, sequence)| {
            spawn(folder_name(task.worker.task), move || {
                let done = sequence.operations.iter().try_for_each(|op| task.carry_out(op));
                done.map_err(|why| failed(&sequence, why)).map(|()| task)
            })
        })
        .collect();
    let ended: Vec<_> =
        spawned.into_iter().map(|task| task.join().unwrap_or_else(|p| p.resume())).collect();
    if let Some((preemption, _)) = &preemption {
        preemption.stop();
    }
    let mut tasks = ended.into_iter().collect::<steadfast_crash::Result<Vec<Task>>>()?;
    tasks.sort_by_key(|task| task.worker.task);
    Ok(tasks)
}

impl SmallMachine {
    /// Power on with these contents; `device` makes of each RAM disk what is mounted.
    pub(super) fn boot(
        &self,
        contents: Vec<Store>,
        device: &dyn Fn(usize, &Ram) -> Arc<dyn BlockDevice>,
    ) -> steadfast_crash::Result<BootedMachine> {
        let ram = |(number, store): (usize, Store)| {
            let ram = Ram::from_store("disk", store).persistent();
            if self.is_memory(number) { ram.with_atomic_words() } else { ram }
        };
        let rams = contents.into_iter().enumerate().map(ram).collect();
        boot(rams, self.setup.options(), device)
    }
}

impl RebootTarget for SmallMachine {
    fn power_on(
        &self,
        contents: Vec<Store>,
        log: Option<&RecordLog>,
    ) -> steadfast_crash::Result<BootedMachine> {
        self.boot(contents, &|_, ram| cached(ram, log))
    }

    fn journal(&self) -> Option<usize> {
        self.setup.external.then_some(1)
    }
}
