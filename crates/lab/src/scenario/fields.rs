//! The fields of one table of a scenario file. Whatever is wrong with one of them is noted with its
//! place, and reading goes on.

use std::cell::RefCell;
use std::ops::Range;
use std::rc::Rc;

use serde::de::DeserializeOwned;
use steadfast_vfs::options::{choose, closest};
use toml::Spanned;
use toml::de::{DeTable, DeValue, ValueDeserializer};

use super::keys::{self, Need, Table};
use super::wrong::{Wrong, did_you_mean};

/// The mistakes found so far in a text.
#[derive(Clone)]
pub struct Wrongs {
    text: Rc<str>,
    found: Rc<RefCell<Vec<Wrong>>>,
}

impl Wrongs {
    /// None yet.
    pub fn none_in(text: &str) -> Self {
        Wrongs { text: text.into(), found: Rc::default() }
    }

    /// Notes one.
    pub fn add(&self, at: Range<usize>, what: impl Into<String>, help: impl Into<String>) {
        self.found.borrow_mut().push(Wrong { at, what: what.into(), help: help.into() });
    }

    /// All that were noted.
    pub fn take(&self) -> Vec<Wrong> {
        self.found.take()
    }
}

/// A table with its name and place.
pub struct Fields<'t, 'i> {
    table: Table,
    /// What a message calls it.
    title: String,
    map: &'t DeTable<'i>,
    /// Of its heading.
    at: Range<usize>,
    wrongs: Wrongs,
}

impl<'t, 'i> Fields<'t, 'i> {
    /// Notes keys that such a table has not (`others` belong to somebody else) and required ones
    /// that are not there.
    pub fn new(
        table: Table,
        title: String,
        map: &'t DeTable<'i>,
        at: Range<usize>,
        wrongs: &Wrongs,
    ) -> Self {
        let fields = Fields { table, title, map, at, wrongs: wrongs.clone() };
        fields.missing();
        if table != Table::Device {
            fields.unknown(keys::of(table).map(|k| k.name));
        }
        fields
    }

    fn missing(&self) {
        let needed = keys::of(self.table).filter(|k| k.need == Need::Required);
        for key in needed.filter(|k| self.value(k.name).is_none()) {
            let what = format!("`{}` is missing in {}", key.name, self.title);
            self.wrongs.add(self.at.clone(), what, key.text.replace('`', ""));
        }
    }

    /// Notes the keys that are none of these.
    pub fn unknown(&self, known: impl Iterator<Item = &'static str>) {
        let known: Vec<&str> = known.collect();
        for key in self.map.keys().filter(|key| !known.contains(&&**key.get_ref())) {
            let what = format!("{} has no key `{}`", self.title, key.get_ref());
            let help = did_you_mean(key.get_ref(), known.iter().copied());
            self.wrongs.add(key.span(), what, help);
        }
    }

    /// The value of a key as the file has it.
    pub fn value(&self, name: &str) -> Option<&'t Spanned<DeValue<'i>>> {
        self.map.get(name)
    }

    /// The names and values of all keys.
    pub fn all(
        &self,
    ) -> impl Iterator<Item = (&'t Spanned<std::borrow::Cow<'i, str>>, &'t Spanned<DeValue<'i>>)>
    {
        self.map.iter()
    }

    /// Where a key's value is; the table's heading where there is none.
    pub fn place(&self, name: &str) -> Range<usize> {
        self.value(name).map_or(self.at.clone(), Spanned::span)
    }

    /// The value of a key, or its default. `None`: it has neither, or is wrong, which is noted.
    pub fn take<T: DeserializeOwned>(&self, name: &str) -> Option<T> {
        if let Some(value) = self.value(name) {
            return read(value, &self.wrongs);
        }
        let key = keys::find(self.table, name);
        debug_assert!(key.is_some(), "{name} is not in the list of keys");
        match key?.need {
            // OK to expect: a test reads every default.
            Need::Default(text) => {
                let value = DeValue::parse(text).expect("a default in TOML");
                T::deserialize(ValueDeserializer::from(value)).ok()
            }
            Need::Required | Need::Optional(_) => None,
        }
    }

    /// A table below this one.
    pub fn table(&self, name: &str, table: Table, title: &str) -> Option<Fields<'t, 'i>> {
        let value = self.value(name)?;
        let at = self.heading(name);
        self.as_table(value, at, table, title.to_owned())
    }

    /// Tables by name below this one.
    pub fn tables_by_name(&self, name: &str, table: Table) -> Vec<(String, Fields<'t, 'i>)> {
        let Some(all) = self.value(name).and_then(|v| self.map_of(v, name)) else { return vec![] };
        let one =
            |(key, value): (&Spanned<std::borrow::Cow<'i, str>>, &'t Spanned<DeValue<'i>>)| {
                let title = format!("[{name}.{}]", key.get_ref());
                Some((key.get_ref().to_string(), self.as_table(value, key.span(), table, title)?))
            };
        all.iter().filter_map(one).collect()
    }

