//! The disk model against drives that were measured: a trace is replayed, and its times are
//! compared with the drive's.
//!
//! A drive is a parameter file of DiskSim (`NAME.parv`, with the files that it names) or one of
//! ours (`NAME.toml`: the keys of a device of kind `hdd`), with `NAME.trace` beside it; each may be
//! compressed (`.zst`). DiskSim's validation sets are such files (Bucy, Schindler, Schlosser and
//! Ganger, "The DiskSim Simulation Environment, version 4.0", CMU-PDL-08-101, 2008).
//!
//! What is compared is the *demerit* of Ruemmler and Wilkes ("An introduction to disk drive
//! modeling", IEEE Computer, March 1994): the root mean square of the horizontal distance between
//! the two curves of the distribution of response times.

mod drive;
mod files;
mod keys;
mod picture;
mod replay;
mod seeks;
mod sheet;
mod syntax;
mod text;
mod trace;

use std::path::PathBuf;

use serde::Serialize;
use steadfast_devices::model::HddParams;
use steadfast_devices::model::parameters::Describe;
use steadfast_statistics::demerit;

pub use files::{Drive, drives};
pub use picture::svg;
pub use text::text;
pub use trace::TraceRequest;

/// What cannot be read, with its file.
#[derive(Debug, thiserror::Error)]
#[error("{}: {what}", .file.display())]
pub struct ValidateError {
    /// Which file or folder.
    pub file: PathBuf,
    /// What is wrong with it.
    pub what: String,
}

/// How far a model's times are from a drive's, in ms. `None`: there are none of the kind.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Demerits {
    /// Of all requests.
    pub all: Option<f64>,
    /// Of reads.
    pub reads: Option<f64>,
    /// Of writes.
    pub writes: Option<f64>,
}

/// Response times in ms, in the order of the requests.
#[derive(Debug, Clone, PartialEq)]
pub struct Times {
    /// Of each request, whether it is a write.
    pub writes: Vec<bool>,
    /// The drive's.
    pub drive: Vec<f64>,
    /// The model's.
    pub model: Vec<f64>,
}

impl Times {
    /// The two sides of the requests of a kind; `None`: of all.
    fn of(&self, writes: Option<bool>) -> (Vec<f64>, Vec<f64>) {
        let all = self.writes.iter().zip(self.drive.iter().zip(&self.model));
        let wanted = all.filter(|(kind, _)| writes.is_none_or(|writes| writes == **kind));
        wanted.map(|(_, (drive, model))| (*drive, *model)).unzip()
    }

    /// How far the two sides are from each other.
    pub fn demerits(&self) -> Demerits {
        let of = |writes| {
            let (drive, model) = self.of(writes);
            demerit(&drive, &model)
        };
        Demerits { all: of(None), reads: of(Some(false)), writes: of(Some(true)) }
    }
}

/// A drive's trace on the model.
#[derive(Debug, Clone)]
pub struct Validation {
    /// The drive's name.
    pub name: String,
    /// With the drive's own parameters.
    pub times: Times,
    /// With what a data sheet says of it; `None`: no curve has its three seek times.
    pub sheet: Option<Times>,
    /// DiskSim's demerit for the same trace, in ms, if it is published.
    pub disksim_ms: Option<f64>,
    /// Parameters of the drive that the model does not have.
    pub left_out: Vec<String>,
    /// Parameters that contradict each other.
    pub warnings: Vec<String>,
}

impl Validation {
    /// Whether the model is at most as far from the drive as DiskSim, both as the table shows
    /// them; `None`: that is not known.
    pub fn is_within_disksim(&self) -> Option<bool> {
        let ours = self.times.demerits().all?;
        Some((ours * 1e3).round() / 1e3 <= self.disksim_ms?)
    }
}

/// The drive as a setup file: `[device.NAME]` for scenarios, with what is not the default, and a
/// stack of it alone, so that it can be used as it is.
pub fn device(name: &str, p: &HddParams) -> String {
    let table = |p: &HddParams| toml::Table::try_from(p).unwrap_or_default();
    let usual = table(&HddParams::default());
    let mut own = table(p);
    own.retain(|key, value| usual.get(key) != Some(value));
    own.insert("kind".into(), "hdd".into());
    let within = |key: &str, value: toml::Value| toml::Table::from_iter([(key.to_owned(), value)]);
    let mut all = within("device", within(name, own.into()).into());
    all.insert("stack".into(), within("disk", name.into()).into());
    all.to_string()
}

/// Demerits of DiskSim in us: what `valid/runvalid` of DiskSim 4.0 says that each should be.
const DISKSIM: [(&str, u32); 10] = [
    ("atlas10k", 268),
    ("atlas_III", 378),
    ("barracuda", 349),
    ("cheetah4LP", 318),
    ("cheetah9LP", 107),
    ("dec_rz26", 340),
    ("hp_c2247a", 90),
    ("hp_c2490a", 254),
    ("hp_c3323a", 306),
    ("ibm18es", 135),
];

/// A set has about ten thousand requests; DiskSim's figure is not that of a part of one.
const WHOLE_SET: usize = 9000;

/// Replays a drive's trace on the model.
///
/// # Errors
/// The model has no such drive.
pub fn validate(drive: &Drive) -> Result<Validation, ValidateError> {
    let refused = |what: String| ValidateError { file: drive.file.clone(), what };
    let run = |p: &HddParams| replay::replay(p, &drive.requests).map_err(refused);
    let times = run(&drive.parameters)?;
    let sheet = run(&sheet::only(&drive.parameters)).ok();
    let is_whole = drive.requests.len() >= WHOLE_SET;
    let published = DISKSIM.iter().find(|(name, _)| is_whole && *name == drive.name);
    Ok(Validation {
        name: drive.name.clone(),
        times,
        sheet,
        disksim_ms: published.map(|(_, us)| f64::from(*us) / 1e3),
        left_out: drive.left_out.clone(),
        warnings: drive.parameters.warnings(),
    })
}
