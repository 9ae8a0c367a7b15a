//! Power cuts for tests of your own programs, inside `cargo test`.
//!
//! [`PowerCut`] runs a program on a file system over a modelled disk with a volatile cache, in this
//! process and in virtual time, and records every request. Then it cuts the power at many instants.
//! At each, what the disk had promised is there, and of all other writes any sector may be there or
//! not; each such state is recovered as the next boot does, and judged.
//!
//! To replace a file so that either the old or the new contents are there, and the new ones once
//! that was acknowledged, takes two syncs:
//!
//! ```
//! use std::io::Write;
//! use steadfast::crash::{NextBoot, PowerCut};
//! use steadfast::{FileSystem, Result};
//!
//! fn replace(fs: &FileSystem, sync: bool) -> std::io::Result<()> {
//!     let mut file = fs.create("/config.new")?;
//!     file.write_all(b"new")?;
//!     if sync {
//!         file.sync_all()?;
//!     }
//!     fs.rename("/config.new", "/config")?;
//!     if sync {
//!         fs.open("/")?.sync_all()?;
//!     }
//!     Ok(())
//! }
//!
//! fn judge(left: &NextBoot) -> std::result::Result<(), String> {
//!     let config = left.read_to_string("/config").map_err(|e| e.to_string())?;
//!     match (config.as_str(), left.acknowledged("saved")) {
//!         ("new", _) | ("old", false) => Ok(()),
//!         (other, _) => Err(format!("config is {other:?}")),
//!     }
//! }
//!
//! let test = |sync| {
//!     PowerCut::new()
//!         .prepare(|fs| fs.write("/config", "old"))
//!         .run(move |fs| {
//!             replace(fs, sync)?;
//!             fs.acknowledge("saved");
//!             std::io::Result::Ok(())
//!         })
//!         .judge(judge)
//! };
//! test(true).unwrap();
//! let failure = test(false).unwrap_err();
//! assert!(failure.to_string().contains("config is \"old\""), "{failure}");
//! ```
//!
//! What goes wrong only if another task runs between two steps of one is found by
//! [`run_tasks`](PowerCut::run_tasks): it explores the schedules of several tasks as well.
//!
//! Programs of this machine are run at a folder by `run_at_folder` (feature `fuse`), and
//! [`judge_copy`](ProgramRecording::judge_copy) gives a judge that knows only folders what was
//! recovered.
//!
//! A failure describes what happened: which call came last, which writes were in doubt, what the
//! next boot finds, and the fewest writes whose loss is enough. [`Debug`](std::fmt::Debug) prints
//! the same, so `unwrap` shows it.

#[cfg(feature = "fuse")]
mod at_folder;
mod failure;
mod recorded;
mod running;
mod tasks;

use std::fmt::Display;
use std::time::Duration;

use steadfast_crash::CrashError;
use steadfast_crash::program::inside::{InProcessRun, Program};
use steadfast_crash::states::{Choice, CrashPoints, StateBound};
use steadfast_devices::model::{ModelParams, NvramParams, SsdParams};
use steadfast_ext4::{DataMode, MountOptions};

#[cfg(feature = "fuse")]
pub use at_folder::AtFolder;
pub use failure::Failure;
pub use recorded::{ProgramRecording, Report};
pub use running::{NextBoot, ProgramFs};
pub use tasks::{ScheduledReport, TaskExploration, Tasks};

use self::tasks::ScheduleOptions;
use crate::fs::FileSystem;

/// Bytes of the disk, unless somebody says otherwise.
const SIZE: u64 = 32 << 20;
/// Size of a journal card in MiB.
const CARD_MIB: u32 = 16;
/// Schedules that are run, unless somebody says otherwise.
const SCHEDULES: u64 = 1000;
/// How long time goes on after the program's end: longer than data waits for being written.
const LINGER: Duration = Duration::from_secs(7);

/// A test of a program under power cuts; see the [module](self).
///
/// ```
/// use steadfast::crash::PowerCut;
///
/// let report = PowerCut::new()
///     .cuts(20)
///     .run(|fs| fs.write("/file", "text"))
///     .check()
///     .unwrap();
/// assert!(report.states >= 20);
/// ```
#[must_use = "nothing happens before `run`"]
pub struct PowerCut {
    inside: InProcessRun,
    cuts: u64,
    states: u64,
    seed: u64,
    prepare: Option<Program>,
    schedules: ScheduleOptions,
}

