//! The block-device interface, its requests, and the conformance suite every device runs.
//!
//! A [`BlockDevice`] takes [`Request`]s and answers each with a [`Completion`]; many may be in
//! flight at once. [`DeviceInfo`] says what the device is and what it promises. Filters take a
//! device and are one.
//!
//! # What every device promises
//!
//! 1. Offsets and lengths are bytes, multiples of [`DeviceInfo::logical_block`], within
//!    [`DeviceInfo::size`]; anything else is refused without effect.
//! 2. Requests in flight at the same time may be done in any order. A caller that needs an order
//!    waits. Two overlapping requests in flight leave one or the other result in each block.
//! 3. A read that is submitted after a write has completed sees that write.
//! 4. A flush that has completed makes every write that *completed before the flush was
//!    submitted* survive a power cut. So does the completion of a write with `fua`, for itself.
//!    On a device without [`DeviceInfo::volatile_cache`], completion alone is enough.
//! 5. At a power cut a block of [`DeviceInfo::atomic_write`] bytes is old or new, never mixed.
//!    Writes that were not yet promised may be there or not, in any combination.
//! 6. After a failed write or flush nothing is known of the writes it covered. Callers treat it
//!    as final; a later success does not take it back.

mod blank;
mod completion;
pub mod conformance;
mod device;
mod error;
mod info;
mod memory;
pub mod pattern;
pub mod planted;
mod request;
pub mod signatures;
mod zeros;
pub use steadfast_runtime::rng;

pub use blank::{first_data, first_data_in};
pub use completion::{Completer, Completion};
pub use device::{BlockDevice, check};
pub use error::{BlockError, Result};
pub use info::{DeviceInfo, Persistence};
pub use memory::DirectMemory;
pub use request::{Payload, Request};
pub use zeros::{is_zero, zeros};

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
