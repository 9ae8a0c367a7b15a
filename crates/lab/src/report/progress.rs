//! How a program's calls went on: the share of them that had returned, over time.

use super::lines::{Overlay, overlay};
use super::svg::Drawing;
use crate::results::{FilesRow, Results};

/// A line for each of these variants; nothing if nothing was replayed on them.
pub(crate) fn timeline(results: &Results, variants: &[&str]) -> Vec<Drawing> {
    let lines = variants.iter().enumerate().filter_map(|(number, name)| {
        let row = results.all::<FilesRow>().find(|row| row.variant == **name)?;
        let all = row.operations.max(1) as f64;
        let points = row.calls_at_s.iter().map(|(n, at)| (*at, *n as f64 / all * 100.0));
        Some((*name, number, points.collect()))
    });
    let described = |name: &str, points: &[(f64, f64)]| {
        let last = points.last().map_or(0.0, |(at, _)| *at);
        format!("{name}: the last call returned after {last:.3} s")
    };
    overlay(Overlay {
        title: "calls that had returned",
        x: (true, "seconds since the program began"),
        y: (false, "% of its calls"),
        described: &described,
        lines: lines.collect(),
    })
}
