//! Why a scenario could not be run.

use steadfast_devices::model::ModelError;
use steadfast_setup::SetupError;
use steadfast_setup::form::WrongFile;

use crate::scenario::LineError;

mod variant;

pub(crate) use variant::Result;
pub use variant::VariantError;

/// Cuts of a variant, at most.
pub(crate) const CUTS_MAX: u64 = 1_000_000;

/// Why a scenario could not be run.
#[derive(Debug, thiserror::Error)]
pub enum LabError {
    /// No scenario of that name and no readable file.
    #[error(
        "'{name}' is no scenario of this program and cannot be read as a file: {reason}; {help}"
    )]
    NotFound {
        /// What was asked for.
        name: String,
        /// Why the file cannot be read.
        reason: String,
        /// The name that was meant, or all names.
        help: String,
    },
    /// A catalogue has no such stack.
    #[error("there is no stack `{name}`; the stacks are {}", known.join(", "))]
    NoStack {
        /// What was asked for.
        name: String,
        /// Those that there are.
        known: Vec<String>,
    },
    /// The scenario file is wrong.
    #[error("{0}")]
    File(Box<WrongFile>),
    /// The file is a setup's.
    #[error(
        "{0} is a setup, without a [workload] to run: mount --stack, dd, hdparm and iozone \
         --stack, and crash run --stack take it"
    )]
    NothingToRun(String),
    /// The scenario cannot be run as it was asked for.
    #[error("scenario {origin}: {why}")]
    Scenario {
        /// The scenario's name.
        origin: String,
        /// What is wrong, with the place.
        why: Box<ScenarioError>,
    },
    /// What was asked for beside the scenario cannot be.
    #[error("{option}: {why}")]
    Option {
        /// As the command line calls it.
        option: &'static str,
        /// What is wrong.
        why: Box<OptionError>,
    },
    /// A variant could not be built or run.
    #[error("variant '{variant}': {why}")]
    Variant {
        /// The variant's name.
        variant: String,
        /// What went wrong and what to do.
        why: Box<VariantError>,
    },
}

/// Why a scenario that was read cannot be run.
#[derive(Debug, thiserror::Error)]
pub enum ScenarioError {
    /// A command line of IOzone's.
    #[error(transparent)]
    Line(#[from] LineError),
    /// The benchmark's files are too large.
    #[error(
        "'{variant}': files of {bytes} bytes together do not fit on device '{device}' of {room} \
         bytes"
    )]
    FilesDoNotFit {
        /// The variant's name.
        variant: String,
        /// Of all files.
        bytes: u64,
        /// Its disk.
        device: String,
        /// Bytes of the disk.
        room: u64,
    },
    /// The files to be read are too large.
    #[error(
        "'{variant}': {needed} bytes of files have no room on half of device '{device}', {half} \
         bytes"
    )]
    NoRoomToRead {
        /// The variant's name.
        variant: String,
        /// Bytes of the files.
        needed: u64,
        /// Its disk.
        device: String,
        /// Half of its bytes.
        half: u64,
    },
    /// A model refuses its parameters at the size of the run.
    #[error("device '{device}', as large as this run has it: {why}")]
    Device {
        /// The device's name.
        device: String,
        /// What of them.
        why: ModelError,
    },
    /// A device is no model.
    #[error(
        "device '{0}' is a path of this machine, which has no virtual time: --real measures on it; \
         or mount it, or use it with dd, iozone or hdparm --stack --real-time"
    )]
    PathDevice(String),
    /// A device of this machine cannot be used.
    #[error(transparent)]
    Path(SetupError),
    /// In real time nothing is cut.
    #[error("--real: it runs nothing that is measured, and what is in real time is not cut")]
    NothingReal,
    /// A variant of several matrices names none of them.
    #[error("'{0}' has no configuration")]
    NoConfiguration(String),
    /// There is no workload.
    #[error("[workload] names nothing that is run")]
    NoWorkload,
    /// The peers have no command line of their own.
    #[error("there is no `peers_iozone`")]
    NoPeersLine,
    /// Nothing is measured in virtual time.
    #[error(
        "a sensitivity needs what is measured in virtual time: workload.iozone or \
         workload.read_under_write"
    )]
    NothingMeasured,
    /// Nothing is said to be unknown.
    #[error("--band: it has no [band] that says what is unknown (docs/lab.md)")]
    NoBand,
    /// What is run in real time is no case of a sweep.
    #[error("{0} cannot be swept: only what runs in virtual time is the same on every machine")]
    NoCases(&'static str),
    /// No seed to run it with.
    #[error("no seed")]
    NoSeed,
    /// No variant of that name.
    #[error("no variant '{name}'; there are: {known}")]
    NoVariant {
        /// What was asked for.
        name: String,
        /// All names.
        known: String,
    },
    /// A run in real time cannot be reproduced.
    #[error(
        "'{0}' is the kernel's: it runs in real time and does nothing twice; its findings are \
         shown when it runs"
    )]
    NotReproducible(String),
    /// The variant runs nothing whose power is cut.
    #[error("'{0}' runs nothing that is cut")]
    NothingCut(String),
    /// The control would be no other run.
    #[error("'{0}' has no honest device with a volatile cache: it has no such control")]
    NoControl(String),
    /// No cut of that number.
    #[error("there is no cut {number}: {cuts} are made, from 0 on")]
    NoCut {
        /// What was asked for.
        number: u64,
        /// How many there are.
        cuts: u64,
    },
}

/// Why an option beside the scenario cannot be.
#[derive(Debug, thiserror::Error)]
pub enum OptionError {
    /// More cuts than anybody can wait for.
    #[error("{0} cuts: it must be at most {CUTS_MAX}")]
    TooManyCuts(u64),
    /// The size is none for the benchmark.
    #[error(transparent)]
    Size(#[from] LineError),
    /// The experiment has no size.
    #[error("{0}")]
    NoSize(&'static str),
    /// Nothing of the experiment has that name.
    #[error("{0}")]
    Unknown(String),
    /// The scenario has no variants of the kernel's.
    #[error("it is for scenarios with `iozone` and variants of the kernel's beside it")]
    NoPeers,
    /// The kernel's file system is not known.
    #[error("'{0}'")]
    UnknownKernel(String),
    /// This machine cannot run it.
    #[error(transparent)]
    Peer(#[from] steadfast_peers::PeerError),
    /// A model refuses the size that the peers have.
    #[error("'{device}' at 1/{scale} of its size: {why}")]
    Device {
        /// The device's name.
        device: String,
        /// What its capacity is divided by.
        scale: u64,
        /// What is wrong then.
        why: ModelError,
    },
}

impl OptionError {
    /// Of this option.
    pub(crate) fn of(self, option: &'static str) -> LabError {
        LabError::Option { option, why: Box::new(self) }
    }
}

impl ScenarioError {
    /// Of this scenario.
    pub(crate) fn of(self, scenario: &crate::scenario::Scenario) -> LabError {
        LabError::Scenario { origin: scenario.name.clone(), why: Box::new(self) }
    }
}

impl VariantError {
    /// Of this variant.
    pub(crate) fn of(self, variant: &crate::scenario::Variant) -> LabError {
        LabError::Variant { variant: variant.name.clone(), why: Box::new(self) }
    }
}
