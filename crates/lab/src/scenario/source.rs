//! `[source]` and `[medium]` of a scenario file: where published figures are from, and what is
//! known of the devices that they were measured on.

use serde::{Deserialize, Serialize};
use steadfast_setup::form::{Fields, FormValue, Value};
use steadfast_setup::table;
use toml::de::DeValue;

table! {
    /// Where published figures come from, as a file has it.
    pub struct SourceForm: "[source]" {
        /// Title of the page or paper.
        title: String;
        /// Who wrote it.
        author: String;
        /// When it was published.
        year: Year;
        /// Where it is: an address, or the journal or book.
        address: String;
    }
}

/// A year: a number or a text.
#[derive(Debug, Clone, PartialEq)]
pub struct Year(String);

impl Value for Year {
    fn read(place: &FormValue<'_>) -> Option<Self> {
        match place.value.get_ref() {
            DeValue::String(text) => Some(Year(text.to_string())),
            _ => place.single().map(|year: u32| Year(year.to_string())),
        }
    }
}

/// Where published figures come from. All but the title is known of files of version 2.
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Source {
    /// Of the page or paper.
    pub title: String,
    /// Who wrote it.
    pub author: Option<String>,
    /// When it was published.
    pub year: Option<String>,
    /// Where it is.
    pub address: Option<String>,
}

impl Value for Source {
    const TITLE: Option<&'static str> = Some(SourceForm::TITLE);

    /// A table; in version 1 a text.
    fn read(place: &FormValue<'_>) -> Option<Self> {
        if let DeValue::String(text) = place.value.get_ref() {
            let title = text.to_string();
            return Some(Source { title, author: None, year: None, address: None });
        }
        let SourceForm { title, author, year, address } = SourceForm::read(place)?;
        Some(Source { title, author: Some(author), year: Some(year.0), address: Some(address) })
    }
}

impl std::fmt::Display for Source {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if let Some(author) = &self.author {
            write!(f, "{author}, ")?;
        }
        f.write_str(&self.title)?;
        [&self.year, &self.address].into_iter().flatten().try_for_each(|part| write!(f, ", {part}"))
    }
}

/// Notes a source that is a text in a file of another version than the first, and one that is
/// missing.
pub(super) fn check(top: &Fields<'_>) {
    let is_text = top.at("source").is_some_and(|at| at.value.get_ref().is_str());
    if is_text && top.get::<u32>("version") != Some(1) {
        let help = "write a table: [source] with title, author, year and address";
        top.wrong("source", "`source` is a text only in version 1", help);
    }
    for (key, what) in [
        ("published", "published figures need their source"),
        ("sentence", "sentences that are checked need their source"),
    ] {
        if top.has(key) && !top.has("source") {
            let help = "add [source] with title, author, year and address";
            top.wrong(key, what, help);
        }
    }
}

table! {
    /// What a medium is capable of, as the source says: what is faster comes from a cache.
    #[cfg_attr(test, derive(schemars::JsonSchema))]
    #[derive(Copy, Serialize, Deserialize)]
    pub struct Medium: "[medium]" {
        /// Reading, in MB/s of 1,000,000 bytes.
        read_mb_per_s: f64, above 0 to 1000000;
        /// Writing, the same.
        write_mb_per_s: f64, above 0 to 1000000;
    }
}
