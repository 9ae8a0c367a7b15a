//! What `volume status` prints.

use std::io::Write;

use anyhow::Result;
use serde_json::{Value, json};
use steadfast_stack::protocol::VolumeStatus;
use steadfast_volume::{AssemblyReport, ScrubReport, Volume};

use crate::commands::serve::show::text;
use crate::terminal::{self, counted};
use crate::{CommandEnd, document};
use steadfast_vfs::foreign::Foreign;

/// Prints all volumes, each as a host shows it; whether each is whole.
pub fn status(found: &AssemblyReport, json: bool, out: &mut dyn Write) -> Result<CommandEnd> {
    let around = |volume: &Volume| found.volumes.iter().find(|v| Some(v.uuid) == volume.member_of);
    let status = |volume| VolumeStatus {
        used_by: around(volume).map(|v| v.name.clone()),
        ..VolumeStatus::of(volume)
    };
    let volumes: Vec<VolumeStatus> = found.volumes.iter().map(status).collect();
    if json {
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
        document::print(out, "steadfast-volumes", 2, body)?;
    } else {
        for volume in &volumes {
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
    let whole = found.problems.is_empty() && !volumes.is_empty();
    let whole = whole && volumes.iter().all(VolumeStatus::is_sound);
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
