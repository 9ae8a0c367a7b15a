//! One cut of a plan, made again, with all that there is to tell of it.

use std::sync::Arc;

use steadfast_devices::filter::record::{DeviceId, Moment};
use steadfast_devices::store::Store;
use steadfast_runtime::{Mutex, Sim};
use steadfast_vfs::FileSystem;

use crate::cuts::{Pick, State, Unit};
use crate::e2fsck::E2fsck;
use crate::explore::{Machine, Plan, Recorded, Trial, each_state};
use crate::figures::Cut;
use crate::judge::Judge;
use crate::program::{Run, Tree};

/// A cut that was made again.
pub struct Again {
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

/// Makes the plan's cut `number` again; `None` if the plan has no such cut.
pub fn again(
    machine: &Arc<dyn Machine>,
    recorded: Recorded,
    plan: &Plan,
    number: u64,
) -> Option<Again> {
    let mut found = None;
    each_state(&recorded, plan, &mut |state| {
        found = (state.number == number).then_some(state);
        found.is_none()
    });
    let found = found?;
    let (moment, place) = (found.moment, found.place);
    let looking = Arc::new(Looking { inner: Arc::clone(&recorded.judge), tree: Mutex::default() });
    let judge: Arc<dyn Judge> = Arc::clone(&looking) as Arc<dyn Judge>;
    let e2fsck = E2fsck::find();
    let trial = Trial {
        machine,
        judge: &judge,
        moment,
        again_percent: plan.again_percent,
        e2fsck: e2fsck.as_ref(),
        kernel: None,
    };
    let cut = trial.run(found.contents.clone(), found.survival.choices.clone());
    let after = looking.tree.lock().take();
    let after = after.unwrap_or_else(|| Err("it could not be mounted".into()));
    let in_doubt = units(&recorded, moment.tick);
    let state = State {
        number,
        cut: moment,
        contents: found.contents,
        in_doubt,
        kept: found.survival.kept.into_iter().flatten().collect(),
        // As the plan's draws have it, unit by unit.
        pick: Pick::DrawnUnits { seed: plan.seed, percent: 50 },
    };
    let before = tree_of(machine, recorded.bases.clone());
    let calls = recorded.judge.calls();
    let Recorded { bases, recording, .. } = recorded;
    let run = Run::new(Default::default(), bases, recording, Vec::new(), calls);
    Some(Again { run, state, before, after, cut: Cut { number, place, ..cut } })
}

/// The units in doubt, device by device, in the order in which their survival is drawn.
fn units(recorded: &Recorded, tick: u64) -> Vec<Unit> {
    let mut units = Vec::new();
    for (base, device) in recorded.bases.iter().zip(0..) {
        recorded.recording.at(DeviceId(device), tick).contents_where(base, 0, |event, offset| {
            units.push(Unit { device, submitted: event.submitted.tick, offset });
            true
        });
    }
    units
}

/// The files that the machine shows with these contents.
fn tree_of(machine: &Arc<dyn Machine>, contents: Vec<Store>) -> Result<Tree, String> {
    let machine = Arc::clone(machine);
    let look = move || {
        let booted = machine.power_on(contents, None)?;
        let tree = Tree::read(&*booted.fs);
        drop(booted.fs);
        (booted.shut_down)()?;
        tree
    };
    Sim::new(1).run(look).map_err(|e| e.to_string())?
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
