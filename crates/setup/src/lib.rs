//! What a storage stack is, and the one place where it is opened.
//!
//! * [`Setup`]: devices, volumes, request scheduler, file system and machine, also read from a file
//!   ([`Setup::parse`]);
//! * [`Topology`]: its devices and volumes by name;
//! * [`Devices`] and [`Blocks`]: those of its disk and its journal, built and opened; over each
//!   device the caller may put a filter, such as a recording;
//! * [`form`] and [`tables`]: how descriptions are read from a file, with all mistakes at once;
//! * [`Stack`]: a setup that is up: its file system is made when it is first asked for, and mounted
//!   again after it was unmounted.
//!
//! Whoever measures, cuts or mounts a stack opens it here, so that all of them mean the same by one
//! description: the machine's memory and processors, what a driver costs, and which times of access
//! are kept.

mod description;
mod devices;
mod driver;
mod error;
mod file_system;
pub mod form;
mod machine;
pub mod mirrors;
mod namespace;
mod new_volume;
pub mod options;
pub mod path;
mod presets;
mod setup_file;
mod stack;
pub mod tables;
mod volumes;

pub use description::{DeviceSource, DeviceSpec, Setup, Topology, VolumeSpec};
pub use devices::{Blocks, Devices, Overwrite, contents_of, forget_used};
pub use driver::{Driver, DriverCost};
pub use error::{OptionsError, SetupError};
pub use machine::Machine;
pub use namespace::Namespace;
pub use new_volume::NewVolume;
pub use presets::PRESETS;
pub use stack::{NamedDevices, Stack};
pub use volumes::{OpenVolumes, Volumes, peer_setup};

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
