//! `steadfast trace`.

pub mod cli;
mod elsewhere;
mod import;
mod record;
mod replay;
mod replay_folder;
mod show;

use std::io::Write;
use std::path::Path;

use anyhow::Result;
use steadfast_trace::TraceError;

use crate::{CommandEnd, Usage};
use cli::TraceCommand;
pub use record::{RECORDING, is_killed};
pub use replay::{in_folder, peak_memory};

/// Runs one of the commands.
pub fn run(command: &TraceCommand, out: &mut dyn Write) -> Result<CommandEnd> {
    match command {
        TraceCommand::Record(args) => record::run(args),
        TraceCommand::Import(args) => import::run(args, out),
        TraceCommand::Show(args) => show::run(args, out),
        TraceCommand::Replay(args) => replay::run(args, out),
    }
}

/// What is wrong with a trace that was named.
pub fn wrong(file: &Path) -> impl Fn(TraceError) -> Usage {
    move |e| Usage(format!("{}: {e}", file.display()))
}
