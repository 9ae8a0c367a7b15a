//! A file is read while another is written flat out: how long a reader waits behind a writer.
//!
//! The disk has two partitions of the same size. On the first is the variant's file system, which
//! a writer fills with one file in a loop; on the second an ext2 with files that nothing has
//! read since it was mounted. Each read takes a file of its own, so all are cold, and goes from its
//! beginning to its end, a call after the other, as cat(1) does: what is read ahead of it is the
//! machine's (`read_ahead_kb`). The same is done before there is a writer.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use steadfast_block::{BlockDevice, pattern};
use steadfast_crash::explore::StackMachine;
use steadfast_devices::filter::{Scheduler, Window};
use steadfast_ext4::Ext4;
use steadfast_ext4_mkfs::Contents;
use steadfast_runtime::{cpu, now, random_u64, sleep, spawn};
use steadfast_setup::{Blocks, Devices, Setup};
use steadfast_vfs::{FileSystem, NewNode, OpenFlags, path};

use super::disk_use;
use super::measured::{published, speed};
use super::setting::{Part, Report, Subject};
use super::workload::{JobResult, Workload};
use crate::results::{Percentiles, QueueSeries, ReadRow, SpeedRow};
use crate::scenario::{ReadFile, ReadUnderWriteSpec, Scenario};
use crate::{Result, ScenarioError, VariantError};

/// Processor time of a system call apart from what the file system does.
const SYSCALL: Duration = Duration::from_micros(1);
/// Tag of all that is written.
const TAG: u64 = 1;
/// What the writer writes repeats itself after so many bytes: nobody looks at it.
const REPEATS: u64 = 4 << 20;
/// How often the queue is looked at for the chart, and how many times.
const QUEUE_EVERY: Duration = Duration::from_millis(100);
const QUEUE_POINTS: usize = 300;

/// The workload, ready to be run.
pub(super) struct Reads {
    spec: ReadUnderWriteSpec,
    trials: u64,
}

impl Reads {
    pub fn new(
        scenario: &Scenario,
        spec: &ReadUnderWriteSpec,
        full: bool,
    ) -> Result<Reads, ScenarioError> {
        let trials = if full { spec.trials } else { spec.quick_trials.unwrap_or(spec.trials) };
        let reads = Reads { spec: spec.clone(), trials };
        let files = reads.files() * spec.file_bytes();
        let needed = files.saturating_add(spec.storm.bytes());
        for v in scenario.variants.iter().filter(|v| v.run.speed()) {
            let half = scenario.topology.bytes_of(&v.stack.disk) / 2;
            // A part for metadata and the journal.
            if needed > half / 10 * 9 {
                let (variant, device) = (v.name.clone(), v.stack.disk.clone());
                return Err(ScenarioError::NoRoomToRead { variant, needed, device, half });
            }
        }
        Ok(reads)
    }

    /// Files to be read in a place.
    fn files(&self) -> u64 {
        self.spec.idle_trials + self.trials
    }
}

impl Workload for Reads {
    fn command(&self) -> Option<String> {
        let Reads { spec, trials } = self;
        Some(format!(
            "cat of {} MiB, {trials} times, while true; do {}; done",
            spec.file_mb, spec.storm.line
        ))
    }

    fn run(&self, of: Subject<'_>, _: Part, report: Report) -> Result<JobResult> {
        let Subject { setting, variant } = of;
        let memory = setting.memory_of(variant).unwrap_or(512 << 20);
        let machine = setting.measured.stack_machine(variant, memory);
        let (spec, trials) = (self.spec.clone(), self.trials);
        let (setup, overwrite) = (machine.setup.clone(), setting.overwrite());
        let found = setting.on_machine(&setup, move || {
            let devices = Devices::open(&machine.setup, overwrite)?;
            let blocks = devices.blocks()?;
            let found = Experiment::prepare(machine, &blocks, spec, trials)?.run(&report)?;
            blocks.close()?;
            Ok(found)
        })?;
        Ok(found.outcome(of, &self.spec))
    }

