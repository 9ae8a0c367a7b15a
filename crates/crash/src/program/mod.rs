//! Programs under power cuts: any program runs on a recorded file system, and every state that a
//! cut may leave is recovered and judged.
//!
//! * [`WatchedFs`] notes the calls that reach the file system; the devices below are recorded by
//!   [`Record`](steadfast_devices::filter::record::Record); what the program prints are its
//!   [`Line`]s. Together they are a [`ProgramRun`], which [`file`](mod@file) keeps.
//! * A [`System`] recovers from what a cut left; the next boot finds a [`Tree`].
//! * A [`Command`] judges that tree, or code of this process ([`inside`], which also runs a
//!   program in this process, [`side_by_side`] the tasks of one); without one the [`rules`] do,
//!   which hold for all programs. A command is run by a [`supervisor`]; a [`ServedJudge`] gives it
//!   the tree through a file system that sees what it reads, and knows what it would say again.
//! * [`explore`](mod@explore) does it for all cuts; [`exposure`](mod@exposure) is what the worst
//!   state of each takes; [`shrink`](explore::Exploration::shrink) finds the writes that make a
//!   state wrong, [`describe`] puts it into words.
//!
//! * A program may say what matters ([`RunParts`]), ask what would be lost now ([`UnsyncedWork`]),
//!   and let calls of its own fail ([`CallFaults`]): [`Reactions`] are what it does then.
//!
//! What mounts and starts programs is above this crate.

mod asked;
mod calls;
pub mod describe;
pub mod explore;
pub mod exposure;
mod faults;
pub mod file;
pub mod inside;
mod judge;
pub mod judge_fs;
mod judges_at_once;
#[cfg(test)]
mod known_tests;
mod names;
mod parts;
mod passes;
mod paths;
mod reaction;
mod recorded;
pub mod rules;
mod served_judge;
pub mod side_by_side;
mod stacks;
pub mod supervisor;
mod unsynced;
mod watched;

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use steadfast_devices::filter::record::{Action, Moment, Recording};
use steadfast_devices::store::Store;
use steadfast_vfs::FileSystem;

use crate::explore::{Boot, System, structure};
use crate::states::{State, contents_where};
use crate::tree::KnownTree;

pub use crate::tree::{Contents, NoTree, Node, Tree, Unreadable, first_difference, shown};
pub use calls::{Call, CallDetail, CallKind, Origin, RangeChange};
pub(crate) use calls::{file_id, number_of, returns};
pub use faults::{CallFault, CallFaults, FaultError, FaultKind, TooManyFaults};
pub use judge::{AskedOnce, Command, Judgement, Judges, RecoveredTree};
pub use judges_at_once::JudgesAtOnce;
pub use names::Names;
pub use parts::{BEGIN, CUT, END, RunParts};
pub use reaction::{FalseAcknowledgement, Reactions};
pub(crate) use recorded::Looks;
pub use served_judge::{JudgeCounts, JudgePlace, ServedJudge};
pub use stacks::{CALLERS_SHOWN, CallObserver, CallStacks, CodeFrame};
pub use unsynced::{UnsyncedFile, UnsyncedWork};
pub use watched::{CALL, WatchedFs};

/// Notes of printed lines in the record carry this label; the detail is the line's number.
pub const LINE: u64 = 0x6c69_6e65;

/// A line that the program printed: what it acknowledged.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Line {
    /// When it was seen: not before the program had printed it.
    pub printed: Moment,
    /// Its bytes, without the line's end.
    pub text: Vec<u8>,
    /// The program has not printed it, but said that it is an acknowledgement.
    pub marked: bool,
}

impl Line {
    /// How it was said.
    pub fn how(&self) -> &'static str {
        if self.marked { "marked" } else { "printed" }
    }
}

/// A recorded run of a program.
#[derive(Debug, Clone)]
pub struct ProgramRun {
    /// How it was recorded: values of the recorder's own, by key.
    pub about: BTreeMap<String, String>,
    /// What each device held at first.
    pub bases: Vec<Store>,
    /// What the devices were asked.
    pub recording: Recording,
    /// What the program printed.
    pub lines: Vec<Line>,
    /// The calls that reached the file system; empty where nobody watched.
    pub calls: Vec<Call>,
    /// Where in the program they were made; empty where nobody asked.
    pub stacks: CallStacks,
}

/// A run in numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Totals {
    /// From the first to the last thing recorded.
    pub time: Duration,
    /// Writes of all devices.
    pub writes: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Flushes.
    pub flushes: u64,
}

