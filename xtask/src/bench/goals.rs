//! What the project wants of its speed, and which rows fall short of it.

use steadfast_suite::bench::{Row, Table};

use super::{InProcessRow, times};

/// Times as fast as fuse2fs, where creating or fsync is measured, and for all else.
const OF_FUSE2FS: [f64; 2] = [3.0, 1.0];
/// Times as fast as the kernel's ext4.
const OF_KERNEL: f64 = 0.5;
/// Times as fast as a server behind the same transport that answers at once, of small requests.
const OF_EMPTY: f64 = 0.8;
/// Times as fast as the kernel's, in one process: names, attributes, fsync.
const OF_KERNEL_IN_PROCESS: f64 = 1.0;

/// One line for each figure behind its goal, when steadfast is the first target.
pub(super) fn behind(table: &Table, in_process: &[InProcessRow]) -> Vec<String> {
    let mut lines = Vec::new();
    if table.targets.first() == Some(&"steadfast") {
        for row in &table.rows {
            for (i, target) in table.targets.iter().enumerate().skip(1) {
                let theirs = row.figures[i].nanos_each;
                let goal = goal(row, target);
                lines.extend(short(row.name, target, row.figures[0].nanos_each, theirs, goal));
            }
        }
    }
    for row in in_process.iter().filter(|row| !row.name.ends_with("cached")) {
        let (ours, theirs) = (row.steadfast.nanos, row.kernel.nanos);
        let name = format!("{} in one process", row.name);
        lines.extend(short(&name, "kernel", ours, theirs, OF_KERNEL_IN_PROCESS));
    }
    lines
}

fn goal(row: &Row, target: &str) -> f64 {
    match target {
        target if target.starts_with("kernel") => OF_KERNEL,
        // What the kernel answers from its cache is no work of the daemon's.
        target if target.starts_with("empty") && (row.unit == "MiB" || is_cached(row)) => 0.0,
        target if target.starts_with("empty") => OF_EMPTY,
        _ if row.name == "create" || row.name.ends_with("+ fsync") && row.unit == "write" => {
            OF_FUSE2FS[0]
        }
        _ => OF_FUSE2FS[1],
    }
}

fn is_cached(row: &Row) -> bool {
    row.name.ends_with(", cached")
}

fn short(name: &str, target: &str, ours: u64, theirs: u64, goal: f64) -> Option<String> {
    let is = theirs as f64 / ours.max(1) as f64;
    (is < goal).then(|| {
        format!("{name}: {} times the speed of {target}, the goal is {goal}", times(theirs, ours))
    })
}

/// What stands above the lines.
pub(super) fn sentence(behind: &[String]) -> &'static str {
    match behind {
        [] => "No row is behind its goal.",
        _ => "Behind their goals:",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_too_slow_is_named() {
        assert_eq!(short("create", "fuse2fs", 100, 300, 3.0), None);
        let line = short("create", "fuse2fs", 100, 250, 3.0).unwrap();
        assert_eq!(line, "create: 2.50 times the speed of fuse2fs, the goal is 3");
    }
}
