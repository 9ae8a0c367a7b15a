//! The table of `lab validate`.

use std::fmt::Write as _;

use super::{Demerits, Validation};
use crate::wrap::wrapped;

/// Each drive in a row, what was found before.
pub fn text(all: &[Validation]) -> String {
    let compared = || all.iter().filter_map(Validation::is_within_disksim);
    let good = compared().filter(|within| *within).count();
    let mut text = String::new();
    let found = match compared().count() {
        0 => "No figure of DiskSim is published for these drives.".to_owned(),
        n => format!(
            "The model's times are at most as far from the drive's as DiskSim's for {good} of {n} \
             {}.",
            if n == 1 { "drive" } else { "drives" }
        ),
    };
    text += &wrapped(&found, 0);
    text += "\n";
    text += &table(all);
    text += "\n";
    text += &wrapped(
        "Demerit in ms: the root mean square of the horizontal distance between the curves of \
         response times, the drive's and the model's; % is of the drive's mean. DiskSim: what its \
         4.0 says of the same trace, all requests. Sheet: a model that is told only what a data \
         sheet says: capacity, rotation, surfaces, outermost and innermost rate, three seek times, \
         settling for writes, buffer and segments, rate of the link, write cache or none.",
        0,
    );
    for v in all {
        for left_out in &v.left_out {
            text += &wrapped(&format!("{}: not modelled: {left_out}.", v.name), 0);
        }
        for warning in &v.warnings {
            text += &wrapped(&format!("{}: {warning}.", v.name), 0);
        }
    }
    text
}

fn table(all: &[Validation]) -> String {
    let width = all.iter().map(|v| v.name.len()).max().unwrap_or(0).max(5);
    let mut text = String::new();
    let ms = |value: Option<f64>| value.map_or("-".into(), |v| format!("{v:.3}"));
    // OK to ignore: writing to a string does not fail.
    let _ = writeln!(
        text,
        "{:width$}  {:>8}  {:>6}  {:>7}  {:>6}  {:>5}  {:>6}  {:>6}  {:>6}",
        "drive", "requests", "mean", "DiskSim", "all", "%", "reads", "writes", "sheet"
    );
    for v in all {
        let Demerits { all, reads, writes } = v.times.demerits();
        let mean = mean(&v.times.drive);
        let share = all.map_or("-".into(), |ms| format!("{:.1}", 100.0 * ms / mean));
        let _ = writeln!(
            text,
            "{:width$}  {:>8}  {mean:>6.3}  {:>7}  {:>6}  {share:>5}  {:>6}  {:>6}  {:>6}",
            v.name,
            v.times.drive.len(),
            ms(v.disksim_ms),
            ms(all),
            ms(reads),
            ms(writes),
            ms(v.sheet.as_ref().and_then(|sheet| sheet.demerits().all)),
        );
    }
    text
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len().max(1) as f64
}
