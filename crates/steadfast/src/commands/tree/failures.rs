//! What went wrong on the way through a tree: told object by object, counted for the end.

use std::collections::BTreeMap;

use anyhow::{Result, anyhow};

use super::names::shown;
use crate::{Outcome, terminal};

/// Kinds of remarks that are told apart.
const KINDS_MAX: usize = 100;

/// The failures of one command.
pub struct Failures {
    /// The first failure ends the work.
    strict: bool,
    count: u64,
    /// What could not be kept: the first object, and how many more.
    notes: BTreeMap<String, (String, u64)>,
}

impl Failures {
    /// None yet.
    pub fn new(strict: bool) -> Self {
        Failures { strict, count: 0, notes: BTreeMap::new() }
    }

    /// Tells what is wrong with the object at `path`. An error ends the work.
    pub fn tell(&mut self, path: &[u8], e: impl Into<anyhow::Error>) -> Result<()> {
        let e = e.into().context(shown(path));
        if self.strict {
            return Err(e);
        }
        self.count += 1;
        terminal::error(&e);
        Ok(())
    }

    /// As [`tell`](Self::tell), in words.
    pub fn say(&mut self, path: &[u8], what: &str) -> Result<()> {
        self.tell(path, anyhow!("{what}"))
    }

    /// Remembers that something of the object at `path` is not kept. It is told once, at the end.
    pub fn note(&mut self, what: &str, path: &[u8]) {
        let what = match self.notes.len() {
            n if n < KINDS_MAX || self.notes.contains_key(what) => what,
            _ => "more attributes are not kept",
        };
        match self.notes.get_mut(what) {
            Some((_, more)) => *more += 1,
            None => drop(self.notes.insert(what.into(), (shown(path), 0))),
        }
    }

    /// How many objects have failed.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Ends the command, whose work went through or was given up: tells the remarks, and how many
    /// objects have failed.
    pub fn end(self, done: Result<()>, what: &str) -> Result<Outcome> {
        for (kind, (path, more)) in &self.notes {
            let more = if *more > 0 { format!(" (and {more} more)") } else { String::new() };
            terminal::note(&format!("note: {path}{more}: {kind}"));
        }
        if self.count > 1 {
            terminal::note(&format!("{} failures; {what}", self.count));
        }
        done.map(|()| if self.count == 0 { Outcome::Good } else { Outcome::Problem })
    }
}
