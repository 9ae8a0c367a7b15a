//! One crash state: recovered, judged, and looked at by other programs.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

use steadfast_block::rng::Rng;
use steadfast_devices::filter::record::Moment;
use steadfast_devices::store::Store;
use steadfast_vfs::FileSystem;

use super::machine::FsDevices;
use super::plan::{Checks, Plan};
use super::second::{cut_recovery, cut_recovery_everywhere};
use super::structure;
use super::system::{Boot, BootRecovery, Look, System};
use super::use_it::use_it;
use crate::e2fsck::E2fsck;
use crate::error::{CrashError, Result};
use crate::figures::StateFigures;
use crate::judge::Judge;
use crate::kernel::Kernel;
use crate::opinion::Opinion;

/// Other programs that judge too.
#[derive(Default)]
pub struct OtherJudges {
    /// Of recovered images.
    pub e2fsck: Option<E2fsck>,
    /// Of what the cut has left.
    pub kernel: Option<Kernel>,
}

impl OtherJudges {
    /// Those that a plan asks for, where they can be asked.
    pub fn of(plan: &Plan) -> OtherJudges {
        OtherJudges {
            e2fsck: (plan.e2fsck_every > 0).then(E2fsck::find).flatten(),
            kernel: (plan.kernel_every > 0).then(Kernel::find).and_then(Result::ok),
        }
    }

    /// A state's trial, in which e2fsck and the kernel are asked if it says so.
    pub fn trial<'a>(
        &'a self,
        (system, judge): (&'a dyn System, &'a Arc<dyn Judge>),
        plan: &'a Plan,
        moment: Moment,
        Checks { e2fsck, kernel, .. }: Checks,
    ) -> Trial<'a> {
        Trial {
            system,
            judge,
            plan,
            moment,
            e2fsck: self.e2fsck.as_ref().filter(|_| e2fsck),
            kernel: self.kernel.as_ref().filter(|_| kernel),
        }
    }
}

/// The figures of a state, and what the devices hold after it, where that is known.
type JudgedState = (StateFigures, Option<Vec<Store>>);

/// One crash state: of what, when, and who judges.
pub struct Trial<'a> {
    system: &'a dyn System,
    judge: &'a Arc<dyn Judge>,
    plan: &'a Plan,
    moment: Moment,
    e2fsck: Option<&'a E2fsck>,
    kernel: Option<&'a Kernel>,
}

