//! `steadfast serve`: the stack host as a process; `steadfast host`: asking it.

pub mod ask;
pub mod cli;
mod mounts;
mod run;
pub mod show;

use std::path::Path;

use anyhow::{Result, anyhow};
use steadfast_stack::client::Client;
use steadfast_stack::protocol::{Refusal, RefusalKind, Request};

pub use ask::host;
pub use run::serve;

use crate::mount::place;
use crate::{Unsupported, Usage};

/// A running host.
///
/// # Errors
/// Nobody answers, or this user may not ask.
pub fn client(socket: Option<&Path>) -> Result<Client> {
    let socket = socket.map_or_else(place::host_socket, Path::to_path_buf);
    Client::connect(&socket).map_err(said)
}

/// What a host refused, as an error with its exit status.
pub fn said(refusal: Refusal) -> anyhow::Error {
    match refusal.kind {
        RefusalKind::Unsupported => Unsupported(refusal.error).into(),
        RefusalKind::Failed => anyhow!(refusal.error),
        _ => Usage(refusal.error).into(),
    }
}

/// Whether the usual host runs and has a volume of this name.
pub fn has_volume(name: &str) -> bool {
    let answer = client(None).ok().and_then(|client| client.call(&Request::Status).ok());
    answer.and_then(|answer| answer.stack?.into_volume(name)).is_some()
}
