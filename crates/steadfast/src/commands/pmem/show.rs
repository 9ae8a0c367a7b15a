//! `steadfast pmem list` and `info`.

use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use anyhow::Result;
use serde_json::{Value, json};
use steadfast_block::BlockDevice;
use steadfast_devices::filter::fsdax::{self, Map};
use steadfast_devices::source::pmem::RangeLabel;
use steadfast_devices::source::{OpenError, Pmem, PmemOptions, Promise};
use steadfast_setup::path::memory::{file, label_of, map};

use crate::setup_error::to_anyhow;
use crate::{Usage, document, terminal};
use steadfast_vfs::foreign::Foreign;
use steadfast_vfs::path::shown;

/// A range as it is listed.
struct Range {
    path: PathBuf,
    bytes: u64,
    label: Option<RangeLabel>,
    promise: Option<Promise>,
    /// Why nothing is known of its promise.
    why: String,
}

const READING: PmemOptions = PmemOptions { read_only: true, name: None, whole: false };

fn looked_at(path: PathBuf, label: Option<RangeLabel>) -> Range {
    match Pmem::open(&path, &READING) {
        Ok(pmem) => {
            let (bytes, promise) = (pmem.info().size, Some(pmem.promise().clone()));
            Range { path, bytes, label, promise, why: String::new() }
        }
        Err(e) => {
            let bytes = label.as_ref().map_or(0, |label| label.bytes);
            let why = match e {
                OpenError::Busy { reason, .. } => format!("in use: {reason}"),
                e => e.to_string(),
            };
            Range { path, bytes, label, promise: None, why }
        }
    }
}

/// Devices of the kernel's: `pmemN`, `pmemNs` and `daxN.M`.
fn of_the_kernel() -> Vec<PathBuf> {
    let named = |folder: &str, kind: &str| -> Vec<PathBuf> {
        let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
        let names = entries.map(|entry| entry.file_name().to_string_lossy().into_owned());
        let ours = names.filter(|name| {
            name.strip_prefix(kind).is_some_and(|n| n.starts_with(|c: char| c.is_ascii_digit()))
        });
        ours.map(|name| Path::new("/dev").join(name)).collect()
    };
    let mut found = named("/sys/class/block", "pmem");
    found.extend(named("/sys/bus/dax/devices", "dax"));
    found.sort();
    found
}

fn in_folder(folder: &Path) -> Result<Vec<Range>> {
    let entries =
        std::fs::read_dir(folder).map_err(|e| Usage(format!("{}: {e}", folder.display())))?;
    let mut found = Vec::new();
    for entry in entries.flatten() {
        let path = entry.path();
        // OK to ignore: what cannot be read is no range that could be listed.
        if let Ok(Some(label)) = label_of(&path, false) {
            found.push(looked_at(path, Some(label)));
        }
    }
    found.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(found)
}

/// Lists ranges.
pub fn list(folders: &[PathBuf], json: bool, out: &mut dyn Write) -> Result<()> {
    let mut ranges: Vec<Range> =
        of_the_kernel().into_iter().map(|path| looked_at(path, None)).collect();
    let usual = [PathBuf::from("/dev/shm"), PathBuf::from(".")];
    let given = if folders.is_empty() { &usual[..] } else { folders };
    for folder in given {
        if folders.is_empty() && !folder.is_dir() {
            continue;
        }
        ranges.extend(in_folder(folder)?);
    }
    if json {
        let ranges: Vec<Value> = ranges.iter().map(range_json).collect();
        return Ok(document::print(out, "steadfast-pmem", 1, json!({ "ranges": ranges }))?);
    }
    if ranges.is_empty() {
        let shown: Vec<String> = given.iter().map(|f| f.display().to_string()).collect();
        writeln!(out, "no ranges: the kernel has none, nor is there one in {}", shown.join(", "))?;
        return Ok(());
    }
    for range in &ranges {
        let path = shown(range.path.as_os_str().as_bytes());
        let size = steadfast_lab::size::shown(range.bytes);
        let promise = range.promise.as_ref().map_or(range.why.as_str(), |p| p.in_words());
        let mode = range.label.as_ref().map_or("", |label| label.mode.name());
        writeln!(out, "{path:<30} {size:>8}  {mode:<7} {}", Foreign::new(promise))?;
    }
    Ok(())
}

fn range_json(range: &Range) -> Value {
    let label = range.label.as_ref().map(|label| {
        json!({ "uuid": label.uuid.to_string(), "name": label.name, "mode": label.mode.name() })
    });
    let reason = match &range.promise {
        Some(Promise::Not { reason }) => Some(reason.as_str()),
        Some(_) => None,
        None => Some(range.why.as_str()),
    };
    json!({
        "path": range.path.display().to_string(),
        "bytes": range.bytes,
        "label": label,
        "promise": range.promise.as_ref().map(Promise::in_words),
        "reason": reason,
    })
}

/// Says what a range is.
pub fn info(path: &Path, json: bool, out: &mut dyn Write) -> Result<()> {
    let pmem = map(path, true).map_err(to_anyhow)?;
    let path = file(path);
    let info = pmem.info();
    let behind = pmem.label().map_or(0, RangeLabel::behind);
    if json {
        let range = Range {
            path: path.into(),
            bytes: info.size,
            label: pmem.label().cloned(),
            promise: Some(pmem.promise().clone()),
            why: String::new(),
        };
        let mut fields = range_json(&range);
        fields["write_back"] = json!(pmem.writes_back());
        fields["fsdax"] =
            fsdax::probe_as(&pmem, behind).ok().flatten().map_or(Value::Null, |info| {
                json!({
                    "uuid": info.uuid.to_string(),
                    "start": info.start,
                    "bytes": info.bytes,
                    "align": info.align,
                    "map": info.map.name(),
                })
            });
        return Ok(document::print(out, "steadfast-pmem-range", 1, fields)?);
    }
    let name = shown(path.as_os_str().as_bytes());
    writeln!(out, "{name}: {} bytes", info.size)?;
    match pmem.label() {
        Some(label) => {
            let called = match label.name.as_str() {
                "" => String::new(),
                name => format!(" '{}'", shown(name.as_bytes())),
            };
            writeln!(out, "  namespace:   {}{called}, {}", label.mode.name(), label.uuid)?;
        }
        None => writeln!(out, "  namespace:   no label")?,
    }
    match fsdax::probe_as(&pmem, behind) {
        Ok(Some(info)) => writeln!(
            out,
            "  data:        {} bytes from byte {} on, pages of {}, structures in {}",
            info.bytes,
            info.start,
            steadfast_lab::size::shown(info.align),
            match info.map {
                Map::Device => "the range",
                Map::Memory => "memory",
            },
        )?,
        Ok(None) => {}
        Err(error) => {
            let error = shown(error.to_string().as_bytes());
            out.write_all(terminal::hanging("  data:        ", &error).as_bytes())?;
        }
    }
    writeln!(out, "  promise:     {}", pmem.promise().in_words())?;
    if let Promise::Not { reason } = pmem.promise() {
        out.write_all(terminal::hanging("               ", reason).as_bytes())?;
    }
    let lines = match pmem.writes_back() {
        "msync" => "msync of what was stored".to_owned(),
        instruction => format!("non-temporal stores, {instruction} for parts of lines, sfence"),
    };
    writeln!(out, "  written by:  {lines}")?;
    writeln!(out, "  a cut keeps: aligned words of {} bytes whole", info.atomic_write)?;
    Ok(())
}
