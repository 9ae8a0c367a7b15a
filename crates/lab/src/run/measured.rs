//! IOzone in whichever mode its command line asks for: throughput mode, whose tests have a figure
//! each, or single and auto mode, whose tests have one for each cell of a matrix.

use std::sync::Arc;

use steadfast_bench::iozone::matrix::{self, MatrixResults, MatrixTarget, NoPlace};
use steadfast_bench::iozone::{self, Observer, Surroundings};
use steadfast_vfs::FileSystem;

use super::benchmark::row;
use crate::VariantError;
use crate::results::{GridCell, GridRow, SpeedRow, SumKind};
use crate::scenario::{LineError, Scenario, Variant};

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
) -> Result<IozoneRun, VariantError> {
    if options.matrix.is_none() {
        let results = iozone::run(fs, "", options, surroundings, observer)?;
        return Ok(IozoneRun::Throughput(results));
    }
    let place: &dyn MatrixTarget = &NoPlace;
    let cells = &mut matrix::SilentWatcher;
    let results = match observer {
        Some(observer) => {
            matrix::run_observed(&fs, "", options, surroundings, (place, &*observer), cells)
        }
        None => matrix::run(&fs, "", options, surroundings, place, cells),
    };
    Ok(IozoneRun::Matrix(results?))
}

impl IozoneRun {
    /// A row a test; of a matrix the geometric mean over its cells.
    pub fn rows(&self, scenario: &Scenario, variant: &Variant) -> Vec<SpeedRow> {
        match self {
            IozoneRun::Throughput(results) => {
                let tests = results.runs.iter().flat_map(|r| &r.tests);
                tests.filter_map(|t| row(scenario, variant, t)).collect()
            }
            IozoneRun::Matrix(_) => self.grids(variant).iter().map(|g| mean(scenario, g)).collect(),
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

fn mean(scenario: &Scenario, grid: &GridRow) -> SpeedRow {
    let kb_per_s = grid.mean_kb_per_s();
    let published = scenario.published.iter().find(|p| p.test == grid.test);
    SpeedRow {
        test: grid.test.clone(),
        variant: grid.variant.clone(),
        figure: SumKind::default(),
        kb_per_s,
        published_kb_per_s: published.and_then(|p| p.kb_per_s.get(&grid.variant).copied()),
        children_kb_per_s: kb_per_s,
        parent_kb_per_s: kb_per_s,
        read_from_disk: None,
        written_to_disk: None,
        latency_us: None,
        distribution: None,
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

/// IOzone's options of a command line of single or auto mode.
pub(crate) fn matrix_options(line: &str) -> Result<iozone::Options, LineError> {
    let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
    let options = match iozone::parse(&words).map_err(LineError::Matrix)? {
        iozone::CommandLine::Run(options) => *options,
        _ => return Err(LineError::HelpForMatrix),
    };
    let Some(m) = &options.matrix else {
        return Err(LineError::OneSizeForMatrix);
    };
    let refused = [
        (m.mapped.is_some(), "-B, -D", "a variant's file system has no mappings in process"),
        (m.depth.is_some(), "-H, -k", "of calls under way at once no cut can be judged"),
        (m.drop_caches, "--drop-caches", "a variant's cache is not dropped"),
        (m.resume.is_some(), "--resume", "a simulated run begins anew"),
        (m.write_telemetry.is_some(), "-X", "a scenario reads no other files"),
        (m.read_telemetry.is_some(), "-Y", "a scenario reads no other files"),
        (options.latency_files, "-Q", "a scenario writes no other files"),
        (options.spreadsheet.is_some(), "-b", "a scenario writes no other files"),
        (options.json.is_some(), "--json", "`lab run --json` has every cell"),
        (options.cpu_use, "-+u", "it is of this process, not of the simulated machine"),
        (options.processor.is_some(), "-P", "it is of this machine, not of the simulated one"),
    ];
    match refused.iter().find(|(given, ..)| *given) {
        Some((_, option, why)) => Err(LineError::NotForScenario { option, why }),
        None => Ok(options),
    }
}
