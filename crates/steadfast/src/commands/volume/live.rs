//! A volume that a running host keeps: the host is asked, and the volume stays in use meanwhile.

use std::io::Write;
use std::path::Path;

use anyhow::Result;
use steadfast_setup::path;
use steadfast_stack::client::Client;
use steadfast_stack::protocol::{Answer, Assemble, Destroy, NameRequest, Request, VolumeStatus};

use super::cli::{CreateArgs, Members, VolumeCommand};
use super::{KeptVolume, request};
use crate::commands::serve::{ask::call, client, said, show};
use crate::{CommandEnd, Usage, document};

/// A volume of a host, or one that it is to make.
pub struct RunningVolume {
    client: Client,
    /// The name that was given.
    pub name: String,
    /// How a resync assembles it, if it could not be when the host was started.
    assemble: Option<Assemble>,
}

/// Does what only a host does; whether this is that.
pub fn run(command: &VolumeCommand, out: &mut dyn Write) -> Result<bool> {
    match command {
        VolumeCommand::AttachKernel { name, socket } => {
            let answer =
                call(&client(socket.as_deref())?, &Request::AttachKernel(NameRequest::of(name)))?;
            writeln!(out, "{}", answer.kernel.unwrap_or_default())?;
        }
        VolumeCommand::DetachKernel { name, socket } => {
            call(&client(socket.as_deref())?, &Request::DetachKernel(NameRequest::of(name)))?;
        }
        _ => return Ok(false),
    }
    Ok(true)
}

/// The host that a command is for. `None`: it is for members.
pub fn host_of(command: &VolumeCommand) -> Result<Option<RunningVolume>> {
    let members = request::members_of(command);
    let given = match (command, members) {
        (VolumeCommand::Create(args), _) => &args.host,
        (_, Some(members)) => &members.host,
        _ => &None,
    };
    let client = match (given, members) {
        (Some(socket), _) => {
            Some(client(Some(Path::new(socket)).filter(|s| !s.as_os_str().is_empty()))?)
        }
        (None, members) => members.and_then(kept_by_host),
    };
    let Some(client) = client else { return Ok(None) };
    let name = members.map(name_of).transpose()?.unwrap_or_default();
    let assemble = match command {
        VolumeCommand::Resync { members, .. } => Some(Assemble {
            name: name.clone(),
            degraded: members.degraded,
            keep: members.keep.map(|uuid| uuid.to_string()),
        }),
        _ => None,
    };
    Ok(Some(RunningVolume { client, name, assemble }))
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
        _ => usage!("with --host one volume is given, by its name"),
    }
}

fn find(client: &Client, name: &str) -> Result<VolumeStatus> {
    let answer = client.call(&Request::Status).map_err(said)?;
    let found = answer.stack.unwrap_or_default().into_volume(name);
    found.ok_or_else(|| Usage(format!("{name}: the host has no such volume")).into())
}

impl RunningVolume {
    /// Has it made.
    pub fn create(&self, args: &CreateArgs, out: &mut dyn Write) -> Result<CommandEnd> {
        let answer = call(&self.client, &Request::Create(request::create(args)?))?;
        writeln!(out, "{}: {} bytes", args.name, answer.bytes.unwrap_or_default())?;
        Ok(CommandEnd::Good)
    }

    /// Prints it; whether it needs no attention.
    pub fn status(&self, json: bool, out: &mut dyn Write) -> Result<CommandEnd> {
        let volume = find(&self.client, &self.name)?;
        match json {
            true => document::print(out, "steadfast-volume", 1, &volume)?,
            false => show::text(&volume, out)?,
        }
        Ok(if volume.is_sound() { CommandEnd::Good } else { CommandEnd::Problem })
    }

    /// Takes it apart.
    pub fn destroy(&self, out: &mut dyn Write) -> Result<CommandEnd> {
        let destroy = Destroy { name: self.name.clone(), ..Destroy::default() };
        call(&self.client, &Request::Destroy(destroy))?;
        writeln!(out, "{}: is no volume any more", self.name)?;
        Ok(CommandEnd::Good)
    }
}

impl KeptVolume for RunningVolume {
    fn name(&self) -> String {
        self.name.clone()
    }

    fn own_name(&self) -> Result<String> {
        Ok(find(&self.client, &self.name)?.name)
    }

    fn call(&mut self, request: &Request, out: &mut dyn Write) -> Result<Answer> {
        let mut before = None;
        match (request, self.assemble.take()) {
            (Request::Resync(_), Some(assemble))
                if find(&self.client, &self.name)?.problem.is_some() =>
            {
                call(&self.client, &Request::Assemble(assemble))?;
            }
            (Request::Grow(_), _) => before = Some(find(&self.client, &self.name)?.bytes),
            _ => {}
        }
        let answer = call(&self.client, request)?;
        if let Some(now) = before.filter(|now| answer.bytes.is_none_or(|bytes| bytes == *now)) {
            let name = &self.name;
            writeln!(out, "{name}: has {now} bytes already: its legs have room for no more")?;
            writeln!(out, "  (that a device has grown is seen when the host is started)")?;
        }
        Ok(answer)
    }

    fn close(&mut self) -> Result<()> {
        Ok(())
    }

    fn show(&mut self, out: &mut dyn Write) -> Result<bool> {
        show::text(&find(&self.client, &self.name)?, out)?;
        Ok(true)
    }
}
