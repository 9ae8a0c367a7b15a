//! `steadfast lab validate`: the models against measured drives and published figures.

use std::io::Write;
use std::path::PathBuf;

use anyhow::Result;
use serde_json::{Value, json};
use steadfast_lab::parts;
use steadfast_lab::validate::{self, Drive, ValidateError, Validation};

use super::calibrate::name_of;
use super::lab::outputs;
use crate::cli::LabValidate;
use crate::terminal::{self, Progress};
use crate::{CommandEnd, Usage, document};

/// Replays the traces, or asks the models of parts, and prints the table.
pub fn run(args: &LabValidate, out: &mut dyn Write) -> Result<CommandEnd> {
    if let Some(files) = &args.parts {
        return compare_parts(files, args.json, out);
    }
    let mut drives: Vec<Drive> = Vec::new();
    let mut refused: Vec<ValidateError> = Vec::new();
    for path in &args.drive {
        for drive in validate::drives(path).map_err(|e| Usage(e.to_string()))? {
            drive.map_or_else(|e| refused.push(e), |drive| drives.push(drive));
        }
    }
    if drives.is_empty() {
        return Err(refusal(&refused).into());
    }
    if args.save_device.is_some() && drives.len() != 1 {
        usage!("--save-device: there are {} drives; name one by its file", drives.len());
    }
    let wanted = [("--svg", args.svg.as_deref()), ("--save-device", args.save_device.as_deref())];
    let [svg_file, device_file] =
        outputs::tried(wanted, drives.iter().flat_map(|drive| &drive.files))?;
    let progress = Progress::start();
    let mut all: Vec<Validation> = Vec::new();
    for (n, drive) in drives.iter().enumerate() {
        progress.set(n as f64 / drives.len() as f64, &drive.name);
        validate::validate(drive).map_or_else(|e| refused.push(e), |found| all.push(found));
    }
    progress.finish();
    if all.is_empty() {
        return Err(refusal(&refused).into());
    }
    if args.json {
        let found: Vec<Value> = all.iter().map(drive_json).collect();
        let not: Vec<Value> = refused.iter().map(refused_json).collect();
        let both = json!({ "drives": found, "refused": not });
        document::print(out, "steadfast-validation", 1, both)?;
    } else {
        write!(out, "{}", validate::text(&all))?;
    }
    if let Some(file) = svg_file {
        file.write(terminal::harmless(&validate::svg(&all)))?;
    }
    if let (Some(file), [drive]) = (device_file, &drives[..]) {
        file.write(validate::device(&name_of(file.path()), &drive.parameters))?;
    }
    if !refused.is_empty() {
        return Err(refusal(&refused).into());
    }
    let is_farther = |v: &Validation| v.is_within_disksim() == Some(false);
    Ok(if all.iter().any(is_farther) { CommandEnd::Problem } else { CommandEnd::Good })
}

/// What is said of drives that cannot be read, or of which there is no model.
fn refusal(refused: &[ValidateError]) -> Usage {
    let each: Vec<String> = refused.iter().map(ToString::to_string).collect();
    Usage(each.join("\n"))
}

fn refused_json(e: &ValidateError) -> Value {
    json!({ "file": e.file, "what": e.what })
}

/// Those of files, or those that come with the program.
fn compare_parts(files: &[PathBuf], as_json: bool, out: &mut dyn Write) -> Result<CommandEnd> {
    let own = files.iter().map(|file| parts::read(file).map_err(|e| Usage(e.to_string())));
    let own = own.collect::<Result<Vec<_>, _>>()?;
    let all = if files.is_empty() { parts::embedded() } else { own };
    let progress = Progress::start();
    let mut compared = Vec::new();
    for (n, part) in all.iter().enumerate() {
        progress.set(n as f64 / all.len() as f64, &part.title);
        compared.push(parts::compare(part)?);
    }
    progress.finish();
    if as_json {
        document::print(out, "steadfast-validation", 1, json!({ "parts": compared }))?;
    } else {
        write!(out, "{}", parts::text(&compared))?;
    }
    Ok(CommandEnd::Good)
}

fn drive_json(v: &Validation) -> Value {
    let mean = |times: &[f64]| times.iter().sum::<f64>() / times.len() as f64;
    json!({
        "name": v.name,
        "requests": v.times.drive.len(),
        "mean_ms": { "drive": mean(&v.times.drive), "model": mean(&v.times.model) },
        "demerit_ms": v.times.demerits(),
        "sheet_demerit_ms": v.sheet.as_ref().map(validate::Times::demerits),
        "disksim_demerit_ms": v.disksim_ms,
        "within_disksim": v.is_within_disksim(),
        "left_out": v.left_out,
        "warnings": v.warnings,
    })
}
