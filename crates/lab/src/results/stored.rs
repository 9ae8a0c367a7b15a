//! Results that were kept: read again from their JSON, and those that come with the program.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::seed::SeedResults;
use super::{Note, Ratio, Results, Spread, VERSION, distinct};
use crate::scenario::Scenario;

/// Why a document is none of results.
#[derive(Debug, thiserror::Error)]
pub enum ResultsError {
    /// It is no document of the kind.
    #[error("these are no results of lab run --json: {0}")]
    NoResults(serde_json::Error),
    /// It is of another program's.
    #[error("its format is '{0}', not steadfast-lab")]
    Format(String),
    /// It is too old, or newer.
    #[error("version {0} of the layout; read are {ARRAYS} and {VERSION}")]
    Version(u32),
    /// Texts that a terminal would obey.
    #[error("it has control characters in a text: no such document has")]
    ControlCharacters,
    /// Something of it is missing, or of another type.
    #[error(transparent)]
    Json(#[from] serde_json::Error),
    /// Nothing was run.
    #[error("it has no run")]
    NoRun,
}

/// Said of results of an older program.
const NOT_KEPT: &str = "By speed the variants are not ranked: an order needs the speeds of the \
    single runs, which these results do not have.";

include!(concat!(env!("OUT_DIR"), "/stored.rs"));

impl Results {
    /// Reads the document that `lab run --json` writes.
    ///
    /// # Errors
    /// It is no such document, or of another version.
    pub fn read(json: &str) -> Result<Results, ResultsError> {
        #[derive(Deserialize)]
        struct Head {
            format: String,
            version: u32,
        }
        let head: Head = serde_json::from_str(json).map_err(ResultsError::NoResults)?;
        if head.format != "steadfast-lab" {
            return Err(ResultsError::Format(head.format));
        }
        if ![ARRAYS, VERSION].contains(&head.version) {
            return Err(ResultsError::Version(head.version));
        }
        if has_controls(json) {
            return Err(ResultsError::ControlCharacters);
        }
        let mut results: Results = match head.version {
            ARRAYS => serde_json::from_value(of_arrays(serde_json::from_str(json)?))?,
            _ => serde_json::from_str(json)?,
        };
        let mut dropped = false;
        for row in results.runs.iter_mut().flat_map(SeedResults::files_mut) {
            // By ranges that did not overlap, once: that is no order.
            if row.each_operations_per_s.is_empty() {
                dropped |= row.place.take().is_some();
            }
        }
        if dropped {
            results.notes.push(Note::remark(NOT_KEPT));
        }
        match results.runs.is_empty() {
            true => Err(ResultsError::NoRun),
            false => Ok(results),
        }
    }
}

/// The version before measurements: each kind of row had an array of its own in a run.
const ARRAYS: u32 = 3;

/// These arrays, and the kind of measurement that each was of.
const KINDS: [(&str, &str); 16] = [
    ("took", "took"),
    ("rows", "speed"),
    ("grids", "matrix"),
    ("ratios", "ratio"),
    ("files", "files"),
    ("risk", "risk"),
    ("shown", "planted_bugs"),
    ("ages", "ages"),
    ("loss", "loss"),
    ("speed_and_exposure", "speed_and_exposure"),
    ("reads", "read_under_write"),
    ("queues", "queue"),
    ("timings", "hdparm"),
    ("copies", "dd"),
    ("random_reads", "random_read"),
    ("legs", "legs"),
];

/// A document of the version before, as one of now.
fn of_arrays(mut document: Value) -> Value {
    if let Some(members) = document.as_object_mut() {
        members.insert("version".into(), VERSION.into());
    }
    for run in document.get_mut("runs").and_then(Value::as_array_mut).into_iter().flatten() {
        let mut measurements = Vec::new();
        for (array, kind) in KINDS {
            let Some(Value::Array(rows)) = run.get_mut(array).map(Value::take) else { continue };
            for mut row in rows {
                if let Some(members) = row.as_object_mut() {
                    members.insert("kind".into(), kind.into());
                }
                measurements.push(row);
            }
        }
        if let Some(members) = run.as_object_mut() {
            members.insert("measurements".into(), measurements.into());
        }
    }
    document
}

/// Whether texts of a JSON document hold what a terminal would obey: escape sequences and the like,
/// which JSON writes as `\\u00XX`, or as they are from U+007F on.
fn has_controls(json: &str) -> bool {
    let escaped = json.match_indices("\\u00").any(|(at, _)| {
        let before = json[..at].bytes().rev().take_while(|b| *b == b'\\').count();
        let code = json.get(at + 4..at + 6).and_then(|hex| u8::from_str_radix(hex, 16).ok());
        before % 2 == 0 && code.is_some_and(|code| char::from(code).is_control())
    });
    escaped || json.chars().any(|c| c.is_control() && !c.is_ascii_whitespace())
}

/// The ratios at the published size, as they come with the program: to stand beside those of a
/// reduced one.
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FullSize {
    /// Version of the program that found them.
    pub program: String,
    /// When, if that is known.
    pub day: Option<String>,
    /// With which seeds.
    pub seeds: Vec<u64>,
    /// Each over the seeds.
    pub ratios: Vec<FullRatio>,
}

/// A [`Ratio`] at the published size.
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FullRatio {
    /// The test.
    pub test: String,
    /// Variant's name.
    pub variant: String,
    /// Variant over baseline.
    pub ratio: Spread,
}

impl FullSize {
    /// What comes with the program for a scenario of it: `None` if it was not run, or the scenario
    /// has been changed.
    pub fn of(scenario: &Scenario) -> Option<FullSize> {
        let own = Scenario::find_own(&scenario.name)?;
        if own != *scenario {
            return None;
        }
        // What an older program stored is not read, and is as if it had not been run.
        let stored = STORED.iter().filter_map(|json| Results::read(json).ok());
        let full = stored.filter(|r| r.scenario == scenario.name && r.full && !r.partial);
        full.max_by_key(|r| r.seeds.len()).map(|results| FullSize::from_results(&results))
    }

