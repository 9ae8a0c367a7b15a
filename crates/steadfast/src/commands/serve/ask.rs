//! `steadfast host`: one request and its answer.

use std::io::Write;
use std::path::Path;
use std::time::Duration;

use anyhow::Result;
use steadfast_stack::client::Client;
use steadfast_stack::protocol::{
    Answer, CreateRamDisk, NameRequest, NewMount, NewName, RefusalKind, Request,
};
use steadfast_vfs::size;

use super::cli::{HostCommand, HostVerb};
use super::{client, said, show};
use crate::mount::Ending;
use crate::{CommandEnd, Usage, terminal};

/// How long the host may take to close everything once it has answered.
const ENDING_MAX: Duration = Duration::from_secs(60);

/// Does what was asked.
pub fn host(command: &HostCommand, out: &mut dyn Write) -> Result<CommandEnd> {
    let request = match &command.what {
        HostVerb::Status { .. } => Request::Status,
        HostVerb::AddDevice { name, path, volatile } => Request::AddDevice(NewName {
            name: name.clone(),
            target: std::path::absolute(path)?.display().to_string(),
            volatile: *volatile,
        }),
        HostVerb::RemoveDevice { name } => Request::RemoveDevice(NameRequest::of(name)),
        HostVerb::CreateRamdisk { name, size } => {
            let bytes = size::parse(size).map_err(|e| Usage(format!("{size}: {e}")))?;
            Request::CreateRamDisk(CreateRamDisk { name: name.clone(), bytes })
        }
        HostVerb::DeleteRamdisk { name } => Request::DeleteRamDisk(NameRequest::of(name)),
        HostVerb::Alias { name, target } => Request::AddAlias(NewName {
            name: name.clone(),
            target: target.clone(),
            volatile: false,
        }),
        HostVerb::Mount { name, at, options, journal } => Request::Mount(NewMount {
            name: name.clone(),
            at: at.as_deref().map(std::path::absolute).transpose()?,
            options: options.clone(),
            journal: journal.as_ref().map(|journal| whole(journal)).transpose()?,
        }),
        HostVerb::Umount { name } => Request::Umount(NameRequest { name: whole(name)? }),
        HostVerb::Sync => Request::Sync,
        HostVerb::Stop => Request::Stop,
    };
    let client = client(command.socket.as_deref())?;
    let process = match command.what {
        HostVerb::Stop => call(&client, &Request::Status)?.stack.map(|stack| Ending::of(stack.pid)),
        _ => None,
    };
    let answer = match &command.what {
        HostVerb::Umount { name } => umount(&client, name, &request)?,
        _ => call(&client, &request)?,
    };
    match (&command.what, &answer.stack) {
        (HostVerb::Status { json }, Some(stack)) => show::stack(stack, *json, out),
        (HostVerb::Stop, _) => {
            if let Some(process) = process {
                process.wait(ENDING_MAX);
            }
            Ok(CommandEnd::Good)
        }
        _ => Ok(CommandEnd::Good),
    }
}

/// By the name of a mount, or by a folder: one here may be named without a slash.
fn umount(client: &Client, name: &str, request: &Request) -> Result<Answer> {
    match client.call(request) {
        Err(refused) if refused.kind == RefusalKind::NotFound && Path::new(name).is_dir() => {
            let name = std::path::absolute(name)?.display().to_string();
            call(client, &Request::Umount(NameRequest { name }))
        }
        answer => answer.map_err(said),
    }
}

/// A path as it is from any folder; a name as it is.
fn whole(word: &str) -> Result<String> {
    Ok(match word.contains('/') {
        true => std::path::absolute(word)?.display().to_string(),
        false => word.to_owned(),
    })
}

/// Asks, and prints what there is to say beside the answer.
pub fn call(client: &Client, request: &Request) -> Result<Answer> {
    let answer = client.call(request).map_err(said)?;
    answer.notes.iter().for_each(|note| terminal::note(&format!("note: {note}")));
    Ok(answer)
}
