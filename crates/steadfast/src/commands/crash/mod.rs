//! `steadfast crash`: programs under power cuts.

pub mod cli;
mod devices;
mod kernel;
mod lab;
mod own;
mod program;
mod report;
mod run;
mod setup;
mod show;
mod story;

pub use run::run;
pub use show::show;
