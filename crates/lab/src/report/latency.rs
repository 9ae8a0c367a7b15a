//! How long calls took: the share of them that took as long or longer, on two logarithmic axes, so
//! that the few slow ones can be seen.

use super::lines::{NamedLine, Overlay, overlay};
use super::svg::Drawing;
use crate::results::{FilesRow, LatencyHistogram, Percentiles, Results};
use crate::table;

/// A chart a test: a line a variant. Calls of all seeds are taken together.
pub(super) fn panels(results: &Results) -> Vec<Drawing> {
    let of_tests = table::tests(results).into_iter().flat_map(|test| {
        let lines = table::measured(results).into_iter().enumerate().map(|(number, name)| {
            let rows = table::find(results, test, name);
            let whole = LatencyHistogram::sum(rows.iter().filter_map(|r| r.distribution.as_ref()));
            let few = rows.iter().find_map(|r| r.latency_us.as_ref());
            (name, number, points(whole.as_ref(), few, 1e-3))
        });
        chart(test, &format!("milliseconds of a record ({})", results.clock), lines)
    });
    let variants: Vec<&str> = results.variants.iter().map(|v| v.name.as_str()).collect();
    of_tests.chain(fsyncs(results, &variants)).collect()
}

/// The fsyncs of the workload of files on these variants; of several ways to a file system a chart
/// each.
pub(crate) fn fsyncs(results: &Results, variants: &[&str]) -> Vec<Drawing> {
    let rows = || results.all::<FilesRow>();
    let of_way = |way: &String| {
        let lines = variants.iter().enumerate().map(|(number, variant)| {
            let own = || rows().filter(|r| r.variant == **variant && r.way() == *way);
            let whole = LatencyHistogram::sum(own().filter_map(|r| r.fsync_distribution.as_ref()));
            let few = own().map(|r| &r.fsync_ms).next();
            (*variant, number, points(whole.as_ref(), few, 1.0))
        });
        chart(&format!("fsync, {way}"), "milliseconds of an fsync", lines)
    };
    results.ways().iter().flat_map(of_way).collect()
}

/// Pairs of a time in milliseconds and the share of calls that took as long or longer. Where only
/// percentiles were kept, these; `unit`: milliseconds of one of theirs.
fn points(
    whole: Option<&LatencyHistogram>,
    few: Option<&Percentiles>,
    unit: f64,
) -> Vec<(f64, f64)> {
    if let Some(whole) = whole {
        return whole.as_long().into_iter().map(|(us, share)| (us / 1e3, share)).collect();
    }
    let Some(p) = few.filter(|p| p.n() > 0) else { return Vec::new() };
    let max = (p.max(), 1.0 / p.n() as f64);
    let known = [Some((p.p50(), 0.5)), p.p99().map(|v| (v, 0.01)), Some(max)];
    known.into_iter().flatten().map(|(v, share)| (v * unit, share)).collect()
}

fn chart<'a>(title: &str, x: &str, lines: impl Iterator<Item = NamedLine<'a>>) -> Vec<Drawing> {
    let described = |name: &str, points: &[(f64, f64)]| {
        let most = points.last().map_or(0.0, |(ms, _)| *ms);
        format!("{name}: the slowest took {most:.2} ms or a little more")
    };
    overlay(Overlay {
        title,
        x: (true, x),
        y: (true, "share of calls that took as long or longer"),
        described: &described,
        lines: lines.collect(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_percentiles_there_are_three_points_and_of_all_calls_all() {
        let p = Percentiles::of((1..=1000).map(f64::from).collect());
        assert_eq!(points(None, Some(&p), 0.001), [(0.5, 0.5), (0.99, 0.01), (1.0, 0.001)]);
        let whole = LatencyHistogram::of_us([1000.0, 1000.0, 2000.0, 5000.0].into_iter());
        let found = points(Some(&whole), Some(&p), 0.001);
        assert_eq!(found.len(), 5);
        assert!(found.is_sorted_by(|a, b| a.0 < b.0 && a.1 >= b.1), "{found:?}");
        assert!(points(None, None, 1.0).is_empty());
        assert!(points(None, Some(&Percentiles::default()), 1.0).is_empty());
    }
}