impl Default for PowerCut {
    fn default() -> Self {
        PowerCut::new()
    }
}

impl PowerCut {
    /// A new ext4 file system with data=ordered and an internal journal, on an SSD of 32 MiB with a
    /// volatile write cache; 100 cuts.
    ///
    /// ```
    /// let test = steadfast::crash::PowerCut::new();
    /// ```
    pub fn new() -> PowerCut {
        let inside = InProcessRun {
            options: MountOptions { use_reserved: true, ..MountOptions::default() },
            disk: ModelParams::Ssd(SsdParams::default()).test_disk(SIZE),
            journal: None,
            lying: false,
            seed: 1,
            linger: LINGER,
        };
        let schedules = ScheduleOptions { preemptions: 1, most: SCHEDULES, only: None };
        PowerCut { inside, cuts: 100, states: 16, seed: 1, prepare: None, schedules }
    }

    /// The control: a disk that ignores flushes, on which no program can keep a promise. A test
    /// that finds nothing there either would find nothing at all.
    ///
    /// ```
    /// use steadfast::crash::PowerCut;
    ///
    /// let test = |lying| {
    ///     let program = |fs: &steadfast::crash::ProgramFs| {
    ///         let file = fs.create("/file")?;
    ///         file.write_all_at(b"kept", 0)?;
    ///         file.sync_all()?;
    ///         fs.open("/")?.sync_all()
    ///     };
    ///     PowerCut::new().lying_disk(lying).run(program).check()
    /// };
    /// test(false).unwrap();
    /// test(true).unwrap_err();
    /// ```
    pub fn lying_disk(mut self, lying: bool) -> PowerCut {
        self.inside.lying = lying;
        self
    }

    /// What is done before the recording begins, and is durable then.
    ///
    /// ```
    /// use steadfast::crash::PowerCut;
    ///
    /// let test = PowerCut::new().prepare(|fs| fs.write("/config", "old"));
    /// ```
    pub fn prepare<E: Display>(
        mut self,
        work: impl FnOnce(&FileSystem) -> Result<(), E> + 'static,
    ) -> PowerCut {
        self.prepare = Some(Box::new(move |fs, _| {
            let fs = FileSystem::over(fs, "disk");
            work(&fs).map_err(|e| CrashError::Run(format!("the preparation failed: {e}")))
        }));
        self
    }

    /// Runs the program and records it. It runs in a simulation: time is virtual, and
    /// [`runtime::spawn`](crate::runtime::spawn) gives it threads. A thread of `std::thread` cannot
    /// use the file system: its calls panic, with words that say so. That the program fails, or
    /// changes nothing, is for its judge to report.
    ///
    /// ```
    /// use steadfast::crash::PowerCut;
    ///
    /// let recorded = PowerCut::new().run(|fs| fs.create_dir("/folder"));
    /// ```
    pub fn run<E: Display>(
        self,
        program: impl FnOnce(&ProgramFs) -> Result<(), E> + 'static,
    ) -> ProgramRecording {
        let (choice, prepare) = (self.choice(), self.prepare.unwrap_or_else(nothing));
        let inside = self.inside;
        let program: Program = Box::new(move |fs, said| {
            let running = ProgramFs::new(fs, said.clone());
            program(&running).map_err(|e| CrashError::Run(format!("the program failed: {e}")))
        });
        let run = inside.record(prepare, program);
        ProgramRecording::new(run, inside.options, choice)
    }

