//! `--client`: the program is a server, and a command that drives it prints what is acknowledged.

use std::time::Duration;

use super::budget::seconds;
use super::cli::ClientArgs;
use crate::Usage;

/// What drives a server.
#[derive(Debug, Clone)]
pub struct ClientPlan {
    /// For `sh -c`.
    pub command: String,
    /// After so long it is ended.
    pub limit: Duration,
    /// What says that the server is ready.
    pub ready: Option<ReadyPlan>,
}

/// What says that a server is ready.
#[derive(Debug, Clone)]
pub struct ReadyPlan {
    /// For `sh -c`.
    pub command: String,
    /// After so long the server is given up.
    pub limit: Duration,
}

impl ClientPlan {
    /// What was asked for; `None`: the program is no server.
    pub fn of(args: &ClientArgs) -> Result<Option<ClientPlan>, Usage> {
        let Some(client) = &args.client else { return Ok(None) };
        let command = |option: &str, command: &String| {
            if command.trim().is_empty() {
                usage!("{option}: the command is empty");
            }
            Ok(command.clone())
        };
        let limit = |option: &str, value: f64| match seconds(option, value)? {
            Duration::ZERO => usage!("{option} 0: there would be no time for it"),
            limit => Ok(limit),
        };
        let ready_limit = limit("--ready-limit", args.ready_limit)?;
        let ready = args
            .ready
            .as_ref()
            .map(|ready| Ok(ReadyPlan { command: command("--ready", ready)?, limit: ready_limit }));
        Ok(Some(ClientPlan {
            command: command("--client", client)?,
            limit: limit("--client-limit", args.client_limit)?,
            ready: ready.transpose()?,
        }))
    }
}
