//! What stands at a key: single values by serde, and tables, lists and maps of them.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::ops::Range;
use std::path::PathBuf;
use std::str::FromStr;

use serde::de::DeserializeOwned;
use steadfast_vfs::options::{choose, closest};
use toml::Spanned;
use toml::de::{DeValue, ValueDeserializer};

use super::fields::{Fields, Wrongs};
use super::wrong::did_you_mean;

/// A value, where it stands, and where mistakes are noted.
pub struct FormValue<'t> {
    /// The value.
    pub value: &'t Spanned<DeValue<'t>>,
    /// Where the name of its table stands, if it is one.
    pub(super) heading: Range<usize>,
    /// The innermost name that is the file's own, as `disk` of `[device.disk]`.
    pub(super) name: String,
    pub(super) wrongs: Wrongs,
}

/// What can be read from a place. Whatever is wrong with it is noted there.
pub trait Value: Sized {
    /// What a file writes above it, if it is a table; `NAME` stands for a name of the file's own.
    const TITLE: Option<&'static str> = None;

    /// Reads it. `None`: something is wrong with it, which is noted.
    fn read(place: &FormValue<'_>) -> Option<Self>;

    /// What it is where an optional key is not there.
    fn absent() -> Option<Self> {
        None
    }
}

impl<'t> FormValue<'t> {
    /// Notes that the value is wrong.
    pub fn wrong(&self, what: impl Into<String>, help: impl Into<String>) {
        self.wrongs.add(self.value.span(), what, help);
    }

    /// Notes that its key is wrong.
    pub fn wrong_name(&self, what: impl Into<String>, help: impl Into<String>) {
        self.wrongs.add(self.heading.clone(), what, help);
    }

    /// Notes that a command line is wrong: at the word that the message names, where it names one.
    pub fn wrong_line(&self, line: &str, what: &str, help: &str) {
        self.wrongs.add_of_line(self.value.span(), line, what, help);
    }

    /// The value as a table that messages call so; notes that it is none.
    pub fn fields(&self, title: &str) -> Option<Fields<'t>> {
        let fields = self.table(title);
        if fields.is_none() {
            self.wrong(format!("{} is a table", title.replace("NAME", &self.name)), "");
        }
        fields
    }

    /// The value as a table, if it is one.
    pub(super) fn table(&self, title: &str) -> Option<Fields<'t>> {
        let DeValue::Table(map) = self.value.get_ref() else { return None };
        let (at, name) = (self.heading.clone(), self.name.clone());
        let place = if name.is_empty() { ".NAME" } else { "NAME" };
        let title = title.replace(place, &name);
        Some(Fields { title, name, map, at, wrongs: self.wrongs.clone() })
    }

    /// The values of a list, if it is one.
    pub(super) fn items(&self) -> Option<Vec<FormValue<'t>>> {
        let DeValue::Array(all) = self.value.get_ref() else { return None };
        let one = |value: &'t Spanned<DeValue<'t>>| {
            let (name, wrongs) = (self.name.clone(), self.wrongs.clone());
            FormValue { value, heading: value.span(), name, wrongs }
        };
        Some(all.iter().map(one).collect())
    }

    /// The same, where nothing is noted.
    pub(super) fn quiet(&self) -> FormValue<'t> {
        let (heading, name) = (self.heading.clone(), self.name.clone());
        FormValue { value: self.value, heading, name, wrongs: Wrongs::none_in("") }
    }

    /// A value that serde knows.
    pub fn single<T: DeserializeOwned>(&self) -> Option<T> {
        T::deserialize(self.deserializer()).map_err(|e| self.note(&e)).ok()
    }

    /// The value, for serde.
    pub(crate) fn deserializer(&self) -> ValueDeserializer<'t> {
        ValueDeserializer::from(self.value.clone())
    }

    /// Notes what serde says.
    pub(crate) fn note(&self, e: &toml::de::Error) {
        self.wrongs.note(e.span().unwrap_or(self.value.span()), e.message());
    }
}

