//! `steadfast volume`: mirrors, stripes and concats of image files and devices, without a host: a
//! volume is assembled for the command, and closed after it.
//!
//! A command that is refused changes nothing: what was given is checked before a volume is
//! assembled, and assembling writes nothing.

pub mod cli;
mod create;
mod destroy;
mod live;
pub mod open;
mod progress;
mod show;

use std::io::Write;

use anyhow::Result;
use steadfast_vfs::size;
use steadfast_volume::{
    AssembleOptions, AssemblyReport, LegState, LegStatus, Mirror, NewLeg, Pass, Policies,
    ReadPolicy, ResyncThrottle, Volume, WritePolicy, assemble,
};

use self::cli::{Members, PolicyArgs, VolumeCommand};
use self::create::{forget_file_system, new_leg};
use self::open::{assembled, open_all};
use crate::{CommandEnd, Usage, terminal};
use steadfast_vfs::foreign::Foreign;

/// Does what was asked.
pub fn run(command: &VolumeCommand, out: &mut dyn Write) -> Result<CommandEnd> {
    if let Some(done) = live::run(command, out)? {
        return Ok(done);
    }
    match command {
        VolumeCommand::Create(args) => create::create(args, out)?,
        VolumeCommand::Status { members, json } => return status(members, *json, out),
        VolumeCommand::Add { members, leg, volatile, partial, spare, force } => {
            let new = new_leg(members, leg, *volatile, *force)?;
            let new = NewLeg { partial: *partial, ..new };
            with_mirror(members, out, |mirror, _| {
                match spare {
                    true => mirror.add_spare(&new)?,
                    false => drop(mirror.attach(&new)?),
                }
                forget_file_system(&new.device)
            })?;
        }
        VolumeCommand::Remove { members, leg, lose_data } => {
            with_mirror(members, out, |mirror, out| {
                // A spare has no place.
                let spares = mirror.status().spares;
                if leg.parse::<usize>().is_err() && spares.contains(leg) {
                    return remove_spare(mirror, leg, out);
                }
                let leg = place(leg)?;
                match lose_data {
                    false => Ok(mirror.detach(leg)?),
                    true => print_lost(mirror, mirror.detach_and_lose(leg)?, out),
                }
            })?;
        }
        VolumeCommand::Replace { members, leg, with, volatile, durable, force, lose_data } => {
            let leg = &place(leg)?;
            let new = with.as_ref().map(|path| new_leg(members, path, *volatile, *force));
            let new = new.transpose()?;
            with_mirror(members, out, |mirror, out| {
                let was_volatile =
                    mirror.status().legs.iter().any(|l| l.slot == *leg && l.volatile);
                let kept = |new| NewLeg { volatile: *volatile || was_volatile && !durable, ..new };
                let new = new.map(kept);
                match lose_data {
                    false => mirror.replace(*leg, new.as_ref())?,
                    true => print_lost(mirror, mirror.replace_and_lose(*leg, new.as_ref())?, out)?,
                }
                new.as_ref().map_or(Ok(()), |new| forget_file_system(&new.device))
            })?;
        }
        VolumeCommand::Offline { members, leg } => {
            let leg = &place(leg)?;
            with_mirror(members, out, |mirror, _| Ok(mirror.offline(*leg)?))?;
        }
        VolumeCommand::Online { members, leg } => {
            let leg = &place(leg)?;
            with_mirror(members, out, |mirror, _| Ok(mirror.online(*leg, None)?))?;
        }
        VolumeCommand::Resync { members, rate } => {
            let bytes_per_second = rate.as_deref().map(|r| bytes("--rate", r)).transpose()?;
            let throttle = ResyncThrottle { bytes_per_second, regions: None };
            let found = open::joined(members, false)?;
            return with_mirror_at(throttle, members, found, out, |_, _| Ok(()));
        }
        VolumeCommand::Scrub { members, repair, rate, json } => {
            return scrub(members, *repair, rate.as_deref(), *json, out);
        }
        VolumeCommand::Set { members, policies } => {
            // Refused before anything is opened.
            let _ = given(policies, Policies::default())?;
            with_mirror(members, out, |mirror, _| {
                if policies.read_policy.is_some() {
                    let legs = mirror.status().legs;
                    let has = |place| legs.iter().any(|leg| leg.slot == place);
                    refuse_nobody(given(policies, Policies::default())?, has)?;
                }
                Ok(mirror.set_policies(given(policies, mirror.policies())?)?)
            })?;
        }
        VolumeCommand::Grow { members, size } => {
            let size = size.as_deref().map(|s| bytes("--size", s)).transpose()?;
            with_mirror(members, out, |mirror, _| mirror.grow(size).map(drop).map_err(Into::into))?;
        }
        VolumeCommand::Destroy { members } => destroy::destroy(members, out)?,
        VolumeCommand::AttachKernel { .. } | VolumeCommand::DetachKernel { .. } => {
            return Err(Usage("this is for volumes of a running host".into()).into());
        }
    }
    Ok(CommandEnd::Good)
}

