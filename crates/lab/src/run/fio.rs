//! fio's jobs on a variant's file system.

use std::sync::Arc;

use steadfast_bench::fio::options::RequestKind;
use steadfast_bench::fio::{self, FioEntry, FioResults, JobFile};
use steadfast_statistics::Percentile;
use steadfast_vfs::FileSystem;

use super::reals::MEMORY;
use super::setting::{Part, Report, Subject};
use super::workload::{FileSystemWork, JobResult, Workload};
use crate::results::{FioRow, Percentiles};
use crate::scenario::{FioSpec, Variant};
use crate::{Result, VariantError};

/// The workload of a job file: it is measured, and not cut.
pub(super) struct FioLoad(pub FioSpec);

impl Workload for FioLoad {
    fn command(&self) -> Option<String> {
        Some(self.0.description())
    }

    fn run(&self, of: Subject<'_>, _: Part, _: Report) -> Result<JobResult> {
        let memory = of.setting.memory_of(of.variant);
        let (jobs, variant) = (self.jobs(of)?, of.variant.clone());
        of.setting.on_stack(of.variant, memory, move |stack| {
            let fs: Arc<dyn FileSystem> = stack.mounted()?;
            jobs.run(&fs, &variant)
        })
    }

    fn on_file_system(&self, of: Subject<'_>) -> Option<FileSystemWork> {
        let memory_bytes = of.setting.memory_of(of.variant).unwrap_or(MEMORY);
        let (jobs, variant) = (self.jobs(of), of.variant.clone());
        let run = move |fs: Arc<dyn FileSystem>| jobs?.run(&fs, &variant);
        Some(FileSystemWork { memory_bytes, run: Box::new(run) })
    }

    fn is_reduced_by_default(&self) -> bool {
        !self.0.quick_sections.is_empty()
    }
}

/// A job file, and which of its sections are run.
struct Jobs {
    file: JobFile,
    only: Vec<String>,
}

impl FioLoad {
    fn jobs(&self, of: Subject<'_>) -> Result<Jobs> {
        let only = if of.setting.options.full { Vec::new() } else { self.0.quick_sections.clone() };
        let file = self.0.job_file().map_err(VariantError::Fio)?;
        Ok(Jobs { file, only })
    }
}

impl Jobs {
    fn run(&self, fs: &Arc<dyn FileSystem>, variant: &Variant) -> Result<JobResult> {
        let existing = |path: &str| fio::length_of(&**fs, path);
        let plan = FioSpec::planned(&self.file, &self.only, &existing);
        let plan = plan.map_err(|e| VariantError::Fio(e.to_string()))?;
        let ran = fio::run(fs, &plan, |_| {}).map_err(|e| VariantError::Fio(e.to_string()))?;
        match ran.fault() {
            None => {
                Ok(JobResult { notes: ran.notes.clone(), ..JobResult::of(rows(&ran, variant)) })
            }
            Some(fault) => Err(VariantError::Fio(fault.what.clone())),
        }
    }
}

fn rows(ran: &FioResults, variant: &Variant) -> Vec<FioRow> {
    let both = ran.entries.iter().flat_map(|entry| RequestKind::ALL.map(|kind| (entry, kind)));
    both.filter_map(|(entry, kind)| row(entry, kind, variant)).collect()
}

/// What a job, or a group, has read or written.
fn row(entry: &FioEntry, kind: RequestKind, variant: &Variant) -> Option<FioRow> {
    let figures = &entry.figures.kinds[kind as usize];
    let us = |percent| figures.clat.percentile(percent) as f64 / 1e3;
    let max = figures.clat.moments.max as f64 / 1e3;
    (figures.requests > 0).then(|| FioRow {
        test: format!("{} {}", entry.job.options.name, kind.name()),
        variant: variant.name.clone(),
        requests: figures.requests,
        kb_per_s: figures.bytes_per_s() / 1024.0,
        requests_per_s: figures.requests_per_s(),
        fsyncs: entry.figures.syncs.moments.count,
        latency_us: Percentiles::known(
            figures.requests,
            us(50.0),
            Percentile::P99.is_in(figures.requests).then(|| us(99.0)),
            max,
        ),
    })
}
