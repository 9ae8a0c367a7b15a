//! Models of real hardware.
//!
//! A model is a [`BlockDevice`] with its contents in a [`Store`]. It computes the hardware's
//! service time from data-sheet figures, and completes a request at that time: in virtual time
//! exactly, in real time as soon as the machine wakes up after it. Each module names the documents
//! of its figures. Parameter names contain their unit; rates are decimal (1 MB = 1,000,000 bytes),
//! buffer sizes binary.
//!
//! A write changes the contents when it *completes*. Which completed but not durable writes survive
//! a power cut is decided by the recorder of requests and completions. A model gives the recorder
//! only one more fact: whether its flush can be trusted ([`Model::promise`]).

mod agenda;
mod buffer;
pub mod emmc;
mod engine;
pub mod hdd;
mod kinds;
pub mod nvdimm;
pub mod nvram;
pub mod parameters;
pub mod ssd;
#[cfg(test)]
mod testbench;
mod units;

use steadfast_block::BlockDevice;

use crate::store::Store;
use parameters::{ParameterValue, choice};

pub use emmc::{Emmc, EmmcParams};
pub use hdd::{Hdd, HddParams};
pub use kinds::{KINDS, ModelParams};
pub use nvdimm::{Nvdimm, NvdimmParams};
pub use nvram::{Nvram, NvramParams};
pub use ssd::{Ssd, SsdParams};

choice! {
    /// The state of a battery, or of supercapacitors, that keeps memory or lets it save itself.
    pub enum Battery {
        /// Charged and healthy.
        #[default]
        Good = "good",
        /// Not yet charged: it cannot be relied on.
        Charging = "charging",
        /// Broken.
        Failed = "failed",
        /// Not there, or switched off.
        Disabled = "disabled",
    }
}

impl Battery {
    fn in_words(self) -> &'static str {
        match self {
            Battery::Good => "is good",
            Battery::Charging => "is charging",
            Battery::Failed => "has failed",
            Battery::Disabled => "is disabled",
        }
    }
}

impl ParameterValue for [Battery; 2] {}

/// Why a model could not be made.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum ModelError {
    /// A parameter makes no sense.
    #[error("{model} parameter {name} = {value}: {why}")]
    Parameter {
        /// The kind of device.
        model: &'static str,
        /// The field's name.
        name: &'static str,
        /// Its value.
        value: String,
        /// What it must be.
        why: String,
    },
    /// The contents given are not of the device's size.
    #[error("{name}: contents of {got} bytes for a device of {size} bytes")]
    ContentsSize {
        /// Device name.
        name: String,
        /// Bytes given.
        got: u64,
        /// The device's size in bytes.
        size: u64,
    },
}

/// Replaces contents by others, which must be of the same size.
pub(crate) fn exchange(name: &str, contents: &mut Store, new: Store) -> Result<(), ModelError> {
    let (got, size) = (new.size(), contents.size());
    if got != size {
        return Err(ModelError::ContentsSize { name: name.to_owned(), got, size });
    }
    *contents = new;
    Ok(())
}

/// Whether a device keeps its word about flush and FUA.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FlushBehaviour {
    /// A completed flush covers every write completed before it.
    Honest,
    /// Flush and FUA return at once and promise nothing: everything still in the device's
    /// volatile cache may be lost at a power cut.
    LyingFlush,
}

/// What every model offers beside its blocks.
pub trait Model: BlockDevice {
    /// The contents as they are now: every completed write, cheap to take.
    fn contents(&self) -> Store;

    /// Replaces the contents at once, taking no time: a disk prepared before.
    ///
    /// # Errors
    /// [`ModelError::ContentsSize`] if `contents` is not of the device's size.
    fn set_contents(&self, contents: Store) -> Result<(), ModelError>;

    /// Whether flush and FUA can be trusted.
    fn promise(&self) -> FlushBehaviour {
        FlushBehaviour::Honest
    }

    /// Whether it is memory, and what was stored survives without being written back: the caches
    /// of the processors are saved too (eADR).
    fn saves_caches(&self) -> bool {
        false
    }
}

#[cfg(test)]
mod tests;
