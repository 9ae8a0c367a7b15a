//! What goes wrong in the background of a mount: a line in the log when it happens, the mount's
//! status while it lasts, the end's exit status.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use serde_json::{Value, json};
use steadfast_ext4::Ext4;
use steadfast_ext4::meta::{UnwrittenPart, WriteError};
use steadfast_ext4_format::ondisk::InodeNo;
use steadfast_fuse::ErrorLog;
use steadfast_pagecache::Stats;
use steadfast_vfs::path::shown;

use crate::terminal;

/// Parts of files that a status and the last word of a mount name.
const PARTS_MAX: usize = 16;

/// What went wrong in the background: the log's lines, and the last failure for the status.
#[derive(Debug)]
pub struct Failures {
    /// The log, limited by kind and time.
    pub log: ErrorLog,
    last: Mutex<Option<Failure>>,
    /// Writes to files in place that the memory has refused.
    not_stored: AtomicU64,
}

/// One of them.
#[derive(Debug)]
struct Failure {
    when: Instant,
    /// The data that could not be written; its file's name is looked for when somebody asks.
    part: Option<UnwrittenPart>,
    what: String,
}

impl Failures {
    fn note(&self, part: Option<&UnwrittenPart>, what: String) {
        let failure = Failure { when: Instant::now(), part: part.cloned(), what };
        *self.last.lock().unwrap_or_else(PoisonError::into_inner) = Some(failure);
    }

    /// How many writes to files in place have failed.
    pub fn not_stored(&self) -> u64 {
        self.not_stored.load(Ordering::Relaxed)
    }

    /// The last failure, for the status; null if there was none.
    pub fn last(&self, fs: &Ext4) -> Value {
        let last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        last.as_ref().map_or(Value::Null, |Failure { when, part, what }| {
            let what = match part {
                Some(part) => format!("writing {}: {what}", name(part, path(fs, part.inode))),
                None => what.clone(),
            };
            json!({ "what": what, "seconds_ago": when.elapsed().as_secs() })
        })
    }
}

/// Data that is not on the device as it was written.
#[derive(Debug, Clone, Copy)]
pub struct UnwrittenData {
    kept_bytes: u64,
    lost_bytes: u64,
    failed_writes: u64,
    not_stored: u64,
}

impl UnwrittenData {
    /// As the page cache counts it, and what was refused in place.
    pub fn of(pages: &Stats, failures: &Failures) -> UnwrittenData {
        let Stats { retry_bytes, lost_bytes, failed_writes, .. } = *pages;
        let not_stored = failures.not_stored();
        UnwrittenData { kept_bytes: retry_bytes, lost_bytes, failed_writes, not_stored }
    }

    /// Writes that have failed, of both kinds.
    pub fn failed_writes(&self) -> u64 {
        self.failed_writes + self.not_stored
    }

    /// Whether everything is where it belongs, or still on its way.
    pub fn is_empty(&self) -> bool {
        self.kept_bytes == 0 && self.lost_bytes == 0 && self.not_stored == 0
    }

    /// Why the mount is failing; `None` if it is not.
    pub fn because(&self) -> Option<String> {
        let parts = [(self.kept_bytes, "in memory only"), (self.lost_bytes, "lost")];
        let mut parts: Vec<String> = parts
            .iter()
            .filter(|(bytes, _)| *bytes > 0)
            .map(|(bytes, fate)| format!("{bytes} bytes of data are {fate}"))
            .collect();
        if self.not_stored > 0 {
            let count = terminal::counted(self.not_stored, "write");
            parts.push(format!("the memory has refused {count} to files in place"));
        }
        let failed = format!("{} of data failed", terminal::counted(self.failed_writes(), "write"));
        (!parts.is_empty()).then(|| format!("{failed}; {}", parts.join(", ")))
    }
}

