//! How fast mounted file systems are, side by side in one run.
//!
//! All targets are mounted at the same time over image files of the same size and take turns: each
//! row is measured on one after the other, then the whole again, and the medians are compared. So a
//! machine that is busy for a while is busy for all. Who begins changes with the round: a cold row
//! drops the host's caches, those of the targets before it too, and the next row finds it so. A
//! *cold* row begins with a fresh mount and with the host's caches dropped, a *cached* one after
//! what it reads has been read once.

mod rows;

use std::time::{Duration, Instant};

use serde::Serialize;
use steadfast_statistics::median_of_whole;

use crate::{Result, Setup, SuiteError, Target, TargetKind};
use rows::{MountBench, ROWS};

/// How much to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Amounts {
    /// Files made, looked at and removed.
    pub files: u32,
    /// Bytes of the file that is written and read in sequence.
    pub file_bytes: u64,
    /// Requests of 4 KiB at random places.
    pub random: u32,
    /// Writes of 4 KiB, each followed by an fsync.
    pub durable: u32,
    /// Files in the archive.
    pub archive_files: u32,
    /// Times that everything is measured.
    pub rounds: u32,
}

impl Default for Amounts {
    fn default() -> Amounts {
        Amounts {
            files: 5000,
            file_bytes: 128 << 20,
            random: 8192,
            durable: 500,
            archive_files: 2000,
            rounds: 7,
        }
    }
}

impl Amounts {
    /// So little that only the bench itself is tested by it.
    pub fn tiny() -> Amounts {
        let (files, random, durable, archive_files) = (20, 20, 3, 20);
        Amounts { files, file_bytes: 1 << 20, random, durable, archive_files, rounds: 1 }
    }
}

/// What one target needed for a row: medians over the rounds.
#[derive(Debug, Clone, Serialize)]
pub struct Figure {
    /// Nanoseconds an operation (or a MiB, where the row counts those).
    pub nanos_each: u64,
    /// The same of each round, in their order: rounds of different targets can be compared.
    pub rounds_nanos_each: Vec<u64>,
    /// Nanoseconds of CPU an operation that the daemon used; none if there is none. In steps of the
    /// system's clock ticks: exact only for long rows.
    pub daemon_cpu_nanos_each: Option<u64>,
}

/// One row of the table.
#[derive(Debug, Clone, Serialize)]
pub struct Row {
    /// What was done.
    pub name: &'static str,
    /// What is counted.
    pub unit: &'static str,
    /// How many in one measurement.
    pub count: u64,
    /// One for each target, in their order.
    pub figures: Vec<Figure>,
}

/// The whole table.
#[derive(Debug, Clone, Serialize)]
pub struct Table {
    /// How much was done.
    pub amounts: Amounts,
    /// The targets' names.
    pub targets: Vec<&'static str>,
    /// Mount options besides those that a kind cannot do without.
    pub options: String,
    /// In the order of measuring.
    pub rows: Vec<Row>,
}

/// Measures all rows on all kinds.
pub fn run(
    kinds: &[TargetKind],
    setup: &Setup,
    amounts: Amounts,
    progress: &mut dyn FnMut(&str),
) -> Result<Table> {
    let archive = rows::archive(amounts.archive_files)?;
    let mut benches = Vec::new();
    for kind in kinds {
        let target = Target::new(kind.clone(), setup)?;
        benches.push(MountBench { target, amounts, archive: archive.path().join("tree.tar") });
    }
    let mut times = vec![vec![Vec::new(); kinds.len()]; ROWS.len()];
    for round in 0..amounts.rounds {
        for (row, times) in ROWS.iter().zip(&mut times) {
            progress(&format!("round {} of {}: {}", round + 1, amounts.rounds, row.name));
            for turn in 0..benches.len() {
                let of = |e: SuiteError| SuiteError::Target(format!("{}: {e}", row.name));
                let at = (round as usize + turn) % benches.len();
                // OK to index: a remainder of the length, and there are as many times as benches.
                times[at].push(measure(&mut benches[at], row).map_err(of)?);
            }
        }
    }
    for bench in &mut benches {
        bench.target.unmount()?;
    }
    let rows = ROWS.iter().zip(times).map(|(row, times)| {
        let count = (row.count)(&amounts);
        let figures = times.into_iter().map(|t| figure(t, count)).collect();
        Row { name: row.name, unit: row.unit, count, figures }
    });
    let targets = kinds.iter().map(TargetKind::name).collect();
    Ok(Table { amounts, targets, options: setup.options.clone(), rows: rows.collect() })
}

/// Wall time, and the daemon's CPU time.
type Times = (Duration, Option<Duration>);

fn measure(bench: &mut MountBench, row: &rows::RowOf) -> Result<Times> {
    (row.prepare)(bench)?;
    if row.cold {
        bench.target.remount()?;
        let drop_caches = std::path::Path::new("/proc/sys/vm/drop_caches");
        std::fs::write(drop_caches, "3").map_err(SuiteError::host(drop_caches))?;
    }
    let cpu_before = bench.target.daemon_cpu();
    let begun = Instant::now();
    (row.work)(bench)?;
    let took = begun.elapsed();
    let cpu = bench.target.daemon_cpu().zip(cpu_before).map(|(a, b)| a.saturating_sub(b));
    (row.clean)(bench)?;
    Ok((took, cpu))
}

fn figure(times: Vec<Times>, count: u64) -> Figure {
    let each = |d: Duration| d.as_nanos() as u64 / count.max(1);
    let rounds: Vec<u64> = times.iter().map(|t| each(t.0)).collect();
    let nanos_each = median_of_whole(&rounds).unwrap_or(0);
    let cpu: Vec<u64> = times.iter().filter_map(|t| t.1).map(each).collect();
    Figure { nanos_each, rounds_nanos_each: rounds, daemon_cpu_nanos_each: median_of_whole(&cpu) }
}