    fn is_reduced_by_default(&self) -> bool {
        true
    }
}

/// Both file systems, mounted, with files that nobody has read.
struct Experiment {
    spec: ReadUnderWriteSpec,
    trials: u64,
    written_to: Arc<Ext4>,
    beside: Option<Arc<Ext4>>,
    queue: Option<Arc<Scheduler>>,
}

/// What was found.
struct ReadMeasurement {
    places: Vec<PositionReads>,
    virtual_seconds: f64,
    log_used: Option<f64>,
    /// What the writer wrote a second while files were read.
    written_kb_per_s: f64,
    queue: Option<QueueSeries>,
}

/// How long the reads of one place took.
struct PositionReads {
    place: ReadFile,
    idle: Vec<f64>,
    under_write: Vec<f64>,
    calls_ms: Vec<f64>,
}

impl Experiment {
    fn prepare(
        machine: StackMachine,
        blocks: &Blocks,
        spec: ReadUnderWriteSpec,
        trials: u64,
    ) -> Result<Experiment> {
        let (journal, queue) = (blocks.journal.clone(), blocks.queue.clone());
        let [first, second] = halves(&blocks.disk)?;
        let count = spec.idle_trials + trials;
        let own = Blocks { disk: first, journal, queue: None, ..blocks.clone() };
        own.make(&machine.setup, Contents::Zeros, (0, 0))?;
        let files = if spec.places.contains(&ReadFile::Same) { count } else { 0 };
        let written_to = with_files(&machine, &own, &spec, files)?;
        let beside = if spec.places.contains(&ReadFile::Other) {
            let (mkfs, mount) = ("-t ext2".into(), String::new());
            let setup = Setup { mkfs, mount, journal: None, ..machine.setup };
            let reader = StackMachine { setup, ..machine };
            let blocks = Blocks { disk: second, journal: None, queue: None, ..blocks.clone() };
            blocks.make(&reader.setup, Contents::Zeros, (0, 0))?;
            Some(with_files(&reader, &blocks, &spec, count)?)
        } else {
            None
        };
        Ok(Experiment { spec, trials, written_to, beside, queue })
    }

    fn fs(&self, place: ReadFile) -> &Arc<Ext4> {
        match (&self.beside, place) {
            (Some(beside), ReadFile::Other) => beside,
            _ => &self.written_to,
        }
    }

    fn run(self, report: &Report) -> Result<ReadMeasurement> {
        let began = now();
        let mut places: Vec<PositionReads> = Vec::new();
        for place in self.spec.places.clone() {
            let mut of =
                PositionReads { place, idle: vec![], under_write: vec![], calls_ms: vec![] };
            for number in 0..self.spec.idle_trials {
                of.idle.push(self.read(place, number, &mut Vec::new())?);
            }
            places.push(of);
        }
        let stop = Arc::new(AtomicBool::new(false));
        let written = Arc::new(AtomicU64::new(0));
        let writer = {
            let (fs, spec) = (Arc::clone(&self.written_to), self.spec.clone());
            let (stop, written) = (Arc::clone(&stop), Arc::clone(&written));
            spawn("writer", move || write_flat_out(&fs, &spec, &stop, &written))
        };
        let watched = self.queue.clone().map(|queue| {
            let stop = Arc::clone(&stop);
            spawn("queue", move || watch(&queue, &stop))
        });
        sleep(Duration::from_secs_f64(self.spec.settle_s));
        let (from, before) = (now(), written.load(Ordering::Relaxed));
        let done = self.trials_under_write(&mut places, report);
        let (to, after) = (now(), written.load(Ordering::Relaxed));
        stop.store(true, Ordering::Relaxed);
        let wrote = writer.join().unwrap_or_else(|panicked| panicked.resume());
        let series = watched.map(|task| task.join().unwrap_or_else(|p| p.resume()));
        done?;
        wrote?;
        let virtual_seconds = (now() - began).as_secs_f64();
        let seconds = to.since(from).as_secs_f64();
        let written_kb_per_s = (after - before) as f64 / 1024.0 / seconds.max(1e-9);
        let reads_from_s = self.spec.settle_s;
        let log_used = disk_use::log_used(&self.written_to);
        self.unmount()?;
        let queue = series.map(|points| QueueSeries {
            variant: String::new(),
            every_ms: QUEUE_EVERY.as_secs_f64() * 1e3,
            reads_from_s,
            write_kb: points.iter().map(|p| p.0).collect(),
            read_kb: points.iter().map(|p| p.1).collect(),
        });
        Ok(ReadMeasurement { places, virtual_seconds, log_used, written_kb_per_s, queue })
    }

