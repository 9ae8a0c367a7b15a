//! Reads of a variant's disk at random places, without a file system, timed.

use std::sync::Arc;
use std::time::Duration;

use steadfast_bench::places::Chooser;
use steadfast_block::BlockDevice;
use steadfast_block::rng::Rng;
use steadfast_runtime::{cpu, now, spawn};

use super::setting::{Part, Report, Subject};
use super::workload::{JobResult, Workload};
use crate::results::{Percentiles, RandomReadRow};
use crate::scenario::RandomReadSpec;
use crate::{Result, VariantError};

/// What one task found: how long each read took, in microseconds.
type Times = Result<Vec<f64>>;

fn task(
    disk: &Arc<dyn BlockDevice>,
    chooser: &Chooser,
    (bytes, reads, cost): (u64, u64, Duration),
    mut rng: Rng,
) -> Times {
    let one = |_| {
        let offset = chooser.block(&mut rng) * bytes;
        let begun = now();
        cpu(cost);
        disk.read(offset, bytes)?;
        Ok((now() - begun).as_secs_f64() * 1e6)
    };
    (0..reads).map(one).collect()
}

/// Tasks beside each other; all their times, and how long all of it took.
fn tasks(
    disk: &Arc<dyn BlockDevice>,
    chooser: &Arc<Chooser>,
    spec: &RandomReadSpec,
    (reads, cost, seed): (u64, Duration, u64),
) -> Result<(Vec<f64>, f64)> {
    let begun = now();
    let each = (0..spec.tasks).map(|n| {
        let (disk, chooser, bytes) = (Arc::clone(disk), Arc::clone(chooser), spec.bytes);
        let own = reads / spec.tasks + u64::from(n < reads % spec.tasks);
        let rng = Rng::new(seed ^ (n + 1) << 32);
        spawn("random reads", move || task(&disk, &chooser, (bytes, own, cost), rng))
    });
    let each: Vec<_> = each.collect();
    let mut all = Vec::new();
    for task in each {
        all.extend(task.join().unwrap_or_else(|panicked| panicked.resume())?);
    }
    Ok((all, (now() - begun).as_secs_f64()))
}

fn run(of: Subject<'_>, spec: &RandomReadSpec) -> Result<RandomReadRow> {
    let Subject { setting, variant } = of;
    let (inner, seed) = (spec.clone(), setting.options.seed);
    let reads = spec.count(setting.options.full);
    let (times, seconds) = setting.on_stack(variant, None, move |stack| {
        let cost = stack.setup().machine.dd_record(true);
        let disk = stack.own_disk()?;
        let blocks = disk.info().size / inner.bytes;
        if blocks == 0 {
            return Err(VariantError::DiskTooSmall(inner.bytes));
        }
        let chooser = Arc::new(Chooser::new(&inner.distribution.0, blocks));
        let warm_up = reads * inner.warm_up_percent / 100;
        tasks(&disk, &chooser, &inner, (warm_up, cost, seed ^ 0x7761_726d))?;
        tasks(&disk, &chooser, &inner, (reads, cost, seed))
    })?;
    Ok(RandomReadRow {
        test: spec.test.clone(),
        variant: variant.name.clone(),
        reads,
        bytes: spec.bytes,
        seconds,
        reads_per_s: reads as f64 / seconds.max(1e-9),
        latency_us: Percentiles::of(times),
    })
}

/// Random reads as a workload.
pub(super) struct RandomReads(pub Vec<RandomReadSpec>);

impl Workload for RandomReads {
    fn command(&self) -> Option<String> {
        Some(self.0.iter().map(RandomReadSpec::line).collect::<Vec<_>>().join("; "))
    }

    fn parts(&self, of: Subject<'_>) -> Vec<Part> {
        of.measured_if(self.0.iter().any(|spec| of.variant.is_among(&spec.variants)))
    }

    fn run(&self, of: Subject<'_>, _: Part, _: Report) -> Result<JobResult> {
        let each = self.0.iter().filter(|spec| of.variant.is_among(&spec.variants));
        let rows = each.map(|spec| run(of, spec));
        Ok(JobResult::of(rows.collect::<Result<Vec<_>>>()?))
    }

    fn is_reduced_by_default(&self) -> bool {
        self.0.iter().any(|spec| spec.quick_reads.is_some())
    }
}
