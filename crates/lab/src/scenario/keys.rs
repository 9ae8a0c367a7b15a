//! The keys of a scenario file: the one list that the reader, its messages and docs/lab.md go by.
//!
//! A new key is an entry in a file of `keys/`, a field of the structure that holds it, and the line
//! in `read` that takes it from the one to the other.

mod fault;
mod machine;
mod variants;
mod workload;

use std::fmt::Write;

use serde::Deserialize;
use toml::de::ValueDeserializer;

use crate::wrap::wrapped;

/// A table of a scenario file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Table {
    /// The file itself.
    Top,
    /// `[source]`.
    Source,
    /// `[machine]`.
    Machine,
    /// `[workload]`.
    Workload,
    /// `workload.files`.
    Files,
    /// `workload.legs`.
    Legs,
    /// `[[workload.dd]]`.
    Dd,
    /// `[[workload.hdparm]]`.
    Hdparm,
    /// `[[workload.random_read]]`.
    RandomRead,
    /// `workload.read_under_write`.
    ReadUnderWrite,
    /// `[workload.configuration.NAME]`.
    Configuration,
    /// `[device.NAME]`; the rest of its keys are the parameters of its kind.
    Device,
    /// `fault` of a `[device.NAME]`.
    Fault,
    /// `[volume.NAME]`.
    Volume,
    /// `[scheduler.NAME]`.
    Scheduler,
    /// `[[variant]]`.
    Variant,
    /// `[[published]]`.
    Published,
    /// `[medium]`.
    Medium,
    /// `[[sentence]]`.
    Sentence,
    /// `[band]`.
    Band,
    /// `machine` of a `[[variant]]`: the keys of `[machine]`.
    VariantMachine,
}

impl Table {
    /// All of them, in the order of the documentation.
    pub const ALL: [Table; 20] = [
        Table::Top,
        Table::Source,
        Table::Machine,
        Table::Workload,
        Table::Files,
        Table::Legs,
        Table::Dd,
        Table::Hdparm,
        Table::RandomRead,
        Table::ReadUnderWrite,
        Table::Configuration,
        Table::Device,
        Table::Fault,
        Table::Volume,
        Table::Scheduler,
        Table::Variant,
        Table::Published,
        Table::Medium,
        Table::Sentence,
        Table::Band,
    ];

    /// As a file writes it.
    pub fn title(self) -> &'static str {
        match self {
            Table::Top => "the file",
            Table::Source => "[source]",
            Table::Machine => "[machine]",
            Table::Workload => "[workload]",
            Table::Files => "workload.files",
            Table::Legs => "workload.legs",
            Table::Dd => "[[workload.dd]]",
            Table::Hdparm => "[[workload.hdparm]]",
            Table::RandomRead => "[[workload.random_read]]",
            Table::ReadUnderWrite => "workload.read_under_write",
            Table::Configuration => "[workload.configuration.NAME]",
            Table::Device => "[device.NAME]",
            Table::Fault => "fault of [device.NAME]",
            Table::Volume => "[volume.NAME]",
            Table::Scheduler => "[scheduler.NAME]",
            Table::Variant => "[[variant]]",
            Table::Published => "[[published]]",
            Table::Medium => "[medium]",
            Table::Sentence => "[[sentence]]",
            Table::Band => "[band]",
            Table::VariantMachine => "machine of [[variant]]",
        }
    }
}

/// Whether a key must be there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Need {
    /// Always.
    Required,
    /// If it is not, it is this, as TOML writes it.
    Default(&'static str),
    /// No; what it means not to be there.
    Optional(&'static str),
}

/// A key of a table.
#[derive(Debug, Clone, Copy)]
pub struct Key {
    /// Where it stands.
    pub table: Table,
    /// Its name.
    pub name: &'static str,
    /// Whether it must be there.
    pub need: Need,
    /// What it means, in Markdown.
    pub text: &'static str,
}

const fn key(table: Table, name: &'static str, need: Need, text: &'static str) -> Key {
    Key { table, name, need, text }
}

use Need::{Default, Optional, Required};

/// All keys, by what they describe.
const PARTS: [&[Key]; 4] = [machine::KEYS, fault::KEYS, workload::KEYS, variants::KEYS];

/// The keys of a table.
pub fn of(table: Table) -> impl Iterator<Item = &'static Key> {
    let listed = if table == Table::VariantMachine { Table::Machine } else { table };
    PARTS.into_iter().flatten().filter(move |key| key.table == listed)
}

/// One key; the reader asks only for those that are in the list.
pub fn find(table: Table, name: &str) -> Option<&'static Key> {
    of(table).find(|key| key.name == name)
}

/// All keys, for a terminal.
pub fn text() -> String {
    let mut text = String::new();
    for table in Table::ALL {
        text += &format!("{}\n", table.title());
        for key in of(table) {
            let without = match key.need {
                Required => "required".to_owned(),
                Default(value) => format!("default: {value}"),
                Optional(what) => format!("without it: {what}"),
            };
            text += &wrapped(&format!("{} ({without})", key.name), 2);
            text += &wrapped(key.text, 6);
        }
        text.push('\n');
    }
    text.replace('`', "")
}

/// All keys, for programs: of each `need`, the `default` where that is one, and what it means not
/// to be there where it is optional.
pub fn json() -> Vec<serde_json::Value> {
    let of_key = |key: &Key| {
        let (need, default, without) = match key.need {
            Required => ("required", None, None),
            Default(text) => ("default", Some(value_of(text)), None),
            Optional(what) => ("optional", None, Some(what)),
        };
        let (table, name, text) = (key.table.title(), key.name, key.text);
        serde_json::json!({ "table": table, "name": name, "need": need, "default": default,
                            "without": without, "text": text })
    };
    Table::ALL.into_iter().flat_map(|table| of(table).map(of_key)).collect()
}

/// What a default is: a number stays one.
fn value_of(text: &str) -> serde_json::Value {
    let value = ValueDeserializer::parse(text).and_then(serde_json::Value::deserialize);
    // OK to expect: a test reads every default.
    value.expect("a default in TOML")
}

/// The table of docs/lab.md.
pub fn markdown() -> String {
    let mut text = String::from("| table | key | without it | meaning |\n|---|---|---|---|\n");
    for table in Table::ALL {
        for key in of(table) {
            let without = match key.need {
                Required => "**required**".to_owned(),
                Default(value) => format!("`{value}`"),
                Optional(what) => what.to_owned(),
            };
            let (title, name, meaning) = (table.title(), key.name, key.text);
            // OK to ignore: writing to a string does not fail.
            let _ = writeln!(text, "| {title} | `{name}` | {without} | {meaning} |");
        }
    }
    text
}