    /// Runs programs of this machine and records them: the file system is mounted by FUSE at a
    /// folder of its own, in real time. So the kernel's page cache and mappings take part, and
    /// processes that know nothing of this library. Two runs are not alike to the microsecond: a
    /// seed gives the same cuts of the same recording only.
    ///
    /// After the program time goes on for as long as [`linger`](Self::linger) says, seven seconds
    /// unless somebody says otherwise.
    ///
    /// ```no_run
    /// use std::process::Command;
    /// use std::time::Duration;
    /// use steadfast::crash::PowerCut;
    ///
    /// let script = "echo new > config.new && sync config.new && mv config.new config && sync .";
    /// PowerCut::new()
    ///     .prepare(|fs| fs.write("/config", "old\n"))
    ///     .linger(Duration::ZERO)
    ///     .run_at_folder(move |at| at.command(Command::new("sh").args(["-c", script])))
    ///     .judge(|left| match left.read_to_string("/config")?.as_str() {
    ///         "old\n" | "new\n" => Ok(()),
    ///         other => Err(std::io::Error::other(format!("config is {other:?}"))),
    ///     })
    ///     .unwrap();
    /// ```
    ///
    /// That there is no /dev/fuse, or that the program fails, is a [`Failure`] of what judges.
    #[cfg(feature = "fuse")]
    pub fn run_at_folder<E: Display>(
        self,
        program: impl FnOnce(&AtFolder) -> Result<(), E> + 'static,
    ) -> ProgramRecording {
        let (choice, prepare) = (self.choice(), self.prepare.unwrap_or_else(nothing));
        let mut inside = self.inside;
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        // What the clock of a machine shows that recovers it.
        inside.options.simulated_epoch = now.map_or(0, |now| now.as_secs());
        let linger = std::mem::take(&mut inside.linger);
        let run = inside.record_in_real_time(prepare, at_folder::program(program, linger));
        ProgramRecording::new(run, inside.options, choice)
    }

    fn choice(&self) -> Choice {
        let bound = StateBound { states: self.states, ..StateBound::default() };
        Choice { places: CrashPoints::Sampled(self.cuts), bound, seed: self.seed }
    }

    /// Runs several tasks side by side, in every schedule with up to
    /// [`preemptions`](Self::preemptions): which task begins, and at which points the running one
    /// loses the processor to the others. Points are where a call of the file system begins a
    /// transaction or asks for a commit, and where a task calls
    /// [`runtime::preemption_point`](crate::runtime::preemption_point). Tasks share what they like;
    /// `tasks` is called for each run anew. Locks should be
    /// [`runtime::Mutex`](crate::runtime::Mutex): a task that waits for another kind of lock stops
    /// the simulation.
    ///
    /// Here a task announces a file before it writes it. Another one syncs and acknowledges what
    /// was announced. Only if it runs in between, that is wrong:
    ///
    /// ```
    /// use std::sync::Arc;
    /// use steadfast::crash::{NextBoot, PowerCut, Tasks};
    /// use steadfast::runtime::Mutex;
    ///
    /// let test = |announced_first: bool| {
    ///     let tasks = move || {
    ///         let announced = Arc::new(Mutex::new(Vec::new()));
    ///         let pending = Arc::clone(&announced);
    ///         Tasks::new()
    ///             .task("writer", move |fs| {
    ///                 if announced_first {
    ///                     announced.lock().push("/file");
    ///                 }
    ///                 fs.write("/file", "text")?;
    ///                 if !announced_first {
    ///                     announced.lock().push("/file");
    ///                 }
    ///                 steadfast::Result::Ok(())
    ///             })
    ///             .task("syncer", move |fs| {
    ///                 let done = std::mem::take(&mut *pending.lock());
    ///                 fs.sync()?;
    ///                 done.iter().for_each(|file| fs.acknowledge(file));
    ///                 steadfast::Result::Ok(())
    ///             })
    ///     };
    ///     let judge = |left: &NextBoot| {
    ///         left.acknowledgements().iter().try_for_each(|file| left.read(file).map(drop))
    ///     };
    ///     PowerCut::new().cuts(20).run_tasks(tasks).judge(judge)
    /// };
    /// test(false).unwrap();
    /// let failure = test(true).unwrap_err();
    /// assert!(failure.to_string().contains(".only_schedule(\"begins="), "{failure}");
    /// ```
    pub fn run_tasks(self, tasks: impl Fn() -> Tasks + 'static) -> TaskExploration {
        let choice = self.choice();
        let PowerCut { inside, prepare, schedules, .. } = self;
        let prepare = prepare.unwrap_or_else(nothing);
        TaskExploration { inside, choice, prepare, schedules, tasks: Box::new(tasks) }
    }

