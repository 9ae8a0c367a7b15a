//! `--client`: the program is a server, and a command that drives it prints what is acknowledged.

use std::time::Duration;

use clap::Args;

use super::setup::seconds;
use crate::Usage;

/// Who drives a server.
#[derive(Debug, Args)]
pub struct ClientArgs {
    /// Shell command that drives the program, a server: what the command prints is acknowledged,
    /// and its end is that of the run
    #[arg(long, value_name = "CMD")]
    pub client: Option<String>,
    /// Shell command that is run again and again until it ends with status 0: then the server is
    /// ready, and the client is begun [default: at once]
    #[arg(long, value_name = "CMD", requires = "client")]
    pub ready: Option<String>,
    /// Seconds within which the server must be ready
    #[arg(long, value_name = "SECONDS", default_value_t = 60.0, requires = "ready")]
    pub ready_limit: f64,
    /// Seconds after which a client is ended
    #[arg(long, value_name = "SECONDS", default_value_t = 600.0, requires = "client")]
    pub client_limit: f64,
}

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

impl ClientArgs {
    /// What was asked for; `None`: the program is no server.
    pub fn plan(&self) -> Result<Option<ClientPlan>, Usage> {
        let Some(client) = &self.client else { return Ok(None) };
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
        let ready_limit = limit("--ready-limit", self.ready_limit)?;
        let ready = self
            .ready
            .as_ref()
            .map(|ready| Ok(ReadyPlan { command: command("--ready", ready)?, limit: ready_limit }));
        Ok(Some(ClientPlan {
            command: command("--client", client)?,
            limit: limit("--client-limit", self.client_limit)?,
            ready: ready.transpose()?,
        }))
    }
}