/// What a mount that works promises and this one does not; `None` if it keeps all promises.
/// `stopped`: nothing is written any more; `no_points`: no transaction point can be made.
pub fn promised_no_more(
    stopped: bool,
    no_points: bool,
    lacking: &UnwrittenData,
) -> Option<&'static str> {
    if stopped {
        return Some("whatever fsync had not answered with success before the failure");
    }
    if no_points {
        return Some("whatever came after the last transaction point: unmounting discards it");
    }
    match (lacking.kept_bytes, lacking.lost_bytes) {
        (0, 0) => None,
        (_, 0) => Some(
            "the bytes in memory only: fsync of their files fails until it has written them, and \
             they are gone if the process or the power ends before",
        ),
        _ => Some(
            "the bytes below: the lost ones are not what was written, and the others are gone if \
             the process or the power ends before an fsync has written them",
        ),
    }
}

/// Has everything logged that goes wrong where nobody waits for an answer.
pub fn log(fs: &Arc<Ext4>, source: &str) -> Arc<Failures> {
    let errors = Arc::new(Failures {
        log: ErrorLog::new(source),
        last: Mutex::default(),
        not_stored: AtomicU64::new(0),
    });
    let (failures, of) = (Arc::clone(&errors), Arc::downgrade(fs));
    fs.on_trouble(move |trouble| match trouble {
        WriteError::Unwritten { part, error } => {
            failures.note(Some(part), error.to_string());
            failures.log.error("write-back", &error.to_string(), || {
                let fate = if part.kept {
                    "it is in memory only, and written again by fsync and by unmounting"
                } else {
                    "it is lost"
                };
                let path = of.upgrade().and_then(|fs| path(&fs, part.inode));
                format!("{}, could not be written: {error}: {fate}", name(part, path))
            });
        }
        WriteError::NotStored { part, error } => {
            failures.not_stored.fetch_add(1, Ordering::Relaxed);
            failures.note(Some(part), error.to_string());
            failures.log.error("store", &error.to_string(), || {
                let path = of.upgrade().and_then(|fs| path(&fs, part.inode));
                format!("{}, could not be stored: {error}", name(part, path))
            });
        }
        WriteError::NoPoints { error } => {
            failures.note(None, format!("transaction point: {error}"));
            failures.log.error("transaction point", &error.to_string(), || error.to_string());
        }
        WriteError::ReadOnly { why } => {
            failures.note(None, format!("read-only: {why}"));
            failures.log.error("read-only", why, || format!("is read-only from now on: {why}"));
        }
    });
    errors
}

fn path(fs: &Ext4, inode: InodeNo) -> Option<String> {
    fs.path_of(inode).map(|path| String::from_utf8_lossy(&path).into_owned())
}

/// `/d/f (inode 13), bytes 0 to 4095`.
fn name(part: &UnwrittenPart, path: Option<String>) -> String {
    let (first, last) = (part.bytes.start, part.bytes.end.saturating_sub(1));
    format!("{}, bytes {first} to {last}", file(part.inode, path))
}

/// `/d/f (inode 13)`.
fn file(inode: InodeNo, path: Option<String>) -> String {
    match path {
        Some(path) => format!("{path} (inode {inode})"),
        None => format!("inode {inode}"),
    }
}

/// What is not on the device as it was written, for the status.
pub fn unwritten(fs: &Ext4) -> Value {
    let parts = fs.unwritten(PARTS_MAX);
    parts
        .iter()
        .map(|part| {
            json!({
                "path": path(fs, part.inode),
                "inode": part.inode.0,
                "from": part.bytes.start,
                "to": part.bytes.end,
                "lost": !part.kept,
            })
        })
        .collect()
}

/// A line of the status for each of them.
pub fn lines(unwritten: &Value) -> Vec<String> {
    let parts = unwritten.as_array().map(Vec::as_slice).unwrap_or_default();
    parts
        .iter()
        .map(|part| {
            let file = match part["path"].as_str() {
                Some(path) => shown(path.as_bytes()),
                None => format!("inode {}", part["inode"].as_u64().unwrap_or(0)),
            };
            let last = part["to"].as_u64().unwrap_or(0).saturating_sub(1);
            let fate = if part["lost"] == true { "lost" } else { "in memory only" };
            let first = part["from"].as_u64().unwrap_or(0);
            format!("{fate}: {file}, bytes {first} to {last}")
        })
        .collect()
}

