//! The tables: medians of the turns, with the least and the greatest.

use anyhow::Context;
use steadfast_statistics::load::Load;
use steadfast_statistics::median_of_whole;

use super::super::spread::{self, Times};
use super::super::table;
use super::sides::Part;
use super::{Row, SideTurns};

/// One figure of a row, of each turn.
fn each(measured: &SideTurns, row: usize, of: fn(&Row) -> u64) -> Vec<u64> {
    measured.turns.iter().filter_map(|turn| turn.get(row)).map(of).collect()
}

fn median(values: &[u64]) -> u64 {
    median_of_whole(values).unwrap_or(0)
}

/// Microseconds, three digits of them.
fn micros(nanos: u64) -> String {
    match nanos {
        0..9_950 => format!("{:.1}", nanos as f64 / 1e3),
        _ => format!("{:.0}", nanos as f64 / 1e3),
    }
}

/// Median (least..greatest).
fn range(values: &[u64]) -> String {
    let (least, most) = (values.iter().min(), values.iter().max());
    let end = |value: Option<&u64>| micros(value.copied().unwrap_or(0));
    format!("{} ({}..{})", micros(median(values)), end(least), end(most))
}

/// A percentile, where each turn has calls enough for one.
fn p99(measured: &SideTurns, row: usize) -> Option<Vec<u64>> {
    measured.turns.iter().map(|turn| turn.get(row)?.p99_nanos).collect()
}

/// Processor time, where in each turn it was enough to be counted.
fn cpu(measured: &SideTurns, row: usize) -> Option<Vec<u64>> {
    measured.turns.iter().map(|turn| turn.get(row)?.cpu_nanos_each).collect()
}

/// What was measured with so many tasks, a row for each call.
pub(super) struct TableRows {
    /// Of the first of our sides, which is the one that is compared, and of the others.
    first: &'static str,
    others: Vec<&'static str>,
    rows: Vec<SideCells>,
    /// What is behind its goal.
    pub behind: Vec<String>,
}

struct SideCells {
    call: String,
    ours: String,
    others: Vec<String>,
    kernel: String,
    set_up: &'static str,
    times: String,
    /// Of ours and of the kernel's best.
    cpu: [String; 2],
    p99: [String; 2],
}

impl TableRows {
    pub fn of(
        part: Part,
        tasks: usize,
        all: &[SideTurns],
        before: Option<Load>,
    ) -> anyhow::Result<TableRows> {
        let (ours, kernels): (Vec<_>, Vec<_>) = all.iter().partition(|side| side.ours);
        let (first, others) = ours.split_first().context("a side of ours")?;
        let turn = first.turns.first().context("a turn")?;
        let mut rows = TableRows {
            first: first.side,
            others: others.iter().map(|side| side.side).collect(),
            rows: Vec::new(),
            behind: Vec::new(),
        };
        for (i, row) in turn.iter().enumerate() {
            let nanos = |side: &SideTurns| each(side, i, |row| row.nanos_each);
            let medians: Vec<u64> = kernels.iter().map(|side| median(&nanos(side))).collect();
            let best = kernels[spread::best(&medians).context("a side of the kernel's")?];
            let times = Times::of(&nanos(first), &nanos(best), before).context("turns")?;
            let cpu = |side| cpu(side, i).map_or("-".to_owned(), |each| micros(median(&each)));
            let percentile = |side: &&SideTurns| p99(side, i).map(|v| (median(&v), v));
            // The best by its percentile may be another.
            let theirs = kernels.iter().filter_map(percentile).min_by_key(|(median, _)| *median);
            let mine = percentile(first);
            let cell_of = |p: &Option<(u64, Vec<u64>)>| {
                p.as_ref().map_or("too few".to_owned(), |(_, values)| range(values))
            };
            let call = if row.call == "create-written" { "create+write" } else { &row.call };
            rows.rows.push(SideCells {
                call: call.to_owned(),
                ours: range(&nanos(first)),
                others: others.iter().map(|side| micros(median(&nanos(side)))).collect(),
                kernel: range(&nanos(best)),
                set_up: best.side,
                times: times.brief(),
                cpu: [cpu(first), cpu(best)],
                p99: [cell_of(&mine), cell_of(&theirs)],
            });
            let (speed, tail) = part.goals(&row.call);
            let who = format!("{}, {call}, tasks: {tasks}", part.name());
            rows.behind.extend(
                speed
                    .filter(|goal| times.median() < *goal)
                    .map(|goal| format!("{who}: {:.1} times, the goal is {goal}", times.median())),
            );
            if let (Some(goal), Some((mine, _)), Some((theirs, _))) = (tail, &mine, &theirs) {
                let is = *theirs as f64 / (*mine).max(1) as f64;
                if is < goal {
                    rows.behind.push(format!("{who}, p99: {is:.1} times, the goal is {goal}"));
                }
            }
        }
        Ok(rows)
    }

    /// Two tables, within 80 columns.
    pub fn print(&self, part: Part, tasks: usize) {
        println!("\n{}; tasks: {tasks}.\n", part.title());
        let cells = |row: &SideCells| {
            let set_up = row.set_up.to_owned();
            vec![row.call.clone(), row.ours.clone(), row.kernel.clone(), set_up, row.times.clone()]
        };
        let head = ["call", self.first, "kernel", "set-up", "x"].map(str::to_owned);
        table(&head, &self.rows.iter().map(cells).collect::<Vec<_>>());
        println!();
        let mut head = vec!["call"];
        head.extend(&self.others);
        head.extend(["CPU", "kernel's", "p99", "kernel's p99"]);
        let cells = |row: &SideCells| {
            let mut cells = vec![row.call.clone()];
            cells.extend(row.others.iter().chain(&row.cpu).chain(&row.p99).cloned());
            cells
        };
        let head: Vec<String> = head.into_iter().map(str::to_owned).collect();
        table(&head, &self.rows.iter().map(cells).collect::<Vec<_>>());
    }

    /// For [`print_wide`].
    pub fn wide(&self, tasks: usize) -> Vec<Vec<String>> {
        let cells = |row: &SideCells| {
            let mut cells = vec![row.call.clone(), tasks.to_string(), row.ours.clone()];
            cells.extend([row.kernel.clone(), row.set_up.to_owned(), row.times.clone()]);
            cells.extend(row.cpu.iter().chain(&row.p99).cloned());
            cells
        };
        self.rows.iter().map(cells).collect()
    }
}

/// One table for a part, with all columns.
pub(super) fn print_wide(part: Part, rows: &[Vec<String>]) {
    println!("\n{}:\n", part.title());
    let head = ["call", "tasks", "steadfast", "kernel", "set-up", "x", "CPU", "kernel's", "p99"];
    let mut head: Vec<String> = head.map(str::to_owned).into();
    head.push("kernel's p99".to_owned());
    table(&head, rows);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn microseconds_with_their_range() {
        assert_eq!(range(&[2900, 2800, 12_345]), "2.9 (2.8..12)");
        assert_eq!(range(&[]), "0.0 (0.0..0.0)");
    }
}
