//! The error lines of a mount's log: never the same for ever, never without the first.
//!
//! A disk that fails can fail a thousand times a second. Lines are therefore limited by *kind*:
//! what was done, and the message without its numbers. Of each kind the first ten of a minute are
//! logged, the rest is counted, and the count is logged with the next line of the kind that is
//! logged, or at the end. So a kind that is rare is not drowned by one that is not.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Lines of one kind in one [`WINDOW`].
const LINES_MAX: u32 = 10;
/// How long until a kind may be logged again.
const WINDOW: Duration = Duration::from_secs(60);
/// Kinds that are distinguished by their message; beyond these, by what was done.
const KINDS_MAX: usize = 200;

/// Logs errors, limited by kind and time.
#[derive(Debug)]
pub struct ErrorLog {
    source: String,
    kinds: Mutex<BTreeMap<String, LogQuota>>,
}

#[derive(Debug)]
struct LogQuota {
    since: Instant,
    logged: u32,
    left_out: u64,
}

/// What is to be done with a line.
#[derive(Debug, PartialEq, Eq)]
enum Verdict {
    /// It is logged; so many before it were not.
    Log {
        left_out: u64,
    },
    LeaveOut,
}

impl ErrorLog {
    /// For the mount of `source`.
    pub fn new(source: impl Into<String>) -> Self {
        ErrorLog { source: source.into(), kinds: Mutex::default() }
    }

    /// Logs that `what` has failed with `message`; `line` makes the text, if it is logged.
    pub fn error(&self, what: &str, message: &str, line: impl FnOnce() -> String) {
        match self.judge(what, message, Instant::now()) {
            Verdict::LeaveOut => {}
            Verdict::Log { left_out: 0 } => tracing::error!("{}: {}", self.source, line()),
            Verdict::Log { left_out } => tracing::error!(
                "{}: {} ({left_out} more of the kind were not logged)",
                self.source,
                line()
            ),
        }
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, LogQuota>> {
        self.kinds.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn judge(&self, what: &str, message: &str, now: Instant) -> Verdict {
        let mut kinds = self.lock();
        let mut name = format!("{what}: {}", without_numbers(message));
        if kinds.len() >= KINDS_MAX && !kinds.contains_key(&name) {
            name = what.to_owned();
        }
        let kind = kinds.entry(name).or_insert(LogQuota { since: now, logged: 0, left_out: 0 });
        if now.saturating_duration_since(kind.since) >= WINDOW {
            (kind.since, kind.logged) = (now, 0);
        }
        if kind.logged == LINES_MAX {
            kind.left_out += 1;
            return Verdict::LeaveOut;
        }
        kind.logged += 1;
        Verdict::Log { left_out: std::mem::take(&mut kind.left_out) }
    }

    /// Logs how many lines were left out since the last such line.
    pub fn finish(&self) {
        for (name, kind) in &mut *self.lock() {
            let left_out = std::mem::take(&mut kind.left_out);
            if left_out > 0 {
                tracing::error!("{}: {name} ({left_out} of the kind were not logged)", self.source);
            }
        }
    }
}

impl Drop for ErrorLog {
    fn drop(&mut self) {
        self.finish();
    }
}

/// The message with one sign for each number in it.
fn without_numbers(message: &str) -> String {
    let mut masked = String::with_capacity(message.len());
    for c in message.chars() {
        match c {
            '0'..='9' if masked.ends_with('#') => {}
            '0'..='9' => masked.push('#'),
            _ => masked.push(c),
        }
    }
    masked
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_of_one_kind_do_not_hide_the_first_of_another() {
        let (log, start) = (ErrorLog::new("disk"), Instant::now());
        let read = |i: u64| log.judge("read", &format!("I/O error at {i}"), start);
        for i in 0..1000 {
            let verdict = if i < 10 { Verdict::Log { left_out: 0 } } else { Verdict::LeaveOut };
            assert_eq!(read(i), verdict, "{i}");
        }
        for other in [("fsync", "I/O error at 7"), ("read", "corrupt extent 7")] {
            assert_eq!(log.judge(other.0, other.1, start), Verdict::Log { left_out: 0 });
        }
        // A minute later the kind is logged again, with what was left out.
        let later = start + WINDOW;
        let again = log.judge("read", "I/O error at 8", later);
        assert_eq!(again, Verdict::Log { left_out: 990 });
        assert_eq!(log.judge("read", "I/O error at 9", later), Verdict::Log { left_out: 0 });
    }

    #[test]
    fn kinds_without_end_are_bounded_and_still_distinguished_by_what_was_done() {
        let (log, now) = (ErrorLog::new("disk"), Instant::now());
        let word = |i: usize| "x".repeat(i);
        for i in 0..1000 {
            log.judge("read", &word(i), now);
        }
        assert!(log.lock().len() <= KINDS_MAX + 1);
        assert_eq!(log.judge("read", "anything", now), Verdict::LeaveOut);
        assert_eq!(log.judge("fsync", "anything", now), Verdict::Log { left_out: 0 });
    }
}
