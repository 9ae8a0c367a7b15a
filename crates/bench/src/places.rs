//! Where requests at random places go, as fio's `random_distribution` has it: a [`Distribution`],
//! and a [`Chooser`] that draws blocks by it.

use std::fmt;

use steadfast_block::rng::Rng;

/// The most blocks over which the weights of ranks are kept, 8 bytes each.
pub(crate) const RANKS_MAX: u64 = 1 << 24;

/// Where the requests go.
#[derive(Debug, Clone, PartialEq)]
pub enum Distribution {
    /// Everywhere alike.
    Random,
    /// The block of rank *k* is taken in proportion to 1/k^theta; the ranks are scattered.
    Zipf(f64),
    /// Pareto's, by the share (0 to 1) of the blocks that the rest of the requests goes to: with
    /// 0.2, 80 % go to 20 %. The ranks are scattered.
    Pareto(f64),
    /// Normal, with this deviation in % of the blocks. The ranks are scattered.
    Normal(f64),
    /// Percentages of the requests, and of the blocks that they go to, from the start on.
    Zoned(Vec<(u8, u8)>),
}

/// A text that is no distribution.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DistributionError {
    /// The exponent of a Zipf distribution.
    #[error("`{0}`: theta is a number from 0.01 to 5, as in zipf:1.1")]
    Theta(String),
    /// Pareto's power.
    #[error("`{0}`: a number between 0 and 1, as in pareto:0.2")]
    Power(String),
    /// The deviation of a normal distribution.
    #[error("`{0}`: a deviation above 0 and up to 100 %, as in normal:10")]
    Deviation(String),
    /// The zones.
    #[error(
        "`{0}`: zones that are 100 % of both, as in zoned:80/20:20/80: 80 % go to the first 20 %"
    )]
    Zones(String),
    /// No distribution of that name.
    #[error("there is no distribution `{0}`; there are random, zipf:, pareto:, normal: and zoned:")]
    Unknown(String),
}

impl Distribution {
    /// Reads `random`, `zipf:1.1`, `pareto:0.2`, `normal:10` or `zoned:80/20:20/80`.
    ///
    /// # Errors
    /// It is none of them.
    pub fn parse(text: &str) -> Result<Distribution, DistributionError> {
        let (name, rest) = text.split_once(':').unwrap_or((text, ""));
        let number = |good: fn(f64) -> bool| rest.parse().ok().filter(|n| good(*n));
        let wrong = || text.to_owned();
        match name {
            "random" if rest.is_empty() => Ok(Distribution::Random),
            "zipf" => number(|n| (0.01..=5.0).contains(&n))
                .map(Distribution::Zipf)
                .ok_or_else(|| DistributionError::Theta(wrong())),
            "pareto" => number(|n| n > 0.0 && n < 1.0)
                .map(Distribution::Pareto)
                .ok_or_else(|| DistributionError::Power(wrong())),
            "normal" => number(|n| n > 0.0 && n <= 100.0)
                .map(Distribution::Normal)
                .ok_or_else(|| DistributionError::Deviation(wrong())),
            "zoned" => zones(rest).ok_or_else(|| DistributionError::Zones(wrong())),
            _ => Err(DistributionError::Unknown(wrong())),
        }
    }

    /// Whether the weights of all ranks are kept, of which there may be [`RANKS_MAX`].
    pub(crate) fn keeps_ranks(&self) -> bool {
        matches!(self, Distribution::Zipf(_))
    }
}

/// As [`Distribution::parse`] takes it.
impl fmt::Display for Distribution {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Distribution::Random => write!(f, "random"),
            Distribution::Zipf(theta) => write!(f, "zipf:{theta}"),
            Distribution::Pareto(power) => write!(f, "pareto:{power}"),
            Distribution::Normal(deviation) => write!(f, "normal:{deviation}"),
            Distribution::Zoned(zones) => {
                write!(f, "zoned")?;
                zones.iter().try_for_each(|(share, of)| write!(f, ":{share}/{of}"))
            }
        }
    }
}

