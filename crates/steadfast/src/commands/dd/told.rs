//! What dd says on the standard error, and when signals ask for it.

use std::io::{IsTerminal, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::Instant;

use anyhow::{Context, Result};
use signal_hook::consts::{SIGINT, SIGUSR1};
use signal_hook::iterator::Signals;
use steadfast_bench::dd::{Status, Tally, Teller, WrongOperand};

use crate::terminal::harmless;

/// Writes lines to the standard error. Where that cannot be written there is nobody to tell.
fn write(text: &str) {
    let mut err = std::io::stderr().lock();
    let _ = err.write_all(text.as_bytes());
    let _ = err.flush();
}

/// Tells what is wrong with a command line.
pub fn wrong(e: &WrongOperand) {
    let mut text: String = e.lines.iter().map(|l| format!("dd: {}\n", harmless(l))).collect();
    if e.point_to_help {
        text += "Try 'steadfast dd --help' for more information.\n";
    }
    write(&text);
}

/// The standard error.
#[derive(Default, Clone)]
pub struct Stderr {
    /// Characters of the line that shows where it is.
    shown: Arc<AtomicUsize>,
}

impl Stderr {
    fn below(&self) -> &'static str {
        if self.shown.swap(0, Relaxed) > 0 { "\n" } else { "" }
    }
}

impl Teller for Stderr {
    fn says(&self, message: &str) {
        // Names may be anybody's.
        let message = match std::io::stderr().is_terminal() {
            true => harmless(message),
            false => message.to_owned(),
        };
        write(&format!("{}dd: {message}\n", self.below()));
    }

    fn line(&self, line: &str) {
        write(&format!("{}{line}\n", self.below()));
    }

    fn progress(&self, line: &str) {
        let before = self.shown.swap(line.len(), Relaxed);
        let blank = before.saturating_sub(line.len());
        write(&format!("\r{line}{:blank$}", ""));
    }
}

/// Nobody is told.
pub struct Nobody;

impl Teller for Nobody {
    fn says(&self, message: &str) {
        Stderr::default().says(message);
    }

    fn line(&self, _line: &str) {}
}

/// From now on SIGUSR1 tells the counts, and so does SIGINT before it ends the program. In a
/// simulation the time is that of the last block.
pub fn on_signals(
    tally: Arc<Tally>,
    status: Status,
    teller: Stderr,
    simulated: bool,
) -> Result<()> {
    let mut signals = Signals::new([SIGUSR1, SIGINT]).context("watching for signals")?;
    let began = Instant::now();
    let watch = move || {
        for signal in signals.forever() {
            let mut counts = tally.counts();
            if !simulated {
                counts.elapsed = began.elapsed();
            }
            counts.lines(status).iter().for_each(|line| teller.line(line));
            if signal == SIGINT {
                let _ = signal_hook::low_level::emulate_default_handler(SIGINT);
            }
        }
    };
    std::thread::Builder::new().name("signals".into()).spawn(watch).context("a thread")?;
    Ok(())
}
