//! What went wrong on the way through a tree: reported object by object, counted for the end.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fmt;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use steadfast_vfs::FsError;
use steadfast_vfs::path::shown;

use crate::error::{Error, Result, bytes};

/// Kinds of notes that are kept apart.
const KINDS_MAX: usize = 100;

/// Something of an object could not be kept: an attribute that the target does not have, an owner
/// that the caller must not set. No failure: the object is there.
///
/// ```
/// use steadfast::{Image, tree};
///
/// let folder = tempfile::tempdir()?;
/// let fs = Image::in_memory(16 << 20).mount()?;
/// fs.write("/file", "text")?;
/// let mut notes = Vec::new();
/// let options = tree::Options::new().on_note(|note| notes.push(note.to_string()));
/// options.copy_out(&fs, "/file", folder.path())?;
/// assert!(notes.iter().all(|note| note.contains("not kept")));
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Note {
    /// What is not kept, and why.
    pub what: String,
    /// The first object of which that holds.
    pub path: PathBuf,
    /// How many more there are.
    pub more: u64,
}

impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&shown(bytes(&self.path)))?;
        if self.more > 0 {
            write!(f, " (and {} more)", self.more)?;
        }
        write!(f, ": {}", self.what)
    }
}

/// Gets each failure.
pub(super) type OnFailure<'h> = Box<dyn FnMut(Error) + 'h>;
/// Gets each note.
pub(super) type OnNote<'h> = Box<dyn FnMut(&Note) + 'h>;

/// The failures of one operation on a tree.
pub(super) struct TreeFailures<'h> {
    operation: &'static str,
    /// Without it the first failure ends the work.
    on_failure: Option<OnFailure<'h>>,
    on_note: Option<OnNote<'h>>,
    count: u64,
    /// By what is not kept: the first object, and how many more.
    notes: BTreeMap<String, (PathBuf, u64)>,
    /// Objects that are there now, and the last of them.
    written: (u64, Vec<u8>),
}

impl<'h> TreeFailures<'h> {
    /// None yet.
    pub fn new(
        operation: &'static str,
        on_failure: Option<OnFailure<'h>>,
        on_note: Option<OnNote<'h>>,
    ) -> Self {
        let (notes, written) = (BTreeMap::new(), (0, Vec::new()));
        TreeFailures { operation, on_failure, on_note, count: 0, notes, written }
    }

    fn report(&mut self, e: Error) -> Result<()> {
        let Some(on_failure) = &mut self.on_failure else { return Err(e) };
        self.count += 1;
        on_failure(e);
        Ok(())
    }

    /// An operation on the object at `path` failed. An error ends the work.
    pub fn record(&mut self, path: &[u8], e: FsError) -> Result<()> {
        let e = self.error(path, e);
        self.report(e)
    }

    /// As [`record`](Self::record), in words.
    pub fn record_text(&mut self, path: &[u8], what: &str) -> Result<()> {
        self.report(Error::Object { path: to_path(path), what: what.to_owned() })
    }

    /// The failure at `path` as an error, for what ends the work in any case.
    pub fn error(&self, path: &[u8], e: FsError) -> Error {
        Error::at(self.operation, &to_path(path))(e)
    }

    /// Remembers that something of the object at `path` is not kept. It is reported once, at the
    /// end.
    pub fn note(&mut self, what: &str, path: &[u8]) {
        let what = match self.notes.len() {
            n if n < KINDS_MAX || self.notes.contains_key(what) => what,
            _ => "more attributes are not kept",
        };
        match self.notes.get_mut(what) {
            Some((_, more)) => *more += 1,
            None => drop(self.notes.insert(what.into(), (to_path(path), 0))),
        }
    }

    /// One more object is there, at `path`.
    pub fn written(&mut self, path: &[u8]) {
        self.written.0 += 1;
        self.written.1.clear();
        self.written.1.extend_from_slice(path);
    }

    /// Notes something about the last object that is there; of none about `top`.
    pub fn note_at_last(&mut self, what: &str, top: &[u8]) {
        let path = if self.written.0 == 0 { top.to_vec() } else { self.written.1.clone() };
        self.note(what, &path);
    }

    /// How many objects have failed.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Ends the operation, whose work went through or was given up: reports the notes.
    pub fn end(mut self, done: Result<()>) -> Result<Report> {
        if let (Err(_), count @ 1..) = (&done, self.written.0) {
            self.note_at_last(&format!("the last of {count} objects that were written"), b"");
        }
        let notes = self.notes.into_iter();
        let notes: Vec<Note> =
            notes.map(|(what, (path, more))| Note { what, path, more }).collect();
        if let Some(on_note) = self.on_note {
            notes.iter().for_each(on_note);
        }
        done.map(|()| Report { failures: self.count, notes })
    }
}

/// What came of an operation on a tree.
///
/// ```
/// let folder = tempfile::tempdir()?;
/// let fs = steadfast::Image::in_memory(16 << 20).mount()?;
/// let report = fs.copy_in(folder.path(), "/folder")?;
/// assert_eq!(report.failures, 0);
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Report {
    /// Objects that failed. More than none only with
    /// [`Options::on_failure`](super::Options::on_failure).
    pub failures: u64,
    /// What could not be kept.
    pub notes: Vec<Note>,
}

/// A path of the file system's bytes.
pub(super) fn to_path(path: &[u8]) -> PathBuf {
    Path::new(OsStr::from_bytes(path)).to_owned()
}