fn scrub(
    members: &Members,
    repair: bool,
    rate: Option<&str>,
    json: bool,
    out: &mut dyn Write,
) -> Result<CommandEnd> {
    let bytes_per_second = rate.map(|r| bytes("--rate", r)).transpose()?;
    let throttle = ResyncThrottle { bytes_per_second, regions: None };
    let mut scrubbed = None;
    let mut nowhere = std::io::sink();
    let text: &mut dyn Write = if json { &mut nowhere } else { out };
    let closed = with_mirror(members, text, |mirror, text| {
        // What legs lack is no difference: first they get it.
        mirror.resync(ResyncThrottle::default())?;
        let found = mirror.scrub(repair, throttle)?;
        show::scrubbed(mirror.name(), &found, repair, text)?;
        scrubbed = Some((mirror.name().to_owned(), found));
        Ok(())
    });
    if let (true, Some((name, found))) = (json, &scrubbed) {
        show::scrub_json(name, found, out)?;
    }
    closed?;
    let clean = scrubbed.is_some_and(|(_, found)| found.clean);
    Ok(if clean { CommandEnd::Good } else { CommandEnd::Problem })
}

fn remove_spare(mirror: &Mirror, spare: &str, out: &mut dyn Write) -> Result<()> {
    if !mirror.remove_spare(spare)? {
        let what = "was not reached, and still has the spare's label; nobody believes it";
        writeln!(out, "{}: {what}", Foreign::new(spare))?;
    }
    Ok(())
}

/// A leg's place.
fn place(leg: &str) -> Result<usize> {
    let what = "a leg is named by its place, a spare by its name, as 'volume status' shows them";
    leg.parse().map_err(|_| Usage(format!("--leg {leg}: {what}")).into())
}

fn bytes(option: &str, text: &str) -> Result<u64> {
    size::parse(text).map_err(|e| Usage(format!("{option} {text}: {e}")).into())
}

/// The same, where the labels have 32 bits for it. What is wrong with what fits is for the crate to
/// say.
fn bytes_in_32_bits(option: &str, text: &str, most: &str) -> Result<u32> {
    let wanted = bytes(option, text)?;
    u32::try_from(wanted).map_err(|_| Usage(format!("{option} {text}: at most {most}")).into())
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

/// Refuses to prefer a leg that there is not.
fn refuse_nobody(policies: Policies, has: impl Fn(usize) -> bool) -> Result<()> {
    match policies.read {
        ReadPolicy::Preferred(place) if !has(place) => {
            let what = format!("leg {place} cannot be preferred: there is none in this place");
            Err(Usage(what).into())
        }
        _ => Ok(()),
    }
}

fn status(members: &Members, json: bool, out: &mut dyn Write) -> Result<CommandEnd> {
    let devices = open_all(&members.members, true)?;
    let options = AssembleOptions {
        degraded: true,
        keep: members.keep,
        read_only: true,
        ..AssembleOptions::default()
    };
    let found = assemble(&devices, &options);
    show::status(&found, json, out)
}

/// Whether a leg that is there lacks something that nobody wants it to lack.
fn still_lacks(leg: &LegStatus) -> bool {
    let absent = matches!(leg.state, LegState::Offline | LegState::Unavailable);
    !absent && (leg.state != LegState::Okay || leg.lacking_bytes > 0)
}

/// Assembles a mirror, does `work`, copies what legs lack, closes it, and shows it; whether every
/// leg that is there and in use has everything then.
fn with_mirror_at(
    throttle: ResyncThrottle,
    members: &Members,
    (found, outer): (AssemblyReport, Volume),
    out: &mut dyn Write,
    work: impl FnOnce(&Mirror, &mut dyn Write) -> Result<()>,
) -> Result<CommandEnd> {
    let volume = open::chosen(members, &found, outer)?;
    let Some(mirror) = &volume.mirror else {
        let what = format!(
            "'{}' is a {}: this is for mirrors; one inside of it is named by --volume NAME",
            volume.name,
            volume.kind.name()
        );
        return Err(Usage(what).into());
    };
    work(mirror, out)?;
    let resynced = progress::reported(mirror, || mirror.resync(throttle))?;
    found.close()?;
    open::end_if_signalled();
    if resynced.bytes > 0 {
        writeln!(out, "{}: {} bytes copied", volume.name, resynced.bytes)?;
    }
    show::status(&found, false, out)?;
    let failed = mirror.status().legs.iter().any(still_lacks);
    if resynced.unreadable > 0 {
        let regions = terminal::counted(resynced.unreadable, "region");
        anyhow::bail!("'{}': {regions} could not be read from any leg", volume.name);
    }
    Ok(if failed { CommandEnd::Problem } else { CommandEnd::Good })
}

/// The same, as fast as the legs; what else is wrong with the volume is not the command's matter.
fn with_mirror(
    members: &Members,
    out: &mut dyn Write,
    work: impl FnOnce(&Mirror, &mut dyn Write) -> Result<()>,
) -> Result<()> {
    with_mirror_at(ResyncThrottle::default(), members, assembled(members, false)?, out, work)
        .map(drop)
}

fn print_lost(mirror: &Mirror, bytes: u64, out: &mut dyn Write) -> Result<()> {
    if bytes > 0 {
        writeln!(out, "{}: {bytes} bytes were given up, and read as zeros", mirror.name())?;
    }
    Ok(())
}
