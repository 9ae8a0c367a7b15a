//! Devices that hold bytes.

pub mod file;
mod made;
pub mod pmem;
pub mod ram;

pub use file::{Direct, FileDevice, FileOptions, Holder, OpenError, descriptor, locked_by};
pub use made::NewFile;
pub use pmem::{Pmem, PmemOptions, Promise};
pub use ram::Ram;
