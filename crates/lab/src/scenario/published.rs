//! `[[published]]` of a scenario file: figures of somebody else, of the tests that are run.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use steadfast_setup::form::{Fields, did_you_mean};
use steadfast_setup::{single_values, table};

use super::iozone_line::test_names;
use super::read_under_write::ReadFile;
use super::workload::Workload;

table! {
    /// Published speeds of one test.
    pub struct PublishedSpeed: "[[published]]", check PublishedSpeed::check {
        /// The test: of IOzone `initial write`, `rewrite` ...; with `read_under_write` `read, other
        /// file system` and `read, same file system`.
        test: String;
        /// Which of IOzone's two sums is quoted: `children` or `parent`.
        figure: SumKind = "children";
        /// Table: speed in KiB/s by variant; of hdparm on devices by their names.
        kb_per_s: BTreeMap<String, f64>, else "`seconds` is there";
        /// Table: how long it took, in seconds, by variant: with `read_under_write`.
        seconds: BTreeMap<String, f64>, else "`kb_per_s` is there";
        /// Table: by variant why our figure could hardly be another one, as where the published one
        /// was put into a model.
        by_construction: BTreeMap<String, String>, else "none is";
        /// Shown where our figure is another: why, as it was tested.
        explained: Option<String>, else "it is not known";
    }
}

/// Which of IOzone's sums a figure is.
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Default)]
#[serde(rename_all = "lowercase")]
pub enum SumKind {
    /// "Children see throughput".
    #[default]
    Children,
    /// "Parent sees throughput".
    Parent,
}

single_values!(SumKind);

const FIGURES: [&str; 2] = ["kb_per_s", "seconds"];
const BY_VARIANT: [&str; 3] = ["kb_per_s", "seconds", "by_construction"];

impl PublishedSpeed {
    fn check(fields: &Fields<'_>, speed: Option<&PublishedSpeed>) {
        if FIGURES.into_iter().filter(|key| fields.has(key)).count() != 1 {
            fields.wrong("test", "it needs one of `kb_per_s` and `seconds`", "");
        }
        let mut seconds = speed.into_iter().flat_map(|speed| speed.seconds.values());
        if seconds.any(|s| !(*s > 0.0 && s.is_finite())) {
            fields.wrong("seconds", "a time is above 0", "");
        }
    }
}

/// Notes tests, variants and devices (`named`) that are not there.
pub(super) fn check(
    top: &Fields<'_>,
    workload: Option<&Workload>,
    variants: &[String],
    named: &[String],
) {
    let tests = tests(workload);
    for fields in top.tables("published") {
        let test: Option<String> = fields.get("test");
        if let Some(test) = test.as_ref().filter(|test| !tests.contains(test)) {
            let help = did_you_mean(test, tests.iter().map(String::as_str));
            fields.wrong("test", format!("there is no test `{test}`"), help);
        }
        // A device is timed by itself, whatever stands on it.
        let of_devices = test.is_some_and(|test| test.starts_with("hdparm "));
        let devices = named.iter().filter(|_| of_devices);
        let known: Vec<&str> = variants.iter().chain(devices).map(String::as_str).collect();
        for table in BY_VARIANT.into_iter().filter_map(|key| fields.table(key)) {
            for (name, place) in table.each().filter(|(name, _)| !known.contains(name)) {
                let help = did_you_mean(name, known.iter().copied());
                place.wrong_name(format!("there is no variant `{name}`"), help);
            }
        }
    }
}

/// The names of all tests, those that the scenario gives too.
pub fn tests(workload: Option<&Workload>) -> Vec<String> {
    let own = test_names().chain(ReadFile::ALL.map(ReadFile::test)).map(str::to_owned);
    let dd = workload.into_iter().flat_map(|w| &w.dd).map(|spec| spec.test.clone());
    let hdparm = workload.into_iter().flat_map(|w| &w.hdparm);
    let hdparm = hdparm.flat_map(|spec| spec.targets.iter().flat_map(|t| spec.tests(t)));
    own.chain(dd).chain(hdparm).collect()
}
