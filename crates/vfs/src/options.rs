//! Mount options, each declared once: a crate lists its options in a table of [`MountOption`]s, and
//! every reader and every document uses these tables.
//!
//! A table belongs to the structure `T` that its options change. [`split`] splits an option string,
//! each option is tried in one table after the other ([`MountOption::apply`] by [`apply`]), and an
//! unknown option is refused by [`unknown`] with the probable name.

use std::io;
use std::ops::RangeInclusive;

use crate::{TransactError, size};

/// One option of a mount, or several words for one thing.
pub struct MountOption<T: 'static> {
    /// What it is an option of: the file system, the journal, the page cache, the mount.
    pub of: &'static str,
    /// Its words and what they do.
    pub form: Form<T>,
    /// Whether `-o remount` can change it.
    pub remount: bool,
    /// What it does, for people.
    pub help: &'static str,
}

/// An option without a value that is a field: of what, which, the words that switch it on and off,
/// whether a remount can change it, and what it does.
#[macro_export]
macro_rules! switch {
    ($of:expr, $($field:ident).+, [$($on:expr),+], [$($off:expr),*], $remount:expr, $help:expr) => {
        $crate::options::MountOption {
            of: $of,
            form: $crate::options::Form::Switch {
                on: &[$($on),+],
                off: &[$($off),*],
                set: |options, on| options.$($field).+ = on,
                get: |options| options.$($field).+,
            },
            remount: $remount,
            help: $help,
        }
    };
}

/// What an option looks like, how it is put into a `T` and read from there.
pub enum Form<T: 'static> {
    /// Words for on and words for off.
    Switch {
        /// On; the first is the usual one.
        on: &'static [&'static str],
        /// Off.
        off: &'static [&'static str],
        /// Sets it.
        set: fn(&mut T, bool),
        /// How it is.
        get: fn(&T) -> bool,
    },
    /// One of several words; some may have a sign: `dax=inode`.
    OneOf {
        /// The words.
        words: &'static [&'static str],
        /// Sets it to one of them.
        set: fn(&mut T, &str),
        /// Which one it is.
        get: fn(&T) -> &'static str,
    },
    /// `key=` one of several words.
    Choice {
        /// The key.
        key: &'static str,
        /// The words.
        words: &'static [&'static str],
        /// Sets it to one of them.
        set: fn(&mut T, &str),
        /// Which one it is.
        get: fn(&T) -> &'static str,
    },
    /// `key=` a whole number.
    Number {
        /// The key.
        key: &'static str,
        /// What help shows for the number.
        shown: &'static str,
        /// What it can be.
        range: RangeInclusive<u64>,
        /// Sets it.
        set: fn(&mut T, u64),
        /// What it is.
        get: fn(&T) -> u64,
    },
    /// `key=` a size with k, m, g, t.
    Size {
        /// The key.
        key: &'static str,
        /// The least, in bytes.
        least: u64,
        /// Sets it, in bytes.
        set: fn(&mut T, u64),
        /// What it is, if it is bounded at all.
        get: fn(&T) -> Option<u64>,
    },
    /// `key=` a text.
    Text {
        /// The key, and other spellings.
        keys: &'static [&'static str],
        /// What help shows for the text.
        shown: &'static str,
        /// Adds or sets it.
        set: fn(&mut T, &str) -> Result<(), ValueError>,
        /// What it is; several, or none.
        get: fn(&T) -> Vec<String>,
    },
    /// `key=` words that are separated by commas, as options are.
    List {
        /// The key.
        key: &'static str,
        /// What help shows for the words.
        shown: &'static str,
        /// Whether a word after a comma belongs to it.
        is_part: fn(&str) -> bool,
        /// Sets it.
        set: fn(&mut T, &str) -> Result<(), ValueError>,
        /// What it is; `None`: it has no meaning as things are.
        get: fn(&T) -> Option<String>,
    },
    /// Taken and changes nothing: the only way there is, or somebody else's affair.
    WithoutEffect {
        /// Words as they are.
        words: &'static [&'static str],
        /// Keys with any value.
        keys: &'static [&'static str],
        /// Beginnings of words.
        prefixes: &'static [&'static str],
    },
    /// Known and not offered; the help says why.
    NotOffered {
        /// Words as they are.
        words: &'static [&'static str],
        /// Keys with any value.
        keys: &'static [&'static str],
    },
}

