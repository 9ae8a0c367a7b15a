//! `steadfast pmem check`: the block translation table of a sector namespace, and the info block of
//! an fsdax one.

use std::io::Write;
use std::path::Path;
use std::sync::Arc;

use anyhow::Result;
use steadfast_block::BlockDevice;
use steadfast_devices::filter::NamespaceError;
use steadfast_devices::filter::btt::{self, Version};
use steadfast_devices::filter::fsdax;
use steadfast_devices::source::pmem::{Mode, RangeLabel};
use steadfast_setup::path::memory;

use crate::setup_error::to_anyhow;
use crate::{CommandEnd, Usage, terminal};
use steadfast::occupant;
use steadfast_vfs::foreign::Foreign;

/// Looks at it; with `repair` writes info blocks anew first, and if that says so also where
/// something else is.
pub fn run(path: &Path, repair: Option<bool>, out: &mut dyn Write) -> Result<CommandEnd> {
    let pmem = match repair {
        // The namespace is wanted, and what is in its place is not.
        Some(true) => memory::map_labelled(path).map_err(to_anyhow)?,
        _ => memory::map(path, repair.is_none()).map_err(to_anyhow)?,
    };
    let path = memory::file(path);
    let version = pmem.label().and_then(|label| label.mode.version());
    let behind = pmem.label().map_or(0, RangeLabel::behind);
    let is_fsdax = match pmem.label() {
        Some(label) => label.mode == Mode::Fsdax,
        // A table, or what is left of one, comes first, as for the kernel.
        None => matches!(btt::probe(&pmem), Ok(None)) && !matches!(fsdax::probe(&pmem), Ok(None)),
    };
    let device: Arc<dyn BlockDevice> = Arc::new(pmem);
    if is_fsdax {
        return of_fsdax(&device, behind, path, repair.is_some(), out);
    }
    if let Some(force) = repair {
        mend(&device, version, path, force, out)?;
    }
    let shown = path.display();
    let report = match btt::check_as(&*device, version) {
        Ok(report) => report,
        Err(none @ NamespaceError::None { .. }) => {
            // Lost, not absent: the label says so, or the copy is there.
            let copy = btt::probe_copy(&*device, version)?;
            let what = match (&copy, version) {
                (Some(copy), _) => format!(
                    "no info block, and at the end the copy of one: {} sectors of {} bytes, {}. \
                     If it is not of a namespace that was destroyed: steadfast pmem check --repair \
                     {shown}",
                    copy.sectors, copy.sector, copy.uuid
                ),
                (None, Some(_)) => "its label says that it is a sector namespace, and neither its \
                                    info block nor the copy is there: restore it from a backup"
                    .to_owned(),
                (None, None) => return Err(none.into()),
            };
            let line = terminal::harmless(&format!("{shown}: {what}"));
            out.write_all(terminal::hanging("", &line).as_bytes())?;
            return Ok(CommandEnd::Problem);
        }
        Err(error) => return Err(error.into()),
    };
    let Some(info) = &report.info else {
        let first = report.problems.first().map_or("none is there", |p| p.what.as_str());
        let first = Foreign::new(first);
        writeln!(out, "{shown}: no block translation table can be read: {first}")?;
        return Ok(CommandEnd::Problem);
    };
    writeln!(out, "{shown}: {} sectors of {} bytes, {}", info.sectors, info.sector, info.uuid)?;
    for problem in &report.problems {
        let text = format!("byte {}: {}", problem.at, Foreign::new(&problem.what));
        out.write_all(terminal::hanging("  ", &text).as_bytes())?;
    }
    if report.is_good() {
        writeln!(out, "clean")?;
        return Ok(CommandEnd::Good);
    }
    writeln!(out, "{}", terminal::counted(report.problem_count, "problem"))?;
    Ok(CommandEnd::Problem)
}

/// Of an fsdax namespace: all that there is is its info block.
fn of_fsdax(
    device: &Arc<dyn BlockDevice>,
    behind: u64,
    path: &Path,
    repair: bool,
    out: &mut dyn Write,
) -> Result<CommandEnd> {
    let shown = path.display();
    match fsdax::probe_as(&**device, behind) {
        Ok(Some(info)) => {
            let (bytes, start, uuid) = (info.bytes, info.start, info.uuid);
            writeln!(out, "{shown}: {bytes} bytes from byte {start} on, {uuid}\nclean")?;
            Ok(CommandEnd::Good)
        }
        Ok(None) => {
            let what = "its label says that it is an fsdax namespace, and no info block is there";
            let line = terminal::harmless(&format!("{shown}: {what}"));
            out.write_all(terminal::hanging("", &line).as_bytes())?;
            Ok(CommandEnd::Problem)
        }
        Err(NamespaceError::Corrupt { .. }) if repair => Err(Usage(format!(
            "{shown}: the info block of an fsdax namespace has no copy to repair it from"
        ))
        .into()),
        Err(error) => Err(error.into()),
    }
}

/// Writes info blocks and copies anew. What is damaged otherwise is for the check to report.
fn mend(
    device: &Arc<dyn BlockDevice>,
    version: Option<Version>,
    path: &Path,
    force: bool,
    out: &mut dyn Write,
) -> Result<()> {
    let shown = path.display();
    let is_lost = matches!(btt::probe_as(&**device, version), Ok(None));
    if is_lost
        && !force
        && let Some(occupant) = occupant(device)
    {
        usage!(
            "{shown}: holds {occupant}, and no info block of a sector namespace: the copy at its \
             end may be of one that was destroyed. --force writes the info block over it"
        );
    }
    match btt::restore(device, version) {
        Ok(0) => Ok(()),
        Ok(written) => {
            let blocks = terminal::counted(written as u64, "block");
            Ok(writeln!(out, "{shown}: {blocks} written anew")?)
        }
        // There is nothing to do it with: the check says what is wrong.
        Err(NamespaceError::None { .. } | NamespaceError::Corrupt { .. }) => Ok(()),
        Err(error) => Err(error.into()),
    }
}