    fn trials_under_write(&self, places: &mut [PositionReads], report: &Report) -> Result<()> {
        for trial in 0..self.trials {
            for of in &mut *places {
                // At no fixed distance, or all trials might meet the writer at the same point.
                let share = random_u64() as f64 / u64::MAX as f64;
                sleep(Duration::from_secs_f64(2.0 * share * self.spec.pause_s));
                let number = self.spec.idle_trials + trial;
                let took = self.read(of.place, number, &mut of.calls_ms)?;
                of.under_write.push(took);
            }
            report((trial + 1) as f64 / self.trials as f64);
        }
        Ok(())
    }

    /// Reads a file from its beginning to its end; seconds.
    fn read(&self, place: ReadFile, number: u64, calls_ms: &mut Vec<f64>) -> Result<f64> {
        let fs = self.fs(place);
        let failed = VariantError::call("reading");
        let began = now();
        let file = path::resolve(&**fs, name(number).as_bytes(), true).map_err(&failed)?;
        let fh = fs.open(file.ino, OpenFlags::READ).map_err(&failed)?;
        let mut at = 0;
        loop {
            let asked = now();
            cpu(SYSCALL);
            let part = fs.read(fh, at, self.spec.read_bytes() as usize).map_err(&failed)?;
            if part.is_empty() {
                break;
            }
            calls_ms.push(now().since(asked).as_secs_f64() * 1e3);
            at += part.len() as u64;
        }
        fs.release(fh).map_err(&failed)?;
        match at == self.spec.file_bytes() {
            true => Ok(now().since(began).as_secs_f64()),
            false => Err(VariantError::Short { bytes: self.spec.file_bytes(), at }),
        }
    }

    fn unmount(self) -> Result<()> {
        let all = [Some(self.written_to), self.beside];
        let each = |fs: Arc<Ext4>| fs.unmount().map_err(VariantError::Unmount);
        all.into_iter().flatten().try_for_each(each)
    }
}

impl ReadMeasurement {
    fn outcome(self, of: Subject<'_>, spec: &ReadUnderWriteSpec) -> JobResult {
        let Subject { setting, variant } = of;
        let kb = spec.file_bytes() as f64 / 1024.0;
        let took = of.took(self.virtual_seconds, self.log_used);
        let (mut speeds, mut reads) = (Vec::new(), Vec::new());
        for read in self.places {
            let test = read.place.test();
            let published = published(&setting.scenario, test);
            let published = published.and_then(|p| p.seconds.get(&variant.name).copied());
            let under_write = Percentiles::of(read.under_write);
            let idle = Percentiles::of(read.idle);
            let calls = Percentiles::of(read.calls_ms);
            let us = |ms: f64| ms * 1e3;
            let kb_per_s = kb / under_write.p50();
            speeds.push(SpeedRow {
                published_kb_per_s: published.map(|seconds| kb / seconds),
                latency_us: Some(Percentiles::known(
                    calls.n(),
                    us(calls.p50()),
                    calls.p99().map(us),
                    us(calls.max()),
                )),
                ..speed(&setting.scenario, variant, test, kb_per_s)
            });
            reads.push(ReadRow {
                test: test.into(),
                variant: variant.name.clone(),
                bytes: spec.file_bytes(),
                idle_seconds: idle,
                seconds: under_write,
                times_idle: under_write.p50() / idle.p50(),
                published_seconds: published,
                call_ms: calls,
                written_kb_per_s: self.written_kb_per_s,
            });
        }
        let named = |queue: QueueSeries| QueueSeries { variant: variant.name.clone(), ..queue };
        JobResult::of([took]).with(speeds).with(reads).with(self.queue.map(named))
    }
}

