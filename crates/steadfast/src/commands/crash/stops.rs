//! Signals that ask to stop: what is under way comes to its end, and every mount is taken away in
//! its order. A process that simply ended would leave the kernel waiting for a device that it has
//! served itself.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use anyhow::{Context, Result};
use signal_hook::iterator::Signals;
use steadfast_crash::CrashError;
use steadfast_crash::corpus::{Ran, Subject, Workload};
use steadfast_crash::explore::{Boot, Recovered, System};

use crate::{stop_signals, terminal};

/// Whether nothing is mounted any more, nor will be.
static MAY_END: AtomicBool = AtomicBool::new(false);

/// The work is done, and what is left is to print what was found: from now on a signal ends the
/// process, whose reader may not read.
pub fn end_with_signals() {
    MAY_END.store(true, Ordering::Relaxed);
}

/// Counts the signals that ask to stop; the first is answered with `note`.
pub fn on_signals(note: &'static str) -> Result<Arc<AtomicUsize>> {
    let stops = Arc::new(AtomicUsize::new(0));
    let mut signals = Signals::new(stop_signals::numbers()).context("signals")?;
    let counter = Arc::clone(&stops);
    let thread = std::thread::Builder::new().name("signals".into());
    thread.spawn(move || {
        for signal in signals.forever() {
            if MAY_END.load(Ordering::Relaxed) {
                std::process::exit(128 + signal);
            }
            if counter.fetch_add(1, Ordering::Relaxed) == 0 {
                terminal::note(note);
            }
        }
    })?;
    Ok(stops)
}

/// A file system under test that does not begin another workload after one signal, nor recover
/// another state after two. Where it stops nothing is mounted.
pub struct Stoppable<'a> {
    subject: &'a dyn Subject,
    system: StoppableSystem<'a>,
}

struct StoppableSystem<'a> {
    system: &'a dyn System,
    /// How often somebody has asked to stop.
    stops: &'a AtomicUsize,
}

impl<'a> Stoppable<'a> {
    /// Stops by this count of signals.
    pub fn new(subject: &'a dyn Subject, stops: &'a AtomicUsize) -> Self {
        Stoppable { subject, system: StoppableSystem { system: subject.system(), stops } }
    }
}

impl StoppableSystem<'_> {
    fn go_on(&self, signals: usize) -> Result<(), CrashError> {
        match self.stops.load(Ordering::Relaxed) < signals {
            true => Ok(()),
            false => Err(CrashError::Host("stopped".into())),
        }
    }
}

impl Subject for Stoppable<'_> {
    fn name(&self) -> String {
        self.subject.name()
    }

    fn record(&self, workload: &Workload) -> Result<Ran, CrashError> {
        self.system.go_on(1)?;
        self.subject.record(workload)
    }

    fn system(&self) -> &dyn System {
        &self.system
    }
}

impl System for StoppableSystem<'_> {
    fn recover(&self, boot: Boot, seed: u64) -> Result<Recovered, CrashError> {
        self.go_on(2)?;
        self.system.recover(boot, seed)
    }

    fn recover_all(&self, boots: Vec<Boot>, seed: u64) -> Vec<Result<Recovered, CrashError>> {
        match self.go_on(2) {
            Ok(()) => self.system.recover_all(boots, seed),
            Err(stopped) => boots.iter().map(|_| Err(stopped.clone())).collect(),
        }
    }

    fn disk(&self) -> usize {
        self.system.disk()
    }

    fn journal(&self) -> Option<usize> {
        self.system.journal()
    }
}
