//! Long explorations as a sweep, for a night or for many machines: `cargo xtask soak`.

mod args;
mod error;
mod failures;
mod merge;
mod plan;
mod run;

use std::io::Write;
use std::process::ExitCode;

use clap::Parser;

use args::{Soak, SoakCommand};

fn main() -> ExitCode {
    let command = Soak::parse().command;
    let mut out = std::io::stdout().lock();
    let done = match &command {
        SoakCommand::Plan(args) => plan::plan(args, &mut out),
        SoakCommand::Run(args) => run::run(args, &mut out),
        SoakCommand::Merge(args) => merge::merge(args, &mut out),
        SoakCommand::Status(args) => merge::status(args, &mut out),
        SoakCommand::Case(args) => run::case(args, &mut out),
    };
    match done {
        Ok(good) => ExitCode::from(u8::from(!good)),
        Err(e) => {
            note(&format!("soak: {e}"));
            ExitCode::from(e.status())
        }
    }
}

/// Says something beside the output.
fn note(what: &str) {
    // OK to ignore: nobody reads it.
    drop(writeln!(std::io::stderr(), "{what}"));
}
