//! Benchmark engines, on any file system and device: IOzone, fio, dd, hdparm.
//!
//! [`iozone`] runs IOzone's tests, and [`fio`] fio's job files, over an `Arc<dyn FileSystem>` with
//! tasks of [`steadfast_runtime`], so the same engine measures the host's file systems in real time
//! and a Steadfast stack in virtual time. Nothing here prints: results are values, reports are
//! strings.

mod calls;
mod cpu;
pub mod dd;
pub mod distribution;
pub mod fio;
pub mod hdparm;
pub mod iozone;
pub mod places;

pub(crate) use cpu::cpu_since;
pub use cpu::{TaskUse, cpu_used};

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
