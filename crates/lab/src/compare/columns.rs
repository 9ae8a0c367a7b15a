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
    ("most", "lost"),
];

/// A stack's.
pub(super) fn cells(row: &StackRow) -> [String; 8] {
    let none = || "-".to_owned();
    let place = row.place.map_or_else(none, |(best, worst)| match best == worst {
        true => best.to_string(),
        false => format!("{best}-{worst}"),
    });
    let number = |ms: f64| match ms {
        ms if ms >= 100.0 => format!("{ms:.0}"),
        ms if ms >= 1.0 => format!("{ms:.1}"),
        ms => format!("{ms:.3}"),
    };
    let (broken, lost) = row.loss.as_ref().map_or_else(
        || (none(), none()),
        |loss| (loss.broken_promises.to_string(), bytes(loss.lost_bytes)),
    );
    [
        place,
        row.stack.clone(),
        format!("{:.3}", row.seconds.median()),
        row.times.map_or_else(none, times),
        row.sync_p50_ms.map_or_else(none, number),
        row.sync_p99_ms.map_or_else(none, number),
        broken,
        lost,
    ]
}

/// To two digits at least.
fn times(times: f64) -> String {
    match times {
        t if t >= 10.0 => format!("{t:.0}"),
        t if t >= 0.1 || t <= 0.0 => format!("{t:.2}"),
        t => format!("{t:.0$}", (1.0 - t.log10().floor()) as usize),
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn what_is_slow_has_digits_too() {
        let of = [240.0, 4.5, 0.1, 0.0523, 0.005, 0.00049, 0.0].map(super::times);
        assert_eq!(of, ["240", "4.50", "0.10", "0.052", "0.0050", "0.00049", "0.00"]);
    }
}
