//! What a host keeps, as text.

use std::io::Write;

use anyhow::Result;
use steadfast_stack::protocol::{
    DeviceKind, DeviceStatus, MirrorStatus, StackStatus, VolumeStatus,
};

use crate::{Outcome, document, terminal};

/// Prints everything; whether all is there and whole.
pub fn stack(stack: &StackStatus, json: bool, out: &mut dyn Write) -> Result<Outcome> {
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
            let at = terminal::harmless(&mount.at.display().to_string());
            let how = if mount.mounted { "mounted" } else { "not mounted" };
            writeln!(out, "mount {name}: {volume} at {at}, {how}")?;
            if let Some(problem) = &mount.problem {
                out.write_all(terminal::hanging("  ", &terminal::harmless(problem)).as_bytes())?;
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
    let devices = stack.devices.iter().all(|d| d.problem.is_none());
    let mounts = stack.mounts.iter().all(|mount| mount.problem.is_none());
    let sound = devices && mounts && stack.volumes.iter().all(is_sound);
    Ok(if sound { Outcome::Good } else { Outcome::Problem })
}

fn device_line(device: &DeviceStatus, out: &mut dyn Write) -> Result<()> {
    let what = match (device.kind, &device.path) {
        (DeviceKind::RamDisk, _) => "RAM disk".to_owned(),
        (DeviceKind::File, path) => terminal::harmless(path.as_deref().unwrap_or_default()),
    };
    let user = device.used_by.as_ref().map(|v| format!(", in {v}")).unwrap_or_default();
    let kernel = device.kernel.as_ref().map(|k| format!(", is {k}")).unwrap_or_default();
    writeln!(out, "{}: {what}, {} bytes{user}{kernel}", device.name, device.bytes)?;
    if let Some(problem) = &device.problem {
        out.write_all(terminal::hanging("  ", &terminal::harmless(problem)).as_bytes())?;
    }
    Ok(())
}

/// Whether a volume needs no attention.
pub fn is_sound(volume: &VolumeStatus) -> bool {
    volume.problem.is_none() && volume.mirror.as_ref().is_none_or(|mirror| mirror.whole)
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
        out.write_all(terminal::hanging("  ", &terminal::harmless(problem)).as_bytes())?;
    }
    match &volume.mirror {
        Some(mirror) => mirror_text(mirror, out),
        None => {
            for (place, component) in volume.components.iter().enumerate() {
                writeln!(out, "  component {place}: {component}")?;
            }
            Ok(())
        }
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
        let unchecked = mirror.unchecked_bytes;
        writeln!(out, "  checksums of what was written, but of {unchecked} bytes")?;
    }
    if let Some(resync) = &mirror.resync {
        writeln!(out, "  resync: {} % done", resync.percent())?;
    }
    for leg in &mirror.legs {
        let volatile = if leg.volatile { ", volatile" } else { "" };
        let kept = if leg.attached { "" } else { ", kept until it is added" };
        let name = terminal::harmless(&leg.component);
        writeln!(out, "  leg {}: {name}: {}{volatile}{kept}", leg.slot, leg.state)?;
        if let Some(held) = leg.held_bytes {
            writeln!(out, "    partial: holds {held} bytes, has room for {}", leg.room)?;
        }
        if leg.lacking_bytes > 0 {
            writeln!(out, "    lacks {} bytes", leg.lacking_bytes)?;
        }
        if leg.checksum_errors > 0 {
            writeln!(out, "    {} checksum errors since it was assembled", leg.checksum_errors)?;
        }
        if let Some(error) = &leg.error {
            writeln!(out, "    {}", terminal::harmless(error))?;
        }
    }
    for spare in &mirror.spares {
        writeln!(out, "  spare: {}", terminal::harmless(spare))?;
    }
    if let Some(failed) = &mirror.failed {
        writeln!(out, "  failed: {}", terminal::harmless(failed))?;
    }
    Ok(())
}
