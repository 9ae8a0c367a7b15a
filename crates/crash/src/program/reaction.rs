//! What a program does after a call of its own was made to fail: whether it acknowledges what it
//! has lost.
//!
//! No state of a disk shows that. The rule, for runs without a judge: between the failure and the
//! next acknowledgement the program must have done something about it. It is a finding if
//!
//! * something was at stake: the call was a write; or a sync of a file (a directory) with writes
//!   (names) that nothing had promised, see [`UnsyncedWork`];
//! * the program then acknowledges something: by a mark, or by printing a line that is like one
//!   printed before the failure but for its numbers. Another line may be the message of the
//!   failure: it is no finding and not measured;
//! * in between it has written nothing, to whatever file, and has not cut, removed or replaced the
//!   file: what it does after that is another attempt, or another request. Syncs alone do not
//!   count: a sync that succeeds after one that has failed promises nothing of what was lost.
//!
//! The rule takes acknowledgements for those of one request after the other. Of a program that
//! works at several at once, a judge must say which one relied on what.

use std::collections::BTreeSet;

use super::calls::{Call, CallKind, Origin};
use super::explore::without_numbers;
use super::rules::parent;
use super::{Line, ProgramRun, UnsyncedWork};
use crate::tree::shown;

/// Failures, and what the program said next.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Reactions {
    /// What it should not have acknowledged.
    pub wrong: Vec<FalseAcknowledgement>,
    /// What may be an acknowledgement or not, in words.
    pub unmeasured: BTreeSet<String>,
}

/// An acknowledgement after a failure about which nothing was done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FalseAcknowledgement {
    /// The place of the call that had failed.
    pub call: usize,
    /// The place of the line.
    pub line: usize,
    /// A sync of the same file has succeeded in between.
    pub again: bool,
}

impl Reactions {
    /// Of a run.
    pub fn of(run: &ProgramRun) -> Reactions {
        let mut reactions = Reactions::default();
        let failed = run.calls.iter().enumerate().filter(|(_, call)| call.injected.is_some());
        for (place, call) in failed {
            if has_stake(&run.calls[..place], call) {
                reactions.after(run, place, call);
            }
        }
        reactions
    }

    /// Looks at what was said after a failure.
    fn after(&mut self, run: &ProgramRun, place: usize, failed: &Call) {
        let Some(returned) = failed.returned else { return };
        let later = run.calls[place..].iter().filter(|call| call.started.tick > returned.tick);
        let until = later.clone().find(|call| is_about_it(call, failed));
        let until = until.map_or(u64::MAX, |call| call.started.tick);
        let (before, after) = run.lines.split_at(run.printed_before(returned.tick));
        let mut other: Option<&Line> = None;
        for (line, number) in after.iter().zip(before.len()..) {
            if line.printed.tick >= until {
                break;
            }
            if line.marked || before.iter().any(|known| form(known) == form(line)) {
                let is_again =
                    |call: &Call| call.kind.is_sync() && call.ino == failed.ino && !call.failed;
                let mut syncs = later.clone().take_while(|c| c.started.tick < line.printed.tick);
                let again = failed.kind != CallKind::Write && syncs.any(is_again);
                self.wrong.push(FalseAcknowledgement { call: place, line: number, again });
                return;
            }
            other.get_or_insert(line);
        }
        if let Some(line) = other {
            self.unmeasured.insert(format!(
                "{}: whether `{}`, which was printed next, acknowledges it: a mark or a judge \
                 would say",
                in_words(failed),
                shown(&line.text)
            ));
        }
    }
}

impl FalseAcknowledgement {
    /// In words, one line.
    pub fn what(&self, run: &ProgramRun) -> String {
        // OK to index: places of this run.
        let (call, line) = (&run.calls[self.call], &run.lines[self.line]);
        let again = match self.again {
            true => " (another sync, which succeeded, had nothing to write)",
            false => "",
        };
        let (text, how) = (shown(&line.text), line.how());
        format!("{}, and the program went on{again}: `{text}` was {how}", in_words(call))
    }
}

/// A failure in words.
fn in_words(call: &Call) -> String {
    let path = if call.path.is_empty() { "/".into() } else { shown(&call.path) };
    let error = call.injected.map_or("", |error| error.name());
    format!("{} of {path} failed as asked ({error})", call.kind.name())
}

/// A line without its numbers.
fn form(line: &Line) -> String {
    without_numbers(&format!(": {}", String::from_utf8_lossy(&line.text)))
}

/// Whether anything was not promised yet of what a failed call was about.
fn has_stake(before: &[Call], failed: &Call) -> bool {
    let unsynced = || UnsyncedWork::of(before, failed.started.at);
    match failed.kind {
        CallKind::Write => true,
        CallKind::FsyncDir => unsynced().names.iter().any(|place| {
            let Call { path, other, .. } = &before[*place];
            parent(path) == failed.path || (!other.is_empty() && parent(other) == failed.path)
        }),
        _ => unsynced().files.iter().any(|file| file.file == failed.ino),
    }
}

