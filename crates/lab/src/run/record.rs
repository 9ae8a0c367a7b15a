//! The recordings and the rows of the cuts, as JSON lines: for whoever wants to compute the figures
//! anew.
//!
//! docs/risk.md describes the files; docs/recompute.py reads them.

use std::fs::{File, create_dir_all};
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use serde::Serialize;
use steadfast_crash::explore::Recorded;
use steadfast_crash::figures::Figures;
use steadfast_crash::ledger;
use steadfast_crash::opinion::Opinion;
use steadfast_devices::filter::record::{Action, Durability, Event, Moment};

use super::Setting;
use crate::VariantError;
use crate::scenario::Variant;

/// The folder of a variant's recordings, if there are to be any: `DIR/seed-S/VARIANT`.
pub(super) fn folder(setting: &Setting, variant: &Variant) -> Option<PathBuf> {
    let dir = setting.options.record.as_ref()?;
    Some(dir.join(format!("seed-{}", setting.options.seed)).join(&variant.name))
}

/// Writes what the devices were asked and what the workload did.
pub(super) fn run(folder: &Path, recorded: &Recorded) -> Result<(), VariantError> {
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
    lines(&folder.join("writes.jsonl"), operations.iter().map(|(file, op)| WriteRow::of(file, op)))
}

/// Writes a row for each cut; `which` of the cuts: "cuts", or a control's name.
pub(super) fn cuts(folder: &Path, which: &str, figures: &Figures) -> Result<(), VariantError> {
    let rows = figures.cuts.iter().map(|c| CutRow {
        number: c.number,
        place: c.place,
        tick: c.tick,
        at_ns: c.at.0,
        broken_promises: c.broken_promises,
        lost_bytes: c.lost_bytes,
        lost_operations: c.lost_operations,
        lost_age_ns: ns(c.lost_age),
        torn_writes: c.torn_writes,
        torn_units: c.torn_units,
        stale_bytes: c.stale_bytes,
        order_violations: c.order_violations,
        empty_after_rename: c.empty_after_rename,
        empty_after_replace: c.empty_after_replace,
        damage: &c.damage,
        manual_repair: c.manual_repair,
        e2fsck_clean: c.e2fsck.as_ref().filter(|o| o.is_given()).map(|o| *o == Opinion::Clean),
        recovery_ns: ns(c.recovery),
    });
    lines(&folder.join(format!("{which}.jsonl")), rows)
}

fn ns(duration: std::time::Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

fn lines<T: Serialize>(path: &Path, rows: impl Iterator<Item = T>) -> Result<(), VariantError> {
    let written = || -> std::io::Result<()> {
        let mut out = BufWriter::new(File::create(path)?);
        for row in rows {
            serde_json::to_writer(&mut out, &row)?;
            out.write_all(b"\n")?;
        }
        out.flush()
    };
    written().map_err(|source| VariantError::Record { path: path.to_owned(), source })
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
struct At {
    tick: u64,
    ns: u64,
}

impl At {
    fn of(moment: Moment) -> At {
        At { tick: moment.tick, ns: moment.at.0 }
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
    submitted: At,
    completed: Option<At>,
    failed: bool,
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
        RequestRow {
            device: event.device.0,
            request,
            offset,
            bytes,
            fua,
            submitted: At::of(event.submitted),
            completed: event.completed.map(At::of),
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
    started: At,
    returned: Option<At>,
    /// From when on it was promised.
    durable: Option<At>,
}

impl WriteRow<'_> {
    fn of<'a>(file: &'a str, op: &ledger::Operation) -> WriteRow<'a> {
        let (call, offset, bytes) = match op.action {
            ledger::Action::Write { offset, len, .. } => ("write", offset, len),
            ledger::Action::Truncate => ("truncate", 0, 0),
        };
        WriteRow {
            file,
            call,
            offset,
            bytes,
            started: At::of(op.started),
            returned: op.acknowledged.map(At::of),
            durable: op.durable.map(At::of),
        }
    }
}

/// What one cut took.
#[derive(Serialize)]
struct CutRow<'a> {
    number: u64,
    place: u64,
    tick: u64,
    at_ns: u64,
    broken_promises: u64,
    lost_bytes: u64,
    lost_operations: u64,
    lost_age_ns: u64,
    torn_writes: u64,
    torn_units: u64,
    stale_bytes: u64,
    order_violations: u64,
    empty_after_rename: u64,
    empty_after_replace: u64,
    damage: &'a [String],
    manual_repair: bool,
    e2fsck_clean: Option<bool>,
    recovery_ns: u64,
}
