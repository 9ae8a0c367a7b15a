//! What `volume status` prints.

use std::io::Write;

use anyhow::Result;
use serde_json::{Value, json};
use steadfast_volume::{AssemblyReport, MirrorStatus, ScrubReport, Volume};

use crate::commands::serve::show::checksums;
use crate::terminal::{self, counted};
use crate::{CommandEnd, document};
use steadfast_vfs::foreign::Foreign;

/// Prints all volumes; whether each is whole.
pub fn status(found: &AssemblyReport, json: bool, out: &mut dyn Write) -> Result<CommandEnd> {
    if json {
        let volumes: Vec<Value> = found.volumes.iter().map(volume_json).collect();
        let problems: Vec<Value> = found
            .problems
            .iter()
            .map(|(name, error)| json!({ "name": name, "problem": error.to_string() }))
            .collect();
        let body = json!({
            "volumes": volumes,
            "problems": problems,
            "without_label": found.blank.iter().map(|b| b.info().name).collect::<Vec<_>>(),
        });
        document::print(out, "steadfast-volumes", 1, body)?;
    } else {
        for volume in &found.volumes {
            text(volume, out)?;
        }
        for (_, error) in &found.problems {
            out.write_all(
                terminal::hanging("", &Foreign::new(&error.to_string()).to_string()).as_bytes(),
            )?;
        }
        for blank in &found.blank {
            writeln!(out, "{}: no label", Foreign::new(&blank.info().name))?;
        }
    }
    let mirrors = found.volumes.iter().filter_map(|v| v.mirror.as_ref());
    let whole = found.problems.is_empty()
        && !found.volumes.is_empty()
        && mirrors.map(|m| m.status()).all(|s| s.is_whole());
    Ok(if whole { CommandEnd::Good } else { CommandEnd::Problem })
}

/// What a scrub found, by a host or without one, as a document.
pub fn scrub_json(name: &str, found: &ScrubReport, out: &mut dyn Write) -> std::io::Result<()> {
    let mut fields = document::fields(found)?;
    fields.insert("name".into(), name.into());
    document::print(out, "steadfast-scrub", 1, fields)
}

/// What a scrub found, by a host or without one. Blocks are of 4096 bytes, reads of up to 1 MiB.
pub fn scrubbed(
    name: &str,
    found: &ScrubReport,
    repair: bool,
    out: &mut dyn Write,
) -> std::io::Result<()> {
    writeln!(out, "{name}: {} compared", counted(found.bytes, "byte"))?;
    if found.differing > 0 {
        let verb = if found.differing == 1 { "differs" } else { "differ" };
        writeln!(out, "  {} of 4096 bytes {verb}", counted(found.differing, "block"))?;
    }
    if found.unreadable > 0 {
        writeln!(out, "  {} of up to 1 MiB failed", counted(found.unreadable, "read"))?;
    }
    if found.repaired > 0 {
        writeln!(out, "  {} of these were written again", found.repaired)?;
    }
    if found.differing > 0 && !repair {
        writeln!(out, "  --repair writes what counts to the legs that hold something else")?;
    }
    if found.lost > 0 {
        let blocks = counted(found.lost, "block");
        writeln!(out, "  of {blocks} no leg holds what was written")?;
    }
    Ok(())
}

fn text(volume: &Volume, out: &mut dyn Write) -> Result<()> {
    let size = volume.device.info().size;
    let (name, kind) = (&volume.name, volume.kind.name());
    writeln!(out, "{name}: {kind}, {size} bytes, {}", volume.uuid)?;
    let Some(mirror) = &volume.mirror else {
        for (place, member) in volume.members.iter().enumerate() {
            writeln!(out, "  component {place}: {}", Foreign::new(member))?;
        }
        return Ok(());
    };
    let status = mirror.status();
    let (read, write) = (status.policies.read.name(), status.policies.write.name());
    let pass = status.policies.pass.number();
    writeln!(out, "  reads {read}, writes {write}, pass {pass}")?;
    let [unwritten, filling, dirty, clean] = status.regions;
    writeln!(
        out,
        "  regions of {} bytes: {} dirty, {clean} clean, {unwritten} unwritten",
        status.region_bytes,
        filling + dirty,
    )?;
    if status.checksums {
        writeln!(out, "  {}", checksums(status.unchecked_bytes))?;
    }
    for leg in &status.legs {
        let volatile = if leg.volatile { ", volatile" } else { "" };
        let name = Foreign::new(&leg.name);
        writeln!(out, "  leg {}: {name}: {}{volatile}", leg.slot, leg.state.name())?;
        if let Some(held) = leg.held_bytes {
            writeln!(out, "    partial: holds {held} bytes, has room for {}", leg.room)?;
        }
        if leg.lacking_bytes > 0 {
            writeln!(out, "    lacks {} bytes", leg.lacking_bytes)?;
        }
        let wrong = leg.counters.checksum_errors;
        if wrong > 0 {
            writeln!(out, "    {wrong} checksum errors since it was assembled")?;
        }
        if let Some(error) = &leg.error {
            writeln!(out, "    {}", Foreign::new(error))?;
        }
    }
    for spare in &status.spares {
        writeln!(out, "  spare: {}", Foreign::new(spare))?;
    }
    Ok(())
}

fn volume_json(volume: &Volume) -> Value {
    let mut value = json!({
        "name": volume.name,
        "uuid": volume.uuid.to_string(),
        "kind": volume.kind.name(),
        "size": volume.device.info().size,
        "members": volume.members,
        "member_of": volume.member_of.map(|uuid| uuid.to_string()),
    });
    if let (Some(mirror), Some(object)) = (&volume.mirror, value.as_object_mut()) {
        mirror_json(&mirror.status(), object);
    }
    value
}

fn mirror_json(status: &MirrorStatus, object: &mut serde_json::Map<String, Value>) {
    let [unwritten, filling, dirty, clean] = status.regions;
    let regions = json!({
        "bytes": status.region_bytes,
        "unwritten": unwritten,
        "filling": filling,
        "dirty": dirty,
        "clean": clean,
    });
    let legs: Vec<Value> = status
        .legs
        .iter()
        .map(|leg| {
            json!({
                "place": leg.slot,
                "uuid": leg.uuid.to_string(),
                "name": leg.name,
                "state": leg.state.name(),
                "volatile": leg.volatile,
                "lacking_bytes": leg.lacking_bytes,
                "held_bytes": leg.held_bytes,
                "room": leg.room,
                "checksum_errors": leg.counters.checksum_errors,
                "error": leg.error,
            })
        })
        .collect();
    let policies = json!({
        "read": status.policies.read.name(),
        "write": status.policies.write.name(),
        "pass": status.policies.pass.number(),
    });
    object.insert("policies".into(), policies);
    object.insert("checksums".into(), json!(status.checksums));
    object.insert("unchecked_bytes".into(), json!(status.unchecked_bytes));
    object.insert("regions".into(), regions);
    object.insert("generation".into(), json!(status.generation));
    object.insert("legs".into(), Value::Array(legs));
    object.insert("spares".into(), json!(status.spares));
    object.insert("whole".into(), json!(status.is_whole()));
}
