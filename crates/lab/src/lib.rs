//! A scenario in TOML: devices, file system, workload, variants; tables and reports out.

pub mod devices;
pub mod driver;
mod error;
pub mod namespace;
pub mod report;
pub mod results;
pub mod run;
pub mod scenario;
pub mod sensitivity;
pub mod stack;
pub mod table;
mod volumes;
mod wrap;

pub use error::{LabError, OptionError, OptionsError, ScenarioError, VariantError};
pub use run::{Recordings, RunOptions, Watch, check, run, run_seeds};
pub use steadfast_vfs::size;

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
