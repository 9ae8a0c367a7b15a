//! Programs in this process: a closure over a file system on modelled devices, in virtual time.
//!
//! What it is judged by is a closure too ([`InProcess`]): it sees the recovered file system mounted
//! once more, and may change it, as the program's own recovery does.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use steadfast_block::BlockDevice;
use steadfast_devices::filter::record::{Durability, RecordLog};
use steadfast_devices::model::ModelParams;
use steadfast_devices::source::Ram;
use steadfast_devices::store::Store;
use steadfast_ext4::{DataMode, Ext4, MountOptions};
use steadfast_ext4_mkfs::{Contents, JournalDeviceOptions, Options};
use steadfast_runtime::{Sim, sleep};
use steadfast_vfs::FileSystem;

use super::judge::{Judgement, Judges, RecoveredTree};
use super::{LINE, Line, ProgramRun, WatchedFs};
use crate::error::Result;
use crate::explore::ext4::{blocks, fill, make, mount, recorded, words};
use crate::explore::{BootedMachine, OnRam, RebootTarget};

/// What a drive that ignores flushes keeps in its cache, and how long: more than a test writes in
/// the moments that matter.
const LYING: Durability =
    Durability::Lying { cache_bytes: 1 << 20, drains_within: Duration::from_secs(10) };

/// Steps of the date where runs are compared: longer than what is compared takes.
const DATE_STEP: Duration = Duration::from_secs(60);

/// The devices of a run, and the file system on them.
#[derive(Debug, Clone)]
pub struct InProcessRun {
    /// How to mount; the journal's device is put in.
    pub options: MountOptions,
    /// The disk.
    pub disk: ModelParams,
    /// The journal's own device, if it has one.
    pub journal: Option<ModelParams>,
    /// The disk ignores flushes.
    pub lying: bool,
    /// Of the simulation.
    pub seed: u64,
    /// How long time goes on after the program's end.
    pub linger: Duration,
}

/// What a program has acknowledged.
#[derive(Clone)]
pub struct AckLog {
    log: RecordLog,
    lines: Arc<Mutex<Vec<Line>>>,
}

impl AckLog {
    /// Acknowledges something: what it says must hold from now on.
    pub fn say(&self, text: &[u8]) {
        let mut lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        let printed = self.log.note(LINE, [lines.len() as u64, 0, 0]);
        lines.push(Line { printed, text: text.to_vec(), marked: false });
    }
}

/// A program: its failure ends the test.
pub type Program = Box<dyn FnOnce(Arc<dyn FileSystem>, &AckLog) -> Result<()> + 'static>;

/// A judge: gets the recovered file system, and the lines that were acknowledged before the cut;
/// says what is wrong.
pub type Judge =
    Arc<dyn Fn(Arc<dyn FileSystem>, Vec<Vec<u8>>) -> Option<String> + Send + Sync + 'static>;

impl InProcessRun {
    /// Runs `prepare` on a new file system, then records `program`.
    ///
    /// # Errors
    /// What cannot be made or mounted; what `prepare` or `program` says.
    pub fn record(&self, prepare: Program, program: Program) -> Result<ProgramRun> {
        self.simulated(Duration::ZERO, move |inside| {
            let bases = inside.prepared(prepare)?;
            inside.recorded(bases, program)
        })
    }

    /// As [`record`](Self::record), in real time: for a program that processes of this machine are
    /// part of.
    ///
    /// # Errors
    /// As of [`record`](Self::record).
    pub fn record_in_real_time(&self, prepare: Program, program: Program) -> Result<ProgramRun> {
        let bases = self.prepared(prepare)?;
        self.clone().recorded(bases, program)
    }

    /// Runs `prepare` on a new file system; what the devices hold then.
    ///
    /// # Errors
    /// As of [`record`](Self::record).
    pub fn prepare(&self, prepare: Program) -> Result<Vec<Store>> {
        self.simulated(Duration::ZERO, move |inside| inside.prepared(prepare))
    }

    /// Records `program` on devices that hold this already. Dates move in steps, so that runs which
    /// differ only in how long something took leave the same.
    ///
    /// # Errors
    /// As of [`record`](Self::record).
    pub fn record_on(&self, bases: Vec<Store>, program: Program) -> Result<ProgramRun> {
        self.simulated(DATE_STEP, move |inside| inside.recorded(bases, program))
    }

