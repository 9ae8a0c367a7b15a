//! `steadfast trace show`.

use std::collections::BTreeMap;
use std::io::Write;

use anyhow::Result;
use comfy_table::{CellAlignment, Table, presets};
use serde_json::json;
use steadfast_trace::TraceError;
use steadfast_trace::format::{CallOp, TraceCall, TraceEntry};
use steadfast_trace::replay::{TraceFile, TraceSource};
use steadfast_vfs::foreign::{self, Foreign};

use super::cli::TraceShow;
use super::wrong;
use crate::terminal::counted;
use crate::{CommandEnd, document};

/// Characters of the program, at most.
const PROGRAM_MAX: usize = 200;

/// What there is of one kind of call.
#[derive(Default)]
struct CallCounts {
    calls: u64,
    failed: u64,
    bytes: u64,
    ns: u64,
}

/// Prints what a trace holds.
pub fn run(args: &TraceShow, out: &mut dyn Write) -> Result<CommandEnd> {
    let wrong = wrong(&args.file);
    let source = TraceFile { path: args.file.clone(), partial: args.partial };
    let mut trace = source.read().map_err(&wrong)?;
    let mut kinds: BTreeMap<CallOp, CallCounts> = BTreeMap::new();
    let (mut threads, mut files, mut bytes, mut last, mut think) = (0u64, 0u64, 0u64, 0u64, 0u64);
    loop {
        let entry = match trace.next_entry() {
            Ok(Some(entry)) => entry,
            // Said below.
            Ok(None) | Err(TraceError::CutOff { .. }) => break,
            Err(e) => return Err(wrong(e).into()),
        };
        match entry {
            TraceEntry::Thread(_) => threads += 1,
            TraceEntry::File(file) => (files, bytes) = (files + 1, bytes.saturating_add(file.size)),
            TraceEntry::End(_) => {}
            TraceEntry::Call(call) => {
                let of = kinds.entry(call.op).or_default();
                of.calls += 1;
                of.failed += u64::from(call.failed());
                of.ns += call.end - call.start;
                if matches!(call.op, CallOp::Read | CallOp::Write) {
                    of.bytes += u64::try_from(call.result).unwrap_or(0);
                }
                (last, think) = (last.max(call.end), think + call.think);
                if args.calls {
                    line(&call, out)?;
                }
            }
        }
    }
    let calls: u64 = kinds.values().map(|of| of.calls).sum();
    let (header, end) = (trace.header(), trace.end());
    if args.json {
        let of = |(op, of): (&CallOp, &CallCounts)| {
            let about = json!({ "calls": of.calls, "failed": of.failed, "bytes": of.bytes,
                "seconds": of.ns as f64 / 1e9 });
            (op.to_string(), about)
        };
        let by_op: BTreeMap<String, _> = kinds.iter().map(of).collect();
        let body = json!({ "header": header, "end": end, "calls": calls, "threads": threads,
            "files": files, "file_bytes": bytes, "by_op": by_op });
        document::print(out, "steadfast-trace-summary", 1, body)?;
        return Ok(CommandEnd::Good);
    }
    if args.calls {
        return Ok(CommandEnd::Good);
    }
    let seconds = end.map_or(last, |end| end.at) as f64 / 1e9;
    writeln!(
        out,
        "{} of {} in {seconds:.3} s; there before: {} ({bytes} bytes)",
        counted(calls, "call"),
        counted(threads, "thread"),
        counted(files, "file")
    )?;
    writeln!(out, "program   {}", shortened(&foreign::shown(header.program.join(" ").as_bytes())))?;
    if let Some(status) = end.and_then(|end| end.status).filter(|status| *status != 0) {
        let stopped = end.is_some_and(|end| end.interrupted);
        let why = if stopped { " (it was stopped)" } else { "" };
        writeln!(out, "ended     with status {status}{why}")?;
    }
    if let Some(trip) = &header.trip {
        let us = |ns: u64| ns as f64 / 1e3;
        let (median, least, most) = (us(trip.median_ns), us(trip.least_ns), us(trip.most_ns));
        writeln!(out, "trip      {median:.1} us through the mount ({least:.1} to {most:.1})")?;
    }
    let not_seen: Vec<String> =
        header.not_seen.iter().map(|what| foreign::shown(what.as_bytes())).collect();
    writeln!(out, "not seen  {}", not_seen.join(";\n          "))?;
    if end.is_none() {
        writeln!(
            out,
            "cut off   its last line is not there: whoever wrote it was ended, its disk was full, \
             or it is\n          still written; these are the calls that are there"
        )?;
    }
    writeln!(out)?;
    let mut table = Table::new();
    table.load_style(presets::NOTHING).set_header(["call", "n", "failed", "bytes", "ms"]);
    for (op, of) in &kinds {
        let ms = format!("{:.3}", of.ns as f64 / 1e6);
        let bytes = if of.bytes > 0 { of.bytes.to_string() } else { "-".to_owned() };
        table.add_row([op.to_string(), of.calls.to_string(), of.failed.to_string(), bytes, ms]);
    }
    table
        .column_iter_mut()
        .skip(1)
        .for_each(|column| column.set_cell_alignment(CellAlignment::Right));
    writeln!(out, "{}", table.trim_fmt())?;
    Ok(CommandEnd::Good)
}

/// A call, on a line.
fn line(call: &TraceCall, out: &mut dyn Write) -> Result<()> {
    let at = call.start as f64 / 1e9;
    write!(out, "{at:12.6} {:>8} {:<10}", call.thread, call.op.to_string())?;
    let number = |what: &str, n: Option<u64>| n.map_or(String::new(), |n| format!(" {what} {n}"));
    write!(out, "{}{}", number("file", call.file), number("handle", call.handle))?;
    for (dir, name) in [(call.dir, &call.name), (call.to_dir, &call.to)] {
        if let Some(dir) = dir {
            write!(out, " {dir}/{}", Foreign::new(name))?;
        }
    }
    if call.len > 0 || call.offset > 0 {
        write!(out, " {} at {}", call.len, call.offset)?;
    }
    let us = (call.end - call.start) as f64 / 1e3;
    writeln!(out, " = {} ({us:.1} us, after {:.1} us)", call.result, call.think as f64 / 1e3)?;
    Ok(())
}

/// What is too long for a screen: a program may be given all its text as an argument.
fn shortened(text: &str) -> String {
    match text.char_indices().nth(PROGRAM_MAX) {
        Some((end, _)) => format!("{} ... (--json has all)", &text[..end]),
        None => text.to_owned(),
    }
}