/// Whether a later call does something about a failure, or begins something else.
fn is_about_it(call: &Call, failed: &Call) -> bool {
    let of_program = call.origin == Origin::Program;
    let of_file = failed.kind != CallKind::FsyncDir && call.ino == failed.ino;
    of_program
        && match call.kind {
            CallKind::Write => true,
            CallKind::Truncate | CallKind::Fallocate | CallKind::Unlink => of_file,
            CallKind::Rename => call.replaced == failed.ino && call.replaced != 0,
            // Of names a later sync is one of them, too.
            CallKind::FsyncDir => failed.kind == CallKind::FsyncDir && !call.failed,
            CallKind::Sync => failed.kind == CallKind::FsyncDir && !call.failed,
            _ => false,
        }
}

#[cfg(test)]
mod tests {
    use steadfast_devices::filter::record::{Moment, RecordLog};
    use steadfast_runtime::Nanos;

    use super::super::FaultError;
    use super::*;
    use crate::tree::Contents;

    /// What happens, one after the other.
    enum TestEvent {
        Call(CallKind, &'static str, u64),
        Fails(CallKind, &'static str, u64),
        Prints(&'static str),
        Marks(&'static str),
    }
    use CallKind::{Create, Fdatasync, Fsync, FsyncDir, Rename, Truncate, Unlink, Write};
    use TestEvent::{Call as Calls, Fails, Marks, Prints};

    fn run(happened: &[TestEvent]) -> ProgramRun {
        let (mut calls, mut lines) = (Vec::new(), Vec::new());
        for (number, did) in (0..).zip(happened) {
            let at = |tick: u64| Moment { tick, at: Nanos(tick) };
            let (begun, ended) = (at(2 * number), at(2 * number + 1));
            let call = |kind, path, ino| {
                let contents = Some(Contents { size: 5, digest: 1 });
                let call = Call::plain(kind, path, begun, Some(ended));
                Call { ino, replaced: if kind == Rename { ino } else { 0 }, contents, ..call }
            };
            let line = |text: &str, marked| Line { printed: begun, text: text.into(), marked };
            match did {
                Calls(kind, path, ino) => calls.push(call(*kind, path, *ino)),
                Fails(kind, path, ino) => {
                    let injected = Some(FaultError::Io);
                    calls.push(Call { failed: true, injected, ..call(*kind, path, *ino) });
                }
                Prints(text) => lines.push(line(text, false)),
                Marks(text) => lines.push(line(text, true)),
            }
        }
        let log = RecordLog::new();
        ProgramRun {
            about: Default::default(),
            bases: Vec::new(),
            recording: log.take(),
            lines,
            calls,
            stacks: Default::default(),
        }
    }

    fn said(happened: &[TestEvent]) -> Vec<String> {
        let run = run(happened);
        Reactions::of(&run).wrong.iter().map(|wrong| wrong.what(&run)).collect()
    }

    const WROTE: TestEvent = Calls(Write, "db", 1);
    const FAILED: TestEvent = Fails(Fsync, "db", 1);

    #[test]
    fn who_goes_on_is_found() {
        let went_on = "fsync of db failed as asked (EIO), and the program went on: `acked 17` was";
        assert_eq!(said(&[WROTE, FAILED, Marks("acked 17")]), [format!("{went_on} marked")]);
        let lines = [Prints("acked 16"), WROTE, FAILED, Prints("acked 17")];
        assert_eq!(said(&lines), [format!("{went_on} printed")]);
        let again = said(&[WROTE, FAILED, Calls(Fdatasync, "db", 1), Marks("acked 17")]);
        assert!(again[0].contains("had nothing to write"), "{again:?}");
        let write = said(&[Fails(Write, "db", 1), Calls(Fsync, "db", 1), Marks("acked")]);
        assert!(write[0].starts_with("write of db failed"), "{write:?}");
        let names = [Calls(Create, "db", 1), Fails(FsyncDir, "", 9), Marks("made")];
        let names = said(&names);
        assert!(names[0].starts_with("fsync of directory of / failed"), "{names:?}");
    }

    #[test]
    fn who_does_something_about_it_is_not() {
        for what in [WROTE, Calls(Truncate, "db", 1), Calls(Unlink, "db", 1)] {
            let again = [WROTE, FAILED, what, Calls(Fsync, "db", 1), Marks("acked 17")];
            assert!(said(&again).is_empty());
        }
        let replaced = [WROTE, FAILED, Calls(Rename, "new", 1), Marks("acked 17")];
        assert!(said(&replaced).is_empty());
        // Nothing was at stake.
        assert!(said(&[FAILED, Marks("acked 17")]).is_empty());
        assert!(said(&[WROTE, Calls(Fsync, "db", 1), FAILED, Marks("acked 17")]).is_empty());
        // Another request.
        let other = [WROTE, FAILED, Calls(Write, "b", 2), Calls(Fsync, "b", 2), Marks("acked 18")];
        assert!(said(&other).is_empty());
        assert!(said(&[WROTE, FAILED]).is_empty());
    }

    #[test]
    fn a_message_is_no_acknowledgement() {
        let happened = [Prints("acked 16"), WROTE, FAILED, Prints("cannot store 17")];
        assert!(said(&happened).is_empty());
        let unmeasured = Reactions::of(&run(&happened)).unmeasured;
        assert!(unmeasured.iter().any(|why| why.contains("`cannot store 17`")), "{unmeasured:?}");
    }
}
