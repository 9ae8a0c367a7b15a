//! The columns of a comparison: on a terminal and on the page.

use super::StackRow;
use crate::results::bytes;

/// Their names, in two lines.
pub(super) const COLUMNS: [(&str, &str); 8] = [
    ("", "place"),
    ("", "stack"),
    ("", "seconds"),
    ("times", "as fast"),
    ("sync ms", "p50"),
    ("sync ms", "p99"),
    ("", "broken"),
    ("lost", "at most"),
];

/// A stack's.
pub(super) fn cells(row: &StackRow) -> [String; 8] {
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
    let times = row
        .times
        .map_or_else(none, |t| if t >= 10.0 { format!("{t:.0}") } else { format!("{t:.2}") });
    let (broken, lost) = match row.cuts {
        0 => (none(), none()),
        _ => (row.broken_promises.to_string(), bytes(row.lost_bytes)),
    };
    [
        place,
        row.stack.clone(),
        format!("{:.3}", row.seconds.median()),
        times,
        if row.syncs > 0 { number(row.sync_p50_ms) } else { none() },
        row.sync_p99_ms.map_or_else(none, number),
        broken,
        lost,
    ]
}