/// Why an option does not take a value.
#[derive(Debug, thiserror::Error)]
pub enum ValueError {
    /// Of `transact=`.
    #[error(transparent)]
    Transact(#[from] TransactError),
    /// A path that leads nowhere from here.
    #[error("{path}: {source}")]
    Path {
        /// As given.
        path: String,
        /// Why.
        source: io::Error,
    },
}

/// What became of a word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WordEffect {
    /// The option is set.
    Set,
    /// The word changes nothing.
    WithoutEffect,
    /// The table does not know it.
    Unknown,
}

/// An option that cannot be taken.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("mount option {word}: {what}")]
pub struct WrongOption {
    /// As given.
    pub word: String,
    /// What is wrong, and what to do.
    pub what: String,
}

impl WrongOption {
    /// Of a word.
    pub fn new(word: &str, what: impl Into<String>) -> WrongOption {
        WrongOption { word: word.into(), what: what.into() }
    }
}

/// What an option is, for help, manual and tables.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OptionText {
    /// What it is an option of.
    pub of: &'static str,
    /// Its words: `data=writeback|ordered`, `delalloc, nodelalloc`.
    pub words: String,
    /// What holds without it; empty: nothing.
    pub default: String,
    /// Whether `-o remount` can change it.
    pub remount: bool,
    /// What it does.
    pub help: &'static str,
}

impl<T> MountOption<T> {
    /// Takes a word if it is one of this option's.
    ///
    /// # Errors
    /// It is, and its value cannot be taken.
    pub fn apply(&self, word: &str, to: &mut T) -> Result<WordEffect, WrongOption> {
        let (key, value) = match word.split_once('=') {
            Some((key, value)) => (key, Some(value)),
            None => (word, None),
        };
        let wrong = |what: String| WrongOption::new(word, what);
        let refused = |e: &dyn std::error::Error| wrong(e.to_string());
        match (&self.form, value) {
            // A word may have a sign: `auto_da_alloc=0`.
            (Form::Switch { on, off, set, .. }, _) if on.contains(&word) || off.contains(&word) => {
                set(to, on.contains(&word));
            }
            (Form::OneOf { words, set, .. }, _) if words.contains(&word) => set(to, word),
            (Form::Choice { key: k, words, set, .. }, Some(value)) if *k == key => {
                if value.is_empty() {
                    return Err(wrong(format!("a value is needed: {}", choose(*words))));
                }
                if !words.contains(&value) {
                    return Err(wrong(none_of(value, words)));
                }
                set(to, value);
            }
            (Form::Number { key: k, range, set, .. }, Some(value)) if *k == key => {
                let n = value.parse().ok().filter(|n| range.contains(n));
                let (least, most) = (range.start(), range.end());
                let needed = || wrong(format!("a whole number from {least} to {most} is needed"));
                set(to, n.ok_or_else(needed)?);
            }
            (Form::Size { key: k, least, set, .. }, Some(value)) if *k == key => {
                let bytes = size::parse(value).map_err(|e| refused(&e))?;
                if bytes < *least {
                    return Err(wrong(format!("at least {} is needed", size::shown(*least))));
                }
                set(to, bytes);
            }
            (Form::Text { keys, shown, set, .. }, Some(value)) if keys.contains(&key) => {
                if value.is_empty() {
                    return Err(wrong(format!("no {}", shown.to_lowercase())));
                }
                set(to, value).map_err(|e| refused(&e))?;
            }
            (Form::List { key: k, set, .. }, Some(value)) if *k == key => {
                set(to, value).map_err(|e| refused(&e))?;
            }
            (Form::WithoutEffect { words, keys, prefixes }, _)
                if words.contains(&word)
                    || value.is_some() && keys.contains(&key)
                    || prefixes.iter().any(|p| word.starts_with(p)) =>
            {
                return Ok(WordEffect::WithoutEffect);
            }
            (Form::NotOffered { words, keys }, _)
                if words.contains(&word) || value.is_some() && keys.contains(&key) =>
            {
                return Err(wrong(format!("is not offered: {}", self.help)));
            }
            _ => return Ok(WordEffect::Unknown),
        }
        Ok(WordEffect::Set)
    }

