//! The keys of a scenario file, as its tables declare them, for people, programs and docs/lab.md.

use std::fmt::Write;

use serde::Deserialize;
use steadfast_crash::risk::FilesWorkload;
use steadfast_setup::form::{Key, Need};
use steadfast_setup::tables::{DeviceForm, FaultForm, SchedulerForm, StackForm, VolumeForm};
use steadfast_setup::{Machine, Topology};
use toml::de::ValueDeserializer;

use super::Scenario;
use super::band::Band;
use super::copies::{DdSpec, HdparmForm};
use super::fio::FioSpec;
use super::legs::LegsSpec;
use super::published::PublishedSpeed;
use super::random_reads::RandomReadSpec;
use super::read_under_write::ReadUnderWriteSpec;
use super::sentence::Sentence;
use super::source::{Medium, SourceForm};
use super::trace::TraceSpec;
use super::variant::Variant;
use super::workload::{Configuration, Workload};
use crate::wrap::wrapped;

/// All tables, in the order of the documentation: as a file writes each, and its keys.
const TABLES: [(&str, &[Key]); 25] = [
    (Scenario::TITLE, Scenario::KEYS),
    (Topology::TITLE, Topology::KEYS),
    (SourceForm::TITLE, SourceForm::KEYS),
    (Machine::TITLE, Machine::KEYS),
    (Workload::TITLE, Workload::KEYS),
    (FilesWorkload::TITLE, FilesWorkload::KEYS),
    (TraceSpec::TITLE, TraceSpec::KEYS),
    (FioSpec::TITLE, FioSpec::KEYS),
    (LegsSpec::TITLE, LegsSpec::KEYS),
    (DdSpec::TITLE, DdSpec::KEYS),
    (HdparmForm::TITLE, HdparmForm::KEYS),
    (RandomReadSpec::TITLE, RandomReadSpec::KEYS),
    (ReadUnderWriteSpec::TITLE, ReadUnderWriteSpec::KEYS),
    (Configuration::TITLE, Configuration::KEYS),
    (DeviceForm::TITLE, DeviceForm::KEYS),
    (FaultForm::TITLE, FaultForm::KEYS),
    (VolumeForm::TITLE, VolumeForm::KEYS),
    (SchedulerForm::TITLE, SchedulerForm::KEYS),
    (Variant::TITLE, Variant::KEYS),
    (Variant::TITLE, StackForm::KEYS),
    (StackForm::TITLE, StackForm::KEYS),
    (PublishedSpeed::TITLE, PublishedSpeed::KEYS),
    (Medium::TITLE, Medium::KEYS),
    (Sentence::TITLE, Sentence::KEYS),
    (Band::TITLE, Band::KEYS),
];

/// All keys, each with its table.
fn all() -> impl Iterator<Item = (&'static str, &'static Key)> {
    TABLES.iter().flat_map(|(table, keys)| keys.iter().map(move |key| (*table, key)))
}

/// All keys, for a terminal.
pub fn text() -> String {
    let (mut text, mut above) = (String::new(), "");
    for (table, key) in all() {
        if table != above {
            text += &format!("{}{table}\n", if above.is_empty() { "" } else { "\n" });
            above = table;
        }
        let without = match key.need {
            Need::Required => "required".to_owned(),
            Need::Default(value) => format!("default: {value}"),
            Need::Optional(what) => format!("without it: {what}"),
        };
        text += &wrapped(&format!("{} ({without})", key.name), 2);
        text += &wrapped(&key.meaning(), 6);
    }
    text.replace('`', "") + "\n"
}

/// All keys, for programs: of each `need`, the `default` where that is one, and what it means not
/// to be there where it is optional.
pub fn json() -> Vec<serde_json::Value> {
    let of_key = |(table, key): (&str, &Key)| {
        let (need, default, without) = match key.need {
            Need::Required => ("required", None, None),
            Need::Default(text) => ("default", Some(value_of(text)), None),
            Need::Optional(what) => ("optional", None, Some(what)),
        };
        serde_json::json!({ "table": table, "name": key.name, "need": need, "default": default,
                            "without": without, "text": key.meaning() })
    };
    all().map(of_key).collect()
}

/// What a default is: a number stays one.
fn value_of(text: &str) -> serde_json::Value {
    let value = ValueDeserializer::parse(text).and_then(serde_json::Value::deserialize);
    // OK to expect: a test reads every default.
    value.expect("a default in TOML")
}

/// The list of docs/lab.md: the keys of each table below it.
pub fn markdown() -> String {
    let (mut text, mut above) = (String::new(), "");
    for (table, key) in all() {
        // OK to ignore: writing to a string does not fail.
        if table != above {
            let _ = writeln!(text, "* **{table}**");
            above = table;
        }
        let without = match key.need {
            Need::Required => "**required**".to_owned(),
            Need::Default(value) => format!("`{value}`"),
            Need::Optional(what) => what.to_owned(),
        };
        let _ = writeln!(text, "  * `{}` ({without}): {}", key.name, key.meaning());
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn defaults_and_bounds_can_be_read() {
        assert_eq!(json().len(), all().count());
        for (table, key) in all() {
            let bounds = key.bounds.iter().flat_map(|bounds| [bounds.least, bounds.most]);
            assert!(bounds.into_iter().all(|n| n.parse::<f64>().is_ok()), "{table} {}", key.name);
        }
    }
}
