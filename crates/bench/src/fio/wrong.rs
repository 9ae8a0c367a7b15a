//! What is wrong with a job file, and where.

use std::fmt;
use std::sync::Arc;

/// A line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LineOrigin {
    /// The file, as it was named.
    pub file: Arc<str>,
    /// From 1 on; 0: the command line.
    pub line: u32,
}

impl fmt::Display for LineOrigin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            0 => f.write_str(&self.file),
            line => write!(f, "{}:{line}", self.file),
        }
    }
}

/// What is wrong with a line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WrongLine {
    /// Which one.
    pub at: LineOrigin,
    /// What is wrong with it.
    pub what: String,
    /// fio has it, and here it is not.
    pub is_unsupported: bool,
}

/// All that is wrong with a job file, one a line.
#[derive(Debug, Clone, PartialEq, Eq, Default, thiserror::Error)]
pub struct JobFileError {
    /// In the order of the file.
    pub lines: Vec<WrongLine>,
}

impl JobFileError {
    /// Of so many the rest is only counted.
    const SHOWN: usize = 50;

    pub(super) fn one(at: &LineOrigin, what: impl Into<String>) -> JobFileError {
        let mut error = JobFileError::default();
        error.note(at, what);
        error
    }

    pub(super) fn note(&mut self, at: &LineOrigin, what: impl Into<String>) {
        let (at, what) = (at.clone(), what.into());
        self.lines.push(WrongLine { at, what, is_unsupported: false });
    }

    pub(super) fn note_unsupported(&mut self, at: &LineOrigin, what: impl Into<String>) {
        let (at, what) = (at.clone(), what.into());
        self.lines.push(WrongLine { at, what, is_unsupported: true });
    }

    /// Whether nothing is wrong but that lines ask for what is not here.
    pub fn is_unsupported(&self) -> bool {
        self.lines.iter().all(|line| line.is_unsupported)
    }

    /// `value`, if nothing is wrong.
    pub(super) fn or<T>(self, value: T) -> Result<T, JobFileError> {
        if self.lines.is_empty() { Ok(value) } else { Err(self) }
    }
}

impl fmt::Display for JobFileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, WrongLine { at, what, .. }) in self.lines.iter().take(Self::SHOWN).enumerate() {
            let end = if i > 0 { "\n" } else { "" };
            write!(f, "{end}{at}: {what}")?;
        }
        match self.lines.len().saturating_sub(Self::SHOWN) {
            0 => Ok(()),
            more => write!(f, "\nand {more} lines more"),
        }
    }
}
