//! Benchmark engines, on any file system: IOzone's throughput mode, and single operations.
//!
//! [`iozone`] runs IOzone's tests over an `Arc<dyn FileSystem>` with tasks of
//! [`steadfast_runtime`], so the same engine measures the host's file systems in real time and a
//! Steadfast stack in virtual time. [`operations`] times names, attributes and small durable
//! writes, [`durable`] small durable calls of several tasks beside the kernel's. Nothing here
//! prints: results are values, reports are strings.

pub mod dd;
pub mod distribution;
pub mod durable;
pub mod hdparm;
pub mod iozone;
pub mod operations;

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
