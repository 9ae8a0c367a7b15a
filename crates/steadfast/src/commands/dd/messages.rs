//! What dd says on the standard error, and when signals ask for it.

use std::io::{IsTerminal, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, AtomicUsize, Ordering::Relaxed};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGUSR1};
use signal_hook::iterator::Signals;
use steadfast_bench::dd::{Charset, Reporter, StatusLevel, Tally, WrongOperand};

use crate::stop_signals;
use crate::terminal::harmless;

/// Writes lines to the standard error. Where that cannot be written, there is nowhere to report it.
fn write(text: &str) {
    let mut err = std::io::stderr().lock();
    let _ = err.write_all(text.as_bytes());
    let _ = err.flush();
}

/// The character set of the environment's locale.
pub fn charset() -> Charset {
    let given = ["LC_ALL", "LC_CTYPE", "LANG"].iter().filter_map(std::env::var_os);
    let locale = given.into_iter().find(|locale| !locale.is_empty()).unwrap_or_default();
    let locale = locale.to_string_lossy().to_ascii_lowercase().replace("utf8", "utf-8");
    if locale.ends_with(".utf-8") { Charset::Utf8 } else { Charset::Ascii }
}

/// Reports what is wrong with a command line.
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

impl Reporter for Stderr {
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

/// Prints messages, but no counts.
pub struct SilentReporter;

impl Reporter for SilentReporter {
    fn says(&self, message: &str) {
        Stderr::default().says(message);
    }

    fn line(&self, _line: &str) {}
}

/// How long a copy has to end by itself.
const PATIENCE: Duration = Duration::from_millis(500);

/// From now on SIGUSR1 prints the counts, and so does SIGINT before it ends the program. In a
/// simulation the time is that of the last block.
///
/// `rescue` writes out what this process holds of an image: then SIGINT, SIGTERM and SIGHUP end
/// the copy in order, and where it waits for its input it is done from here. What the counts
/// say is written. Who ignores a signal goes on doing so.
pub fn on_signals(
    tally: Arc<Tally>,
    status: StatusLevel,
    reporter: Stderr,
    simulated: bool,
    rescue: Option<Box<dyn Fn() -> Result<()> + Send>>,
) -> Result<()> {
    let asked = match rescue {
        Some(_) => &[SIGUSR1, SIGINT, SIGTERM, SIGHUP][..],
        None => &[SIGUSR1, SIGINT],
    };
    let asked = asked.iter().filter(|signal| !stop_signals::is_ignored(**signal));
    let mut signals = Signals::new(asked).context("watching for signals")?;
    let began = Instant::now();
    let watch = move || {
        for signal in signals.forever() {
            let ends = signal != SIGUSR1;
            if let (true, Some(_)) = (ends, &rescue) {
                ENDED_BY.store(signal, Relaxed);
                tally.stop();
                std::thread::sleep(PATIENCE);
            }
            // Before the rest is written out: what is counted then is there afterwards.
            let mut counts = tally.counts();
            if !simulated {
                counts.elapsed = began.elapsed();
            }
            if let (true, Some(rescue)) = (ends, &rescue) {
                // Still here: the input does not come, or much is being written; this waits for it.
                if let Err(e) = rescue() {
                    reporter.says(&format!("what was copied could not be written: {e:#}"));
                }
            }
            if !ends || tally.takes_last_word() {
                counts.lines(status).iter().for_each(|line| reporter.line(line));
            }
            if ends {
                let _ = signal_hook::low_level::emulate_default_handler(signal);
            }
        }
    };
    std::thread::Builder::new().name("signals".into()).spawn(watch).context("a thread")?;
    Ok(())
}

/// The signal that has ended the copy; 0: none.
static ENDED_BY: AtomicI32 = AtomicI32::new(0);

/// Ends the program as the signal does that has ended the copy, if one has.
pub fn end_as_signalled() {
    let signal = ENDED_BY.load(Relaxed);
    if signal != 0 {
        let _ = signal_hook::low_level::emulate_default_handler(signal);
    }
}
