//! Devices that hold bytes.

pub mod file;
pub mod ram;

pub use file::{Direct, FileDevice, FileOptions, OpenError};
pub use ram::Ram;
