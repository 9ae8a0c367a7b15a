//! The same commands for a volume that a running host keeps: it is asked, and the volume stays in
//! use meanwhile.

use std::io::Write;
use std::path::Path;

use anyhow::Result;
use steadfast_setup::path;
use steadfast_stack::client::Client;
use steadfast_stack::protocol as ask;
use steadfast_stack::protocol::{Answer, Request, VolumeStatus};

use super::cli::{CreateArgs, Members, PolicyArgs, VolumeCommand, VolumeKind};
use super::{bytes, bytes_in_32_bits};
use crate::commands::serve::{ask::call, client, said, show};
use crate::{CommandEnd, Usage, document};

/// Does what was asked, if it is for a host. `None`: it is for members.
pub fn run(command: &VolumeCommand, out: &mut dyn Write) -> Result<Option<CommandEnd>> {
    if let VolumeCommand::AttachKernel { name, socket } = command {
        let answer = call(&client(socket.as_deref())?, &Request::AttachKernel(named(name)))?;
        writeln!(out, "{}", answer.kernel.unwrap_or_default())?;
        return Ok(Some(CommandEnd::Good));
    }
    if let VolumeCommand::DetachKernel { name, socket } = command {
        call(&client(socket.as_deref())?, &Request::DetachKernel(named(name)))?;
        return Ok(Some(CommandEnd::Good));
    }
    let (given, members) = match command {
        VolumeCommand::Create(args) => (&args.host, None),
        other => match members_of(other) {
            Some(members) => (&members.host, Some(members)),
            None => return Ok(None),
        },
    };
    let client = match (given, members) {
        (Some(socket), _) => client(Some(Path::new(socket)).filter(|s| !s.as_os_str().is_empty()))?,
        (None, Some(members)) => match kept_by_host(members) {
            Some(client) => client,
            None => return Ok(None),
        },
        (None, None) => return Ok(None),
    };
    let name = match members {
        Some(members) => name_of(members)?,
        None => String::new(),
    };
    on_host(&client, command, &name, out).map(Some)
}

fn named(name: &str) -> ask::NameRequest {
    ask::NameRequest { name: name.to_owned() }
}