    /// The names that it goes by, for suggestions; keys end with `=`.
    fn names(&self) -> Vec<String> {
        let words = |words: &[&str]| -> Vec<String> {
            words.iter().filter(|w| !w.contains('=')).map(|w| (*w).to_owned()).collect()
        };
        let key = |key: &str| format!("{key}=");
        match &self.form {
            Form::Switch { on, off, .. } => [words(on), words(off)].concat(),
            Form::OneOf { words: all, .. } => words(all),
            Form::Choice { key: k, .. }
            | Form::Number { key: k, .. }
            | Form::Size { key: k, .. }
            | Form::List { key: k, .. } => vec![key(k)],
            Form::Text { keys, .. } => keys.iter().map(|k| key(k)).collect(),
            Form::WithoutEffect { .. } | Form::NotOffered { .. } => Vec::new(),
        }
    }

    /// As an option list would write how it is now; empty: nothing is to be said.
    pub fn in_force(&self, of: &T) -> Vec<String> {
        match &self.form {
            Form::Switch { on, off, get, .. } => {
                let words = if get(of) { on } else { off };
                words.first().map(|w| (*w).to_owned()).into_iter().collect()
            }
            Form::OneOf { get, .. } => vec![get(of).to_owned()],
            Form::Choice { key, get, .. } => vec![format!("{key}={}", get(of))],
            Form::Number { key, get, .. } => vec![format!("{key}={}", get(of))],
            Form::Size { key, get, .. } => {
                get(of).map(|n| format!("{key}={}", size::shown(n))).into_iter().collect()
            }
            Form::Text { keys, get, .. } => {
                get(of).iter().map(|text| format!("{}={text}", keys[0])).collect()
            }
            Form::List { key, get, .. } => {
                get(of).map(|text| format!("{key}={text}")).into_iter().collect()
            }
            Form::WithoutEffect { .. } | Form::NotOffered { .. } => Vec::new(),
        }
    }

    fn words(&self) -> String {
        match &self.form {
            Form::Switch { on, off, .. } => {
                on.iter().take(1).chain(off.iter().take(1)).copied().collect::<Vec<_>>().join(", ")
            }
            Form::OneOf { words, .. } => words.join(", "),
            Form::Choice { key, words, .. } => format!("{key}={}", words.join("|")),
            Form::Number { key, shown, .. } => format!("{key}={shown}"),
            Form::Size { key, .. } => format!("{key}=SIZE"),
            Form::Text { keys, shown, .. } => format!("{}={shown}", keys[0]),
            Form::List { key, shown, .. } => format!("{key}={shown}"),
            Form::WithoutEffect { .. } | Form::NotOffered { .. } => String::new(),
        }
    }

    fn default(&self) -> String
    where
        T: Default,
    {
        let in_force = self.in_force(&T::default());
        let value = |word: &String| match (&self.form, word.split_once('=')) {
            (Form::Switch { .. } | Form::OneOf { .. }, _) | (_, None) => word.clone(),
            (_, Some((_, value))) => value.to_owned(),
        };
        in_force.iter().map(value).collect::<Vec<_>>().join(",")
    }
}

/// Offers a word to a table.
///
/// # Errors
/// The table knows it, and cannot take it.
pub fn apply<T>(
    table: &[MountOption<T>],
    word: &str,
    to: &mut T,
) -> Result<WordEffect, WrongOption> {
    for option in table {
        let applied = option.apply(word, to)?;
        if applied != WordEffect::Unknown {
            return Ok(applied);
        }
    }
    Ok(WordEffect::Unknown)
}

