//! The speed of the workload of files.

use serde::{Deserialize, Serialize};
use steadfast_bench::distribution::LatencyHistogram;
use steadfast_statistics::load::{Load, not_ranked};
use steadfast_statistics::rank::{places, rounds_needed};

use super::cell::{Cell, Unit};
use super::column::{Column, always, only_wide, percentiles, wide};
use super::row::{Order, Row, RowContext, TableLine};
use super::{ClockKind, Path, Percentiles, Spread};

/// How fast the workload of files was on one variant.
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FilesRow {
    /// Variant's name.
    pub variant: String,
    /// How its calls reach the file system.
    pub path: Path,
    /// What the times below are of.
    pub clock: ClockKind,
    /// Where the runs that are measured are others than the one that is cut: the speed of that one,
    /// in virtual time for Steadfast, in real time for the kernel.
    pub cut_run_operations_per_s: Option<f64>,
    /// Of the variants whose calls are system calls, which place this one has by speed: the best
    /// and the worst that the runs allow (`steadfast_statistics::rank`). `null`: nothing can be
    /// said.
    pub place: Option<(u64, u64)>,
    /// Calls made, over all runs.
    pub operations: u64,
    /// Calls a second of the time that the programs spent in calls; in real time, over the runs.
    pub operations_per_s: Spread,
    /// The same of each run in real time, in the order of the turns.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub each_operations_per_s: Vec<f64>,
    /// That time, added up over the programs.
    pub in_calls_seconds: f64,
    /// From the first call to the last return, pauses included; of several runs the median.
    pub elapsed_seconds: f64,
    /// Calls that were an fsync, an fdatasync or an fsync of a folder.
    pub fsyncs: u64,
    /// How long these took, in milliseconds.
    pub fsync_ms: Percentiles,
    /// The same of all of them, in steps.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, schemars(with = "Option<Vec<[i64; 2]>>"))]
    pub fsync_distribution: Option<LatencyHistogram>,
    /// Of a replay, its timeline: how many calls had returned, so many seconds after the first one
    /// began.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub calls_at_s: Vec<(u64, f64)>,
}

impl FilesRow {
    /// How its calls were made and timed, in words: `by system calls, wall clock`.
    pub fn way(&self) -> String {
        format!("{}, {} clock", self.path.name(), self.clock.name())
    }
}

/// Gives the variants whose calls are system calls their places by speed, if there are enough runs
/// on a machine that was quiet before them; else says why there are none.
pub fn place<'f>(
    files: impl Iterator<Item = &'f mut FilesRow>,
    before: Option<Load>,
) -> Option<String> {
    let mut rows: Vec<&mut FilesRow> = files.filter(|f| f.path.is_system_call()).collect();
    let runs = rows.iter().map(|f| f.each_operations_per_s.len()).min()?;
    let needed = rounds_needed(rows.len());
    let few = || {
        let why = format!("not ranked: {runs} runs; an order of {} needs {needed}", rows.len());
        (runs < needed).then_some(why)
    };
    if let Some(why) = not_ranked(before).or_else(few) {
        return Some(why);
    }
    let speeds: Vec<Vec<f64>> = rows.iter().map(|f| f.each_operations_per_s.clone()).collect();
    for (row, (best, worst)) in rows.iter_mut().zip(places(&speeds)) {
        row.place = Some((best as u64, worst as u64));
    }
    None
}

impl Row for FilesRow {
    fn lines(&self, _results: &dyn RowContext) -> Vec<TableLine> {
        let how = self.way();
        let calls = Cell::Number(self.operations_per_s, Unit::Plain(0));
        let cut_clock = if self.path == Path::Kernel { "wall" } else { "virtual" };
        let cut_run = Cell::maybe(self.cut_run_operations_per_s, Unit::Plain(0));
        let mut columns = vec![always(format!("calls/s {how}"), calls)];
        if self.path.is_system_call() {
            let place = self.place.map(|(best, worst)| match best == worst {
                true => format!("{best}"),
                false => format!("{best} to {worst}"),
            });
            columns.push(always("place", place.map_or(Cell::None, Cell::Text)));
        }
        columns.extend([
            wide(format!("calls/s of the run that was cut, {cut_clock} clock"), cut_run),
            wide(format!("runs {how}"), Cell::count(self.operations_per_s.runs())),
            wide(format!("calls {how}"), Cell::count(self.operations)),
            wide(format!("fsyncs {how}"), Cell::count(self.fsyncs)),
        ]);
        let [p50, tail, max] =
            percentiles(&format!("fsync ms, {how},"), &self.fsync_ms, Unit::Plain(2));
        columns.extend([Column { wide: !self.path.is_system_call(), ..p50 }, only_wide(tail), max]);
        columns.push(wide(format!("run s {how}"), Cell::plain(self.elapsed_seconds, 1)));
        vec![TableLine::new(Order::Files, "speed", &self.variant, columns)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(path: Path, speeds: &[f64]) -> FilesRow {
        FilesRow {
            variant: "a".into(),
            path,
            clock: ClockKind::Wall,
            cut_run_operations_per_s: None,
            place: None,
            operations: 1,
            operations_per_s: Spread::of(speeds),
            each_operations_per_s: speeds.to_vec(),
            in_calls_seconds: 1.0,
            elapsed_seconds: 1.0,
            fsyncs: 0,
            fsync_ms: Percentiles::default(),
            fsync_distribution: None,
            calls_at_s: Vec::new(),
        }
    }

    #[test]
    fn places_need_a_difference_runs_and_a_quiet_machine() {
        let speeds =
            |of: f64, n: u32| -> Vec<f64> { (0..n).map(|i| of + f64::from(i * 7 % 11)).collect() };
        let rows = |n| {
            [
                row(Path::Kernel, &speeds(100.0, n)),
                row(Path::Fuse, &speeds(101.0, n)),
                row(Path::Kernel, &speeds(10.0, n)),
                row(Path::InProcess, &speeds(500.0, n)),
            ]
        };
        let load = |average| Some(Load { average, processors: 2 });
        let mut enough = rows(7);
        assert_eq!(place(enough.iter_mut(), load(0.4)), None);
        let places: Vec<_> = enough.iter().map(|r| r.place).collect();
        assert_eq!(places, [Some((1, 2)), Some((1, 2)), Some((3, 3)), None]);
        for (n, load, why) in [
            (5, load(0.4), "not ranked: 5 runs; an order of 3 needs 7"),
            (7, load(8.61), "not ranked: load was 8.6"),
            (7, None, "not ranked: the load is not known"),
        ] {
            let mut rows = rows(n);
            assert_eq!(place(rows.iter_mut(), load).as_deref(), Some(why));
            assert!(rows.iter().all(|r| r.place.is_none()));
        }
        assert_eq!(place([].iter_mut(), None), None);
    }
}