impl Trial<'_> {
    /// Lets the system recover from what the cut has left, and judges that.
    pub fn run(&self, contents: Vec<Store>, mut choices: Rng) -> JudgedState {
        let again = choices.percent(self.plan.second.percent);
        let cut = || cut_recovery(self.system, &contents, &mut choices);
        match again.then(cut).flatten().transpose() {
            Ok(left) => self.recover(left.unwrap_or(contents), choices.bits()),
            Err(why) => (self.refused(&why), None),
        }
    }

    /// As [`run`](Self::run), without a second cut.
    pub(crate) fn recover(&self, contents: Vec<Store>, seed: u64) -> JudgedState {
        let (boot, judged) = self.boot(contents);
        let recovered = self.system.recover(boot, seed);
        self.outcome(recovered, judged, &mut structure)
    }

    /// What the kernel makes of what the cut has left, if it is to be asked.
    pub(crate) fn ask_kernel(&self, contents: &[Store]) -> Option<Opinion> {
        let kernel = self.kernel?;
        // It would show the judge a part of the tree.
        let [fs] = self.system.file_systems()[..] else { return None };
        let (disk, journal) = on_devices(fs, contents);
        Some(kernel.judge(disk, journal, &**self.judge, self.moment))
    }

    /// Second cuts of the recovery from what the cut has left, beside its own outcome: one, or at
    /// every instant.
    pub(crate) fn second_cuts(
        &self,
        contents: &[Store],
        mut choices: Rng,
        checks: Checks,
    ) -> Vec<StateFigures> {
        let left = self.second_states(contents, &mut choices, checks);
        let one = |left: Result<Vec<Store>>| match left {
            Ok(contents) => self.recover(contents, choices.bits()).0,
            Err(why) => self.refused(&why),
        };
        left.into_iter().map(one).collect()
    }

    /// What such second cuts leave. An error is a recovery that ended in a refused mount.
    pub fn second_states(
        &self,
        contents: &[Store],
        choices: &mut Rng,
        checks: Checks,
    ) -> Vec<Result<Vec<Store>>> {
        let mut left = Vec::new();
        if checks.second {
            left.extend(cut_recovery(self.system, contents, choices));
        }
        if checks.everywhere {
            match cut_recovery_everywhere(self.system, contents, choices) {
                Some(Ok(states)) => left.extend(states.into_iter().map(Ok)),
                Some(Err(why)) => left.push(Err(why)),
                None => {}
            }
        }
        left
    }

    /// The boot from these contents, and where its judge puts what it finds. The kernel looks at
    /// them before.
    fn boot(&self, contents: Vec<Store>) -> (Boot, JudgeSlot) {
        let judged = JudgeSlot { kernel: self.ask_kernel(&contents), ..JudgeSlot::default() };
        let (cut, judge, at) = (Rc::clone(&judged.cut), Arc::clone(self.judge), self.moment);
        let look: Look = Rc::new(move |fs: &dyn FileSystem, disk: Option<Store>| {
            let mut found = StateFigures { at: at.at, ..StateFigures::default() };
            judge.judge_on(fs, disk.as_ref(), at, &mut found);
            *cut.borrow_mut() = found;
        });
        let used = Rc::clone(&judged.used);
        let then = self.plan.use_it.then(|| -> Look {
            Rc::new(move |fs: &dyn FileSystem, _| {
                *used.borrow_mut() = use_it(fs).err().map(|e| e.to_string())
            })
        });
        (Boot { contents, look, then }, judged)
    }

    /// What a state has shown, and the devices after it; `structure` is asked of the recovered
    /// disk.
    fn outcome(
        &self,
        recovered: Result<BootRecovery>,
        judged: JudgeSlot,
        structure: &mut dyn FnMut(&Store) -> Vec<String>,
    ) -> JudgedState {
        let placed = |cut| self.placed(StateFigures { kernel: judged.kernel.clone(), ..cut });
        let recovered = match recovered {
            Ok(recovered) => recovered,
            Err(why) => {
                let trouble = Some(why.to_string());
                return (placed(StateFigures { trouble, ..StateFigures::default() }), None);
            }
        };
        if let Some(why) = recovered.refused {
            let mut cut = StateFigures::unmountable(self.moment.at, why.to_string());
            cut.damage.splice(0..0, recovered.damage);
            self.judge.judge_refused(self.moment, &mut cut);
            return (placed(cut), None);
        }
        let mut cut = judged.cut.take();
        cut.recovery = recovered.time;
        cut.manual_repair |= recovered.manual_repair;
        cut.damage.extend(recovered.damage);
        if let Some(why) = judged.used.take() {
            cut.broken_promises += 1;
            cut.findings.push(why);
        }
        if let Some(contents) = &recovered.contents {
            for fs in self.system.file_systems() {
                let (disk, journal) = on_devices(fs, contents);
                cut.damage.extend(structure(disk));
                let said = self.e2fsck.map(|e2fsck| e2fsck.judge(disk, journal));
                // The worst that it says of one.
                cut.e2fsck = match (cut.e2fsck.take(), said) {
                    (before @ Some(Opinion::Damaged(_)), _) => before,
                    (before @ Some(_), Some(Opinion::Clean)) => before,
                    (_, said) => said,
                };
            }
        }
        (placed(cut), recovered.contents)
    }

    /// A second recovery that ended in a refused mount.
    fn refused(&self, why: &CrashError) -> StateFigures {
        self.placed(StateFigures::unmountable(self.moment.at, why.to_string()))
    }

    fn placed(&self, cut: StateFigures) -> StateFigures {
        StateFigures { at: self.moment.at, tick: self.moment.tick, ..cut }
    }
}

/// What a file system's devices hold: its disk, and its journal if that is there.
fn on_devices(fs: FsDevices, contents: &[Store]) -> (&Store, Option<&Store>) {
    (&contents[fs.disk], fs.journal.and_then(|journal| contents.get(journal)))
}

/// Where the judge of a boot puts what it finds.
#[derive(Default)]
struct JudgeSlot {
    kernel: Option<Opinion>,
    cut: Rc<RefCell<StateFigures>>,
    used: Rc<RefCell<Option<String>>>,
}

/// Lets a system recover from several states in one go, and judges each. `structure` is asked of
/// the recovered disks.
pub fn recover_all(
    system: &dyn System,
    states: Vec<(Trial<'_>, Vec<Store>)>,
    seed: u64,
    structure: &mut dyn FnMut(&Store) -> Vec<String>,
) -> Vec<StateFigures> {
    let (mut boots, mut judged) = (Vec::new(), Vec::new());
    for (trial, contents) in states {
        let (boot, slot) = trial.boot(contents);
        boots.push(boot);
        judged.push((trial, slot));
    }
    let recovered = system.recover_all(boots, seed).into_iter().zip(judged);
    recovered
        .map(|(recovered, (trial, slot))| trial.outcome(recovered, slot, structure).0)
        .collect()
}