    fn from_results(results: &Results) -> FullSize {
        let all = || results.all::<Ratio>();
        let ratio = |(test, variant): (&String, &String)| {
            let same = all().filter(|r| r.test == *test && r.variant == *variant);
            let values: Vec<f64> = same.map(|r| r.ratio).collect();
            FullRatio { test: test.clone(), variant: variant.clone(), ratio: Spread::of(&values) }
        };
        FullSize {
            program: results.program.to_string(),
            day: results.day.clone(),
            seeds: results.seeds.clone(),
            ratios: distinct(all().map(|r| (&r.test, &r.variant))).into_iter().map(ratio).collect(),
        }
    }

    /// The ratio of a test and variant.
    pub fn ratio(&self, test: &str, variant: &str) -> Option<Spread> {
        self.ratios.iter().find(|r| r.test == test && r.variant == variant).map(|r| r.ratio)
    }

    /// By what it was found, in words.
    pub fn shown(&self) -> String {
        let of = match self.seeds.len() {
            1 => "one seed".into(),
            n => format!("the median of {n} seeds"),
        };
        let day = self.day.as_ref().map_or(String::new(), |day| format!(" on {day}"));
        format!("by steadfast {}{day}, {of}", self.program)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::Measurement;
    use crate::results::summary::json;
    use crate::table::{Layout, text};
    use crate::{RunOptions, Watch, run_seeds};

    fn results(scenario: &Scenario) -> Results {
        let options = RunOptions { cuts: Some(2), ..RunOptions::default() };
        let watch = Watch { progress: &|_, _| (), stop: &false.into() };
        run_seeds(scenario, &options, &[1, 2], &watch).unwrap()
    }

    #[test]
    fn control_characters_are_seen() {
        for text in [r#""\u001b[2J""#, r#""\\\u0007""#, "\"\u{9b}2J\"", r#""\u007f""#] {
            assert!(has_controls(text), "{text}");
        }
        for text in [r#""\\u001b""#, r#""a\nb\u00e9""#, "{\n \"a\": 1\n}\n"] {
            assert!(!has_controls(text), "{text}");
        }
    }

    #[test]
    fn results_are_read_as_they_were_written_and_stand_beside_others() {
        let mut scenario = Scenario::find("nvram-journal").unwrap();
        scenario.variants.retain(|v| ["internal", "external"].contains(&v.name.as_str()));
        scenario.workload.quick_size = Some("1m".into());
        scenario.workload.quick_scales_disks = false;
        scenario.workload.risk_size = Some("512k".into());
        let mut reduced = results(&scenario);
        let written = json(&reduced).unwrap();
        // To the last digit.
        let read = Results::read(&written).unwrap();
        assert_eq!((json(&read).unwrap(), &read), (written.clone(), &reduced));
        let layout = Layout::default();
        assert_eq!(text(&Results::read(&written).unwrap(), layout), text(&reduced, layout));
        // A changed scenario has no figures of the published size with the program.
        assert_eq!(reduced.full_size, None);
        assert!(text(&reduced, layout).contains("Published size: not run."));

        let day = written.replacen("\"full\"", "\"day\": \"2026-01-02\",\n  \"full\"", 1);
        let mut full = FullSize::from_results(&Results::read(&day).unwrap());
        full.ratios[0].ratio = Spread::of(&[1.25, 2.5, 2.25]);
        reduced.full_size = Some(full);
        let shown = text(&reduced, layout);
        let words = shown.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(words.contains("on 2026-01-02, the median of 2 seeds"), "{shown}");
        // Of one test it differs: the column is there, and only that figure.
        let heading = shown.lines().filter(|line| line.contains("full size")).count();
        assert_eq!((heading, shown.matches("2.25x").count()), (1, 1), "{shown}");
        assert!(shown.contains("1.25x..2.50x"), "{shown}");
    }

    /// A document as the version before wrote it.
    fn with_arrays(document: &str) -> Value {
        let mut document: Value = serde_json::from_str(document).unwrap();
        document["version"] = ARRAYS.into();
        for run in document["runs"].as_array_mut().unwrap() {
            let run = run.as_object_mut().unwrap();
            for (array, kind) in KINDS {
                let rows = run["measurements"].as_array().unwrap();
                let own = rows.iter().filter(|row| row["kind"] == kind).cloned();
                run.insert(array.into(), own.collect::<Vec<_>>().into());
            }
            run.remove("measurements");
        }
        document
    }

    #[test]
    fn what_is_stored_is_read_and_is_what_this_program_writes() {
        for stored in STORED {
            let mut results = Results::read(stored).unwrap();
            assert!(json(&results).unwrap() == *stored, "{}", results.scenario);
            let before = with_arrays(stored).to_string();
            // Arrays do not say how rows of several kinds were mixed.
            let kind = |row: &Measurement| {
                let kind = serde_json::to_value(row).unwrap()["kind"].clone();
                KINDS.iter().position(|(_, known)| kind == *known)
            };
            for run in &mut results.runs {
                // Newer kinds never stood in arrays.
                run.measurements.retain(|row| kind(row).is_some());
                run.measurements.sort_by_cached_key(kind);
            }
            assert!(Results::read(&before).unwrap() == results, "{}", results.scenario);
        }
        // What is no object of objects is refused, and does not panic.
        for odd in [
            "[\"steadfast-lab\", 3]",
            "{\"format\": \"steadfast-lab\", \"version\": 3, \"runs\": [7]}",
        ] {
            assert!(Results::read(odd).is_err(), "{odd}");
        }
        let refused = |text: &str| Results::read(text).unwrap_err().to_string();
        assert!(refused("{}").contains("no results"), "{}", refused("{}"));
        let other = "{\"format\": \"steadfast-lab\", \"version\": 2}";
        assert!(refused(other).contains("version 2"), "{}", refused(other));
    }
}
