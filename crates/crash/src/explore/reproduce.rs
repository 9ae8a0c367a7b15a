//! One crash state of a plan, reproduced by its number, with all that there is to tell of it.

use std::rc::Rc;
use std::sync::Arc;

use steadfast_devices::filter::record::Moment;
use steadfast_runtime::Mutex;
use steadfast_vfs::FileSystem;

use super::{Boot, Others, Plan, Recorded, System};
use crate::cuts::{Cuts, State};
use crate::e2fsck::E2fsck;
use crate::figures::Cut;
use crate::judge::Judge;
use crate::program::{Run, Tree};

/// A crash state that was reproduced.
pub struct Reproduced {
    /// The recorded run and its calls.
    pub run: Run,
    /// What was in doubt, what survived, and what the devices hold.
    pub state: State,
    /// The files before the run.
    pub before: Result<Tree, String>,
    /// The files after the recovery; an error in words if there are none to be seen.
    pub after: Result<Tree, String>,
    /// The verdict: the same as in the exploration, with e2fsck's where it is installed.
    pub cut: Cut,
}

/// Reproduces the plan's state `number`; `None` if the plan has no such state.
pub fn reproduce(
    system: &dyn System,
    recorded: Recorded,
    plan: &Plan,
    number: u64,
) -> Option<Reproduced> {
    let state = Cuts::of(&recorded, plan.choice()).find(|state| state.number == number)?;
    let looking = Arc::new(Looking { inner: Arc::clone(&recorded.judge), tree: Mutex::default() });
    let judge: Arc<dyn Judge> = Arc::clone(&looking) as Arc<dyn Judge>;
    let recorded = Recorded { judge, ..recorded };
    let others = Others { e2fsck: E2fsck::find(), kernel: None };
    let trial = others.trial((system, recorded.source()), plan, state.cut, (true, false));
    let cut = trial.run(state.contents.clone(), state.choices.clone());
    let after = looking.tree.lock().take();
    let after = after.unwrap_or_else(|| Err("it could not be mounted".into()));
    let before = tree_of(system, &recorded);
    let calls = looking.inner.calls();
    let Recorded { bases, recording, .. } = recorded;
    let cut = Cut { number, place: state.place, ..cut };
    let run = Run::new(Default::default(), bases, recording, Vec::new(), calls);
    Some(Reproduced { run, state, before, after, cut })
}

/// The files before the run.
fn tree_of(system: &dyn System, recorded: &Recorded) -> Result<Tree, String> {
    let tree = Rc::new(Mutex::new(None));
    let seen = Rc::clone(&tree);
    let look = move |fs: &dyn FileSystem| *seen.lock() = Some(Tree::read(fs));
    let boot = Boot::of(recorded.bases.clone(), Rc::new(look));
    let recovered = system.recover(boot, 1).map_err(|e| e.to_string())?;
    let tree = tree.lock().take();
    tree.unwrap_or_else(|| Err(recovered.refused.unwrap_or_default()))
}

/// Judges, and keeps the tree that was judged.
struct Looking {
    inner: Arc<dyn Judge>,
    tree: Mutex<Option<Result<Tree, String>>>,
}

impl Judge for Looking {
    fn judge(&self, fs: &dyn FileSystem, at: Moment, cut: &mut Cut) {
        self.inner.judge(fs, at, cut);
        let tree = Tree::read(fs);
        *self.tree.lock() = Some(tree);
    }

    fn judge_refused(&self, at: Moment, cut: &mut Cut) {
        self.inner.judge_refused(at, cut);
    }
}
