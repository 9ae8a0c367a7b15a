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
//! use steadfast::crash::{PowerCut, Recovered};
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
//! fn judge(left: &Recovered) -> std::result::Result<(), String> {
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
//! A failure tells the story: which call came last, which writes were in doubt, what the next boot
//! finds, and the fewest writes whose loss is enough. As [`Debug`](std::fmt::Debug) it is that
//! story too, so `unwrap` shows it.

mod failure;
mod recorded;
mod running;

use std::fmt::Display;
use std::time::Duration;

use steadfast_crash::cuts::{Bound, Choice, Places};
use steadfast_crash::program::inside::{Inside, Program};
use steadfast_devices::model::{ModelParams, NvramParams, SsdParams};
use steadfast_ext4::{DataMode, MountOptions};

pub use failure::Failure;
pub use recorded::{Recorded, Report};
pub use running::{Recovered, Running};

use crate::fs::{FileSystem, Mounted};

/// Bytes of the disk, unless somebody says otherwise.
const SIZE: u64 = 32 << 20;
/// Size of a journal card in MiB.
const CARD_MIB: u32 = 16;
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
    inside: Inside,
    cuts: u64,
    states: u64,
    seed: u64,
    prepare: Option<Program>,
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
        let inside = Inside {
            options: MountOptions { use_reserved: true, ..MountOptions::default() },
            disk: ModelParams::Ssd(SsdParams::default()).test_disk(SIZE),
            journal: None,
            lying: false,
            seed: 1,
            linger: LINGER,
        };
        PowerCut { inside, cuts: 100, states: 16, seed: 1, prepare: None }
    }

    /// What the journal promises about the data of files.
    ///
    /// ```
    /// use steadfast::{DataMode, crash::PowerCut};
    ///
    /// let test = PowerCut::new().data(DataMode::Journal);
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
        let card = || NvramParams { size_mib: CARD_MIB, initialised: true, ..Default::default() };
        self.inside.journal = external.then(|| ModelParams::Nvram(card()));
        self
    }

    /// The disk; it gets a volatile cache, and this size in bytes.
    ///
    /// ```
    /// use steadfast::crash::PowerCut;
    /// use steadfast::devices::model::{HddParams, ModelParams};
    ///
    /// let disk = ModelParams::Hdd(HddParams::default());
    /// let test = PowerCut::new().disk(disk, 1 << 30);
    /// ```
    pub fn disk(mut self, model: ModelParams, size: u64) -> PowerCut {
        self.inside.disk = model.test_disk(size);
        self
    }

    /// How often the power is cut: half of the instants evenly over the time, half over what
    /// happened.
    ///
    /// ```
    /// let test = steadfast::crash::PowerCut::new().cuts(1000);
    /// ```
    pub fn cuts(mut self, count: u64) -> PowerCut {
        self.cuts = count;
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
        (self.seed, self.inside.seed) = (seed, seed);
        self
    }

    /// The control: a disk that ignores flushes, on which no program can keep a promise. A test
    /// that finds nothing there either would find nothing at all.
    ///
    /// ```
    /// use steadfast::crash::PowerCut;
    ///
    /// let test = |lying| {
    ///     let program = |fs: &steadfast::crash::Running| {
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

    /// Changes any other mount option: without `auto_da_alloc`, for example, a rename over a file
    /// writes nothing out by itself.
    ///
    /// ```
    /// use steadfast::crash::PowerCut;
    ///
    /// let test = PowerCut::new().mount_options(|o| o.auto_da_alloc = false);
    /// ```
    pub fn mount_options(mut self, change: impl FnOnce(&mut MountOptions)) -> PowerCut {
        change(&mut self.inside.options);
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
            let fs = FileSystem::of(Mounted::new(fs, None, "disk".into(), (0, 0)));
            work(&fs).map_err(|e| e.to_string())
        }));
        self
    }

    /// Runs the program and records it. It runs in a simulation: time is virtual, and
    /// [`runtime::spawn`](crate::runtime::spawn) gives it threads. That it fails is told by what
    /// judges it.
    ///
    /// ```
    /// use steadfast::crash::PowerCut;
    ///
    /// let recorded = PowerCut::new().run(|fs| fs.create_dir("/folder"));
    /// ```
    pub fn run<E: Display>(
        self,
        program: impl FnOnce(&Running) -> Result<(), E> + 'static,
    ) -> Recorded {
        let PowerCut { inside, cuts, states, seed, prepare } = self;
        let prepare = prepare.unwrap_or_else(|| Box::new(|_, _| Ok(())));
        let program: Program = Box::new(move |fs, said| {
            let running = Running::new(fs, said.clone());
            program(&running).map_err(|e| format!("the program failed: {e}"))
        });
        let run = inside.record(prepare, program);
        let bound = Bound { states, ..Bound::default() };
        let choice = Choice { places: Places::Sampled(cuts), bound, seed };
        Recorded::new(run, inside.options, choice)
    }
}
