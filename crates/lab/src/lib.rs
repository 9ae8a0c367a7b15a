//! Experiments on storage: a scenario in TOML is run, and becomes tables and reports.
//!
//! * [`scenario`]: the file: devices, volumes, file system, workload, and the variants to compare;
//! * [`stack`], [`devices`], `driver`, [`namespace`]: a variant, built of what it names;
//! * [`mod@run`]: runs every variant and cuts its power; [`check`] finds mistakes before;
//! * [`results`]: the figures, as JSON has them; [`table`] and [`report`] show them;
//! * [`sensitivity`]: changes each parameter alone, and shows which figures move.
//!
//! docs/lab.md describes scenario files and the JSON.

pub mod devices;
mod driver;
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
#[cfg(feature = "planted-bugs")]
pub use run::cut_until;
pub use run::{Recordings, RunOptions, Watch, check, run, run_seeds};
pub use steadfast_vfs::size;

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