fn members_of(command: &VolumeCommand) -> Option<&Members> {
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

/// One word that is no file, and is the name of a volume that a host has.
fn kept_by_host(members: &Members) -> Option<Client> {
    let [only] = &members.members[..] else { return None };
    if only.symlink_metadata().is_ok() || path::members_of(only).is_some() {
        return None;
    }
    let client = client(None).ok()?;
    find(&client, only.to_str()?).ok().map(|_| client)
}

fn name_of(members: &Members) -> Result<String> {
    match (&members.members[..], &members.volume) {
        ([only], None) => Ok(only.display().to_string()),
        _ => Err(Usage("with --host one volume is given, by its name".into()).into()),
    }
}

fn find(client: &Client, name: &str) -> Result<VolumeStatus> {
    let answer = client.call(&Request::Status).map_err(said)?;
    let stack = answer.stack.unwrap_or_default();
    let alias = stack.aliases.iter().find(|a| a.name == name).map(|a| a.target.as_str());
    let name = alias.unwrap_or(name);
    let found = stack.volumes.into_iter().find(|v| v.name == name);
    found.ok_or_else(|| Usage(format!("{name}: the host has no such volume")).into())
}

/// The name of a device of the host.
fn component(path: &Path) -> String {
    path.display().to_string()
}

fn on_host(
    client: &Client,
    command: &VolumeCommand,
    name: &str,
    out: &mut dyn Write,
) -> Result<CommandEnd> {
    let mut clean = true;
    match command {
        VolumeCommand::Create(args) => {
            let answer = call(client, &Request::Create(create(args)?))?;
            let bytes = answer.bytes.unwrap_or_default();
            writeln!(out, "{}: {bytes} bytes", args.name)?;
            return Ok(CommandEnd::Good);
        }
        VolumeCommand::Status { json, .. } => {
            let volume = find(client, name)?;
            match json {
                true => document::print(out, "steadfast-volume", 1, &volume)?,
                false => show::text(&volume, out)?,
            }
            let sound = volume.is_sound();
            return Ok(if sound { CommandEnd::Good } else { CommandEnd::Problem });
        }
        VolumeCommand::Destroy { .. } => {
            let destroy = ask::Destroy { name: name.to_owned(), ..Default::default() };
            call(client, &Request::Destroy(destroy))?;
            writeln!(out, "{name}: is no volume any more")?;
            return Ok(CommandEnd::Good);
        }
        VolumeCommand::Scrub { repair, rate, json, .. } => {
            let scrub = ask::Scrub { name: name.to_owned(), repair: *repair, rate: rate_of(rate)? };
            let found = call(client, &Request::Scrub(scrub))?.scrubbed.unwrap_or_default();
            clean = found.clean;
            if *json {
                // Under its own name, as without a host.
                super::show::scrub_json(&find(client, name)?.name, &found, out)?;
                return Ok(if clean { CommandEnd::Good } else { CommandEnd::Problem });
            }
            super::show::scrubbed(name, &found, *repair, out)?;
        }
        VolumeCommand::Resync { members, rate } => {
            assemble_first(client, name, members)?;
            let rate = rate_of(rate)?;
            resync(client, name, rate, out)?;
        }
        VolumeCommand::Grow { .. } => {
            let before = find(client, name)?.bytes;
            let answer = call(client, &change(command, name)?)?;
            let now = answer.bytes.unwrap_or(before);
            if now == before {
                writeln!(out, "{name}: has {now} bytes already: its legs have room for no more")?;
                writeln!(out, "  (that a device has grown is seen when the host is started)")?;
            }
            resync(client, name, None, out)?;
        }
        other => {
            let answer = call(client, &change(other, name)?)?;
            print_answer(name, other, &answer, out)?;
            // As without a host: what legs lack is copied before the command ends.
            resync(client, name, None, out)?;
        }
    }
    show::text(&find(client, name)?, out)?;
    Ok(if clean { CommandEnd::Good } else { CommandEnd::Problem })
}

fn rate_of(rate: &Option<String>) -> Result<Option<u64>> {
    rate.as_deref().map(|r| bytes("--rate", r)).transpose()
}

/// A volume that could not be assembled when the host was started.
fn assemble_first(client: &Client, name: &str, members: &Members) -> Result<()> {
    if find(client, name)?.problem.is_none() {
        return Ok(());
    }
    let assemble = ask::Assemble {
        name: name.to_owned(),
        degraded: members.degraded,
        keep: members.keep.map(|uuid| uuid.to_string()),
    };
    call(client, &Request::Assemble(assemble)).map(drop)
}

fn resync(client: &Client, name: &str, rate: Option<u64>, out: &mut dyn Write) -> Result<()> {
    let resync = ask::Resync { name: name.to_owned(), rate, wait: true };
    let copied = call(client, &Request::Resync(resync))?.bytes.unwrap_or_default();
    if copied > 0 {
        writeln!(out, "{name}: {copied} bytes copied")?;
    }
    Ok(())
}

fn print_answer(
    name: &str,
    command: &VolumeCommand,
    answer: &Answer,
    out: &mut dyn Write,
) -> Result<()> {
    let gives_up = matches!(
        command,
        VolumeCommand::Remove { lose_data: true, .. }
            | VolumeCommand::Replace { lose_data: true, .. }
    );
    if let Some(lost) = answer.bytes.filter(|bytes| gives_up && *bytes > 0) {
        writeln!(out, "{name}: {lost} bytes were given up, and read as zeros")?;
    }
    Ok(())
}

/// The request for a command that changes a volume.
fn change(command: &VolumeCommand, name: &str) -> Result<Request> {
    let name = name.to_owned();
    Ok(match command {
        VolumeCommand::Add { leg, volatile, partial, spare, force, .. } => {
            Request::Add(ask::NewComponent {
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
            Request::Remove(ask::Leg { name, leg: leg.clone(), lose_data: *lose_data })
        }
        VolumeCommand::Replace { leg, with, volatile, durable, force, lose_data, .. } => {
            Request::Replace(ask::Replace {
                name,
                leg: leg.clone(),
                with: with.as_deref().map(component),
                volatile: *volatile,
                durable: *durable,
                force: *force,
                lose_data: *lose_data,
            })
        }
        VolumeCommand::Offline { leg, .. } => {
            Request::Offline(ask::Leg { name, leg: leg.clone(), lose_data: false })
        }
        VolumeCommand::Online { leg, .. } => {
            Request::Online(ask::Leg { name, leg: leg.clone(), lose_data: false })
        }
        VolumeCommand::Set { policies, .. } => {
            let PolicyArgs { read_policy, write_policy, pass } = policies;
            let (read, write) = (read_policy.clone(), write_policy.clone());
            Request::Set(ask::Set { name, read, write, pass: *pass })
        }
        VolumeCommand::Grow { size, .. } => {
            let size = size.as_deref().map(|s| bytes("--size", s)).transpose()?;
            Request::Grow(ask::Grow { name, size })
        }
        _ => return Err(Usage("this command is not for a host".into()).into()),
    })
}

fn create(args: &CreateArgs) -> Result<ask::Create> {
    let volatile: Vec<String> = args.volatile.iter().map(|p| component(p)).collect();
    let partial: Vec<String> = args.partial.iter().map(|p| component(p)).collect();
    let durable = args.devices.iter().map(|p| component(p));
    let kind = match args.kind {
        VolumeKind::Mirror => ask::VolumeKind::Mirror,
        VolumeKind::Stripe => ask::VolumeKind::Stripe,
        VolumeKind::Concat => ask::VolumeKind::Concat,
    };
    let region = args.region.as_deref().map(|r| bytes_in_32_bits("--region", r, "64m"));
    let interlace = (kind == ask::VolumeKind::Stripe)
        .then(|| bytes_in_32_bits("--interlace", &args.interlace, "100m"));
    Ok(ask::Create {
        name: args.name.clone(),
        kind,
        components: durable.chain(volatile.iter().chain(&partial).cloned()).collect(),
        volatile,
        partial,
        interlace: interlace.transpose()?,
        size: args.size.as_deref().map(|s| bytes("--size", s)).transpose()?,
        region_bytes: region.transpose()?,
        checksums: args.checksums,
        read: args.policies.read_policy.clone(),
        write: args.policies.write_policy.clone(),
        pass: args.policies.pass,
        force: args.force,
        dry_run: false,
    })
}
