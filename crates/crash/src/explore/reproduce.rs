//! One crash state of a plan, reproduced by its number, with all that there is to tell of it.

use std::sync::Arc;

use steadfast_devices::filter::record::Moment;
use steadfast_runtime::Mutex;
use steadfast_vfs::FileSystem;

use super::{Asked, Others, Plan, Recorded, System};
use crate::e2fsck::E2fsck;
use crate::figures::StateFigures;
use crate::judge::Judge;
use crate::program::{NoTree, Run, Tree, Unreadable, recover};
use crate::states::{State, States};

/// A crash state that was reproduced.
pub struct Reproduced {
    /// The recorded run and its calls.
    pub run: Run,
    /// What was in doubt, what survived, and what the devices hold.
    pub state: State,
    /// The files before the run.
    pub before: Result<Tree, NoTree>,
    /// The files after the recovery.
    pub after: Result<Tree, NoTree>,
    /// The verdict: the same as in the exploration, with e2fsck's where it is installed.
    pub cut: StateFigures,
}

/// Reproduces the plan's state `number`; `None` if the plan has no such state.
pub fn reproduce(
    system: &dyn System,
    recorded: Recorded,
    plan: &Plan,
    number: u64,
) -> Option<Reproduced> {
    let state = States::of(&recorded, plan.choice()).find(|state| state.number == number)?;
    let looking = Arc::new(Looking { inner: Arc::clone(&recorded.judge), tree: Mutex::default() });
    let judge: Arc<dyn Judge> = Arc::clone(&looking) as Arc<dyn Judge>;
    let recorded = Recorded { judge, ..recorded };
    let others = Others { e2fsck: E2fsck::find(), kernel: None };
    let trial = others.trial((system, recorded.source()), plan, state.cut, Asked::E2FSCK);
    let cut = trial.run(state.contents.clone(), state.choices.clone());
    let after = looking.tree.lock().take();
    let refused = || Err(NoTree::Refused("it could not be mounted".into()));
    let after = after.map_or_else(refused, |tree| tree.map_err(NoTree::from));
    let before = recover(system, recorded.bases.clone());
    let before = before.map_err(|e| NoTree::Refused(e.to_string())).and_then(|found| found.tree);
    let calls = looking.inner.calls();
    let Recorded { bases, recording, .. } = recorded;
    let cut = StateFigures { number, place: state.place, ..cut };
    let run = Run::new(Default::default(), bases, recording, Vec::new(), calls);
    Some(Reproduced { run, state, before, after, cut })
}

/// Judges, and keeps the tree that was judged.
struct Looking {
    inner: Arc<dyn Judge>,
    tree: Mutex<Option<Result<Tree, Unreadable>>>,
}

impl Judge for Looking {
    fn judge(&self, fs: &dyn FileSystem, at: Moment, cut: &mut StateFigures) {
        self.inner.judge(fs, at, cut);
        *self.tree.lock() = Some(Tree::read(fs));
    }

    fn judge_refused(&self, at: Moment, cut: &mut StateFigures) {
        self.inner.judge_refused(at, cut);
    }
}
