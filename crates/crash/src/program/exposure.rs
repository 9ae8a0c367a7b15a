//! Exposure: what had returned to the program and would be lost.
//!
//! At each cut the worst state is taken, in which nothing in doubt is there. A write call that had
//! returned and has no other change of its bytes begun after it, in a file that was not removed, is
//! *exposed* if the recovered file does not hold its bytes. (A write of zeros to where zeros are is
//! never missed.) The requests that the kernel makes of one call are one call; what it writes back
//! by itself is none.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use steadfast_devices::filter::record::Moment;
use steadfast_devices::store::Store;
use steadfast_statistics::{Percentile, nearest_rank};

use super::calls::{Call, CallKind, Origin, file_id, returns};
use super::{ProgramRun, known_tree, recover_again};
use crate::explore::System;
use crate::states::{Choice, StateBound};
use crate::tree::{Contents, Node, Tree};

/// What one cut takes at the worst.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CutExposure {
    /// Bytes of the calls that are missing.
    pub bytes: u64,
    /// Calls.
    pub calls: u64,
    /// From the return of the oldest of them to the cut.
    pub age: Duration,
}

/// A write whose bytes nobody has changed since.
pub(super) struct Live {
    /// The program's call in the list.
    pub call: usize,
    offset: u64,
    pub contents: Contents,
    pub returned: Option<Moment>,
}

impl Live {
    fn end(&self) -> u64 {
        self.offset.saturating_add(self.contents.size)
    }
}

/// Exposure at every cut of the choice's places, in the order of time; cuts that cannot be
/// recovered are left out. Empty where no calls are known. `go_on` is asked before each; `None`: it
/// said no, and figures of some cuts alone would say nothing of the others.
pub fn exposure(
    run: &ProgramRun,
    system: &dyn System,
    choice: Choice,
    go_on: &dyn Fn() -> bool,
) -> Option<Vec<CutExposure>> {
    if run.calls.is_empty() {
        return Some(Vec::new());
    }
    let bound = StateBound { states: 1, combinations: 0, drawn: 0, ..StateBound::default() };
    let worst = run.states(Choice { bound, ..choice }, bound);
    let mut account = ExposureAccount::new(&run.calls);
    let mut last = LastTree::nothing();
    let known = known_tree(system, run.bases.clone());
    let mut exposed = Vec::new();
    for state in worst.with_age(|tick| tick) {
        if !go_on() {
            return None;
        }
        let digests = state.contents.iter().map(Store::digest).collect();
        let tree = last
            .of(digests, || recover_again(system, state.contents, known.clone()).ok()?.tree.ok());
        account.advance(state.cut.tick);
        if let Some(tree) = tree {
            exposed.push(account.judge(tree, state.cut));
        }
    }
    Some(exposed)
}

/// What the last contents gave. A tree holds all bytes of all files: there is one at a time, and
/// equal contents follow one another.
struct LastTree<T> {
    digests: Option<Vec<u128>>,
    found: Option<T>,
}

impl<T> LastTree<T> {
    fn nothing() -> Self {
        LastTree { digests: None, found: None }
    }

    /// What these contents give, by `find` if they are others than before.
    fn of(&mut self, digests: Vec<u128>, find: impl FnOnce() -> Option<T>) -> Option<&T> {
        if self.digests.as_ref() != Some(&digests) {
            // The one before goes first.
            self.found = None;
            (self.found, self.digests) = (find(), Some(digests));
        }
        self.found.as_ref()
    }
}

/// The writes of a list of calls whose bytes nobody has changed since, by files that have their
/// names.
pub(super) fn live_writes(calls: &[Call]) -> BTreeMap<u64, Vec<Live>> {
    let mut account = ExposureAccount::new(calls);
    account.advance(u64::MAX);
    let ExposureAccount { mut live, gone, .. } = account;
    live.retain(|file, writes| !gone.contains(file) && !writes.is_empty());
    live
}

struct ExposureAccount<'r> {
    calls: &'r [Call],
    /// When they had returned to the program.
    returns: Vec<Option<Moment>>,
    /// The first call that is not accounted for yet.
    next: usize,
    live: BTreeMap<u64, Vec<Live>>,
    /// Inodes that have lost a name.
    gone: BTreeSet<u64>,
}

