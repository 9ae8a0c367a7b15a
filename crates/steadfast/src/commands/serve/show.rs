//! What a host keeps, as text.

use std::io::Write;
use std::os::unix::ffi::OsStrExt;

use anyhow::Result;
use steadfast_stack::protocol::{
    DeviceKind, DeviceStatus, MirrorStatus, StackStatus, VolumeStatus,
};

use crate::terminal;
use crate::{CommandEnd, document};
use steadfast_vfs::foreign::Foreign;

/// Text of others below a heading.
fn hanging(head: &str, text: &str) -> String {
    terminal::hanging(head, &Foreign::new(text).to_string())
}

/// Prints everything; whether all is there and whole.
pub fn stack(stack: &StackStatus, json: bool, out: &mut dyn Write) -> Result<CommandEnd> {
    if json {
        let mut fields = document::fields(stack)?;
        // The name is the document's.
        if let Some(program) = fields.remove("version") {
            fields.insert("program".into(), program);
        }
        document::print(out, "steadfast-host", 1, fields)?;
    } else {
        writeln!(out, "host {} (process {})", stack.config.display(), stack.pid)?;
        if let Some(tree) = &stack.tree {
            writeln!(out, "files: {}", tree.display())?;
        }
        for device in &stack.devices {
            device_line(device, out)?;
        }
        for volume in &stack.volumes {
            text(volume, out)?;
        }
        for mount in &stack.mounts {
            let (name, volume) = (&mount.name, &mount.volume);
            let at = Foreign::new(mount.at.as_os_str().as_bytes());
            let how = if mount.mounted { "mounted" } else { "not mounted" };
            writeln!(out, "mount {name}: {volume} at {at}, {how}")?;
            if let Some(problem) = &mount.problem {
                out.write_all(hanging("  ", problem).as_bytes())?;
            }
        }
        for alias in &stack.aliases {
            writeln!(out, "{}: another name of {}", alias.name, alias.target)?;
        }
        for retired in &stack.retired {
            let legs = retired.components.join(", ");
            writeln!(out, "{}: was taken apart, its data is on {legs}", retired.name)?;
        }
    }
    let sound = stack.volumes.iter().all(VolumeStatus::is_sound) && stack.problems().is_empty();
    Ok(if sound { CommandEnd::Good } else { CommandEnd::Problem })
}

fn device_line(device: &DeviceStatus, out: &mut dyn Write) -> Result<()> {
    let what = match (device.kind, &device.path) {
        (DeviceKind::RamDisk, _) => "RAM disk".to_owned(),
        (DeviceKind::File, path) => Foreign::new(path.as_deref().unwrap_or_default()).to_string(),
    };
    let user = device.used_by.as_ref().map(|v| format!(", in {v}")).unwrap_or_default();
    let kernel = device.kernel.as_ref().map(|k| format!(", is {k}")).unwrap_or_default();
    writeln!(out, "{}: {what}, {} bytes{user}{kernel}", device.name, device.bytes)?;
    if let Some(problem) = &device.problem {
        out.write_all(hanging("  ", problem).as_bytes())?;
    }
    Ok(())
}

/// A volume, as `volume status` shows one.
pub fn text(volume: &VolumeStatus, out: &mut dyn Write) -> Result<()> {
    let (name, kind) = (&volume.name, volume.kind.name());
    let user = volume.used_by.as_ref().map(|v| format!(", in {v}")).unwrap_or_default();
    writeln!(out, "{name}: {kind}, {} bytes, {}{user}", volume.bytes, volume.uuid)?;
    if let Some(kernel) = &volume.kernel {
        writeln!(out, "  is {kernel} of the kernel")?;
    }
    if let Some(problem) = &volume.problem {
        out.write_all(hanging("  ", problem).as_bytes())?;
    }
    for lacks in &volume.degraded {
        out.write_all(hanging("  degraded: ", lacks).as_bytes())?;
    }
    match &volume.mirror {
        Some(mirror) => mirror_text(mirror, out),
        None => {
            for (place, component) in volume.components.iter().enumerate() {
                writeln!(out, "  component {place}: {}", Foreign::new(component))?;
            }
            Ok(())
        }
    }
}

/// What a mirror's checksums cover.
fn checksums(unchecked: u64) -> String {
    match unchecked {
        0 => "checksums of all that was written".to_owned(),
        bytes => format!("checksums of what was written, but of {bytes} bytes"),
    }
}

fn mirror_text(mirror: &MirrorStatus, out: &mut dyn Write) -> Result<()> {
    writeln!(out, "  reads {}, writes {}, pass {}", mirror.read, mirror.write, mirror.pass)?;
    let r = &mirror.regions;
    writeln!(
        out,
        "  regions of {} bytes: {} dirty, {} clean, {} unwritten",
        mirror.region_bytes,
        r.filling + r.dirty,
        r.clean,
        r.unwritten,
    )?;
    if mirror.checksums {
        writeln!(out, "  {}", checksums(mirror.unchecked_bytes))?;
    }
    if let Some(resync) = &mirror.resync {
        writeln!(out, "  resync: {} % done", resync.percent())?;
    }
    for leg in &mirror.legs {
        let volatile = if leg.volatile { ", volatile" } else { "" };
        let kept = if leg.attached { "" } else { ", kept until it is added" };
        let name = Foreign::new(&leg.component);
        writeln!(out, "  leg {}: {name}: {}{volatile}{kept}", leg.slot, leg.state)?;
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
    for spare in &mirror.spares {
        writeln!(out, "  spare: {}", Foreign::new(spare))?;
    }
    if let Some(failed) = &mirror.failed {
        writeln!(out, "  failed: {}", Foreign::new(failed))?;
    }
    Ok(())
}
