//! Experiments on storage: a scenario in TOML is run, and becomes tables and reports.
//!
//! * [`scenario`]: the file: devices, volumes, file system, workload, and the variants to compare;
//! * [`calibrate`]: a model of a device that is there, measured and judged;
//! * [`compare`]: a recorded program on a catalogue of stacks;
//! * [`parts`]: models of parts beside their published figures;
//! * [`devices`]: the kinds of devices that a scenario can name;
//! * [`mod@run`]: runs every variant and cuts its power; [`check`] finds mistakes before;
//! * [`results`]: the figures, as JSON has them; [`table`] and [`report`] show them;
//! * [`answer`]: what of them is said first, in sentences;
//! * [`sensitivity`]: changes each parameter alone, and shows which figures move;
//! * [`validate`]: the disk model against drives that were measured.
//!
//! docs/lab.md describes scenario files and the JSON.

pub mod answer;
pub mod calibrate;
pub mod compare;
pub mod devices;
mod error;
pub mod parts;
pub mod report;
pub mod results;
pub mod run;
pub mod scenario;
pub mod sensitivity;
pub mod table;
pub mod validate;
mod wrap;

pub(crate) use error::Result;
pub use error::{LabError, OptionError, ScenarioError, VariantError};
#[cfg(feature = "planted-bugs")]
pub use run::cut_until;
pub use run::{CaseEnd, Cases, JobResult, Recordings, RunOptions, Watch, check, run, run_seeds};
pub use steadfast_vfs::size;

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
