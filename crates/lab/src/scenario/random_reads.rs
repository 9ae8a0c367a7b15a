//! `[[workload.random_read]]` of a scenario file: reads of a disk at random places, some of which
//! are read more than others.

use steadfast_bench::places::Distribution;
use steadfast_setup::form::{Fields, FormValue, Value};
use steadfast_setup::table;

use super::copies::check_names;

/// Where the reads go.
#[derive(Debug, Clone, PartialEq)]
pub struct ReadPlaces(pub Distribution);

impl Value for ReadPlaces {
    fn read(place: &FormValue<'_>) -> Option<Self> {
        let text: String = place.single()?;
        Distribution::parse(&text).map(ReadPlaces).map_err(|e| place.wrong(e.to_string(), "")).ok()
    }
}

table! {
    /// Reads of a disk at random places, timed.
    pub struct RandomReadSpec: "[[workload.random_read]]", check RandomReadSpec::check {
        /// What its row is called.
        test: String;
        /// Where the reads go, as fio's random_distribution: `random`; `zipf:THETA`;
        /// `pareto:POWER`; `normal:DEVIATION`; `zoned:80/20:20/80`, 80 % of them to the first 20 %
        /// of the disk.
        distribution: ReadPlaces = "random";
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
            self.distribution.0,
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
