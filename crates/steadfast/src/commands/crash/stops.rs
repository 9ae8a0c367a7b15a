//! Signals that ask to stop: what is under way comes to its end, and every mount is taken away in
//! its order. A process that simply ended would leave the kernel waiting for a device that it has
//! served itself.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use anyhow::{Context, Result};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use steadfast_crash::CrashError;
use steadfast_crash::corpus::{Ran, Subject, Workload};
use steadfast_crash::explore::{Boot, Recovered, System};

use crate::terminal;

/// Counts the signals that ask to stop; the first is answered with `note`.
pub fn on_signals(note: &'static str) -> Result<Arc<AtomicUsize>> {
    let stops = Arc::new(AtomicUsize::new(0));
    // Under nohup(1) the end of the terminal is no reason to stop.
    let hang_up = (!is_ignored(SIGHUP)).then_some(SIGHUP);
    let asked = [SIGINT, SIGTERM].into_iter().chain(hang_up);
    let mut signals = Signals::new(asked).context("signals")?;
    let counter = Arc::clone(&stops);
    let thread = std::thread::Builder::new().name("signals".into());
    thread.spawn(move || {
        for _ in signals.forever() {
            if counter.fetch_add(1, Ordering::Relaxed) == 0 {
                terminal::note(note);
            }
        }
    })?;
    Ok(stops)
}

/// Whether whoever has started this process wants a signal ignored.
fn is_ignored(signal: i32) -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0);
    mask & (1 << (signal - 1)) != 0
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
