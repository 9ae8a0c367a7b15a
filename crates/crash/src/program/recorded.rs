//! A program's run with the [`rules`] as its judge: as every other workload, it can be explored
//! with all that a [`Plan`](crate::explore::Plan) has.

use std::sync::Arc;

use steadfast_devices::filter::record::Moment;
use steadfast_devices::store::Store;
use steadfast_runtime::Mutex;
use steadfast_vfs::FileSystem;

use super::rules;
use super::{Call, NoTree, ProgramRun, Tree, Unreadable, recover};
use crate::error::{CrashError, Result};
use crate::explore::{CutSource, System};
use crate::figures::StateFigures;
use crate::judge::Judge;
use crate::tree::KnownTree;

impl ProgramRun {
    /// The run, judged by what every program may expect. `system` shows the files before it.
    ///
    /// # Errors
    /// The file system before the run cannot be read.
    pub fn recorded(&self, system: &dyn System) -> Result<CutSource> {
        let base = recover(system, self.bases.clone())?.tree;
        let base = base.map_err(|e| CrashError::Run(format!("the file system before: {e}")))?;
        let judge = Arc::new(ByRules::new(self, base));
        let (bases, recording) = (self.bases.clone(), self.recording.clone());
        Ok(CutSource { bases, recording, judge })
    }
}

/// The rules as a judge.
pub(super) struct ByRules {
    calls: Vec<Call>,
    base: Tree,
    /// When something was called, had returned or was printed.
    notes: Vec<u64>,
}

impl ByRules {
    pub fn new(run: &ProgramRun, base: Tree) -> ByRules {
        let notes = run.recording.notes().iter().map(|note| note.moment.tick).collect();
        ByRules { calls: run.calls.clone(), base, notes }
    }
}

impl Judge for ByRules {
    fn judge(&self, fs: &dyn FileSystem, at: Moment, cut: &mut StateFigures) {
        let tree = match Tree::read(fs) {
            Ok(tree) => tree,
            Err(why) => {
                cut.damage.push(NoTree::Unreadable(why).to_string());
                return;
            }
        };
        for broken in rules::judge(&self.calls, &self.base, &tree, at.tick).broken {
            cut.broken_promises += u64::from(broken.promised);
            cut.findings.push(broken.what);
        }
    }

    fn age(&self, tick: u64) -> u64 {
        self.notes.partition_point(|note| *note < tick) as u64
    }

    fn calls(&self) -> Vec<Call> {
        self.calls.clone()
    }
}

/// Keeps the tree that it is shown, and judges it if there is another judge.
#[derive(Default)]
pub(crate) struct Looks {
    judge: Option<Arc<dyn Judge>>,
    /// What need not be read again.
    known: Option<Arc<KnownTree>>,
    tree: Mutex<Option<Result<Tree, Unreadable>>>,
}

impl Looks {
    /// One that judges too.
    pub fn judging(judge: &Arc<dyn Judge>) -> Looks {
        Looks { judge: Some(Arc::clone(judge)), ..Looks::default() }
    }

    /// One that knows the tree before the run.
    pub fn knowing(known: Option<Arc<KnownTree>>) -> Looks {
        Looks { known, ..Looks::default() }
    }

    /// What was seen last.
    pub fn take(&self) -> Option<Result<Tree, Unreadable>> {
        self.tree.lock().take()
    }
}

impl Judge for Looks {
    fn judge(&self, fs: &dyn FileSystem, at: Moment, cut: &mut StateFigures) {
        self.judge_on(fs, None, at, cut);
    }

    fn judge_on(
        &self,
        fs: &dyn FileSystem,
        disk: Option<&Store>,
        at: Moment,
        cut: &mut StateFigures,
    ) {
        self.judge.iter().for_each(|judge| judge.judge(fs, at, cut));
        *self.tree.lock() = Some(Tree::read_again(fs, self.known.as_deref().zip(disk)));
    }

    fn judge_refused(&self, at: Moment, cut: &mut StateFigures) {
        self.judge.iter().for_each(|judge| judge.judge_refused(at, cut));
    }
}
