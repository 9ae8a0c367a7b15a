//! The recordings and the rows of the cuts, as JSON lines, from which the figures can be computed
//! again.
//!
//! docs/recompute.py describes the files, and reads them.

use std::fs::{self, File, create_dir_all};
use std::io::{BufWriter, Write};
use std::path::Path;
use std::sync::Arc;

use serde::Serialize;
use steadfast_block::pattern::{SECTOR, Stamp, stamp_of};
use steadfast_crash::JOURNAL_MAGIC;
use steadfast_crash::account;
use steadfast_crash::explore::CutSource;
use steadfast_crash::figures::Figures;
use steadfast_crash::found::{Finder, FoundFile, SectorData};
use steadfast_crash::judge::Judge;
use steadfast_crash::program::Call;
use steadfast_devices::filter::record::{Action, Durability, Event, Moment};
use steadfast_devices::store::{Digest, Segment};
use steadfast_vfs::foreign::{json, shown};

use super::setting::{Setting, Subject};
use crate::{Result, VariantError};

/// Writes into the folder of a variant's recordings, if there are to be any: `DIR/seed-S/VARIANT`.
fn keep(of: Subject<'_>, write: impl FnOnce(&Path) -> Result<()>) {
    let Subject { setting, variant } = of;
    let Some(recordings) = &setting.options.record else { return };
    if recordings.has_failed() {
        return;
    }
    let folder = recordings.folder.join(format!("seed-{}", setting.options.seed));
    if let Err(mut e) = write(&folder.join(&variant.name)) {
        if let VariantError::Record { path, .. } = &mut e
            && let Ok(inside) = path.strip_prefix(&recordings.folder)
        {
            *path = recordings.shown.join(inside);
        }
        recordings.fail(e.of(variant));
    }
}

/// Writes what the devices were asked and what the workload did.
pub(super) fn run(of: Subject<'_>, recorded: &CutSource) {
    keep(of, |folder| write_run(folder, recorded));
}

/// The run with a judge that notes what it finds, if it is to be recorded.
pub(super) fn noting(setting: &Setting, recorded: CutSource) -> (CutSource, Option<Arc<Finder>>) {
    if setting.options.record.is_none() {
        return (recorded, None);
    }
    let finder = Arc::new(Finder::new(Arc::clone(&recorded.judge)));
    (CutSource { judge: Arc::clone(&finder) as Arc<dyn Judge>, ..recorded }, Some(finder))
}

/// Writes what was found after each cut.
pub(super) fn found(of: Subject<'_>, finder: Option<&Finder>) {
    let Some(found) = finder.map(Finder::take) else { return };
    keep(of, |folder| {
        let files = found.files.iter().map(FoundRow::of);
        lines(&folder.join("found-files.jsonl"), files)?;
        lines(&folder.join("found.jsonl"), found.trees.iter())
    });
}

/// Writes a row for each cut; `which` of the cuts: "cuts", or a control's name.
pub(super) fn cuts(of: Subject<'_>, which: &str, figures: &Figures) {
    keep(of, |folder| lines(&folder.join(format!("{which}.jsonl")), figures.cuts.iter()));
}

fn write_run(folder: &Path, recorded: &CutSource) -> Result<()> {
    let failed = |source| VariantError::Record { path: folder.to_owned(), source };
    create_dir_all(folder).map_err(failed)?;
    let recording = &recorded.recording;
    let devices = recording.devices().iter().enumerate().map(|(number, d)| DeviceRow {
        device: number,
        name: &d.info.name,
        bytes: d.info.size,
        keeps: match d.durability {
            Durability::Lying { .. } => "nothing by a flush",
            Durability::OnFlush => "what was flushed",
            Durability::OnCompletion => "what was acknowledged",
            Durability::OnStore => "what was stored",
        },
    });
    lines(&folder.join("devices.jsonl"), devices)?;
    lines(&folder.join("requests.jsonl"), recording.events().iter().map(RequestRow::of))?;
    let operations = recorded.judge.operations();
    let writes = operations.iter().map(|(file, op)| WriteRow::of(file, op));
    lines(&folder.join("writes.jsonl"), writes)?;
    let calls = recorded.judge.calls();
    let others = calls.iter().filter(|call| !call.kind.changes_contents());
    lines(&folder.join("calls.jsonl"), others.map(CallRow::of))
}

/// A file of rows: all of them, or none.
fn lines<T: Serialize>(path: &Path, rows: impl Iterator<Item = T>) -> Result<()> {
    let written = || -> std::io::Result<()> {
        let mut out = BufWriter::new(File::create(path)?);
        for row in rows {
            writeln!(out, "{}", json(serde_json::to_string(&row)?))?;
        }
        out.flush()
    };
    written().map_err(|source| {
        // Whoever counts again must not take the half for the whole. OK to ignore: what cannot be
        // removed is reported as not whole, too.
        let _ = fs::remove_file(path);
        VariantError::Record { path: path.to_owned(), source }
    })
}

