//! Judges what a cut left of the mixed workload.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use steadfast_crash::figures::StateFigures;
use steadfast_crash::judge::Judge;
use steadfast_crash::program::Tree;
use steadfast_devices::filter::record::Moment;
use steadfast_suite::names::{FOLDER, Names, Node, NodeKind, Views};
use steadfast_suite::operation::{Operation, OperationIndex, WriteKind};
use steadfast_vfs::{FileSystem, TransactMask};

use super::content::{Content, Fault};
use super::contents::Contents;
use super::points;
use super::run::folder_name;
use super::seen;

/// An operation that was carried out.
#[derive(Debug, Clone)]
pub(crate) struct OperationAck {
    pub op: Operation,
    pub started: Moment,
    pub acknowledged: Moment,
}

/// What every task did, in its order.
#[derive(Debug, Clone)]
pub struct History {
    pub(crate) tasks: Vec<Vec<OperationAck>>,
}

/// What the set-up promises.
#[derive(Debug, Clone, Copy)]
pub struct Promises {
    /// New blocks may show what they held before (data=writeback).
    pub stale_allowed: bool,
    /// Transaction points, made by the operations of this mask.
    pub points: Option<TransactMask>,
}

/// A task's operations, with the names after each number of them.
pub(super) struct Task {
    pub done: Vec<OperationAck>,
    pub names: Vec<Names>,
    /// Of each operation, the nodes whose inodes it changes.
    touched: Vec<Vec<Node>>,
}

/// The judge of one recorded run.
pub struct MixedJudge {
    tasks: Vec<Task>,
    promises: Promises,
}

impl MixedJudge {
    /// A judge of the run with this history.
    pub fn new(history: History, promises: Promises) -> Self {
        let task = |done: Vec<OperationAck>| {
            let (mut names, mut touched) = (vec![Names::new()], Vec::new());
            for (index, d) in done.iter().enumerate() {
                let mut next = names[index].clone();
                touched.push(next.apply(index, &d.op));
                names.push(next);
            }
            Task { done, names, touched }
        };
        MixedJudge { tasks: history.tasks.into_iter().map(task).collect(), promises }
    }

    /// What the verdict on a cut at `tick` depends on, beside what is left and how far each task
    /// is: which of its operations have started, and which are acknowledged. `None`: on nothing,
    /// and each task is judged by itself. Else on all of it together, and on this.
    pub(crate) fn joint(&self, tick: u64) -> Option<Vec<Vec<RangeInclusive<usize>>>> {
        self.promises.points.map(|mask| points::candidates(&self.tasks, mask, tick))
    }
}

impl Judge for MixedJudge {
    fn judge(&self, fs: &dyn FileSystem, at: Moment, cut: &mut StateFigures) {
        self.judge_view(&self.look(fs), at, cut);
    }

    fn age(&self, tick: u64) -> u64 {
        let of = |(started, acknowledged): (usize, usize)| (started + acknowledged) as u64;
        self.tasks.iter().map(|task| of(task.progress(tick))).sum()
    }
}

/// What the judge saw of a recovered file system. No promise is part of it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum JudgeView {
    /// What is in the folder of each task.
    Trees(Vec<Views>),
    /// This task's folder is missing.
    Missing(usize),
    /// Why it could not be read.
    Unreadable(String),
}

impl MixedJudge {
    /// Reads all that is judged.
    pub(crate) fn look(&self, fs: &dyn FileSystem) -> JudgeView {
        let tree = match Tree::look_whole(fs, fs.root()) {
            Ok(tree) => tree,
            Err(e) => return JudgeView::Unreadable(e.to_string()),
        };
        if let Some(path) = seen::special(&tree) {
            return JudgeView::Unreadable(format!("/{path}: a special file, which nobody made"));
        }
        let folder = |task| seen::folder(&tree, &folder_name(task)).ok_or(task);
        let found: Result<Vec<_>, _> = (0..self.tasks.len()).map(folder).collect();
        found.map_or_else(JudgeView::Missing, JudgeView::Trees)
    }

    /// Judges what was seen.
    pub(crate) fn judge_view(&self, view: &JudgeView, at: Moment, cut: &mut StateFigures) {
        let found = match view {
            JudgeView::Trees(found) => found,
            JudgeView::Missing(task) => {
                cut.broken_promises += 1;
                cut.findings.push(format!("{} is missing", folder_name(*task)));
                return;
            }
            JudgeView::Unreadable(e) => {
                cut.damage.push(format!("cannot be read after recovery: {e}"));
                return;
            }
        };
        if let Some(mask) = self.promises.points {
            points::judge(&self.tasks, mask, at.tick, found, cut);
            return;
        }
        for (number, (task, tree)) in self.tasks.iter().zip(found).enumerate() {
            task.judge(number, at.tick, tree, self.promises.stale_allowed, cut);
        }
    }
}