/// Values that serde reads.
#[macro_export]
macro_rules! single_values {
    ($($type:ty),* $(,)?) => {
        $(impl $crate::form::Value for $type {
            fn read(place: &$crate::form::FormValue<'_>) -> Option<Self> {
                place.single()
            }
        })*
    };
}

single_values!(bool, u8, u32, u64, usize, f64, String, PathBuf);

impl<T: Value> Value for Option<T> {
    const TITLE: Option<&'static str> = T::TITLE;

    fn read(place: &FormValue<'_>) -> Option<Self> {
        T::read(place).map(Some)
    }

    fn absent() -> Option<Self> {
        Some(None)
    }
}

impl<T: Value> Value for Vec<T> {
    fn read(place: &FormValue<'_>) -> Option<Self> {
        let Some(items) = place.items() else {
            let above = |title| format!("write {title} above each");
            place.wrong("a list is needed here", T::TITLE.map(above).unwrap_or_default());
            return None;
        };
        // All are read, also after one that is wrong.
        items.iter().map(T::read).collect::<Vec<_>>().into_iter().collect()
    }

    fn absent() -> Option<Self> {
        Some(Vec::new())
    }
}

impl<T: Value> Value for BTreeMap<String, T> {
    fn read(place: &FormValue<'_>) -> Option<Self> {
        let Some(table) = place.table("") else {
            place.wrong("a table is needed here", "");
            return None;
        };
        let one = |(key, place): (&str, FormValue<'_>)| {
            Some((key.to_owned(), T::read(&FormValue { name: key.to_owned(), ..place })?))
        };
        table.each().map(one).collect::<Vec<_>>().into_iter().collect()
    }

    fn absent() -> Option<Self> {
        Some(BTreeMap::new())
    }
}

/// A text with a syntax of its own.
pub(crate) fn parsed<T: FromStr<Err: Display>>(place: &FormValue<'_>, help: &str) -> Option<T> {
    let text: String = place.single()?;
    text.parse().map_err(|e: T::Err| place.wrong(e.to_string(), help)).ok()
}

/// One of these words; `none` begins the message of another, as "there is no policy".
pub(crate) fn one_of<T: Clone>(place: &FormValue<'_>, none: &str, all: &[(&str, T)]) -> Option<T> {
    let word: String = place.single()?;
    let known = all.iter().find(|(name, _)| *name == word).map(|(_, value)| value.clone());
    if known.is_none() {
        let help = did_you_mean(&word, all.iter().map(|(name, _)| *name));
        place.wrong(format!("{none} `{word}`"), help);
    }
    known
}

impl Wrongs {
    /// Notes what serde says, in the words of somebody who writes a file.
    pub(super) fn note(&self, at: Range<usize>, message: &str) {
        if let Some(rest) = message.strip_prefix("unknown variant ") {
            let mut words = rest.split('`').skip(1).step_by(2);
            let given = words.next().unwrap_or_default();
            let known: Vec<&str> = words.collect();
            let what = format!("`{given}` is unknown: {}", choose(&known));
            let nearest = closest(given, known.iter().copied());
            self.add(at, what, nearest.map_or(String::new(), |w| format!("did you mean `{w}`?")));
            return;
        }
        let types = message
            .strip_prefix("invalid type: ")
            .or_else(|| message.strip_prefix("invalid value: "))
            .and_then(|rest| rest.split_once(", expected "));
        let Some((found, wanted)) = types else { return self.add(at, message, "") };
        let wanted = match wanted {
            "u8" | "u16" | "u32" | "u64" | "usize" => "a whole number",
            "f32" | "f64" => "a number",
            "a string" | "string" => "a text in quotes",
            "a boolean" | "bool" => "true or false",
            "a map" => "a table",
            other => other,
        };
        let found = found.replace("string \"", "the text \"");
        self.add(at, format!("{wanted} is needed here, not {found}"), "");
    }
}