    /// What the journal promises about the data of files.
    ///
    /// ```
    /// let test = steadfast::crash::PowerCut::new().data(steadfast::DataMode::Journal);
    /// ```
    pub fn data(mut self, mode: DataMode) -> PowerCut {
        self.inside.options.data = mode;
        self
    }

    /// Whether the journal is on a battery-backed card of its own.
    ///
    /// ```
    /// let test = steadfast::crash::PowerCut::new().external_journal(true);
    /// ```
    pub fn external_journal(mut self, external: bool) -> PowerCut {
        self.inside.journal = external.then(card);
        self
    }

    /// The disk; it gets a volatile cache, and this size in bytes.
    ///
    /// ```
    /// use steadfast::devices::model::{HddParams, ModelParams};
    ///
    /// let disk = ModelParams::Hdd(HddParams::default());
    /// let test = steadfast::crash::PowerCut::new().disk(disk, 1 << 30);
    /// ```
    pub fn disk(mut self, model: ModelParams, size: u64) -> PowerCut {
        self.inside.disk = model.test_disk(size);
        self
    }

    /// How often the power is cut, once at the least: half of the instants evenly over the time,
    /// half over what happened.
    ///
    /// ```
    /// let test = steadfast::crash::PowerCut::new().cuts(1000);
    /// ```
    pub fn cuts(mut self, count: u64) -> PowerCut {
        self.cuts = count.max(1);
        self
    }

    /// The most states that are made of one cut: which of the writes in doubt are there.
    ///
    /// ```
    /// let test = steadfast::crash::PowerCut::new().states(48);
    /// ```
    pub fn states(mut self, count: u64) -> PowerCut {
        self.states = count.max(1);
        self
    }

    /// Decides everything that is random: the same seed gives the same cuts.
    ///
    /// ```
    /// let test = steadfast::crash::PowerCut::new().seed(7);
    /// ```
    pub fn seed(mut self, seed: u64) -> PowerCut {
        self.seed = seed;
        self.inside.seed = seed;
        self
    }

    /// Changes any other mount option: without `auto_da_alloc`, for example, a rename over a file
    /// writes nothing out by itself.
    ///
    /// ```
    /// let test = steadfast::crash::PowerCut::new();
    /// let test = test.mount_options(|o| o.auto_da_alloc = false);
    /// ```
    pub fn mount_options(mut self, change: impl FnOnce(&mut MountOptions)) -> PowerCut {
        change(&mut self.inside.options);
        self
    }

    /// How long time goes on after the program's end, so that what was written and not synced
    /// reaches the disk by itself.
    ///
    /// ```
    /// let time = std::time::Duration::from_secs(30);
    /// let test = steadfast::crash::PowerCut::new().linger(time);
    /// ```
    pub fn linger(mut self, time: Duration) -> PowerCut {
        self.inside.linger = time;
        self
    }

    /// How often a task may be preempted in a run of [`run_tasks`](Self::run_tasks): once, unless
    /// somebody says otherwise.
    ///
    /// ```
    /// let test = steadfast::crash::PowerCut::new().preemptions(2);
    /// ```
    pub fn preemptions(mut self, most: usize) -> PowerCut {
        self.schedules.preemptions = most;
        self
    }

    /// How many schedules are run at the most, those with fewer preemptions first: 1000. The
    /// [report](ScheduledReport) says how many are left.
    ///
    /// ```
    /// let test = steadfast::crash::PowerCut::new().schedules(50);
    /// ```
    pub fn schedules(mut self, most: u64) -> PowerCut {
        self.schedules.most = most.max(1);
        self
    }

    /// Runs only this schedule, in the words of a failure of [`run_tasks`](Self::run_tasks).
    ///
    /// ```
    /// let test = steadfast::crash::PowerCut::new().only_schedule("begins=0 points=2,5");
    /// ```
    pub fn only_schedule(mut self, words: &str) -> PowerCut {
        self.schedules.only = Some(words.parse());
        self
    }
}

/// A battery-backed card for the journal.
fn card() -> ModelParams {
    let params = NvramParams { size_mib: CARD_MIB, initialised: true, ..NvramParams::default() };
    ModelParams::Nvram(params)
}

/// What is prepared if nothing is.
fn nothing() -> Program {
    Box::new(|_, _| Ok(()))
}