/// What was promised of a task's folder before a cut.
struct FolderPromise {
    /// Operations started.
    started: usize,
    /// Operations acknowledged.
    acknowledged: usize,
    /// The fewest operations whose names must be there.
    least: usize,
    contents: Contents,
}

impl Task {
    /// How many operations had started before `tick`, and how many were acknowledged.
    pub fn progress(&self, tick: u64) -> (usize, usize) {
        let started = self.done.partition_point(|d| d.started.tick < tick);
        (started, self.done.partition_point(|d| d.acknowledged.tick < tick))
    }

    fn promised(&self, task: usize, tick: u64) -> FolderPromise {
        let (started, acknowledged) = self.progress(tick);
        let mut p =
            FolderPromise { started, acknowledged, least: 0, contents: Contents::new(task) };
        let mut touched: BTreeMap<Node, OperationIndex> = BTreeMap::new();
        for (index, done) in self.done[..started].iter().enumerate() {
            let names = &self.names[index];
            touched.extend(self.touched[index].iter().map(|node| (*node, index)));
            p.contents.apply(names, index, &done.op);
            if index < acknowledged {
                p.promise(names, index, &done.op, |node| touched.get(&node).map_or(0, |i| i + 1));
            }
        }
        p
    }

    fn judge(
        &self,
        number: usize,
        tick: u64,
        tree: &Views,
        stale_allowed: bool,
        cut: &mut StateFigures,
    ) {
        let promised = self.promised(number, tick);
        let mut fault = None;
        for k in (promised.least..=promised.started).rev() {
            if self.names[k].compare(tree).is_err() {
                continue;
            }
            match promised.judge_data(&self.names[k], tree, stale_allowed) {
                Ok(()) => {
                    cut.lost_operations += promised.acknowledged.saturating_sub(k) as u64;
                    return;
                }
                Err(why) => fault = fault.or(Some((k, why))),
            }
        }
        let folder = folder_name(number);
        match fault {
            Some((k, (name, Fault::Broken(what)))) => {
                cut.broken_promises += 1;
                cut.findings.push(format!("{folder}/{name} after {k} operations: {what}"));
            }
            Some((k, (name, Fault::Stale(what)))) => {
                cut.stale_bytes += 1;
                cut.findings.push(format!("{folder}/{name} after {k} operations: {what}"));
            }
            None => self.no_prefix(&folder, &promised, tree, cut),
        }
    }

    /// The names are not those of a prefix that keeps the promises.
    fn no_prefix(
        &self,
        folder: &str,
        promised: &FolderPromise,
        tree: &Views,
        cut: &mut StateFigures,
    ) {
        let earlier = (0..promised.least).rev().find(|k| self.names[*k].compare(tree).is_ok());
        if let Some(k) = earlier {
            cut.broken_promises += 1;
            let op = &self.done[promised.least - 1].op;
            cut.findings.push(format!(
                "{folder} is as after {k} operations; {} were promised, the last of them {op}",
                promised.least
            ));
            return;
        }
        let why = self.names[promised.started].compare(tree).err().unwrap_or_default();
        cut.order_violations += 1;
        cut.damage.push(format!(
            "{folder} is as after no number of operations; after all {}: {why}",
            promised.started
        ));
    }
}

impl FolderPromise {
    /// The operation with this index was acknowledged. `since` is how many operations there were
    /// when the inode of a node was changed last.
    fn promise(
        &mut self,
        names: &Names,
        index: OperationIndex,
        op: &Operation,
        since: impl Fn(Node) -> usize,
    ) {
        let named = |name: &str| names.node(name).unwrap_or(FOLDER);
        let least = match op {
            Operation::Write { name, offset, len, how } => {
                let node = named(name);
                match how {
                    WriteKind::Sync | WriteKind::DataSync => {
                        self.contents.of(node).promise(*offset, *len)
                    }
                    _ => return,
                }
                if *how == WriteKind::Sync { since(node) } else { node }
            }
            Operation::Fsync { name, data_only } => {
                let node = named(name);
                self.contents.of(node).promise_all();
                // A file that was made is there after fdatasync too; its last rename or change of
                // permissions need not be.
                if *data_only { node } else { since(node) }
            }
            Operation::FsyncDir { name } => since(named(name)),
            Operation::Sync => {
                self.contents.promise_all();
                index
            }
            // A transaction point is judged with all tasks together.
            _ => return,
        };
        self.least = self.least.max(least);
    }

    fn judge_data(
        &self,
        names: &Names,
        tree: &Views,
        stale_allowed: bool,
    ) -> Result<(), (String, Fault)> {
        let empty = Content::default();
        for (name, seen) in tree {
            let Some(node) = names.node(name) else { continue };
            if seen.kind == NodeKind::File {
                let content = self.contents.get(node).unwrap_or(&empty);
                content.judge(&seen.data, stale_allowed).map_err(|f| (name.clone(), f))?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