impl<'r> ExposureAccount<'r> {
    fn new(calls: &'r [Call]) -> ExposureAccount<'r> {
        let returns = returns(calls);
        ExposureAccount { calls, returns, next: 0, live: BTreeMap::new(), gone: BTreeSet::new() }
    }

    /// Takes in the calls begun before a tick.
    fn advance(&mut self, tick: u64) {
        let new = &self.calls[self.next..];
        let count = new.partition_point(|call| call.started.tick < tick);
        for (place, call) in (self.next..).zip(&new[..count]).filter(|(_, call)| !call.failed) {
            let end = |size: u64| call.offset.saturating_add(size);
            let live = self.live.entry(call.ino).or_default();
            match (call.kind, call.contents) {
                (CallKind::Write, Some(contents)) => {
                    let end = end(contents.size);
                    live.retain(|old| old.offset >= end || old.end() <= call.offset);
                    let first = match call.origin {
                        Origin::Program => place,
                        Origin::PartOf(first) => first,
                        Origin::Kernel => continue,
                    };
                    let (offset, returned) = (call.offset, self.returns[place]);
                    live.push(Live { call: first, offset, contents, returned });
                }
                (CallKind::Truncate, _) => {
                    live.retain(|old| old.end() <= call.offset);
                }
                (CallKind::Fallocate | CallKind::Create, _) => live.clear(),
                _ => {}
            }
            match call.kind {
                CallKind::Unlink => drop(self.gone.insert(call.ino)),
                CallKind::Rename => drop(self.gone.insert(call.replaced)),
                CallKind::Create => drop(self.gone.remove(&call.ino)),
                _ => {}
            }
        }
        self.next += count;
    }

    /// What is missing; what is there will stay there, and is no longer looked for.
    fn judge(&mut self, tree: &Tree, cut: Moment) -> CutExposure {
        let nodes: BTreeMap<u64, &Node> =
            tree.nodes().map(|(_, node)| (file_id(&node.attr), node)).collect();
        let (mut exposed, mut calls) = (CutExposure::default(), BTreeSet::new());
        for (ino, live) in &mut self.live {
            let node = nodes.get(ino);
            if node.is_none() && self.gone.contains(ino) {
                live.clear();
            }
            live.retain(|write| {
                let returned = match write.returned {
                    Some(returned) if returned.tick < cut.tick => returned,
                    _ => return true,
                };
                let there = node.is_some_and(|n| n.holds(write.offset, write.contents));
                if !there {
                    exposed.bytes = exposed.bytes.saturating_add(write.contents.size);
                    calls.insert(write.call);
                    exposed.age = exposed.age.max(cut.at - returned.at);
                }
                !there
            });
        }
        exposed.calls = calls.len() as u64;
        exposed
    }
}

/// What the cuts take, the figures one by one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExposureSummary {
    /// Of how many cuts.
    pub n: u64,
    /// Half of the cuts take at most this (nearest rank).
    pub p50: CutExposure,
    /// 99 % of them, if there are cuts enough to say it.
    pub p99: Option<CutExposure>,
    /// What none exceeds.
    pub max: CutExposure,
}

/// What the cuts take; `None` without a cut.
pub fn summary(exposed: &[CutExposure]) -> Option<ExposureSummary> {
    if exposed.is_empty() {
        return None;
    }
    let n = exposed.len() as u64;
    let p99 = Percentile::P99;
    Some(ExposureSummary {
        n,
        p50: quantile(exposed, 0.5),
        p99: p99.is_in(n).then(|| quantile(exposed, p99.share())),
        max: quantile(exposed, 1.0),
    })
}

/// A share of the cuts (0 to 1) has at most this; the figures are taken one by one.
fn quantile(exposed: &[CutExposure], share: f64) -> CutExposure {
    let figure = |of: &dyn Fn(&CutExposure) -> u64| {
        let mut all: Vec<u64> = exposed.iter().map(of).collect();
        all.sort_unstable();
        nearest_rank(&all, share).unwrap_or(0)
    };
    CutExposure {
        bytes: figure(&|e| e.bytes),
        calls: figure(&|e| e.calls),
        age: Duration::from_nanos(figure(&|e| e.age.as_nanos() as u64)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cuts(n: u64) -> Vec<CutExposure> {
        let one = |bytes| CutExposure { bytes, calls: 1, age: Duration::from_nanos(n - bytes) };
        (1..=n).map(one).collect()
    }

    /// A tree may be of as many bytes as the device.
    #[test]
    fn one_tree_is_held_at_a_time() {
        use std::cell::Cell;

        struct Held<'a>(&'a Cell<u32>);
        impl Drop for Held<'_> {
            fn drop(&mut self) {
                self.0.set(self.0.get() - 1);
            }
        }
        let (held, most, made) = (Cell::new(0), Cell::new(0), Cell::new(0));
        let mut last = LastTree::nothing();
        for contents in [1, 1, 2, 3, 3, 3, 1, 4] {
            let found = last.of(vec![contents, 7], || {
                made.set(made.get() + 1);
                // One cannot be recovered.
                (contents != 3).then(|| {
                    held.set(held.get() + 1);
                    most.set(most.get().max(held.get()));
                    Held(&held)
                })
            });
            assert_eq!(found.is_some(), contents != 3);
        }
        assert_eq!((made.get(), most.get(), held.get()), (5, 1, 1));
    }

    #[test]
    fn few_cuts_have_no_99_percent() {
        assert_eq!(summary(&[]), None);
        for n in [1, 10, 41, 399] {
            let all = summary(&cuts(n)).unwrap();
            assert_eq!((all.n, all.p99, all.max.bytes), (n, None, n));
        }
        let all = summary(&cuts(400)).unwrap();
        assert_eq!((all.p50.bytes, all.max.bytes, all.max.age.as_nanos()), (200, 400, 399));
        assert_eq!(all.p99.map(|e| (e.bytes, e.age.as_nanos())), Some((396, 395)));
    }
}
