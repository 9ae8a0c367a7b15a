//! The tables: medians of the turns, with the least and the greatest.

use anyhow::Context;

use super::super::spread::{self, Times};
use super::super::table;
use super::sides::Part;
use super::{Measured, Row};

/// One figure of a row, of each turn.
fn each(measured: &Measured, row: usize, of: fn(&Row) -> u64) -> Vec<u64> {
    measured.turns.iter().filter_map(|turn| turn.get(row)).map(of).collect()
}

fn median(values: &[u64]) -> u64 {
    let mut values = values.to_vec();
    values.sort_unstable();
    values.get(values.len().saturating_sub(1) / 2).copied().unwrap_or(0)
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
fn p99(measured: &Measured, row: usize) -> Option<Vec<u64>> {
    measured.turns.iter().map(|turn| turn.get(row)?.p99_nanos).collect()
}

/// Prints what was measured with so many tasks; what is behind its goal.
pub(super) fn print(part: Part, tasks: usize, all: &[Measured]) -> anyhow::Result<Vec<String>> {
    let (ours, kernels): (Vec<_>, Vec<_>) = all.iter().partition(|side| side.ours);
    let first = *ours.first().context("a side of ours")?;
    let rows = first.turns.first().context("a turn")?;
    let (mut speeds, mut costs, mut behind) = (Vec::new(), Vec::new(), Vec::new());
    for (i, row) in rows.iter().enumerate() {
        let nanos = |side: &Measured| each(side, i, |row| row.nanos_each);
        let medians: Vec<u64> = kernels.iter().map(|side| median(&nanos(side))).collect();
        let best = kernels[spread::best(&medians).context("a side of the kernel's")?];
        let times = Times::of(&nanos(first), &nanos(best)).context("turns")?;
        let name = if row.call == "create-written" { "create+write" } else { &row.call };
        let (mine, theirs) = (range(&nanos(first)), range(&nanos(best)));
        speeds.push(vec![name.to_owned(), mine, theirs, best.side.to_owned(), times.brief()]);
        let cpu = |side| micros(median(&each(side, i, |row| row.cpu_nanos_each)));
        // The best by its percentile may be another.
        let percentile = |side: &&Measured| p99(side, i).map(|values| (median(&values), values));
        let theirs = kernels.iter().filter_map(percentile).min_by_key(|(median, _)| *median);
        let mine = percentile(&first);
        let told = |p: &Option<(u64, Vec<u64>)>| {
            p.as_ref().map_or("too few".to_owned(), |(_, values)| range(values))
        };
        let mut cells = vec![name.to_owned()];
        cells.extend(ours[1..].iter().map(|side| micros(median(&nanos(side)))));
        cells.extend([cpu(first), cpu(best), told(&mine), told(&theirs)]);
        costs.push(cells);
        let (speed, tail) = part.goals(&row.call);
        let who = format!("{}, {}, {tasks} at a time", part.name(), row.call);
        behind.extend(
            speed
                .filter(|goal| times.median() < *goal)
                .map(|goal| format!("{who}: {:.1} times, the goal is {goal}", times.median())),
        );
        if let (Some(goal), Some((mine, _)), Some((theirs, _))) = (tail, &mine, &theirs) {
            let is = *theirs as f64 / (*mine).max(1) as f64;
            if is < goal {
                behind.push(format!("{who}, p99: {is:.1} times, the goal is {goal}"));
            }
        }
    }
    println!("\n{}.", part.title());
    println!("Tasks: {tasks}. Microseconds a call: median (least..greatest).\n");
    table(&["call", first.side, "kernel", "on", "x"].map(str::to_owned), &speeds);
    println!();
    let mut head = vec!["call"];
    head.extend(ours[1..].iter().map(|side| side.side));
    head.extend(["CPU", "kernel", "p99", "kernel's least p99"]);
    table(&head.into_iter().map(str::to_owned).collect::<Vec<_>>(), &costs);
    Ok(behind)
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
