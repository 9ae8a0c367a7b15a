//! Exactly the last transaction point.

use std::ops::RangeInclusive;

use steadfast_crash::figures::StateFigures;
use steadfast_suite::names::{FOLDER, NodeKind, Views};
use steadfast_vfs::TransactMask;

use super::contents::Contents;
use super::judge::Task;
use super::run::folder_name;

/// A transaction point: made by operation `index` of `task`, some time in `start..=end` ticks.
struct Point {
    task: usize,
    index: usize,
    start: u64,
    end: u64,
}

/// For each task, after how many operations it may be.
pub(super) type Ranges = Vec<RangeInclusive<usize>>;

/// Judges all tasks together.
pub(super) fn judge(
    tasks: &[Task],
    mask: TransactMask,
    tick: u64,
    found: &[Views],
    cut: &mut StateFigures,
) {
    let candidates = candidates(tasks, mask, tick);
    let matching: Vec<Matches> = tasks
        .iter()
        .zip(found)
        .enumerate()
        .map(|(number, (task, tree))| {
            let ranges = candidates.iter().map(|c| &c[number]);
            let from = ranges.clone().map(|r| *r.start()).min().unwrap_or(0);
            let to = ranges.map(|r| *r.end()).max().unwrap_or(0);
            Matches::find(task, number, tree, from..=to)
        })
        .collect();
    let fits = |ranges: &Ranges| {
        ranges.iter().zip(&matching).all(|(r, m)| m.equal.iter().any(|k| r.contains(k)))
    };
    if candidates.iter().any(fits) {
        let acknowledged = tasks.iter().map(|t| t.progress(tick).1);
        let kept = matching.iter().map(|m| m.equal.last().copied().unwrap_or(0));
        cut.lost_operations +=
            acknowledged.zip(kept).map(|(a, k)| a.saturating_sub(k) as u64).sum::<u64>();
        return;
    }
    cut.broken_promises += 1;
    let states: Vec<String> = matching
        .iter()
        .enumerate()
        .map(|(i, m)| format!("{} equals {:?} ({})", folder_name(i), m.equal, m.nearest))
        .collect();
    cut.findings.push(format!(
        "not the last transaction point: {}; allowed: {:?}",
        states.join("; "),
        &candidates[..candidates.len().min(4)]
    ));
}

/// What the state may be: of the last points that were complete, and of those under way.
pub(super) fn candidates(tasks: &[Task], mask: TransactMask, tick: u64) -> Vec<Ranges> {
    let mut points = Vec::new();
    for (task, t) in tasks.iter().enumerate() {
        let (started, _) = t.progress(tick);
        for (index, done) in t.done[..started].iter().enumerate() {
            if done.op.makes_point(mask) {
                let (start, end) = (done.started.tick, done.acknowledged.tick);
                points.push(Point { task, index, start, end });
            }
        }
    }
    let complete = |p: &&Point| p.end < tick;
    let newest_start = points.iter().filter(complete).map(|p| p.start).max();
    let mut ranges: Vec<Ranges> = points
        .iter()
        .filter(|p| !complete(p) || newest_start.is_none_or(|s| p.end >= s))
        .map(|p| {
            tasks
                .iter()
                .enumerate()
                .map(|(i, t)| {
                    if i == p.task {
                        return p.index + 1..=p.index + 1;
                    }
                    t.progress(p.start).1..=t.progress(p.end.min(tick)).0
                })
                .collect()
        })
        .collect();
    if newest_start.is_none() {
        ranges.push(tasks.iter().map(|_| 0..=0).collect());
    }
    ranges
}

/// After which numbers of operations a task's folder is exactly as found.
struct Matches {
    equal: Vec<usize>,
    /// Why the last that was looked at is not.
    nearest: String,
}

impl Matches {
    fn find(task: &Task, number: usize, tree: &Views, range: RangeInclusive<usize>) -> Matches {
        let mut contents = Contents::new(number);
        let mut matches = Matches { equal: Vec::new(), nearest: String::new() };
        for k in 0..=*range.end() {
            if k > 0 {
                contents.apply(&task.names[k - 1], k - 1, &task.done[k - 1].op);
            }
            if !range.contains(&k) {
                continue;
            }
            match equal(task, k, &contents, tree) {
                Ok(()) => matches.equal.push(k),
                Err(why) => matches.nearest = format!("after {k}: {why}"),
            }
        }
        matches
    }
}

fn equal(task: &Task, k: usize, contents: &Contents, tree: &Views) -> steadfast_crash::Result<()> {
    let names = &task.names[k];
    names.compare(tree).map_err(String::from)?;
    for (name, seen) in tree.iter().filter(|(_, s)| s.kind == NodeKind::File) {
        let node = names.node(name).unwrap_or(FOLDER);
        let data = contents.get(node).map_or(&[][..], |c| &c.data[..]);
        if data != seen.data {
            let at = data.iter().zip(&seen.data).position(|(a, b)| a != b);
            let (have, want) = (seen.data.len(), data.len());
            return Err(format!("'{name}' differs at {at:?}, {have} of {want} bytes").into());
        }
    }
    Ok(())
}
