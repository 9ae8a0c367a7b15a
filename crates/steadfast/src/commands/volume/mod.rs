//! `steadfast volume`: mirrors, stripes and concats of image files and devices, without a host: a
//! volume is assembled for the command, and closed after it.

pub mod cli;
pub mod open;
mod show;

use std::io::Write;
use std::path::Path;

use anyhow::{Context, Result};
use steadfast_block::BlockDevice;
use steadfast_vfs::size;
use steadfast_volume::{
    AssembleOptions, Mirror, MirrorOptions, NewLeg, Pass, Policies, ReadPolicy, Throttle,
    WritePolicy, assemble, create_mirror, create_rows, member,
};

use self::cli::{Create, Members, PolicyArgs, VolumeCommand, VolumeKind};
use self::open::{assembled, open_all};
use super::image::open_file;
use crate::{Outcome, Usage};

/// Does what was asked.
pub fn run(command: &VolumeCommand, out: &mut dyn Write) -> Result<Outcome> {
    match command {
        VolumeCommand::Create(args) => create(args, out)?,
        VolumeCommand::Status { members, json } => {
            let devices = open_all(&members.members, true)?;
            let options = AssembleOptions {
                degraded: true,
                keep: members.keep,
                read_only: true,
                ..AssembleOptions::default()
            };
            let found = assemble(&devices, &options);
            if found.volumes.is_empty() && found.problems.len() == 1 && !json {
                // OK to index: it was counted.
                return Err(found.problems[0].1.clone().into());
            }
            return show::status(&found, *json, out);
        }
        VolumeCommand::Add { members, leg, volatile, spare, force } => {
            with_mirror(members, out, |mirror| {
                let new = new_leg(leg, *volatile, *force)?;
                match spare {
                    true => mirror.add_spare(&new)?,
                    false => drop(mirror.attach(&new)?),
                }
                Ok(())
            })?;
        }
        VolumeCommand::Remove { members, leg } => {
            with_mirror(members, out, |mirror| Ok(mirror.detach(*leg)?))?;
        }
        VolumeCommand::Replace { members, leg, with, force } => {
            with_mirror(members, out, |mirror| {
                let new = with.as_ref().map(|path| new_leg(path, false, *force)).transpose()?;
                Ok(mirror.replace(*leg, new.as_ref())?)
            })?;
        }
        VolumeCommand::Offline { members, leg } => {
            with_mirror(members, out, |mirror| Ok(mirror.offline(*leg)?))?;
        }
        VolumeCommand::Online { members, leg } => {
            with_mirror(members, out, |mirror| Ok(mirror.online(*leg, None)?))?;
        }
        VolumeCommand::Resync { members, rate } => {
            let bytes_per_second = rate.as_deref().map(|r| bytes("--rate", r)).transpose()?;
            let throttle = Throttle { bytes_per_second, regions: None };
            with_mirror(members, out, |mirror| {
                mirror.resync(throttle).map(drop).map_err(Into::into)
            })?;
        }
        VolumeCommand::Set { members, policies } => {
            with_mirror(members, out, |mirror| {
                Ok(mirror.set_policies(given(policies, mirror.policies())?)?)
            })?;
        }
        VolumeCommand::Grow { members, size } => {
            let size = size.as_deref().map(|s| bytes("--size", s)).transpose()?;
            with_mirror(members, out, |mirror| mirror.grow(size).map(drop).map_err(Into::into))?;
        }
        VolumeCommand::Destroy { members } => destroy(members, out)?,
    }
    Ok(Outcome::Good)
}

fn bytes(option: &str, text: &str) -> Result<u64> {
    size::parse(text).map_err(|e| Usage(format!("{option} {text}: {e}")).into())
}

fn region(text: &str) -> Result<u32> {
    let region = bytes("--region", text)?;
    u32::try_from(region).map_err(|_| Usage(format!("--region {text}: at most 64m")).into())
}

