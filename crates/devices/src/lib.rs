//! Block devices: files, memory, models of real hardware, and filters over any of them.
//!
//! * [`source`]: devices that hold bytes: RAM, image files and block devices of the host.
//! * [`model`]: devices that also take the time that real hardware takes: disks, NVRAM cards,
//!   SSDs, eMMC. Their physics comes from data sheets named in each module.
//! * [`filter`]: devices over a device: statistics, a volatile cache, a record, injected faults.
//! * [`store`]: the sparse, cheaply copied contents that models and RAM devices keep.

mod checksum;
pub mod filter;
pub mod model;
pub mod source;
pub mod store;

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
