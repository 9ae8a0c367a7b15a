//! Why a stack could not be opened.

use std::fmt;

use steadfast_block::BlockError;
use steadfast_devices::filter::NamespaceError;
use steadfast_devices::model::ModelError;
use steadfast_devices::source::OpenError;
use steadfast_ext4::Ext4Error;
use steadfast_runtime::SimError;
use steadfast_volume::VolumeError;

/// Why a stack could not be opened.
#[derive(Debug, thiserror::Error)]
pub enum SetupError {
    /// A device failed.
    #[error(transparent)]
    Block(#[from] BlockError),
    /// A model cannot be so, or hold that.
    #[error(transparent)]
    Model(#[from] ModelError),
    /// A namespace cannot be made or opened.
    #[error(transparent)]
    Namespace(#[from] NamespaceError),
    /// What is found of namespaces on a range of memory contradicts itself.
    #[error("{name} uses the range as it is")]
    Namespaces {
        /// The range, with what stands before it then.
        name: String,
        /// What was found.
        source: NamespaceError,
    },
    /// The simulation cannot go on.
    #[error(transparent)]
    Simulation(#[from] SimError),
    /// A file or device cannot be opened.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// What a path names is not what it is said to be, with what to do.
    #[error("{0}")]
    Refused(String),
    /// A volume cannot be made or used.
    #[error(transparent)]
    Volume(#[from] VolumeError),
    /// A volume was not found after a cut.
    #[error("volume {name}: {}", missing(.why))]
    VolumeMissing {
        /// The volume's name.
        name: String,
        /// Why it could not be assembled, if its members are there.
        why: Option<VolumeError>,
    },
    /// What was done is done, but not on all legs of a mirror.
    #[error("volume '{volume}': leg {leg} failed: {error}")]
    LegFailed {
        /// The volume's name.
        volume: String,
        /// The leg's name.
        leg: String,
        /// What it reported.
        error: String,
    },
    /// The file system cannot be made or mounted.
    #[error(transparent)]
    Ext4(#[from] Ext4Error),
    /// It cannot be unmounted.
    #[error("unmounting: {0}")]
    Unmount(Ext4Error),
    /// mkfs or mount options that are none.
    #[error(transparent)]
    Options(#[from] OptionsError),
    /// A device that is a path, where only models can be.
    #[error("device '{name}' is a path of this machine: {why}")]
    Path {
        /// The device's name.
        name: String,
        /// What cannot be.
        why: &'static str,
    },
    /// A name that stands for no device.
    #[error("no device '{name}'; there are {}", known.join(", "))]
    NoDevice {
        /// The name.
        name: String,
        /// Those of all devices and volumes.
        known: Vec<String>,
    },
}

fn missing(why: &Option<VolumeError>) -> String {
    why.as_ref().map_or("its members are not there".into(), ToString::to_string)
}

/// mkfs or mount options that cannot be taken: each with what is wrong with it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OptionsError(pub(crate) Vec<String>);

impl fmt::Display for OptionsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.join("; "))
    }
}

impl std::error::Error for OptionsError {}
