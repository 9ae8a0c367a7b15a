//! A workload on a file system: recorded, cut, recovered, judged.

use std::sync::Arc;

use steadfast_crash::explore::{CutSource, Plan, System, each_cut};
use steadfast_crash::figures::StateFigures;
use steadfast_crash::judge::Judge;
use steadfast_crash::program::Tree;
use steadfast_crash::{CrashError, Result};
use steadfast_devices::filter::record::{Moment, RecordLog, Recording};
use steadfast_devices::store::Store;
use steadfast_vfs::FileSystem;

use super::judge::judge;
use super::run::{OperationTrace, play};
use super::step::Workload;

/// What carries out a workload, and who judges it afterwards.
pub type Player =
    Arc<dyn Fn(&Arc<dyn FileSystem>, &RecordLog, &Workload) -> Result<WorkloadJudge> + Send + Sync>;

/// A workload that was carried out.
pub struct WorkloadJudge {
    /// Knows what was done.
    pub judge: Arc<dyn Judge>,
    /// Operations that were refused, and count as not made.
    pub refused: u64,
}

/// Notes what is seen after each operation, and judges by that.
pub(super) fn by_looks() -> Player {
    Arc::new(|fs, log, workload| {
        let trace = play(&**fs, log, workload)?;
        let refused = trace.refused() as u64;
        Ok(WorkloadJudge { judge: Arc::new(trace), refused })
    })
}

/// A run of a workload.
pub struct CorpusRun {
    /// The run; its judge knows what was done, and what was seen.
    pub recorded: CutSource,
    /// Operations that were refused, and count as not made.
    pub refused: u64,
}

impl CorpusRun {
    /// A run that began with the devices holding `bases`.
    pub fn new(bases: Vec<Store>, recording: Recording, played: WorkloadJudge) -> CorpusRun {
        let WorkloadJudge { judge, refused } = played;
        CorpusRun { recorded: CutSource { bases, recording, judge }, refused }
    }
}

impl Judge for OperationTrace {
    fn judge(&self, fs: &dyn FileSystem, at: Moment, cut: &mut StateFigures) {
        match Tree::look_whole(fs, fs.root()) {
            Ok(found) => {
                let wrong = judge(self, &found, at.tick);
                cut.broken_promises += wrong.len() as u64;
                cut.findings.extend(wrong);
            }
            Err(why) => {
                cut.damage.push(why.to_string());
                cut.manual_repair = true;
            }
        }
    }

    fn age(&self, tick: u64) -> u64 {
        OperationTrace::age(self, tick)
    }
}

/// What is wrong with a state, in words.
fn words(cut: &StateFigures) -> Vec<String> {
    if cut.refused.is_some() {
        return cut.damage.clone();
    }
    let first = |text: &String| text.lines().next().unwrap_or_default().to_owned();
    let damage = cut.damage.iter().map(|what| format!("damage: {}", first(what)));
    damage.chain(cut.findings.iter().cloned()).collect()
}

/// A file system under test.
pub trait Subject {
    /// Its name.
    fn name(&self) -> String;

    /// Sets up and carries out a workload on a new file system.
    ///
    /// # Errors
    /// Something on this machine failed, or an operation is unknown.
    fn record(&self, workload: &Workload, player: &Player) -> Result<CorpusRun>;

    /// What recovers what a cut has left.
    fn system(&self) -> &dyn System;
}

/// What came of a workload.
#[derive(Debug, Clone, Default)]
pub struct WorkloadReport {
    /// Instants at which the power was cut.
    pub cuts: u64,
    /// Different states that were recovered and judged.
    pub states: u64,
    /// Those that are wrong.
    pub wrong: u64,
    /// Of those, the mount was refused, or they need manual repair.
    pub refused_mounts: u64,
    /// Of the others, they are damaged.
    pub damaged: u64,
    /// Of the first of them its number, and what is wrong.
    pub first: Option<(u64, Vec<String>)>,
    /// Operations that were refused, and count as not made.
    pub refused: u64,
}

/// Runs a workload, cuts it, recovers and judges every state. (The corpus's own judge also
/// [uses](Plan::use_it) the file system.)
///
/// # Errors
/// Something on this machine failed.
pub fn try_out(subject: &dyn Subject, workload: &Workload, plan: &Plan) -> Result<WorkloadReport> {
    try_out_by(subject, workload, plan, &by_looks())
}

/// The same with another judge.
///
/// # Errors
/// Something on this machine failed.
pub fn try_out_by(
    subject: &dyn Subject,
    workload: &Workload,
    plan: &Plan,
    player: &Player,
) -> Result<WorkloadReport> {
    let CorpusRun { recorded, refused } = subject.record(workload, player)?;
    let mut outcome = WorkloadReport { refused, ..WorkloadReport::default() };
    let mut trouble = None;
    outcome.cuts = each_cut(subject.system(), &recorded, plan, &mut |mut cut, state| {
        trouble = cut.trouble.take();
        outcome.states += 1;
        if cut.is_wrong() {
            outcome.wrong += 1;
            if cut.manual_repair {
                outcome.refused_mounts += 1;
            } else if !cut.damage.is_empty() {
                outcome.damaged += 1;
            }
            outcome.first.get_or_insert_with(|| (state.number, words(&cut)));
        }
        trouble.is_none()
    });
    match trouble {
        Some(why) => Err(CrashError::Host(why)),
        None => Ok(outcome),
    }
}
