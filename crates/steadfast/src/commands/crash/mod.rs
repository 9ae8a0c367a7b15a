//! `steadfast crash`: programs under power cuts.

pub mod cli;
mod devices;
mod kernel;
mod own;
mod program;
mod report;
mod run;
mod setup;
mod show;

pub use run::run;
pub use show::show;
