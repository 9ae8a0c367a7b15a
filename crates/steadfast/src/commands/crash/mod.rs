//! `steadfast crash`: programs under power cuts.

pub mod cli;
mod corpus;
mod devices;
mod kernel;
mod lab;
mod media;
mod own;
mod program;
mod report;
mod run;
mod setup;
mod show;
mod stops;
mod story;

pub use corpus::corpus;
pub use media::media;
pub use run::run;
pub use show::show;
