//! `[[workload.random_read]]` of a scenario file: reads of a disk at random places, some of which
//! are read more than others.

use steadfast_setup::form::{Fields, FormValue, Value, did_you_mean};
use steadfast_setup::table;

use super::copies::check_names;
use super::line_error::LineError;

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

impl Value for Distribution {
    fn read(place: &FormValue<'_>) -> Option<Self> {
        let text: String = place.single()?;
        Distribution::parse(&text).map_err(|e| place.wrong(e.to_string(), "")).ok()
    }
}

table! {
    /// Reads of a disk at random places, timed.
    pub struct RandomReadSpec: "[[workload.random_read]]", check RandomReadSpec::check {
        /// What its row is called.
        test: String;
        /// Where the reads go, as fio's random_distribution: `random`; `zipf:THETA`;
        /// `zoned:80/20:20/80`, 80 % of them to the first 20 % of the disk.
        distribution: Distribution = "random";
        /// Bytes of a read: a power of two.
        bytes: u64 = 4096, from 512 to 1048576;
        /// How many are timed.
        reads: u64, from 100 to 100000000;
        /// How many without `--full`.
        quick_reads: Option<u64>, else "`reads`", from 100 to 100000000;
        /// How many are made before, in % of those that are timed: caches are as full then as they
        /// get.
        warm_up_percent: u64 = 100, from 0 to 10000;
        /// Tasks that read beside each other.
        tasks: u64 = 1, from 1 to 64;
        /// Names of the variants that run it; if there are none, all that are measured.
        variants: Vec<String> = [];
    }
}

impl RandomReadSpec {
    fn check(fields: &Fields<'_>, _: Option<&RandomReadSpec>) {
        if fields.get::<u64>("bytes").is_some_and(|bytes| !bytes.is_power_of_two()) {
            fields.wrong("bytes", "a read has a power of two of bytes", "");
        }
    }

    /// How many are timed.
    pub fn count(&self, full: bool) -> u64 {
        self.quick_reads.filter(|_| !full).unwrap_or(self.reads)
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

/// Notes tests that are called as another is.
pub(super) fn check(workload: &Fields<'_>) {
    check_names(&workload.tables("random_read"), "test", "tests");
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
