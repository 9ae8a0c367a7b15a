//! What a command line asks for, as a host takes it.

use std::path::{Path, PathBuf};

use anyhow::Result;
use steadfast_stack::protocol::{
    Create, Grow, Leg, NewComponent, Replace, Request, Resync, Scrub, Set,
};
use steadfast_volume::ondisk::label::LayoutKind;

use super::cli::{CreateArgs, Members, PolicyArgs, VolumeCommand};
use crate::Usage;
use crate::commands::bytes_of;

/// The request for a command that is for one volume, which has this name.
pub fn of(command: &VolumeCommand, name: &str) -> Result<Request> {
    let name = name.to_owned();
    Ok(match command {
        VolumeCommand::Add { leg, volatile, partial, spare, force, .. } => {
            Request::Add(NewComponent {
                name,
                component: component(leg),
                volatile: *volatile,
                partial: *partial,
                spare: *spare,
                force: *force,
                dry_run: false,
            })
        }
        VolumeCommand::Remove { leg, lose_data, .. } => {
            Request::Remove(Leg { lose_data: *lose_data, ..Leg::of(&name, leg) })
        }
        VolumeCommand::Replace { leg, with, volatile, durable, force, lose_data, .. } => {
            Request::Replace(Replace {
                name,
                leg: leg.clone(),
                with: with.as_deref().map(component),
                volatile: *volatile,
                durable: *durable,
                force: *force,
                lose_data: *lose_data,
            })
        }
        VolumeCommand::Offline { leg, .. } => Request::Offline(Leg::of(&name, leg)),
        VolumeCommand::Online { leg, .. } => Request::Online(Leg::of(&name, leg)),
        VolumeCommand::Resync { rate, .. } => {
            Request::Resync(Resync { name, rate: bytes_of("--rate", rate.as_deref())?, wait: true })
        }
        VolumeCommand::Scrub { repair, rate, .. } => {
            let rate = bytes_of("--rate", rate.as_deref())?;
            Request::Scrub(Scrub { name, repair: *repair, rate })
        }
        VolumeCommand::Set { policies, .. } => {
            let PolicyArgs { read_policy, write_policy, pass } = policies;
            let (read, write) = (read_policy.clone(), write_policy.clone());
            Request::Set(Set { name, read, write, pass: *pass })
        }
        VolumeCommand::Grow { size, .. } => {
            Request::Grow(Grow { name, size: bytes_of("--size", size.as_deref())? })
        }
        _ => usage!("this is for volumes of a running host"),
    })
}

/// The request for a new volume.
pub fn create(args: &CreateArgs) -> Result<Create> {
    let names = |paths: &[PathBuf]| -> Vec<String> { paths.iter().map(component).collect() };
    let is_stripe = args.kind == LayoutKind::Stripe;
    let interlace = is_stripe.then_some(args.interlace.as_str());
    Ok(Create {
        name: args.name.clone(),
        kind: args.kind,
        components: args.all().map(component).collect(),
        volatile: names(&args.volatile),
        partial: args.partial.iter().map(component).collect(),
        interlace: bytes_in_32_bits("--interlace", interlace, "100m")?,
        size: bytes_of("--size", args.size.as_deref())?,
        region_bytes: bytes_in_32_bits("--region", args.region.as_deref(), "64m")?,
        checksums: args.checksums,
        read: args.policies.read_policy.clone(),
        write: args.policies.write_policy.clone(),
        pass: args.policies.pass,
        force: args.force,
        dry_run: false,
    })
}

/// The members that a command names.
pub fn members_of(command: &VolumeCommand) -> Option<&Members> {
    match command {
        VolumeCommand::Status { members, .. }
        | VolumeCommand::Add { members, .. }
        | VolumeCommand::Remove { members, .. }
        | VolumeCommand::Replace { members, .. }
        | VolumeCommand::Offline { members, .. }
        | VolumeCommand::Online { members, .. }
        | VolumeCommand::Resync { members, .. }
        | VolumeCommand::Scrub { members, .. }
        | VolumeCommand::Set { members, .. }
        | VolumeCommand::Grow { members, .. }
        | VolumeCommand::Destroy { members, .. } => Some(members),
        _ => None,
    }
}

/// The name of a device of the host.
fn component(path: impl AsRef<Path>) -> String {
    path.as_ref().display().to_string()
}

/// The bytes that an option says, where the labels have 32 bits for it. What is wrong with what
/// fits is for the crate to say.
fn bytes_in_32_bits(option: &str, given: Option<&str>, most: &str) -> Result<Option<u32>> {
    let Some(wanted) = bytes_of(option, given)? else { return Ok(None) };
    let text = given.unwrap_or_default();
    let fits = u32::try_from(wanted);
    fits.map(Some).map_err(|_| Usage(format!("{option} {text}: at most {most}")).into())
}
