//! The comparison for a terminal of 80 columns.

use std::fmt::Write;

use super::{StackRow, sentences};
use crate::results::bytes;
use crate::wrap::wrapped;

/// What was found, then a row for each stack, the fastest first.
pub fn text(rows: &[StackRow]) -> String {
    let mut out = String::new();
    sentences(rows).iter().for_each(|sentence| out.push_str(&wrapped(sentence, 0)));
    // OK to ignore in all of these: a String takes everything.
    let [above, below] = [
        ["", "", "", "times", "sync ms", "sync ms", "", "lost"],
        ["place", "stack", "seconds", "as fast", "p50", "p99", "broken", "at most"],
    ]
    .map(|head| {
        let [place, stack, rest @ ..] = head;
        let [seconds, times, p50, p99, broken, lost] = rest;
        line([place, stack], [seconds, times, p50, p99, broken, lost])
    });
    let _ = write!(out, "\n{above}{below}");
    for row in rows {
        let place = match row.place {
            (best, worst) if best == worst => best.to_string(),
            (best, worst) => format!("{best}-{worst}"),
        };
        let number = |ms: f64| match ms {
            ms if ms >= 100.0 => format!("{ms:.0}"),
            ms if ms >= 1.0 => format!("{ms:.1}"),
            ms => format!("{ms:.3}"),
        };
        let none = || "-".to_owned();
        let sync = if row.syncs > 0 { number(row.sync_p50_ms) } else { none() };
        let times = row
            .times
            .map_or_else(none, |t| if t >= 10.0 { format!("{t:.0}") } else { format!("{t:.2}") });
        let (broken, lost) = match row.cuts {
            0 => (none(), none()),
            _ => (row.broken_promises.to_string(), bytes(row.lost_bytes)),
        };
        let p99 = row.sync_p99_ms.map_or_else(none, number);
        let seconds = format!("{:.3}", row.seconds.median());
        let cells = [&seconds, &times, &sync, &p99, &broken, &lost].map(String::as_str);
        out.push_str(&line([&place, &row.stack], cells));
    }
    out
}

/// A line of the table.
fn line([place, stack]: [&str; 2], cells: [&str; 6]) -> String {
    let [seconds, times, p50, p99, broken, lost] = cells;
    let text = format!(
        "{place:<6}{stack:<21}{seconds:>9} {times:>7} {p50:>8} {p99:>8} {broken:>7} {lost:>8}"
    );
    format!("{}\n", text.trim_end())
}
