//! Reads of a variant's disk at random places, without a file system, timed.

use std::sync::Arc;
use std::time::Duration;

use steadfast_block::BlockDevice;
use steadfast_block::rng::Rng;
use steadfast_runtime::{cpu, now, spawn};

use super::setting::{Part, Report, Subject};
use super::workload::{JobResult, Workload};
use crate::results::{Percentiles, RandomReadRow};
use crate::scenario::{Distribution, RandomReadSpec};
use crate::{Result, VariantError};

/// Where the reads go.
enum ReadOffsets {
    Random,
    /// The sum of the weights of all ranks up to each, and the step that scatters them.
    Zipf(Vec<f64>, u64),
    /// Percentage of the reads, and blocks that they go to.
    Zoned(u64, u64),
}

/// Chooses blocks.
pub(super) struct Chooser {
    places: ReadOffsets,
    blocks: u64,
}

impl Chooser {
    /// Of so many blocks.
    pub fn new(distribution: Distribution, blocks: u64) -> Chooser {
        let places = match distribution {
            Distribution::Random => ReadOffsets::Random,
            Distribution::Zipf(theta) => {
                let mut sum = 0.0;
                let weights = (1..=blocks).map(|rank| {
                    sum += (rank as f64).powf(-theta);
                    sum
                });
                ReadOffsets::Zipf(weights.collect(), scatter(blocks))
            }
            Distribution::Zoned(reads, of) => {
                ReadOffsets::Zoned(u64::from(reads), (blocks * u64::from(of) / 100).max(1))
            }
        };
        Chooser { places, blocks }
    }

    fn block(&self, rng: &mut Rng) -> u64 {
        match &self.places {
            ReadOffsets::Random => rng.below(self.blocks),
            ReadOffsets::Zipf(sums, step) => {
                let all = sums.last().copied().unwrap_or(0.0);
                // 53 bits: as many as a double has.
                let at = (rng.bits() >> 11) as f64 / (1u64 << 53) as f64 * all;
                let rank = sums.partition_point(|sum| *sum <= at) as u64;
                // OK to multiply in 128 bits: the rest fits again.
                (u128::from(rank.min(self.blocks - 1)) * u128::from(*step)
                    % u128::from(self.blocks)) as u64
            }
            ReadOffsets::Zoned(percent, first) => {
                match rng.percent(*percent) || *first == self.blocks {
                    true => rng.below(*first),
                    false => first + rng.below(self.blocks - first),
                }
            }
        }
    }
}

/// A step with which every block is come to once: it has no divisor in common with their number.
fn scatter(blocks: u64) -> u64 {
    let divisor = |mut a: u64, mut b: u64| {
        while b > 0 {
            (a, b) = (b, a % b);
        }
        a
    };
    // About the golden section: neighbours in rank lie far from each other.
    let about = (blocks as f64 * 0.618_033_988_749_895) as u64;
    (about.max(1)..).find(|step| divisor(*step, blocks) == 1).unwrap_or(1)
}

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
        let chooser = Arc::new(Chooser::new(inner.distribution, blocks));
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_go_where_the_distribution_says() {
        let count = |distribution, blocks: u64| {
            let (chooser, mut rng) = (Chooser::new(distribution, blocks), Rng::new(1));
            let mut counts = vec![0u64; blocks as usize];
            (0..100_000).for_each(|_| counts[chooser.block(&mut rng) as usize] += 1);
            counts
        };
        let random = count(Distribution::Random, 100);
        assert!(random.iter().all(|n| (800..1200).contains(n)));
        let zoned = count(Distribution::Zoned(80, 20), 100);
        let first: u64 = zoned[..20].iter().sum();
        assert!((79_000..81_000).contains(&first) && zoned.iter().all(|n| *n > 100));
        // 1/k over 1000 ranks: the first has 1/7.49 of all.
        let mut zipf = count(Distribution::Zipf(1.0), 1000);
        assert!(zipf[1] < 1000, "the second rank is not beside the first");
        zipf.sort_unstable_by(|a, b| b.cmp(a));
        assert!((13_000..13_700).contains(&zipf[0]) && (6_400..7_000).contains(&zipf[1]));
    }

    #[test]
    fn every_block_has_one_rank() {
        for blocks in [1, 2, 7, 100, 4096, 66_150] {
            let step = scatter(blocks);
            let mut seen: Vec<u64> = (0..blocks).map(|rank| rank * step % blocks).collect();
            seen.sort_unstable();
            assert!(seen.iter().enumerate().all(|(n, block)| *block == n as u64), "{blocks}");
        }
    }
}