/// What is left out in the last zone is what the others have left.
fn zones(text: &str) -> Option<Distribution> {
    let (mut shares, mut sizes) = (0u8, 0u8);
    let mut zones = Vec::new();
    for zone in text.split(':') {
        let (share, of) = zone.split_once('/')?;
        let part = |text: &str, so_far: &mut u8| -> Option<u8> {
            let left = 100 - *so_far;
            let part = if text.is_empty() { left } else { text.parse().ok()? };
            *so_far += (1..=left).contains(&part).then_some(part)?;
            Some(part)
        };
        zones.push((part(share, &mut shares)?, part(of, &mut sizes)?));
    }
    (zones.len() > 1 && (shares, sizes) == (100, 100)).then_some(Distribution::Zoned(zones))
}

/// What a distribution needs to know of the blocks.
enum Ranks {
    Random,
    /// The sum of the weights of all ranks up to each, and the step that scatters them.
    Zipf(Vec<f64>, u64),
    /// The exponent, and the step.
    Pareto(f64, u64),
    /// The deviation in blocks, and the step.
    Normal(f64, u64),
    /// Percentages of all requests up to each zone, and where each zone ends.
    Zoned(Vec<(u64, u64)>),
}

/// Chooses blocks.
pub struct Chooser {
    ranks: Ranks,
    blocks: u64,
}

impl Chooser {
    /// Of so many blocks, at least one.
    pub fn new(distribution: &Distribution, blocks: u64) -> Chooser {
        let blocks = blocks.max(1);
        let ranks = match distribution {
            Distribution::Random => Ranks::Random,
            Distribution::Zipf(theta) => {
                let mut sum = 0.0;
                let weights = (1..=blocks).map(|rank| {
                    sum += (rank as f64).powf(-theta);
                    sum
                });
                Ranks::Zipf(weights.collect(), scatter(blocks))
            }
            Distribution::Pareto(power) => {
                Ranks::Pareto(power.ln() / (1.0 - power).ln(), scatter(blocks))
            }
            Distribution::Normal(deviation) => {
                Ranks::Normal(blocks as f64 * deviation / 100.0, scatter(blocks))
            }
            Distribution::Zoned(zones) => {
                let (mut share, mut size) = (0, 0);
                let ends = zones.iter().map(|(of_all, of_blocks)| {
                    (share, size) = (share + u64::from(*of_all), size + u64::from(*of_blocks));
                    // OK to multiply in 128 bits: the rest fits again.
                    let end = (u128::from(blocks) * u128::from(size) / 100) as u64;
                    (share, end.max(1))
                });
                Ranks::Zoned(ends.collect())
            }
        };
        Chooser { ranks, blocks }
    }

    /// The next block.
    pub fn block(&self, rng: &mut Rng) -> u64 {
        match &self.ranks {
            Ranks::Random => rng.below(self.blocks),
            Ranks::Zipf(sums, step) => {
                let at = uniform(rng) * sums.last().copied().unwrap_or(0.0);
                self.scattered(sums.partition_point(|sum| *sum <= at) as u64, *step)
            }
            Ranks::Pareto(power, step) => {
                let rank = (self.blocks - 1) as f64 * uniform(rng).powf(*power);
                self.scattered(rank as u64, *step)
            }
            Ranks::Normal(deviation, step) => {
                // The sum of twelve has the deviation 1.
                let normal = (0..12).map(|_| uniform(rng)).sum::<f64>() - 6.0;
                let rank = self.blocks as f64 / 2.0 + normal * deviation;
                self.scattered(rank.max(0.0) as u64, *step)
            }
            Ranks::Zoned(zones) => {
                let drawn = rng.below(100);
                let zone = zones.partition_point(|(share, _)| *share <= drawn);
                let begin = zone.checked_sub(1).map_or(0, |before| zones[before].1);
                match zones[zone].1 {
                    end if end > begin => begin + rng.below(end - begin),
                    _ => rng.below(zones[0].1),
                }
            }
        }
    }

