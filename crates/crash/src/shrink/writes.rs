//! Which of the writes in doubt make the difference.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

use steadfast_devices::filter::record::{DeviceId, Moment};
use steadfast_devices::store::Store;

use super::{Effort, delta};
use crate::e2fsck::E2fsck;
use crate::explore::{Machine, Plan, Recorded, Survival, Trial};
use crate::figures::Cut;

/// An atomic unit of a write that a cut had left in doubt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Unit {
    /// Index of the device.
    pub device: u32,
    /// When the write was submitted, in the record's order.
    pub submitted: u64,
    /// Where the unit lies on the device, in bytes.
    pub offset: u64,
}

/// The units that make the difference, at one cut.
#[derive(Debug, Clone)]
pub struct Decisive {
    /// All that was in doubt.
    pub in_doubt: usize,
    /// Those that matter.
    pub units: Vec<Unit>,
    /// They are lost and all others are there; else they are there and all others are lost.
    pub lost: bool,
}

impl fmt::Display for Decisive {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Decisive { in_doubt, units, lost } = self;
        let (these, others) = if *lost { ("lost", "there") } else { ("there", "lost") };
        if *in_doubt == 0 {
            return write!(f, "nothing was in doubt");
        }
        if units.is_empty() {
            return write!(f, "all {in_doubt} units in doubt are {others}");
        }
        write!(f, "of {in_doubt} units in doubt these are {these} and all others {others}:")?;
        units.iter().try_for_each(|Unit { device, submitted, offset }| {
            write!(f, " [device {device}, byte {offset}, submitted at tick {submitted}]")
        })
    }
}

/// Contents of all devices after the cut. `keep` is asked of each unit in doubt, by its number
/// among those of its device.
fn contents(
    recorded: &Recorded,
    tick: u64,
    mut keep: impl FnMut(usize, Unit) -> bool,
) -> Vec<Store> {
    let left = |(base, device): (&Store, u32)| {
        let at = recorded.recording.at(DeviceId(device), tick);
        let mut number = 0;
        at.contents_where(base, 0, |event, offset| {
            let unit = Unit { device, submitted: event.submitted.tick, offset };
            number += 1;
            keep(number - 1, unit)
        })
    };
    recorded.bases.iter().zip(0..).map(left).collect()
}

/// Finds them. What the cut is now stays wrong.
pub(super) fn minimise(
    machine: &Arc<dyn Machine>,
    recorded: &Recorded,
    plan: &Plan,
    (cut, survival): (&Cut, &Survival),
    wrong: &dyn Fn(&Cut) -> bool,
    effort: Effort,
) -> Decisive {
    let (mut there, mut gone) = (Vec::new(), Vec::new());
    contents(recorded, cut.tick, |number, unit| {
        let kept = survival.kept[unit.device as usize].get(number) == Some(&true);
        if kept {
            there.push(unit)
        } else {
            gone.push(unit)
        }
        kept
    });
    let in_doubt = there.len() + gone.len();
    // As dear as a recovery: only if nothing else saw what was wrong.
    let by_e2fsck = !wrong(&Cut { e2fsck: None, ..cut.clone() });
    let e2fsck = by_e2fsck.then(E2fsck::find).flatten();
    let moment = Moment { tick: cut.tick, at: cut.at };
    let again_percent = plan.again_percent;
    let (judge, e2fsck) = (&recorded.judge, e2fsck.as_ref());
    let trial = Trial { machine, judge, moment, again_percent, e2fsck, kernel: None };
    let fails = |kept: &BTreeSet<Unit>| {
        let contents = contents(recorded, cut.tick, |_, unit| kept.contains(&unit));
        wrong(&trial.run(contents, survival.choices.clone()))
    };
    let all: BTreeSet<Unit> = there.iter().chain(&gone).copied().collect();
    let without = |lost: &[Unit]| -> BTreeSet<Unit> {
        let lost: BTreeSet<Unit> = lost.iter().copied().collect();
        all.difference(&lost).copied().collect()
    };
    let mut tries = effort.recoveries / 2;
    let lost = delta::minimise(&gone, &mut tries, |part| fails(&without(part)));
    let mut tries = effort.recoveries / 2;
    let kept = delta::minimise(&there, &mut tries, |part| fails(&part.iter().copied().collect()));
    if lost.len() <= kept.len() {
        Decisive { in_doubt, units: lost, lost: true }
    } else {
        Decisive { in_doubt, units: kept, lost: false }
    }
}