    fn simulated<T: 'static>(
        &self,
        date_step: Duration,
        work: impl FnOnce(InProcessRun) -> Result<T> + 'static,
    ) -> Result<T> {
        let inside = self.clone();
        Sim::new(self.seed)
            .date_step(date_step)
            .run(move || work(inside))
            .unwrap_or_else(|stuck| Err(format!("the run stopped: {stuck}").into()))
    }

    fn recorded(self, bases: Vec<Store>, program: Program) -> Result<ProgramRun> {
        let log = RecordLog::new();
        let mut models = vec![self.disk.build("disk").map_err(words)?];
        if let Some(journal) = &self.journal {
            models.push(journal.build("journal").map_err(words)?);
        }
        fill(&models, bases.clone())?;
        let mut lying = self.lying.then_some(LYING);
        let devices = models.iter().map(|model| Arc::clone(model) as Arc<dyn BlockDevice>);
        // The disk is the first one.
        let devices: Vec<_> = devices.map(|device| recorded(device, &log, lying.take())).collect();
        let fs = self.mount(&devices)?;
        let watched = Arc::new(WatchedFs::new(Arc::clone(&fs) as Arc<dyn FileSystem>, &log));
        let said = AckLog { log: log.clone(), lines: Arc::default() };
        let done = program(Arc::clone(&watched) as Arc<dyn FileSystem>, &said);
        sleep(self.linger);
        let (recording, calls) = (log.take(), watched.calls());
        let lines = said.lines.lock().unwrap_or_else(PoisonError::into_inner).clone();
        // What reaches the devices now is no longer of interest.
        let _ = fs.unmount();
        done?;
        Ok(ProgramRun::new(BTreeMap::new(), bases, recording, lines, calls))
    }

    fn mount(&self, devices: &[Arc<dyn BlockDevice>]) -> Result<Arc<Ext4>, String> {
        mount(devices, self.options.clone()).map_err(|why| format!("the mount was refused: {why}"))
    }

    /// What the devices hold before the run.
    fn prepared(&self, prepare: Program) -> Result<Vec<Store>> {
        let mut rams = vec![Ram::new("disk", self.disk.bytes()).persistent()];
        rams.extend(self.journal.as_ref().map(|j| Ram::new("journal", j.bytes()).persistent()));
        let devices = blocks(&rams);
        let mut options = Options::random(self.options.simulated_epoch);
        options.contents = Contents::Zeros;
        // As on a larger disk: small ones would get smaller blocks.
        options.block_size = Some(4096);
        make(&devices, options, JournalDeviceOptions::random)
            .map_err(|e| format!("making the file system: {e}"))?;
        let fs = self.mount(&devices)?;
        let said = AckLog { log: RecordLog::new(), lines: Arc::default() };
        let done = prepare(Arc::clone(&fs) as Arc<dyn FileSystem>, &said);
        if self.options.data == DataMode::Transact {
            // Whatever makes points: the run begins with what was prepared.
            fs.transact().map_err(|e| format!("a transaction point after preparing: {e}"))?;
        }
        fs.unmount().map_err(|e| format!("unmounting after preparing: {e}"))?;
        done?;
        Ok(rams.iter().map(Ram::store).collect())
    }
}

/// A judge in this process.
pub struct InProcess {
    /// How to mount what was recovered.
    pub options: MountOptions,
    /// The judge. One that panics has judged too.
    pub judge: Judge,
}

impl Judges for InProcess {
    fn judge(&self, left: &RecoveredTree<'_>, printed: &[u8]) -> std::io::Result<Judgement> {
        let Some(contents) = left.contents.map(<[Store]>::to_vec) else {
            return Err(std::io::Error::other("the recovered contents are not known"));
        };
        let lines = printed.split_inclusive(|b| *b == b'\n');
        let lines = lines.map(|l| l.strip_suffix(b"\n").unwrap_or(l).to_vec()).collect();
        let (options, judge) = (self.options.clone(), Arc::clone(&self.judge));
        let judged = catch_unwind(AssertUnwindSafe(|| {
            Sim::new(1).run(move || judged(options, contents, |fs| judge(fs, lines)))
        }));
        let said = match judged {
            Ok(Ok(said)) => said,
            Ok(Err(stuck)) => Some(format!("stopped: {stuck}")),
            Err(panic) => Some(panicked(&*panic)),
        };
        let bad = said.is_some().then(|| "says".into());
        Ok(Judgement { bad, output: said.unwrap_or_default() })
    }
}

fn judged(
    options: MountOptions,
    contents: Vec<Store>,
    judge: impl FnOnce(Arc<dyn FileSystem>) -> Option<String>,
) -> Option<String> {
    let BootedMachine { fs, shut_down, .. } = match OnRam::new(options).power_on(contents, None) {
        Ok(booted) => booted,
        Err(why) => return Some(format!("what was recovered cannot be mounted again: {why}")),
    };
    let said = judge(fs);
    // Its contents are of no further use.
    let _ = shut_down();
    said
}

/// The message of a panic.
fn panicked(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    let text = text.or_else(|| panic.downcast_ref::<String>().cloned());
    text.unwrap_or_else(|| "a panic without a message".into())
}