/// What there is to say of failed writes at the end; `None` if there were none and the journal
/// has not stopped.
pub fn last_word(fs: &Ext4, source: &str) -> Option<String> {
    let failed = fs.page_cache().stats().failed_writes;
    let aborted = fs.journal().is_some_and(|journal| journal.aborted().is_some());
    // Data may be on the device and the transaction with its place lost.
    let with_journal = aborted.then(|| {
        let lost = "what had been changed and fsync had not answered with success is lost";
        format!("{lost}{}", among_it(&fs.lost_with_journal(), |inode| path(fs, inode)))
    });
    if failed == 0 {
        return with_journal.map(|lost| format!("{source}: {lost}"));
    }
    let stopped = with_journal.map(|lost| format!("; {lost}")).unwrap_or_default();
    let lost = named(&fs.unwritten(usize::MAX), |part| path(fs, part.inode));
    let outcome = match lost.is_empty() {
        true => "what they were to write was written later or given up".to_owned(),
        false => format!("lost: {lost}"),
    };
    let failed = terminal::counted(failed, "write");
    Some(format!("{source}: {failed} of data failed; {outcome}{stopped}"))
}

/// The first files that have lost data, and how many more.
fn among_it(files: &[InodeNo], path: impl Fn(InodeNo) -> Option<String>) -> String {
    if files.is_empty() {
        return String::new();
    }
    let (first, others) = files.split_at(files.len().min(PARTS_MAX));
    let first: Vec<String> = first.iter().map(|no| file(*no, path(*no))).collect();
    let more = match others.len() {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    format!(", among it data of {}{more}", first.join(", "))
}

/// The first parts with their bytes; of the others the files, each once.
fn named(parts: &[UnwrittenPart], path: impl Fn(&UnwrittenPart) -> Option<String>) -> String {
    let (first, others) = parts.split_at(parts.len().min(PARTS_MAX));
    let mut named: Vec<String> = first.iter().map(|part| name(part, path(part))).collect();
    let mut files: BTreeMap<u32, &UnwrittenPart> = BTreeMap::new();
    for part in others {
        files.entry(part.inode.0).or_insert(part);
    }
    named.extend(files.values().map(|part| format!("more of {}", file(part.inode, path(part)))));
    named.join("; ")
}

#[cfg(test)]
mod tests {
    use steadfast_ext4::meta::UnwrittenPart;
    use steadfast_ext4_format::ondisk::InodeNo;

    use super::{PARTS_MAX, among_it, named};

    #[test]
    fn every_file_with_something_lost_is_named() {
        let part = |i: usize| UnwrittenPart {
            inode: InodeNo(20 + i as u32 / 2),
            bytes: 0..4096,
            kept: false,
        };
        let parts: Vec<UnwrittenPart> = (0..PARTS_MAX + 5).map(part).collect();
        let said = named(&parts, |part| (part.inode.0 == 29).then(|| "/f".to_owned()));
        assert!(said.starts_with("inode 20, bytes 0 to 4095; inode 20,"), "{said}");
        let end = "inode 27, bytes 0 to 4095; more of inode 28; more of /f (inode 29); \
                   more of inode 30";
        assert!(said.ends_with(end), "{said}");
    }

    #[test]
    fn files_lost_with_the_journal_are_named_up_to_a_number() {
        let path = |no: InodeNo| (no.0 == 12).then(|| "/d/f".to_owned());
        assert_eq!(among_it(&[], path), "");
        let two = among_it(&[InodeNo(12), InodeNo(13)], path);
        assert_eq!(two, ", among it data of /d/f (inode 12), inode 13");
        let many: Vec<InodeNo> = (20..20 + PARTS_MAX as u32 + 3).map(InodeNo).collect();
        let said = among_it(&many, path);
        assert!(said.contains("inode 20, ") && said.ends_with("inode 35 and 3 more"), "{said}");
    }
}