    /// A list of tables below this one.
    pub fn tables(&self, name: &str, table: Table) -> Vec<Fields<'t, 'i>> {
        let Some(value) = self.value(name) else { return vec![] };
        let DeValue::Array(all) = value.get_ref() else {
            let help = format!("write [[{name}]] above each");
            self.wrongs.add(value.span(), format!("`{name}` is not a list of tables"), help);
            return vec![];
        };
        let one = |value| self.as_table(value, value.span(), table, format!("[[{name}]]"));
        all.iter().filter_map(one).collect()
    }

    /// The place of a table's name.
    fn heading(&self, name: &str) -> Range<usize> {
        let key = self.map.keys().find(|key| key.get_ref() == name);
        key.map_or(self.at.clone(), Spanned::span)
    }

    fn map_of(&self, value: &'t Spanned<DeValue<'i>>, title: &str) -> Option<&'t DeTable<'i>> {
        match value.get_ref() {
            DeValue::Table(map) => Some(map),
            _ => {
                self.wrongs.add(value.span(), format!("{title} is a table"), "");
                None
            }
        }
    }

    fn as_table(
        &self,
        value: &'t Spanned<DeValue<'i>>,
        at: Range<usize>,
        table: Table,
        title: String,
    ) -> Option<Fields<'t, 'i>> {
        let map = self.map_of(value, &title)?;
        Some(Fields::new(table, title, map, at, &self.wrongs))
    }

    /// Notes that a key's value is wrong.
    pub fn wrong(&self, name: &str, what: impl Into<String>, help: impl Into<String>) {
        self.wrongs.add(self.place(name), what, help);
    }

    /// Notes that a word of a key's value is wrong.
    pub fn wrong_word(&self, name: &str, word: &str, what: impl Into<String>) {
        let whole = self.place(name);
        let text = self.wrongs.text.get(whole.clone()).unwrap_or_default();
        let at = match text.find(word) {
            Some(from) => whole.start + from..whole.start + from + word.len(),
            None => whole,
        };
        self.wrongs.add(at, what, "");
    }

    /// Notes that a command line is wrong: at the word that the message names, where it names one.
    pub fn wrong_line(&self, name: &str, line: &str, what: &str, help: &str) {
        // Whole words of the message, which may quote a value or stand before a colon.
        let is_edge = |c: char| c.is_whitespace() || "'\"`:;,()\u{2018}\u{2019}".contains(c);
        let said: Vec<&str> = what.split(is_edge).filter(|word| !word.is_empty()).collect();
        let of_value = |word: &str| word.split_once('=').is_some_and(|(_, v)| said.contains(&v));
        let is_named = |word: &&str| said.contains(word) || of_value(word);
        let mut words = line.split_whitespace().filter(is_named);
        // Of several nobody knows which: then the whole line is marked.
        let word = words.next().filter(|_| words.next().is_none());
        let whole = self.place(name);
        let text = self.wrongs.text.get(whole.clone()).unwrap_or_default();
        let is_whole = |at: usize, word: &str| {
            let (before, after) =
                (text[..at].chars().last(), text[at + word.len()..].chars().next());
            let edge = |c: Option<char>| c.is_none_or(|c| c.is_whitespace() || "'\"".contains(c));
            edge(before) && edge(after)
        };
        let at = word.and_then(|word| {
            let (at, _) = text.match_indices(word).find(|(at, _)| is_whole(*at, word))?;
            Some((at, word.len()))
        });
        let at =
            at.map_or(whole.clone(), |(from, len)| whole.start + from..whole.start + from + len);
        self.wrongs.add(at, what, help);
    }

    /// Where mistakes are noted.
    pub fn wrongs(&self) -> &Wrongs {
        &self.wrongs
    }
}

/// A value of some type; `None` if it is of another, which is noted.
pub fn read<T: DeserializeOwned>(value: &Spanned<DeValue<'_>>, wrongs: &Wrongs) -> Option<T> {
    match T::deserialize(ValueDeserializer::from(value.clone())) {
        Ok(value) => Some(value),
        Err(e) => {
            note(wrongs, e.span().unwrap_or(value.span()), e.message());
            None
        }
    }
}

/// Notes what serde says, in the words of somebody who writes a file.
pub fn note(wrongs: &Wrongs, at: Range<usize>, message: &str) {
    if let Some(rest) = message.strip_prefix("unknown variant ") {
        let mut words = rest.split('`').skip(1).step_by(2);
        let given = words.next().unwrap_or_default();
        let known: Vec<&str> = words.collect();
        let what = format!("`{given}` is unknown: {}", choose(&known));
        let nearest = closest(given, known.iter().copied());
        wrongs.add(at, what, nearest.map_or(String::new(), |w| format!("did you mean `{w}`?")));
        return;
    }
    let types = message
        .strip_prefix("invalid type: ")
        .or_else(|| message.strip_prefix("invalid value: "))
        .and_then(|rest| rest.split_once(", expected "));
    match types {
        Some((found, wanted)) => {
            let wanted = match wanted {
                "u8" | "u16" | "u32" | "u64" | "usize" => "a whole number",
                "f32" | "f64" => "a number",
                "a string" | "string" => "a text in quotes",
                "a boolean" | "bool" => "true or false",
                "a map" => "a table",
                other => other,
            };
            let found = found.replace("string \"", "the text \"");
            wrongs.add(at, format!("{wanted} is needed here, not {found}"), "");
        }
        None => wrongs.add(at, message, ""),
    }
}
