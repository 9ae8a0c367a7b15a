//! IOzone in whichever mode its command line asks for: throughput mode, whose tests have a figure
//! each, or single and auto mode, whose tests have one for each cell of a matrix.

use std::sync::Arc;

use steadfast_bench::iozone::latency::Operation;
use steadfast_bench::iozone::matrix::{self, InProcessTarget, MatrixResults};
use steadfast_bench::iozone::{self, Observer, Surroundings, TestResult};
use steadfast_vfs::FileSystem;

use crate::Result;
use crate::results::{GridCell, GridRow, Percentiles, SpeedRow, SumKind};
use crate::scenario::{PublishedSpeed, Scenario, Variant};

/// What a run brought.
pub(super) enum IozoneRun {
    /// Throughput mode.
    Throughput(iozone::IozoneResults),
    /// Single and auto mode.
    Matrix(MatrixResults),
}

/// Runs a command line on a file system, in its root.
pub(super) fn iozone(
    fs: Arc<dyn FileSystem>,
    options: &iozone::Options,
    surroundings: &Surroundings,
    observer: Option<Arc<dyn Observer>>,
) -> Result<IozoneRun> {
    if options.matrix.is_none() {
        let results = iozone::run(fs, "", options, surroundings, observer)?;
        return Ok(IozoneRun::Throughput(results));
    }
    let (observer, cells) = (observer.as_deref(), &mut matrix::SilentWatcher);
    let results = matrix::run(&fs, "", options, surroundings, (&InProcessTarget, observer), cells)?;
    Ok(IozoneRun::Matrix(results))
}

impl IozoneRun {
    /// A row a test; of a matrix the geometric mean over its cells.
    pub fn rows(&self, scenario: &Scenario, variant: &Variant) -> Vec<SpeedRow> {
        match self {
            IozoneRun::Throughput(results) => {
                let tests = results.runs.iter().flat_map(|r| &r.tests);
                tests.map(|t| row(scenario, variant, t)).collect()
            }
            IozoneRun::Matrix(_) => {
                let mean = |g: GridRow| speed(scenario, variant, &g.test, g.mean_kb_per_s());
                self.grids(variant).into_iter().map(mean).collect()
            }
        }
    }

    /// Every cell of a matrix, by test.
    pub fn grids(&self, variant: &Variant) -> Vec<GridRow> {
        let IozoneRun::Matrix(results) = self else { return Vec::new() };
        let mut grids: Vec<GridRow> = Vec::new();
        for cell in &results.cells {
            for measure in &cell.measures {
                let rates = measure.runs.iter().map(matrix::RunOf::rate);
                let kb_per_s = rates.sum::<f64>() / measure.runs.len().max(1) as f64 / 1024.0;
                let of_cell = GridCell {
                    file_kb: cell.file_bytes >> 10,
                    record_kb: cell.record_bytes >> 10,
                    kb_per_s,
                    only_the_cache: measure.only_the_cache,
                };
                let test = measure.column.name();
                match grids.iter_mut().find(|g| g.test == test) {
                    Some(grid) => grid.cells.push(of_cell),
                    None => grids.push(GridRow {
                        variant: variant.name.clone(),
                        test: test.into(),
                        cells: vec![of_cell],
                    }),
                }
            }
        }
        grids
    }

    /// What a reader of the figures must know. (Of a matrix the cells say it each.)
    pub fn notes(&self) -> Vec<String> {
        match self {
            IozoneRun::Throughput(results) => results.notes.clone(),
            IozoneRun::Matrix(_) => Vec::new(),
        }
    }
}

/// What the source says of a test.
pub(super) fn published<'s>(scenario: &'s Scenario, test: &str) -> Option<&'s PublishedSpeed> {
    scenario.published.iter().find(|p| p.test == test)
}

/// The speed of a test, beside the published one; no more is known of it.
pub(super) fn speed(scenario: &Scenario, variant: &Variant, test: &str, kb_per_s: f64) -> SpeedRow {
    let published = published(scenario, test);
    SpeedRow {
        test: test.to_owned(),
        variant: variant.name.clone(),
        figure: SumKind::Children,
        kb_per_s,
        published_kb_per_s: published.and_then(|p| p.kb_per_s.get(&variant.name).copied()),
        children_kb_per_s: kb_per_s,
        parent_kb_per_s: kb_per_s,
        ..SpeedRow::default()
    }
}

/// A test of throughput mode.
fn row(scenario: &Scenario, variant: &Variant, t: &TestResult) -> SpeedRow {
    let test = t.test.name();
    let figure = published(scenario, test).map_or(SumKind::default(), |p| p.figure);
    let (children, parent) = (t.summary.children_see, t.summary.parent_sees);
    let latency = t
        .latency
        .iter()
        .filter(|l| matches!(l.operation, Operation::Read | Operation::Write))
        .max_by_key(|l| l.count);
    SpeedRow {
        figure,
        children_kb_per_s: children,
        parent_kb_per_s: parent,
        distribution: latency.map(|l| l.distribution.clone()),
        latency_us: latency.map(|l| {
            let us = |ns: u64| ns as f64 / 1e3;
            Percentiles::known(l.count, us(l.p50_ns), l.p99_ns.map(us), us(l.max_ns))
        }),
        ..speed(
            scenario,
            variant,
            test,
            match figure {
                SumKind::Children => children,
                SumKind::Parent => parent,
            },
        )
    }
}

/// About how many writes a command line makes: for the progress.
pub(super) fn writes_expected(options: &iozone::Options) -> f64 {
    // Most tests write every record; how far it is need not be exact.
    let records = match &options.matrix {
        Some(matrix) => {
            let cells = matrix.cells(options.file_bytes, options.record_bytes);
            cells.iter().map(|(file, record)| file / record).sum()
        }
        None => options.children.iter().sum::<usize>().max(1) as u64 * options.records(),
    };
    (records * 5).max(1) as f64
}