impl ProgramRun {
    /// A run whose recording has been taken. What was printed or called after that is left out.
    pub fn new(
        about: BTreeMap<String, String>,
        bases: Vec<Store>,
        recording: Recording,
        mut lines: Vec<Line>,
        mut calls: Vec<Call>,
    ) -> ProgramRun {
        let end = recording.last_crash_point();
        lines.retain(|line| line.printed.tick < end);
        calls.retain(|call| call.started.tick < end);
        for call in &mut calls {
            call.returned = call.returned.filter(|returned| returned.tick < end);
        }
        ProgramRun { about, bases, recording, lines, calls, stacks: CallStacks::default() }
    }

    /// How many calls the program made: not the further requests that the kernel made of one, nor
    /// its own.
    pub fn own_calls(&self) -> usize {
        self.calls.iter().filter(|call| call.origin == Origin::Program).count()
    }

    /// How many lines had been printed before a tick.
    pub fn printed_before(&self, tick: u64) -> usize {
        self.lines.partition_point(|line| line.printed.tick < tick)
    }

    /// The lines printed before a tick, each with its end.
    pub fn printed_text(&self, tick: u64) -> Vec<u8> {
        let lines = &self.lines[..self.printed_before(tick)];
        lines.iter().flat_map(|line| line.text.iter().chain(b"\n")).copied().collect()
    }

    /// What the devices hold at its end, with everything that was written.
    pub fn contents_at_end(&self) -> Vec<Store> {
        let end = self.recording.last_crash_point();
        contents_where(&self.bases, &self.recording, end, |_| true)
    }

    /// What lies where: after the recovery of a state and, beside that, at the end of the run; `of`
    /// says it of contents.
    pub fn names(&self, state: &State, of: impl Fn(Vec<Store>) -> Names) -> Names {
        let mut names = of(state.contents.clone());
        names.add(of(self.contents_at_end()));
        names
    }

    /// The run in numbers.
    pub fn totals(&self) -> Totals {
        let recording = &self.recording;
        let (first, last) = (recording.first_crash_point(), recording.last_crash_point());
        let time = recording.time_of(last) - recording.time_of(first);
        let mut totals = Totals { time, writes: 0, bytes: 0, flushes: 0 };
        for event in recording.events() {
            match &event.action {
                Action::Write { data, .. } | Action::Store { data, .. } => {
                    totals.writes += 1;
                    totals.bytes += data.len() as u64;
                }
                Action::Flush | Action::Fence => totals.flushes += 1,
                Action::Discard { .. } | Action::Persist { .. } => {}
            }
        }
        totals
    }
}

/// The tree before a run, where the system says what its disk holds: for those who read what cuts
/// have left of it.
fn known_tree(system: &dyn System, bases: Vec<Store>) -> Option<Arc<KnownTree>> {
    let seen = Rc::new(RefCell::new(None));
    let slot = Rc::clone(&seen);
    let look = Rc::new(move |fs: &dyn FileSystem, disk: Option<Store>| {
        let tree = Tree::read(fs).ok();
        let known = tree.zip(disk).map(|(tree, disk)| KnownTree::of(&tree, fs, disk));
        *slot.borrow_mut() = known.map(Arc::new);
    });
    system.recover(Boot::of(bases, look), 1).ok()?;
    seen.take()
}

/// What the next boot makes of a crash state.
#[derive(Debug, Clone)]
pub struct RecoveredState {
    /// The files that are there.
    pub tree: Result<Tree, NoTree>,
    /// What is wrong with the recovered file system's structure, in words.
    pub damage: Vec<String>,
    /// What the devices hold after recovery and a clean unmount, where that is known.
    pub contents: Option<Vec<Store>>,
}

/// Lets a system recover from these contents, and reads the tree.
///
/// # Errors
/// Something on this machine failed: this state could not be judged.
pub fn recover(system: &dyn System, contents: Vec<Store>) -> crate::Result<RecoveredState> {
    recover_again(system, contents, None)
}

/// The same, where the tree before the run is known: what of it is still there is not read again.
fn recover_again(
    system: &dyn System,
    contents: Vec<Store>,
    known: Option<Arc<KnownTree>>,
) -> crate::Result<RecoveredState> {
    let seen = Rc::new(RefCell::new(None));
    let slot = Rc::clone(&seen);
    let look = Rc::new(move |fs: &dyn FileSystem, disk: Option<Store>| {
        let before = known.as_deref().zip(disk.as_ref());
        *slot.borrow_mut() = Some(Tree::read_again(fs, before));
    });
    let recovered = system.recover(Boot::of(contents, look), 1)?;
    let tree = match seen.take() {
        Some(tree) => tree.map_err(NoTree::from),
        None => Err(NoTree::Refused(recovered.refused.unwrap_or_default())),
    };
    let (mut damage, contents) = (recovered.damage, recovered.contents);
    if let Some(contents) = &contents {
        let disks = system.file_systems().into_iter().map(|fs| &contents[fs.disk]);
        damage.extend(disks.flat_map(structure));
    }
    Ok(RecoveredState { tree, damage, contents })
}
