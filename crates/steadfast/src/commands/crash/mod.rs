//! `steadfast crash`: programs under power cuts.

mod budget;
mod by_calls;
mod ci;
pub mod cli;
mod client;
mod control;
mod devices;
pub mod divided;
mod ended;
mod explored;
mod failures;
mod file_systems;
mod group;
mod joined;
mod judge_files;
mod judge_namespaces;
mod judged;
mod kernel;
mod lab;
mod models;
mod on_stack;
mod output;
mod own;
mod prepare;
mod printed;
mod program;
mod reactions;
mod report;
mod run;
mod saved;
mod served;
mod server;
mod setup;
mod show;
mod show_command;
mod show_model;
mod stacks;
pub mod stops;
mod watch;

use std::io::Write;

use anyhow::Result;

use crate::CommandEnd;
use crate::terminal::UntilClosed;
use cli::Crash;

/// Runs one of the commands. What is found is an outcome; an error says nothing of what was to be
/// judged, so it is never of the status of a finding (1).
pub fn command(command: &Crash, out: &mut dyn Write) -> Result<CommandEnd> {
    let outcome = match command {
        Crash::Run(args) => run::run(args, out),
        Crash::Show(args) => show::show(args, out),
    };
    let printed = outcome.and_then(|outcome| {
        UntilClosed::new(out).flush()?;
        Ok(outcome)
    });
    printed.map_err(|e| failures::not_found(e, ""))
}