/// A device of the variant.
#[derive(Serialize)]
struct DeviceRow<'a> {
    device: usize,
    name: &'a str,
    bytes: u64,
    keeps: &'static str,
}

/// An instant: its place in the order of all that happened, and when it was.
#[derive(Serialize)]
struct EventTime {
    tick: u64,
    ns: u64,
}

impl EventTime {
    fn of(moment: Moment) -> EventTime {
        EventTime { tick: moment.tick, ns: moment.at.0 }
    }
}

/// What a device was asked.
#[derive(Serialize)]
struct RequestRow {
    device: u32,
    request: &'static str,
    offset: u64,
    bytes: u64,
    fua: bool,
    /// What was written.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    data: Vec<Piece>,
    submitted: EventTime,
    completed: Option<EventTime>,
    failed: bool,
}

/// A piece of what was written, and how long it is.
#[derive(Serialize)]
#[serde(rename_all = "lowercase")]
enum Piece {
    /// So many bytes of stamped data: the first sector's tag and position.
    Stamped(usize, u64, u64),
    /// So many times one byte.
    Fill(usize, u8),
    /// As stamped data, but what a journal's blocks begin with is written as zeros.
    Escaped(usize, u64, u64),
    /// Anything else, with its digest.
    Other(usize, String),
}

impl Piece {
    fn of(segment: &Segment) -> Vec<Piece> {
        let other = |bytes: &[u8]| Piece::Other(bytes.len(), format!("{:032x}", Digest::of(bytes)));
        match segment {
            Segment::Stamped { first, len } => {
                vec![Piece::Stamped(*len, first.tag, first.position)]
            }
            Segment::Fill { byte, len } => vec![Piece::Fill(*len, *byte)],
            // The other sectors of its block are as they were.
            Segment::Raw(bytes) => match escaped(bytes) {
                Some((before, stamp)) => {
                    let first = (!before.is_empty()).then(|| other(before));
                    let last = Piece::Escaped(SECTOR, stamp.tag, stamp.position);
                    first.into_iter().chain([last]).collect()
                }
                None => vec![other(bytes)],
            },
        }
    }
}

/// The stamp of the last sector, were it not written to a journal, and what is before it.
fn escaped(bytes: &[u8]) -> Option<(&[u8], Stamp)> {
    let (before, last) = bytes.split_last_chunk::<SECTOR>()?;
    let mut sector = *last;
    let (begin, _) = sector.split_first_chunk_mut()?;
    if *begin != [0; JOURNAL_MAGIC.len()] {
        return None;
    }
    *begin = JOURNAL_MAGIC;
    Some((before, stamp_of(&sector)?))
}

impl RequestRow {
    fn of(event: &Event) -> RequestRow {
        let (request, offset, bytes, fua) = match &event.action {
            Action::Write { offset, data, fua } => ("write", *offset, data.len() as u64, *fua),
            Action::Flush => ("flush", 0, 0, false),
            Action::Discard { offset, len } => ("discard", *offset, *len, false),
            Action::Store { offset, data } => ("store", *offset, data.len() as u64, false),
            Action::Persist { offset, len } => ("persist", *offset, *len, false),
            Action::Fence => ("fence", 0, 0, false),
        };
        let data = match &event.action {
            Action::Write { data, .. } | Action::Store { data, .. } => {
                data.segments().iter().flat_map(Piece::of).collect()
            }
            _ => Vec::new(),
        };
        RequestRow {
            device: event.device.0,
            request,
            offset,
            bytes,
            fua,
            data,
            submitted: EventTime::of(event.submitted),
            completed: event.completed.map(EventTime::of),
            failed: event.failed,
        }
    }
}

/// What the workload did to a file.
#[derive(Serialize)]
struct WriteRow<'a> {
    file: &'a str,
    call: &'static str,
    offset: u64,
    bytes: u64,
    /// Of a write: what its data is stamped with.
    #[serde(skip_serializing_if = "Option::is_none")]
    tag: Option<u64>,
    started: EventTime,
    returned: Option<EventTime>,
    /// From when on it was promised.
    durable: Option<EventTime>,
}

/// What the workload did to names, and what it asked to be made durable.
#[derive(Serialize)]
struct CallRow {
    call: &'static str,
    path: String,
    other: String,
    started: EventTime,
    returned: Option<EventTime>,
}

impl CallRow {
    fn of(call: &Call) -> CallRow {
        CallRow {
            call: call.kind.name(),
            path: shown(&call.path),
            other: shown(&call.other),
            started: EventTime::of(call.started),
            returned: call.returned.map(EventTime::of),
        }
    }
}