/// The words of an option list: separated by commas, but the parts of a list of a table's option
/// stay together. A part that stands behind other words belongs to the list too, unless it
/// `is_other`: an option by itself.
pub fn split<T>(
    table: &[MountOption<T>],
    text: &str,
    is_other: impl Fn(&str) -> bool,
) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    for word in text.split(',').map(str::trim).filter(|w| !w.is_empty()) {
        let is_list = |before: &String| {
            table.iter().any(|option| match &option.form {
                Form::List { key, is_part, .. } => {
                    is_part(word) && before.strip_prefix(key).is_some_and(|r| r.starts_with('='))
                }
                _ => false,
            })
        };
        let last = words.len().saturating_sub(1);
        match words.iter().rposition(is_list).filter(|at| *at == last || !is_other(word)) {
            Some(at) => {
                words[at].push(',');
                words[at].push_str(word);
            }
            None => words.push(word.to_owned()),
        }
    }
    words
}

/// All names of a table, for [`unknown`].
pub fn names<T>(table: &[MountOption<T>]) -> Vec<String> {
    table.iter().flat_map(MountOption::names).collect()
}

/// Refuses a word that no table knows.
pub fn unknown(word: &str, names: &[String]) -> WrongOption {
    let bare = word.split_once('=').map_or(word, |(key, _)| key);
    let known = || names.iter().map(String::as_str);
    let what = match known().find(|name| name.strip_suffix('=') == Some(word)) {
        Some(name) => format!("a value is needed: {name}..."),
        None => match known().find(|name| *name == bare) {
            Some(name) => format!("`{name}` takes no value"),
            None => match closest(bare, known().map(|name| name.trim_end_matches('='))) {
                Some(name) => {
                    let value = known().any(|n| n.strip_suffix('=') == Some(name));
                    let sign = if value { "=" } else { "" };
                    format!("is unknown: did you mean {name}{sign}?")
                }
                None => format!("is unknown: {}", choose(names)),
            },
        },
    };
    WrongOption::new(word, what)
}

/// What each option of a table is; not those without effect.
pub fn texts<T: Default>(table: &[MountOption<T>]) -> Vec<OptionText> {
    let text = |o: &MountOption<T>| OptionText {
        of: o.of,
        words: o.words(),
        default: o.default(),
        remount: o.remount,
        help: o.help,
    };
    table.iter().map(text).filter(|text| !text.words.is_empty()).collect()
}

/// How all options of a table are, as an option list writes it.
pub fn in_force<T>(table: &[MountOption<T>], of: &T) -> Vec<String> {
    table.iter().flat_map(|option| option.in_force(of)).collect()
}

fn none_of(given: &str, words: &[&str]) -> String {
    let all = choose(words);
    match closest(given, words.iter().copied()) {
        Some(word) => format!("{given} is unknown: did you mean {word}? ({all})"),
        None => format!("{given} is unknown: {all}"),
    }
}

/// What can be given where a word is unknown or missing: `choose a, b or c`.
pub fn choose<W: AsRef<str>>(words: impl IntoIterator<Item = W>) -> String {
    let words: Vec<W> = words.into_iter().collect();
    let words: Vec<&str> = words.iter().map(AsRef::as_ref).collect();
    match words.split_last() {
        Some((last, [])) => format!("choose {last}"),
        Some((last, others)) => format!("choose {} or {last}", others.join(", ")),
        None => "there is nothing to choose".into(),
    }
}

/// The word that an unknown one was probably meant to be.
pub fn closest<'a>(given: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    /// As the command line's parser (clap) has it.
    const SIMILARITY_MIN: f64 = 0.7;
    let given = given.to_lowercase();
    known
        .into_iter()
        .map(|word| (strsim::jaro(&given, word), word))
        .filter(|(alike, _)| *alike > SIMILARITY_MIN)
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .map(|(_, word)| word)
}

/// The word that was meant where this one has a slip of the pen: a letter too many, too few, or
/// another one, or two exchanged; in longer words two of these.
pub fn slip_of<'a>(given: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    /// From so many letters on.
    const LONG: usize = 6;
    let slips = if given.len() < LONG { 1 } else { 2 };
    let known = known.into_iter().map(|word| (strsim::damerau_levenshtein(given, word), word));
    known.filter(|(off, _)| *off <= slips).min().map(|(_, word)| word)
}
