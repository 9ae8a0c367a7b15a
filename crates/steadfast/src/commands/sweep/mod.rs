//! `steadfast sweep`: many cases on many machines. What a sweep is, and what is verified of it, is
//! in the crate `sweep`; here are the kinds of cases and the engines.

mod crash_run;
mod engine;
mod error;
mod judge_inputs;
mod kind;
mod lab_cases;
mod lab_compare;
mod lab_run;
mod lab_sensitivity;
mod merge;
mod page;
mod parallel;
mod plan;
mod program;
mod run;
mod slurm;
mod status;
mod submit;

use std::io::Write;

use anyhow::Result;

use crate::CommandEnd;
use crate::cli::Sweep;

/// Does what is asked.
pub fn run(command: &Sweep, out: &mut dyn Write) -> Result<CommandEnd> {
    match command {
        Sweep::Plan(args) => plan::plan(args, out),
        Sweep::Run(args) => run::run(args, out),
        Sweep::Merge(args) => merge::merge(args, out),
        Sweep::Status(args) => status::status(args, out),
        Sweep::Submit(args) => submit::submit(args, out),
    }
}