    /// The block of a rank.
    fn scattered(&self, rank: u64, step: u64) -> u64 {
        // OK to multiply in 128 bits: the rest fits again.
        let at = u128::from(rank.min(self.blocks - 1)) * u128::from(step);
        (at % u128::from(self.blocks)) as u64
    }
}

/// From 0 to below 1, in 53 bits: as many as a double has.
pub(crate) fn uniform(rng: &mut Rng) -> f64 {
    (rng.bits() >> 11) as f64 / (1u64 << 53) as f64
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

#[cfg(test)]
mod tests {
    use super::*;

    fn count(text: &str, blocks: u64) -> Vec<u64> {
        let distribution = Distribution::parse(text).unwrap();
        let (chooser, mut rng) = (Chooser::new(&distribution, blocks), Rng::new(1));
        let mut counts = vec![0u64; blocks as usize];
        (0..100_000).for_each(|_| counts[chooser.block(&mut rng) as usize] += 1);
        counts
    }

    #[test]
    fn distributions_are_fios() {
        for text in [
            "random",
            "zipf:1.1",
            "pareto:0.2",
            "normal:12.5",
            "zoned:80/20:20/80",
            "zoned:50/5:30/15:20/80",
        ] {
            assert_eq!(Distribution::parse(text).unwrap().to_string(), text);
        }
        let rest = Distribution::parse("zoned:50/5:30/15:20/").unwrap();
        assert_eq!(rest.to_string(), "zoned:50/5:30/15:20/80");
        for text in [
            "zipf",
            "zipf:0",
            "zipf:x",
            "pareto:1",
            "normal:0",
            "random:1",
            "even",
            "zoned:80/20",
            "zoned:80/20:30/80",
            "zoned:255/1:1/99",
            "zoned:100/100:0/0",
        ] {
            assert!(Distribution::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn blocks_are_where_the_distribution_says() {
        let random = count("random", 100);
        assert!(random.iter().all(|n| (800..1200).contains(n)));
        let zoned = count("zoned:80/20:20/80", 100);
        let first: u64 = zoned[..20].iter().sum();
        assert!((79_000..81_000).contains(&first) && zoned.iter().all(|n| *n > 100));
        let three = count("zoned:50/5:30/15:20/80", 100);
        let of = |range: std::ops::Range<usize>| three[range].iter().sum::<u64>();
        assert!((49_000..51_000).contains(&of(0..5)) && (29_000..31_000).contains(&of(5..20)));
        // 1/k over 1000 ranks: the first has 1/7.49 of all.
        let mut zipf = count("zipf:1.0", 1000);
        assert!(zipf[1] < 1000, "the second rank is not beside the first");
        zipf.sort_unstable_by(|a, b| b.cmp(a));
        assert!((13_000..13_700).contains(&zipf[0]) && (6_400..7_000).contains(&zipf[1]));
    }

    #[test]
    fn a_fifth_of_the_blocks_has_four_fifths_of_the_requests() {
        let mut pareto = count("pareto:0.2", 1000);
        pareto.sort_unstable_by(|a, b| b.cmp(a));
        let first: u64 = pareto[..200].iter().sum();
        assert!((79_000..81_500).contains(&first), "{first}");
        // Two thirds lie within a deviation of the middle.
        let mut normal = count("normal:10", 1000);
        normal.sort_unstable_by(|a, b| b.cmp(a));
        let first: u64 = normal[..200].iter().sum();
        assert!((66_000..71_000).contains(&first), "{first}");
    }

    #[test]
    fn few_blocks_have_no_empty_zone() {
        for blocks in [1, 2, 3] {
            assert_eq!(count("zoned:80/20:20/80", blocks).iter().sum::<u64>(), 100_000);
        }
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
