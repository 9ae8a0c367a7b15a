//! Benchmark engines: IOzone's throughput mode, on any file system.
//!
//! [`iozone`] runs IOzone's tests over an `Arc<dyn FileSystem>` with tasks of
//! [`steadfast_runtime`], so the same engine measures the host's file systems in real time and a
//! Steadfast stack in virtual time. Nothing here prints: results are values, reports are strings.

pub mod iozone;
