//! A recorded run: cut, recovered, judged.

use std::fmt::Display;
use std::num::NonZero;
use std::path::Path;
use std::sync::Arc;

use steadfast_crash::CrashError;
use steadfast_crash::explore::{OnRam, Plan};
use steadfast_crash::program::explore::Exploration;
use steadfast_crash::program::inside::InProcess;
use steadfast_crash::program::{Judges, ProgramRun};
use steadfast_crash::states::Choice;
use steadfast_ext4::MountOptions;

use super::failure::{Failure, describe_finding};
use super::running::NextBoot;

/// Why a run is not cut in which nothing can be lost.
const CHANGES_NOTHING: &str = "the program changed nothing in the file system that it was given: \
     there is nothing that a power cut could take, so this test cannot fail";

/// A recorded run, which [`judge`](ProgramRecording::judge) or [`check`](ProgramRecording::check)
/// cuts.
///
/// ```
/// use steadfast::crash::PowerCut;
///
/// let recorded = PowerCut::new().cuts(20).run(|fs| fs.write("/file", "text"));
/// recorded.check().unwrap();
/// ```
#[must_use = "nothing is cut before `judge` or `check`"]
pub struct ProgramRecording {
    run: Result<ProgramRun, CrashError>,
    options: MountOptions,
    choice: Choice,
}

/// What was tried, where nothing was found.
///
/// ```
/// let test = steadfast::crash::PowerCut::new().cuts(20);
/// let report = test.run(|fs| fs.write("/file", "text")).check().unwrap();
/// assert!(report.cuts <= 20 && report.trees <= report.states);
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Report {
    /// Instants at which the power was cut.
    pub cuts: u64,
    /// States that were recovered.
    pub states: u64,
    /// Different trees of files that they gave.
    pub trees: u64,
    /// What the program had been promised and could not be judged, with the reason; only of
    /// [`ProgramRecording::check`].
    pub unmeasured: Vec<String>,
}

impl ProgramRecording {
    pub(super) fn new(
        run: Result<ProgramRun, CrashError>,
        options: MountOptions,
        choice: Choice,
    ) -> ProgramRecording {
        ProgramRecording { run, options, choice }
    }

    /// Cuts, recovers, and asks the judge what each cut has left: `Err`, or a panic (of an
    /// `assert!`), says what is wrong. Several threads ask at once; of equal trees after equal
    /// acknowledgements only the first is judged. Whether the file system's structure is sound is
    /// checked as well.
    ///
    /// ```
    /// use steadfast::crash::PowerCut;
    ///
    /// let test = PowerCut::new().cuts(20).run(|fs| fs.write("/file", "text"));
    /// let failure = test.judge(|left| left.read("/file").map(drop)).unwrap_err();
    /// assert!(failure.to_string().contains("no such file"), "{failure}");
    /// ```
    ///
    /// # Errors
    /// The first state that is wrong, described; that the program could not be run.
    pub fn judge<E: Display>(
        self,
        judge: impl Fn(&NextBoot) -> Result<(), E> + Send + Sync + 'static,
    ) -> Result<Report, Failure> {
        let options = self.options.clone();
        let judge = Arc::new(move |fs, lines| {
            judge(&NextBoot::new(fs, lines)).err().map(|e| e.to_string())
        });
        self.explore(Some(&InProcess { options, judge }))
    }

    /// As [`judge`](Self::judge), for a judge that knows only folders of this machine, or starts a
    /// program: it gets a copy of the recovered tree in a folder of its own.
    ///
    /// ```
    /// use steadfast::crash::PowerCut;
    ///
    /// let test = PowerCut::new().cuts(20).run(|fs| fs.write("/file", "text"));
    /// let judge = |folder: &std::path::Path, _: &steadfast::crash::NextBoot| {
    ///     match std::fs::read(folder.join("file")) {
    ///         Ok(text) if text.is_empty() || text == b"text" => Ok(()),
    ///         Err(e) if e.kind() == std::io::ErrorKind::NotFound => Ok(()),
    ///         other => Err(format!("{other:?}")),
    ///     }
    /// };
    /// test.judge_copy(judge).unwrap();
    /// ```
    ///
    /// # Errors
    /// As for [`judge`](Self::judge).
    pub fn judge_copy<E: Display>(
        self,
        judge: impl Fn(&Path, &NextBoot) -> Result<(), E> + Send + Sync + 'static,
    ) -> Result<Report, Failure> {
        self.judge(move |left| {
            let cannot = |e: &dyn Display| format!("copying what was recovered: {e}");
            let folder = tempfile::Builder::new().prefix("steadfast-recovered-").tempdir();
            let folder = folder.map_err(|e| cannot(&e))?;
            left.copy_out("/", folder.path()).map_err(|e| cannot(&e))?;
            judge(folder.path(), left).map_err(|e| e.to_string())
        })
    }

    /// Cuts, recovers, and judges by what every program may expect: that what was synced is there,
    /// that other names stay, that a file which replaced another by a rename is whole.
    ///
    /// ```
    /// use steadfast::crash::PowerCut;
    ///
    /// // Renamed over another file without having been synced.
    /// let test = PowerCut::new()
    ///     .mount_options(|o| o.auto_da_alloc = false)
    ///     .prepare(|fs| fs.write("/config", "old"))
    ///     .run(|fs| {
    ///         fs.write("/config.new", "new")?;
    ///         fs.rename("/config.new", "/config")
    ///     });
    /// test.check().unwrap_err();
    /// ```
    ///
    /// # Errors
    /// As for [`judge`](Self::judge).
    pub fn check(self) -> Result<Report, Failure> {
        self.explore(None)
    }

    pub(super) fn explore(self, judge: Option<&dyn Judges>) -> Result<Report, Failure> {
        let ProgramRecording { run, options, choice } = self;
        let run = run.map_err(Failure::not_run)?;
        if !run.calls.iter().any(|call| !call.failed && !call.kind.is_sync()) {
            return Err(Failure::not_run(CHANGES_NOTHING));
        }
        let machine = OnRam::new(options.clone()).shared();
        let exploration = Exploration {
            run: &run,
            system: &machine,
            judge,
            plan: Plan::from(choice),
            by_lines: judge.is_some(),
            workers: std::thread::available_parallelism().map_or(1, NonZero::get),
        };
        let outcome = exploration.explore(&|_, _, _| true);
        let outcome = outcome.map_err(Failure::not_run)?;
        if let Some(finding) = outcome.findings.first() {
            return Err(describe_finding(&exploration, &options, &outcome, finding));
        }
        if let Some(trouble) = outcome.troubles.first() {
            return Err(Failure::not_run(trouble));
        }
        let unmeasured = outcome.unmeasured.into_iter().collect();
        let (cuts, states, trees) = (outcome.cuts, outcome.states, outcome.trees);
        Ok(Report { cuts, states, trees, unmeasured })
    }
}
