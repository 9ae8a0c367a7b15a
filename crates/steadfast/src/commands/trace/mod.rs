//! `steadfast trace`.

pub mod cli;
mod elsewhere;
mod import;
mod record;
mod replay;
mod show;

use std::io::Write;
use std::path::Path;

use anyhow::Result;
use steadfast_trace::TraceError;

use crate::{CommandEnd, Usage};
use cli::Trace;
pub use replay::peak_memory;

/// Runs one of the commands.
pub fn run(command: &Trace, out: &mut dyn Write) -> Result<CommandEnd> {
    match command {
        Trace::Record(args) => record::run(args),
        Trace::Import(args) => import::run(args, out),
        Trace::Show(args) => show::run(args, out),
        Trace::Replay(args) => replay::run(args, out),
    }
}

/// What is wrong with a trace that was named.
pub fn wrong(file: &Path) -> impl Fn(TraceError) -> Usage {
    move |e| Usage(format!("{}: {e}", file.display()))
}
