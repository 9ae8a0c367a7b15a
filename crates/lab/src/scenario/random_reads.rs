//! `[[workload.random_read]]` of a scenario file: reads of a disk at random places, some of which
//! are read more than others.

use super::LineError;
use super::fields::Fields;
use super::keys::Table;
use super::read::count;
use super::wrong::did_you_mean;

/// Where the reads go, as fio's `random_distribution` has it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Distribution {
    /// Everywhere alike.
    Random,
    /// The block of rank *k* is read in proportion to 1/k^theta; the ranks are scattered over the
    /// disk.
    Zipf(f64),
    /// This percentage of the reads goes to this percentage of the disk, at its start, the others
    /// to the rest.
    Zoned(u8, u8),
}

impl Distribution {
    /// Reads `random`, `zipf:1.1` or `zoned:80/20:20/80`.
    ///
    /// # Errors
    /// It is none of them.
    pub fn parse(text: &str) -> Result<Distribution, LineError> {
        if text == "random" {
            return Ok(Distribution::Random);
        }
        if let Some(theta) = text.strip_prefix("zipf:") {
            let theta = theta.parse().ok().filter(|t: &f64| (0.01..=5.0).contains(t));
            return theta.map(Distribution::Zipf).ok_or_else(|| LineError::Theta(text.to_owned()));
        }
        if let Some(zones) = text.strip_prefix("zoned:") {
            return zoned(zones).ok_or_else(|| LineError::Zones(text.to_owned()));
        }
        let help = did_you_mean(text, ["random", "zipf:", "zoned:"]);
        Err(LineError::NoDistribution { name: text.to_owned(), help })
    }

    /// As [`parse`](Self::parse) takes it.
    pub fn name(self) -> String {
        match self {
            Distribution::Random => "random".into(),
            Distribution::Zipf(theta) => format!("zipf:{theta}"),
            Distribution::Zoned(reads, of) => {
                format!("zoned:{reads}/{of}:{}/{}", 100 - reads, 100 - of)
            }
        }
    }
}

fn zoned(zones: &str) -> Option<Distribution> {
    let (first, second) = zones.split_once(':')?;
    let zone = |text: &str| -> Option<(u8, u8)> {
        let (reads, of) = text.split_once('/')?;
        let inner = |n: &u8| (1..=99).contains(n);
        Some((reads.parse().ok().filter(inner)?, of.parse().ok().filter(inner)?))
    };
    let ((reads, of), (others, rest)) = (zone(first)?, zone(second)?);
    (reads + others == 100 && of + rest == 100).then_some(Distribution::Zoned(reads, of))
}

/// Reads of a disk at random places, timed.
#[derive(Debug, Clone, PartialEq)]
pub struct RandomReadSpec {
    /// What its row is called.
    pub test: String,
    /// Where they go.
    pub distribution: Distribution,
    /// Bytes of a read, aligned to as many.
    pub bytes: u64,
    /// How many are timed.
    pub reads: u64,
    /// As many without `--full`.
    pub quick_reads: Option<u64>,
    /// How many are made before, for each that is timed: caches are as full then as they get.
    pub warm_up_percent: u64,
    /// Tasks that read beside each other.
    pub tasks: u64,
    /// Names of the variants that run it.
    pub variants: Vec<String>,
}

impl RandomReadSpec {
    /// How many are timed.
    pub fn count(&self, full: bool) -> u64 {
        self.quick_reads.filter(|_| !full).unwrap_or(self.reads)
    }

    /// Whether a variant runs it.
    pub(crate) fn is_for(&self, variant: &str) -> bool {
        self.variants.is_empty() || self.variants.iter().any(|name| name == variant)
    }

    /// As a command line of fio, for people.
    pub fn line(&self) -> String {
        format!(
            "fio --rw=randread --random_distribution={} --bs={} --numjobs={} --number_ios={}",
            self.distribution.name(),
            self.bytes,
            self.tasks,
            self.reads / self.tasks,
        )
    }
}

/// All of a file.
pub(super) fn random_reads(workload: &Fields<'_, '_>) -> Option<Vec<RandomReadSpec>> {
    let tables = workload.tables("random_read", Table::RandomRead);
    let read: Vec<_> = tables.iter().map(one).collect();
    for (n, (spec, fields)) in read.iter().zip(&tables).enumerate() {
        let Some(spec) = spec else { continue };
        if read[..n].iter().flatten().any(|other| other.test == spec.test) {
            fields.wrong("test", format!("two tests are called `{}`", spec.test), "");
        }
    }
    read.into_iter().collect()
}

fn one(fields: &Fields<'_, '_>) -> Option<RandomReadSpec> {
    let distribution: Option<String> = fields.take("distribution");
    let distribution = distribution.and_then(|text| {
        let wrong = |e: LineError| fields.wrong("distribution", e.to_string(), "");
        Distribution::parse(&text).map_err(wrong).ok()
    });
    let bytes = count(fields, "bytes", 512, 1 << 20);
    if bytes.is_some_and(|bytes| !bytes.is_power_of_two()) {
        fields.wrong("bytes", "a read has a power of two of bytes", "");
    }
    let reads = count(fields, "reads", 100, 100_000_000);
    let quick = fields.value("quick_reads").map(|_| count(fields, "quick_reads", 100, 100_000_000));
    let warm_up = count(fields, "warm_up_percent", 0, 10_000);
    let tasks = count(fields, "tasks", 1, 64);
    let (test, variants): (Option<String>, Option<Vec<String>>) =
        (fields.take("test"), fields.take("variants"));
    Some(RandomReadSpec {
        test: test?,
        distribution: distribution?,
        bytes: bytes?,
        reads: reads?,
        quick_reads: quick.map_or(Some(None), |quick| quick.map(Some))?,
        warm_up_percent: warm_up?,
        tasks: tasks?,
        variants: variants?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distributions_are_fios() {
        for text in ["random", "zipf:1.1", "zoned:80/20:20/80"] {
            assert_eq!(Distribution::parse(text).unwrap().name(), text);
        }
        for text in
            ["zipf", "zipf:0", "zipf:x", "zoned:80/20", "zoned:80/20:30/80", "zoned:255/1:1/99"]
        {
            assert!(Distribution::parse(text).is_err(), "{text}");
        }
    }
}
