//! `steadfast volume`: mirrors, stripes and concats of image files and devices, without a host or
//! of a running one.
//!
//! Each command is one request, whoever keeps the volume ([`KeptVolume`]): a running host (`live`),
//! or this process, which assembles it for the command and closes it after it (`own`). A command
//! that is refused changes nothing: what was given is checked before a volume is assembled, and
//! assembling writes nothing.

pub mod cli;
mod create;
mod destroy;
mod live;
pub mod open;
mod own;
mod progress;
mod request;
mod show;

use std::io::Write;

use anyhow::Result;
use steadfast_stack::protocol::{Answer, Request, Resync};
use steadfast_volume::AssembleOptions;

use self::cli::{Members, VolumeCommand};
use self::own::OwnVolume;
use crate::CommandEnd;

/// A volume, and who keeps it.
trait KeptVolume {
    /// The name for messages.
    fn name(&self) -> String;

    /// The name of its own, where that was another one.
    fn own_name(&self) -> Result<String>;

    /// Does what is asked for.
    fn call(&mut self, request: &Request, out: &mut dyn Write) -> Result<Answer>;

    /// Closes it, if it was opened for the command.
    fn close(&mut self) -> Result<()>;

    /// Prints it; whether a resync has left nothing to be copied.
    fn show(&mut self, out: &mut dyn Write) -> Result<bool>;
}

/// Does what was asked.
pub fn run(command: &VolumeCommand, out: &mut dyn Write) -> Result<CommandEnd> {
    if live::run(command, out)? {
        return Ok(CommandEnd::Good);
    }
    match (command, live::host_of(command)?) {
        (VolumeCommand::Create(args), Some(host)) => host.create(args, out),
        (VolumeCommand::Create(args), None) => create::create(args, out),
        (VolumeCommand::Status { json, .. }, Some(host)) => host.status(*json, out),
        (VolumeCommand::Status { members, json }, None) => status(members, *json, out),
        (VolumeCommand::Destroy { .. }, Some(host)) => host.destroy(out),
        (VolumeCommand::Destroy { members }, None) => destroy::destroy(members, out),
        (_, Some(mut host)) => {
            let request = request::of(command, &host.name)?;
            change(&mut host, command, &request, out)
        }
        (_, None) => {
            let request = request::of(command, "")?;
            change(&mut OwnVolume::open(command, &request)?, command, &request, out)
        }
    }
}

/// Changes a volume, copies what its legs lack, and shows it.
fn change(
    volume: &mut dyn KeptVolume,
    command: &VolumeCommand,
    request: &Request,
    out: &mut dyn Write,
) -> Result<CommandEnd> {
    let answer = volume.call(request, out)?;
    let mut nowhere = std::io::sink();
    let mut out: &mut dyn Write = out;
    let mut is_good = true;
    match command {
        VolumeCommand::Remove { lose_data: true, .. }
        | VolumeCommand::Replace { lose_data: true, .. } => {
            if let Some(lost) = answer.bytes.filter(|bytes| *bytes > 0) {
                let name = volume.name();
                writeln!(out, "{name}: {lost} bytes were given up, and read as zeros")?;
            }
        }
        VolumeCommand::Scrub { repair, json, .. } => {
            let found = answer.scrubbed.unwrap_or_default();
            is_good = found.clean;
            match json {
                true => show::scrub_json(&volume.own_name()?, &found, out)?,
                false => show::scrubbed(&volume.name(), &found, *repair, out)?,
            }
            out = if *json { &mut nowhere } else { out };
        }
        _ => {}
    }
    let copied = match request {
        Request::Resync(_) => answer.bytes,
        _ => {
            let resync = Resync { name: volume.name(), rate: None, wait: true };
            volume.call(&Request::Resync(resync), out)?.bytes
        }
    };
    volume.close()?;
    if let Some(copied) = copied.filter(|bytes| *bytes > 0) {
        writeln!(out, "{}: {copied} bytes copied", volume.name())?;
    }
    let is_synced = volume.show(out)?;
    is_good &= is_synced || !matches!(request, Request::Resync(_));
    Ok(if is_good { CommandEnd::Good } else { CommandEnd::Problem })
}

fn status(members: &Members, json: bool, out: &mut dyn Write) -> Result<CommandEnd> {
    let options = AssembleOptions {
        degraded: true,
        keep: members.keep,
        read_only: true,
        ..AssembleOptions::default()
    };
    show::status(&open::open_members(members, &options)?.found, json, out)
}