fn new_leg(path: &Path, volatile: bool, force: bool) -> Result<NewLeg> {
    Ok(NewLeg { device: open_file(path, false)?, volatile, force })
}

/// The policies that were asked for, the others as they are.
fn given(args: &PolicyArgs, now: Policies) -> Result<Policies> {
    let no = |option: &str, text: &str| Usage(format!("{option} {text}: there is no such policy"));
    let mut policies = now;
    if let Some(text) = &args.read_policy {
        policies.read = ReadPolicy::named(text).ok_or_else(|| no("--read-policy", text))?;
    }
    if let Some(text) = &args.write_policy {
        policies.write = WritePolicy::named(text).ok_or_else(|| no("--write-policy", text))?;
    }
    if let Some(pass) = args.pass {
        policies.pass =
            Pass::new(pass).ok_or_else(|| Usage(format!("--pass {pass}: a pass is 0 to 9")))?;
    }
    Ok(policies)
}

fn create(args: &Create, out: &mut dyn Write) -> Result<()> {
    let all: Vec<_> = args.devices.iter().chain(&args.volatile).cloned().collect();
    let devices = open_all(&all, false)?;
    let size = args.size.as_deref().map(|s| bytes("--size", s)).transpose()?;
    let made = if args.kind == VolumeKind::Mirror {
        let volatile = |n: usize| n >= args.devices.len();
        let legs: Vec<NewLeg> = devices
            .into_iter()
            .enumerate()
            .map(|(n, device)| NewLeg { device, volatile: volatile(n), force: args.force })
            .collect();
        let options = MirrorOptions {
            size,
            region_bytes: args.region.as_deref().map(region).transpose()?,
            policies: given(&args.policies, Policies::default())?,
            ..MirrorOptions::default()
        };
        let mirror = create_mirror(&args.name, &legs, &options)?;
        mirror.close()?;
        mirror.info()
    } else {
        if !args.volatile.is_empty() || size.is_some() {
            let what = "--volatile and --size are for mirrors";
            return Err(Usage(what.into()).into());
        }
        let stripe = args.kind == VolumeKind::Stripe;
        let interlace = stripe.then(|| bytes("--interlace", &args.interlace)).transpose()?;
        let interlace = interlace.map(u32::try_from).transpose().context("--interlace")?;
        create_rows(&args.name, &devices, interlace, args.force)?.device.info()
    };
    writeln!(out, "{}: {}, {} bytes", args.name, made.model, made.size)?;
    Ok(())
}

/// Assembles a mirror, does `work`, copies what legs lack, closes it, and shows it.
fn with_mirror(
    members: &Members,
    out: &mut dyn Write,
    work: impl FnOnce(&Mirror) -> Result<()>,
) -> Result<()> {
    let (found, volume) = assembled(members, false)?;
    let Some(mirror) = &volume.mirror else {
        found.close()?;
        let what = format!("'{}' is a {}: this is for mirrors", volume.name, volume.kind.name());
        return Err(Usage(what).into());
    };
    let done = work(mirror).and_then(|()| Ok(mirror.resync(Throttle::default())?));
    let closed = found.close();
    let resynced = done?;
    closed?;
    if resynced.bytes > 0 {
        writeln!(out, "{}: {} bytes copied", volume.name, resynced.bytes)?;
    }
    if resynced.unreadable > 0 {
        let count = resynced.unreadable;
        anyhow::bail!("'{}': {count} regions could not be read from any leg", volume.name);
    }
    show::status(&found, false, out).map(drop)
}

fn destroy(members: &Members, out: &mut dyn Write) -> Result<()> {
    let (found, volume) = assembled(members, false)?;
    found.close()?;
    let name = volume.name.clone();
    // The members are in use until nobody has the volume.
    drop((found, volume));
    for device in open_again(members)? {
        member::wipe_label(&device)?;
    }
    writeln!(out, "{name}: is no volume any more")?;
    Ok(())
}

fn open_again(members: &Members) -> Result<Vec<std::sync::Arc<dyn BlockDevice>>> {
    open_all(&members.members, false)
}
