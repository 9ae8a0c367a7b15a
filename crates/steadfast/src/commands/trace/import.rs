//! `steadfast trace import`.

use std::fs::File;
use std::io::{BufReader, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use serde_json::json;
use steadfast_trace::TraceError;
use steadfast_trace::import::{ImportOptions, LeftOutLines, TextInput, import};

use super::cli::{TimeUnit, TraceImport};
use crate::commands::lab::outputs;
use crate::terminal::counted;
use crate::{CommandEnd, Usage, document};

/// Reads the files, writes the trace, and says what is not in it.
pub fn run(args: &TraceImport, out: &mut dyn Write) -> Result<CommandEnd> {
    let [output] = outputs::tried([("-o", Some(args.output.as_path()))], &args.files)?;
    let output = output.context("no output")?;
    let folder = match &args.folder {
        Some(folder) => std::path::absolute(folder)?,
        None => std::env::current_dir()?,
    };
    let unit_ns = args.unit.map(|unit| match unit {
        TimeUnit::Us => 1000,
        TimeUnit::Ms => 1_000_000,
    });
    let inputs = args.files.iter().map(|file| input(file)).collect::<Result<Vec<_>, _>>()?;
    let options = ImportOptions { folder, unit_ns };
    let mut written = Vec::new();
    let found = import(inputs, &options, &mut written).map_err(|e| match e {
        e @ TraceError::File(_) => anyhow::Error::from(e),
        e => Usage(e.to_string()).into(),
    })?;
    output.write(&written)?;
    if args.json {
        let of = |of: fn(&LeftOutLines) -> serde_json::Value| -> serde_json::Map<String, _> {
            found.left_out.iter().map(|(why, lines)| (why.clone(), of(lines))).collect()
        };
        let body = json!({ "source": found.source, "calls": found.calls,
            "left_out": of(|of| of.lines.into()), "left_out_first": of(|of| json!(of.first)),
            "notes": found.notes });
        document::print(out, "steadfast-trace-import", 1, body)?;
        return Ok(CommandEnd::Good);
    }
    let what = format!("{} from {}", counted(found.calls, "call"), found.source);
    writeln!(out, "{what} in {}", args.output.display())?;
    found.notes.iter().try_for_each(|note| writeln!(out, "{note}"))?;
    let lines: u64 = found.left_out.values().map(|of| of.lines).sum();
    if lines > 0 {
        writeln!(out, "{} not in the trace:", counted(lines, "line"))?;
    }
    found.left_out.iter().try_for_each(|(why, of)| writeln!(out, "  {of}: {why}"))?;
    Ok(CommandEnd::Good)
}

fn input(path: &Path) -> Result<TextInput, Usage> {
    let wrong = |e: std::io::Error| Usage(format!("{}: {e}", path.display()));
    let file = File::open(path).map_err(wrong)?;
    let about = file.metadata().map_err(wrong)?;
    if !about.is_file() {
        usage!("{}: is no file", path.display());
    }
    let made = about.created().ok().and_then(|made| made.elapsed().ok());
    let changed = about.modified().ok().and_then(|changed| changed.elapsed().ok());
    let written = made.zip(changed).and_then(|(made, changed)| made.checked_sub(changed));
    let written_seconds = written.map(|time| time.as_secs_f64()).filter(|_| about.size() > 0);
    Ok(TextInput {
        name: PathBuf::from(path),
        text: Box::new(BufReader::new(file)),
        written_seconds,
    })
}