/// Two partitions of the same size, whole MiB each.
fn halves(disk: &Arc<dyn BlockDevice>) -> Result<[Arc<dyn BlockDevice>; 2]> {
    let info = disk.info();
    let half = (info.size / 2) >> 20 << 20;
    let part = |number: u64| -> Result<Arc<dyn BlockDevice>> {
        let name = format!("{}{}", info.name, number + 1);
        let window = Window::new(name, Arc::clone(disk), number * half, half);
        Ok(Arc::new(window?))
    };
    Ok([part(0)?, part(1)?])
}

/// Mounts a new file system and puts so many files there; mounted again, none of them is in memory.
fn with_files(
    machine: &StackMachine,
    blocks: &Blocks,
    spec: &ReadUnderWriteSpec,
    files: u64,
) -> Result<Arc<Ext4>> {
    let failed = VariantError::call("writing the files to be read");
    let fs = machine.mount(blocks)?;
    if files == 0 {
        return Ok(fs);
    }
    for number in 0..files {
        let node = NewNode { mode: 0o644, ..NewNode::default() };
        let name = name(number);
        let made = fs.create(fs.root(), name.as_bytes(), node, OpenFlags::WRITE);
        let (_, fh) = made.map_err(&failed)?;
        let mut at = 0;
        while at < spec.file_bytes() {
            let data = pattern::interned(
                TAG,
                at % REPEATS,
                (1 << 20).min(spec.file_bytes() - at) as usize,
            );
            at += fs.write(fh, at, data).map_err(&failed)? as u64;
        }
        fs.release(fh).map_err(&failed)?;
    }
    fs.unmount().map_err(VariantError::Unmount)?;
    drop(fs);
    Ok(machine.mount(blocks)?)
}

/// The name of a file that is read.
fn name(number: u64) -> String {
    format!("16-meg-file.{number}")
}

/// `while true; do dd ...; done`, until somebody stops it.
fn write_flat_out(
    fs: &Ext4,
    spec: &ReadUnderWriteSpec,
    stop: &AtomicBool,
    written: &AtomicU64,
) -> Result<()> {
    let storm = &spec.storm;
    let failed = VariantError::call(&storm.line);
    let mut ino = None;
    loop {
        let fh = match ino {
            None => {
                let node = NewNode { mode: 0o644, ..NewNode::default() };
                let flags = OpenFlags::WRITE;
                let (attr, fh) =
                    fs.create(fs.root(), storm.file.as_bytes(), node, flags).map_err(&failed)?;
                ino = Some(attr.ino);
                fh
            }
            Some(ino) => fs.open(ino, OpenFlags::WRITE | OpenFlags::TRUNCATE).map_err(&failed)?,
        };
        for block in 0..storm.count {
            if stop.load(Ordering::Relaxed) {
                return fs.release(fh).map_err(&failed);
            }
            // Reading /dev/zero, and writing.
            cpu(2 * SYSCALL);
            let at = block * storm.block_bytes;
            let data = pattern::interned(TAG, at % REPEATS, storm.block_bytes as usize);
            let done = fs.write(fh, at, data).map_err(&failed)?;
            written.fetch_add(done as u64, Ordering::Relaxed);
        }
        fs.release(fh).map_err(&failed)?;
    }
}

/// How many KiB of writes and of reads the queue has, sampled at an interval.
fn watch(queue: &Scheduler, stop: &AtomicBool) -> Vec<(f64, f64)> {
    let mut points = Vec::with_capacity(QUEUE_POINTS);
    while points.len() < QUEUE_POINTS && !stop.load(Ordering::Relaxed) {
        let now = queue.queue();
        points.push((now.write_bytes as f64 / 1024.0, now.read_bytes as f64 / 1024.0));
        sleep(QUEUE_EVERY);
    }
    points
}
