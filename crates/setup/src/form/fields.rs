//! The fields of one table of a form. Whatever is wrong with one of them is noted with its place,
//! and reading goes on.

use std::borrow::Cow;
use std::cell::RefCell;
use std::ops::Range;
use std::rc::Rc;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::value::{FormValue, Value};
use super::wrong::{Wrong, did_you_mean};
use super::{Key, Need};

/// The mistakes found so far in a text.
#[derive(Clone)]
pub(crate) struct Wrongs {
    text: Rc<str>,
    found: Rc<RefCell<Vec<Wrong>>>,
}

impl Wrongs {
    pub(super) fn none_in(text: &str) -> Self {
        Wrongs { text: text.into(), found: Rc::default() }
    }

    /// Notes one.
    pub(super) fn add(&self, at: Range<usize>, what: impl Into<String>, help: impl Into<String>) {
        self.found.borrow_mut().push(Wrong { at, what: what.into(), help: help.into() });
    }

    /// Notes what is wrong with a command line: at the word that the message names, if it is one.
    pub(super) fn add_of_line(&self, whole: Range<usize>, line: &str, what: &str, help: &str) {
        // Whole words of the message, which may quote a value or stand before a colon.
        let is_edge = |c: char| c.is_whitespace() || "'\"`:;,()\u{2018}\u{2019}".contains(c);
        let said: Vec<&str> = what.split(is_edge).filter(|word| !word.is_empty()).collect();
        let of_value = |word: &str| word.split_once('=').is_some_and(|(_, v)| said.contains(&v));
        let is_named = |word: &&str| said.contains(word) || of_value(word);
        let mut words = line.split_whitespace().filter(is_named);
        // Of several nobody knows which: then the whole line is marked.
        let word = words.next().filter(|_| words.next().is_none());
        let text = self.text.get(whole.clone()).unwrap_or_default();
        let is_whole = |at: usize, word: &str| {
            let (before, after) =
                (text[..at].chars().last(), text[at + word.len()..].chars().next());
            let edge = |c: Option<char>| c.is_none_or(|c| c.is_whitespace() || "'\"".contains(c));
            edge(before) && edge(after)
        };
        let at = word.and_then(|word| {
            let (at, _) = text.match_indices(word).find(|(at, _)| is_whole(*at, word))?;
            Some(whole.start + at..whole.start + at + word.len())
        });
        self.add(at.unwrap_or(whole), what, help);
    }
}

/// Reads a text: `change` gets the document, and then `read` the table of the whole file.
///
/// # Errors
/// All that is wrong with it.
pub fn read_text<'t, T>(
    text: &'t str,
    change: impl FnOnce(&mut DeTable<'t>),
    read: impl FnOnce(&Fields<'_>) -> Option<T>,
) -> Result<T, Vec<Wrong>> {
    let wrongs = Wrongs::none_in(text);
    let (mut table, errors) = DeTable::parse_recoverable(text);
    for e in &errors {
        let at = e.span().unwrap_or(0..0);
        wrongs.add(at, e.message(), "the file is TOML: see https://toml.io");
    }
    change(table.get_mut());
    let (title, name) = ("the file".to_owned(), String::new());
    let top = Fields { title, name, map: table.get_ref(), at: 0..0, wrongs: wrongs.clone() };
    // What a broken line was meant to say is missing below: only the line is reported then.
    let read = errors.is_empty().then(|| read(&top)).flatten();
    match (wrongs.found.take(), read) {
        (none, Some(read)) if none.is_empty() => Ok(read),
        (some, _) => Err(some),
    }
}

/// A table with its name and place.
pub struct Fields<'t> {
    /// What a message calls it.
    pub(super) title: String,
    /// The innermost name that is the file's own.
    pub(super) name: String,
    pub(super) map: &'t DeTable<'t>,
    /// Of its heading.
    pub(super) at: Range<usize>,
    pub(super) wrongs: Wrongs,
}

impl<'t> Fields<'t> {
    /// Calls a function that ends with what is missing.
    pub fn all<T>(read: impl FnOnce() -> Option<T>) -> Option<T> {
        read()
    }

