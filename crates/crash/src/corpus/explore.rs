//! A workload on a file system: recorded, cut, recovered, judged.

use steadfast_devices::filter::record::Recording;
use steadfast_devices::store::Store;
use steadfast_vfs::FileSystem;

use super::judge::judge;
use super::run::Story;
use super::seen::{self, Names};
use super::step::Workload;
use crate::cuts::{Choice, Cuts, State};

/// A run of a workload.
pub struct Recorded {
    /// What each device held at first.
    pub bases: Vec<Store>,
    /// What they were asked.
    pub recording: Recording,
    /// What was done, and what was seen.
    pub story: Story,
}

/// What the next boot finds.
#[derive(Debug, Clone)]
pub struct Found {
    /// The names; `Err`: the mount was refused, or they cannot be read.
    names: Result<Names, String>,
    /// Whether it can be used: what [`use_it`](super::use_it) says once its structure has been
    /// checked.
    pub usable: Result<(), String>,
    /// What is wrong with its structure.
    pub damage: Vec<String>,
    /// The repairs that need nobody were not enough.
    pub by_hand: bool,
}

impl Found {
    /// The mount was refused.
    pub fn refused(why: String) -> Found {
        Found { names: Err(why), usable: Ok(()), damage: Vec::new(), by_hand: false }
    }

    /// Looks at a file system that has just been recovered.
    pub fn look(fs: &dyn FileSystem) -> Found {
        Found { names: seen::look(fs), usable: Ok(()), damage: Vec::new(), by_hand: false }
    }

    /// What is wrong, in words.
    fn wrong(&self, story: &Story, tick: u64) -> Vec<String> {
        let names = match &self.names {
            Ok(names) => names,
            Err(why) => return vec![why.clone()],
        };
        let mut wrong: Vec<String> =
            self.damage.iter().map(|what| format!("damage: {}", first_line(what))).collect();
        wrong.extend(judge(story, names, tick));
        wrong.extend(self.usable.clone().err());
        wrong
    }
}

fn first_line(text: &str) -> &str {
    text.lines().next().unwrap_or_default()
}

/// A file system under test.
pub trait Subject {
    /// Its name.
    fn name(&self) -> String;

    /// Sets up and carries out a workload on a new file system.
    ///
    /// # Errors
    /// In words: what of the machine around failed, or an operation that it does not know.
    fn record(&self, workload: &Workload) -> Result<Recorded, String>;

    /// Recovers what a cut has left: looks, checks the structure, then uses it.
    ///
    /// # Errors
    /// The machine around failed: nothing is known of this state.
    fn recover(&self, contents: Vec<Store>) -> Result<Found, String>;
}

/// How to cut.
pub type Plan = Choice;

/// What came of a workload.
#[derive(Debug, Clone, Default)]
pub struct Outcome {
    /// Instants at which the power was cut.
    pub cuts: u64,
    /// Different states that were recovered and judged.
    pub states: u64,
    /// Those that are wrong.
    pub wrong: u64,
    /// Of those, the mount was refused, or they need a person.
    pub refused_mounts: u64,
    /// Of the others, they are damaged.
    pub damaged: u64,
    /// Of the first of them its number, and what is wrong.
    pub first: Option<(u64, Vec<String>)>,
    /// Operations that were refused, and count as not made.
    pub refused: u64,
}

/// Runs a workload, cuts it, recovers and judges every state.
///
/// # Errors
/// The machine around failed, in words.
pub fn try_out(subject: &dyn Subject, workload: &Workload, plan: Plan) -> Result<Outcome, String> {
    let recorded = subject.record(workload)?;
    let Recorded { bases, recording, story } = &recorded;
    let mut outcome = Outcome { refused: story.refused() as u64, ..Outcome::default() };
    let mut cuts = Cuts::new(bases, recording, plan).with_age(|tick| story.age(tick));
    for State { number, cut, contents, .. } in cuts.by_ref() {
        let found = subject.recover(contents)?;
        let wrong = found.wrong(story, cut.tick);
        outcome.states += 1;
        if !wrong.is_empty() {
            outcome.wrong += 1;
            if found.by_hand || found.names.is_err() {
                outcome.refused_mounts += 1;
            } else if !found.damage.is_empty() {
                outcome.damaged += 1;
            }
            outcome.first.get_or_insert((number, wrong));
        }
    }
    outcome.cuts = cuts.cuts();
    Ok(outcome)
}
