//! `steadfast lab`: runs scenarios and shows what came out.

pub(crate) mod outputs;
pub mod run;

use std::io::Write;

use anyhow::Result;
use serde_json::{Value, json};
use steadfast_devices::model::parameters::ModelKind;
use steadfast_lab::scenario::{Scenario, Variant, keys};
use steadfast_lab::{LabError, devices};
use steadfast_setup::form::did_you_mean;

use super::stack_file::{NamedStack, StackFile};
use crate::Usage;
use crate::cli::ListFormat;
use crate::document;
use crate::terminal::hanging;

pub use run::{run, show_saved};

/// Lists the scenarios that come with the program.
pub fn list(json: bool, out: &mut dyn Write) -> Result<()> {
    if json {
        let variant = |v: &Variant| json!({ "name": v.name, "label": v.label });
        let scenario = |s: &Scenario| {
            let variants: Vec<Value> = s.variants.iter().map(variant).collect();
            let about = s.about.trim();
            json!({ "name": s.name, "title": s.title, "about": about, "variants": variants })
        };
        let all: Vec<Value> = Scenario::embedded().iter().map(scenario).collect();
        return Ok(document::print(out, "steadfast-scenarios", 1, json!({ "scenarios": all }))?);
    }
    for s in Scenario::embedded() {
        writeln!(out, "{}", s.name)?;
        write!(out, "{}{}", hanging("  ", &s.title), hanging("  ", s.about.trim()))?;
        writeln!(out, "  variants:")?;
        let width = s.variants.iter().map(|v| v.name.len()).max().unwrap_or(0);
        for v in &s.variants {
            write!(out, "{}", hanging(&format!("    {:width$}  ", v.name), &v.label))?;
        }
    }
    Ok(())
}

/// Prints a scenario that comes with the program; without a name, the presets of devices.
pub fn scenario(name: Option<&str>, out: &mut dyn Write) -> Result<()> {
    let Some(name) = name else { return Ok(out.write_all(steadfast_setup::PRESETS.as_bytes())?) };
    let Some(text) = Scenario::own_text(name) else {
        let help = did_you_mean(name, Scenario::own_names());
        usage!("there is no scenario '{name}': {help}");
    };
    Ok(out.write_all(text.as_bytes())?)
}

/// Lists the kinds of devices, or one with its parameters.
pub fn devices(kind: Option<&str>, format: Option<ListFormat>, out: &mut dyn Write) -> Result<()> {
    match (kind.and_then(ModelKind::of_name), format) {
        (Some(kind), _) => write!(out, "{}", devices::text(kind))?,
        (None, Some(ListFormat::Markdown)) => write!(out, "{}", devices::markdown())?,
        (None, Some(ListFormat::Json)) => {
            writeln!(out, "{}", serde_json::to_string_pretty(&devices::json())?)?;
        }
        (None, None) => {
            write!(out, "{}", devices::list())?;
            writeln!(
                out,
                "\nThe parameters of one, with their sources: steadfast lab devices KIND"
            )?;
        }
    }
    Ok(())
}

/// Lists the keys of scenario files.
pub fn keys(markdown: bool, json: bool, out: &mut dyn Write) -> Result<()> {
    if json {
        return Ok(document::print(out, "steadfast-keys", 1, json!({ "keys": keys::json() }))?);
    }
    let text = if markdown { keys::markdown() } else { keys::text() };
    Ok(write!(out, "{text}")?)
}

/// A scenario by its name or file.
pub fn find(name_or_file: &str) -> Result<Scenario, Usage> {
    Scenario::find(name_or_file).map_err(|e| Usage(e.to_string()))
}

/// An error of a run: of a variant it is a finding, all else is the caller's.
pub fn to_anyhow(e: LabError) -> anyhow::Error {
    match e {
        LabError::Variant { .. } => e.into(),
        e => Usage(e.to_string()).into(),
    }
}

/// Reads a scenario or a setup, makes and mounts its file systems; runs nothing.
pub fn check(name_or_file: &str, json: bool, out: &mut dyn Write) -> Result<()> {
    let StackFile { name, scenario, topology, stacks, .. } = StackFile::find(name_or_file)?;
    let (variants, devices) = (stacks.len(), topology.devices.len());
    let (kind, what) = match scenario {
        None => ("setup", "a setup".to_owned()),
        Some(scenario) => {
            steadfast_lab::check(&scenario).map_err(|e| Usage(e.to_string()))?;
            ("scenario", format!("{variants} variants"))
        }
    };
    // Not tried: the kernel's file systems, and what stands on devices of this machine.
    let is_model = |device: &String| topology.devices[device].model().is_some();
    let tried = stacks
        .into_iter()
        .filter(|stack| stack.kernel.is_none() && stack.setup.leaves().iter().all(is_model));
    let wrong: Vec<String> = tried
        .filter_map(|NamedStack { variant, setup, .. }| {
            let variant = variant.map(|variant| format!("variant '{variant}': "));
            Some(variant.unwrap_or_default() + &setup.try_out().err()?.to_string())
        })
        .collect();
    if !wrong.is_empty() {
        usage!("{name}: {}", wrong.join("\n  "));
    }
    let notes: Vec<String> = (topology.devices.iter())
        .filter_map(|(device, settings)| Some((device, settings.model()?)))
        .flat_map(|(device, model)| model.warnings().into_iter().map(move |w| (device, w)))
        .map(|(device, warning)| format!("device '{device}': {warning}"))
        .collect();
    if json {
        let found = json!({ kind: name, "variants": variants, "devices": devices, "notes": notes });
        return Ok(document::print(out, "steadfast-lab-check", 1, found)?);
    }
    writeln!(out, "{name}: good: {what}, {devices} devices")?;
    for note in notes {
        write!(out, "{}", hanging("note: ", &note))?;
    }
    Ok(())
}