    /// What is read from a table without a key.
    pub fn empty<T>(title: &str, read: impl FnOnce(&Fields<'_>) -> Option<T>) -> Option<T> {
        let (map, wrongs) = (DeTable::new(), Wrongs::none_in(""));
        let (title, name) = (title.to_owned(), String::new());
        read(&Fields { title, name, map: &map, at: 0..0, wrongs })
    }

    /// Notes keys that must be there and are not.
    pub fn check(&self, keys: &[Key]) {
        let needed = keys.iter().filter(|k| k.need == Need::Required);
        for key in needed.filter(|k| !self.has(k.name)) {
            let what = format!("`{}` is missing in {}", key.name, self.title);
            self.wrongs.add(self.at.clone(), what, key.meaning().replace('`', ""));
        }
    }

    /// Notes keys that are none of these.
    pub fn only(&self, known: &[&[Key]]) {
        self.only_named(known.iter().copied().flatten().map(|key| key.name));
    }

    /// The same, of names.
    pub(crate) fn only_named(&self, known: impl Iterator<Item = &'static str>) {
        let known: Vec<&str> = known.collect();
        for (key, place) in self.each().filter(|(key, _)| !known.contains(key)) {
            let what = format!("{} has no key `{key}`", self.title);
            let help = did_you_mean(key, known.iter().copied());
            place.wrong_name(what, help);
        }
    }

    /// The keys that are there, with their values.
    pub fn each(&self) -> impl Iterator<Item = (&'t str, FormValue<'t>)> {
        let place = |(key, value): (&'t Spanned<Cow<'t, str>>, &'t Spanned<DeValue<'t>>)| {
            let (heading, name, wrongs) = (key.span(), self.name.clone(), self.wrongs.clone());
            (&**key.get_ref(), FormValue { value, heading, name, wrongs })
        };
        self.map.iter().map(place)
    }

    /// Whether a key is there.
    pub fn has(&self, name: &str) -> bool {
        self.map.contains_key(name)
    }

    /// The value of a key.
    pub fn at(&self, name: &str) -> Option<FormValue<'t>> {
        self.each().find(|(key, _)| *key == name).map(|(_, place)| place)
    }

    /// The value of a key, if it is there and can be read; notes nothing.
    pub fn get<T: Value>(&self, name: &str) -> Option<T> {
        T::read(&self.at(name)?.quiet())
    }

    /// The names below a key that is a table of tables, also of those that are wrong.
    pub fn names(&self, name: &str) -> Vec<String> {
        match self.map.get(name).map(Spanned::get_ref) {
            Some(DeValue::Table(all)) => all.keys().map(|k| k.get_ref().to_string()).collect(),
            _ => Vec::new(),
        }
    }

    /// The tables of a key that is a table of tables, by their names.
    pub fn tables_by_name(&self, name: &str) -> Vec<(String, Fields<'t>)> {
        let all = self.table(name);
        let each = all.iter().flat_map(Fields::each);
        each.filter_map(|(key, place)| Some((key.to_owned(), place.table("")?))).collect()
    }

    /// The tables of a key that is a list of tables.
    pub fn tables(&self, name: &str) -> Vec<Fields<'t>> {
        let Some(place) = self.at(name) else { return vec![] };
        let each = place.items().unwrap_or_default();
        each.iter().filter_map(|place| place.table("")).collect()
    }

    /// The table of a key that is one.
    pub fn table(&self, name: &str) -> Option<Fields<'t>> {
        self.at(name)?.table("")
    }

    /// The value of a key of these, or its default. `None`: it has neither, or is wrong, which is
    /// noted.
    pub fn take<T: Value>(&self, name: &str, keys: &[Key]) -> Option<T> {
        let key = keys.iter().find(|key| key.name == name)?;
        let Some(place) = self.at(name) else {
            return match key.need {
                Need::Required => None,
                Need::Optional(_) => T::absent(),
                Need::Default(text) => {
                    // OK to expect: a test reads every default.
                    let value = DeValue::parse(text).expect("a default in TOML");
                    let (heading, name) = (0..0, self.name.clone());
                    T::read(&FormValue {
                        value: &value,
                        heading,
                        name,
                        wrongs: self.wrongs.clone(),
                    })
                }
            };
        };
        let read = T::read(&place)?;
        let number = key.bounds.and_then(|bounds| Some((bounds, place.quiet().single::<f64>()?)));
        match number.filter(|(bounds, number)| !bounds.hold(*number)) {
            // What was refused is not used: a duration cannot be made of a negative number.
            Some((bounds, number)) => {
                place.wrong(format!("`{name}` must be {bounds}, not {number}"), "");
                None
            }
            None => Some(read),
        }
    }

    /// Where a key's value is; the table's heading where there is none.
    pub fn place(&self, name: &str) -> Range<usize> {
        self.map.get(name).map_or(self.at.clone(), Spanned::span)
    }

    /// Notes that a key's value is wrong.
    pub fn wrong(&self, name: &str, what: impl Into<String>, help: impl Into<String>) {
        self.wrongs.add(self.place(name), what, help);
    }

    /// Notes that a word of a key's value is wrong.
    pub fn wrong_word(&self, name: &str, word: &str, what: impl Into<String>) {
        let whole = self.place(name);
        let text = self.wrongs.text.get(whole.clone()).unwrap_or_default();
        // In a list as a whole, which may have longer words beside it.
        let quoted = ['"', '\''].map(|q| text.find(&format!("{q}{word}{q}")).map(|at| at + 1));
        let at = match quoted[0].or(quoted[1]).or(text.find(word)) {
            Some(from) => whole.start + from..whole.start + from + word.len(),
            None => whole,
        };
        self.wrongs.add(at, what, "");
    }

    /// Notes that a command line is wrong: at the word that the message names, where it names one.
    pub fn wrong_line(&self, name: &str, line: &str, what: &str, help: &str) {
        self.wrongs.add_of_line(self.place(name), line, what, help);
    }

    /// The same table, where nothing is noted.
    pub(crate) fn quiet(&self) -> Fields<'t> {
        let (title, name) = (self.title.clone(), self.name.clone());
        Fields { title, name, map: self.map, at: self.at.clone(), wrongs: Wrongs::none_in("") }
    }
}