/// A file that was found.
#[derive(Serialize)]
struct FoundRow<'a> {
    path: &'a str,
    size: u64,
    runs: Vec<FoundRun>,
}

/// From which byte on what is found.
#[derive(Serialize)]
#[serde(untagged)]
enum FoundRun {
    Zeros([u64; 1]),
    Stamped(u64, u64, u64),
    Other(u64, String),
}

impl FoundRow<'_> {
    fn of(file: &FoundFile) -> FoundRow<'_> {
        let run = |(from, held): &(u64, SectorData)| match held {
            SectorData::Zeros => FoundRun::Zeros([*from]),
            SectorData::Stamped(stamp) => FoundRun::Stamped(*from, stamp.tag, stamp.position),
            SectorData::Other(bytes) => {
                FoundRun::Other(*from, bytes.iter().map(|b| format!("{b:02x}")).collect())
            }
        };
        let runs = file.runs.iter().map(run).collect();
        FoundRow { path: &file.path, size: file.size, runs }
    }
}

impl WriteRow<'_> {
    fn of<'a>(file: &'a str, op: &account::Operation) -> WriteRow<'a> {
        let (call, offset, bytes) = match op.action {
            account::Action::Write { offset, len, .. } => ("write", offset, len),
            account::Action::Resize { size } => ("resize", size, 0),
            account::Action::Clear { offset, len } => ("clear", offset, len),
            account::Action::Allocate { offset, len, keep_size: false } => {
                ("allocate", offset, len)
            }
            account::Action::Allocate { offset, len, .. } => ("allocate, keep size", offset, len),
        };
        let tag = match op.action {
            account::Action::Write { tag, .. } => Some(tag),
            _ => None,
        };
        WriteRow {
            file,
            call,
            offset,
            bytes,
            tag,
            started: EventTime::of(op.started),
            returned: op.acknowledged.map(EventTime::of),
            durable: op.durable.map(EventTime::of),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::scenario::Scenario;
    use crate::{Recordings, RunOptions, run};

    /// As on a full disk: the figures are those of a run that nobody recorded.
    #[test]
    fn a_recording_that_fails_leaves_the_results() {
        let folder = tempfile::tempdir().unwrap();
        let in_the_way = folder.path().join("file");
        fs::write(&in_the_way, "").unwrap();
        let text = include_str!("../../scenarios/nvram-journal.toml");
        let small = text.replace("quick_size = \"1g\"", "quick_size = \"64m\"");
        assert_ne!(small, text);
        let scenario = Scenario::parse(&small, "small").unwrap();
        let options = RunOptions { cuts: Some(2), ..RunOptions::default() };
        let expected = run(&scenario, &options, &|_, _| ()).unwrap();
        let recordings = Arc::new(Recordings::new(in_the_way.clone(), "named so".into()));
        let recorded = RunOptions { record: Some(Arc::clone(&recordings)), ..options };
        let results = run(&scenario, &recorded, &|_, _| ()).unwrap();
        assert!(results == expected, "the figures differ");
        let why = recordings.take_failure().unwrap().to_string();
        assert!(why.contains("cannot write") && why.contains("named so/seed-1"), "{why}");
        assert!(recordings.take_failure().is_none());
    }

    #[test]
    fn what_a_journal_has_written_in_another_form_is_known() {
        let tag = 7 << 32 | u64::from(u32::from_le_bytes(JOURNAL_MAGIC));
        let stamp = Stamp { tag, position: 4096 };
        let mut bytes = vec![9; 2 * SECTOR];
        steadfast_block::pattern::fill_sector(stamp, &mut bytes[SECTOR..]);
        assert_eq!(escaped(&bytes), None);
        bytes[SECTOR..][..4].fill(0);
        assert_eq!(escaped(&bytes), Some((&[9; SECTOR][..], stamp)));
        bytes[SECTOR + 8] ^= 1;
        assert_eq!(escaped(&bytes), None);
    }

    #[test]
    fn half_a_file_of_rows_does_not_stay() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("cuts.jsonl");
        lines(&path, ["one", "two"].into_iter()).unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "\"one\"\n\"two\"\n");
        // A name that turns the direction of writing, or that a terminal obeys.
        lines(&path, ["a\u{202e}b\u{9b}c\x7f"].into_iter()).unwrap();
        let written = fs::read_to_string(&path).unwrap();
        assert_eq!(written, "\"a\\u202eb\\u009bc\\u007f\"\n");
        struct Unwritable;
        impl Serialize for Unwritable {
            fn serialize<S: serde::Serializer>(&self, _: S) -> Result<S::Ok, S::Error> {
                Err(serde::ser::Error::custom("no room"))
            }
        }
        assert!(lines(&path, std::iter::once(Unwritable)).is_err());
        assert!(!path.exists());
    }
}
