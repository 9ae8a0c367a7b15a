//! The conformance suite of block devices: sources, models, filters and volumes run it.
//!
//! A test gives [`run`] a way to make the device, in real time or inside a simulation; each case
//! gets a fresh one. All that differ from the promises in the crate's text are reported together:
//!
//! ```no_run
//! # use std::sync::Arc;
//! # fn test(make: fn() -> Arc<dyn steadfast_block::BlockDevice>) {
//! steadfast_block::conformance::run(&make); // threads, wall time
//! steadfast_runtime::Sim::new(1).run(move || steadfast_block::conformance::run(&make)).unwrap();
//! # }
//! ```
//!
//! The device must have at least [`MIN_BLOCKS`] blocks. Its contents are overwritten (a read-only
//! device is only read). The suite tests only what [`DeviceInfo`] states: power cuts and medium
//! errors are tested where they are made.

mod concurrent;
mod memory;
mod refusals;
mod single;
#[cfg(test)]
mod tests;

use std::fmt;
use std::sync::Arc;

use crate::{BlockDevice, DeviceInfo, Payload, pattern};

/// Fewest logical blocks of a device that the suite accepts.
pub const MIN_BLOCKS: u64 = 128;

/// Most bytes at the start of the device that a case works on.
const AREA_BYTES_MAX: u64 = 4 << 20;

/// A case of the suite that the device does not satisfy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// The case's name.
    pub case: &'static str,
    /// The device's name and what it is.
    pub device: String,
    /// What was expected and what came.
    pub what: String,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, case '{}': {}", self.device, self.case, self.what)
    }
}

type Device = Arc<dyn BlockDevice>;
/// What a case found: nothing, or what is wrong.
type Verdict = Result<(), String>;

struct Case {
    name: &'static str,
    /// Whether it writes, and so runs only on devices that may be written.
    writes: bool,
    run: fn(&Device, &DeviceInfo) -> Verdict,
}

const fn reads(name: &'static str, run: fn(&Device, &DeviceInfo) -> Verdict) -> Case {
    Case { name, writes: false, run }
}

const fn writes(name: &'static str, run: fn(&Device, &DeviceInfo) -> Verdict) -> Case {
    Case { name, writes: true, run }
}

const CASES: &[Case] = &[
    reads("the device's own description is sane", single::description),
    reads("contents stay the same while nobody writes", single::stable),
    reads("bad reads are refused", refusals::reads),
    reads("a read-only device refuses changes", refusals::read_only),
    reads("a flush completes", single::flush_alone),
    reads("hooks are called once, before or after the answer", concurrent::hooks),
    writes("bad writes and discards are refused without effect", refusals::changes),
    writes("a refusal is not sticky", refusals::not_sticky),
    writes("a read sees the write before it and nothing beside it", single::read_after_write),
    writes("a read into the caller's memory is the same read", single::into_memory),
    writes("the first and the last block can be used", single::ends),
    writes("a payload of several parts is written in order", single::parts),
    writes("large requests are done whole", single::large),
    writes("FUA writes and flushes complete and lose nothing", single::durable),
    writes("a discarded range reads as zeros or as before", single::discard),
    writes("many requests in flight from one task", concurrent::queue),
    writes("many tasks, each with its own range", concurrent::tasks),
    writes("overlapping writes leave one or the other in each block", concurrent::overlap),
    writes("a request goes on when its completion is dropped", concurrent::dropped),
    writes("direct memory and blocks show the same bytes", memory::same_bytes),
];

/// Runs every case on a device of its own and returns the failures, in the order of the cases.
pub fn failures(make: &dyn Fn() -> Arc<dyn BlockDevice>) -> Vec<Failure> {
    let mut failures = Vec::new();
    for case in CASES {
        let device = make();
        let info = device.info();
        let blocks = info.size / u64::from(info.logical_block.max(1));
        let verdict = if blocks < MIN_BLOCKS {
            Err(format!("has {blocks} blocks, the suite needs {MIN_BLOCKS}"))
        } else if case.writes && info.read_only {
            Ok(())
        } else {
            (case.run)(&device, &info)
        };
        if let Err(what) = verdict {
            let device = format!("{} ({})", info.name, info.model);
            failures.push(Failure { case: case.name, device, what });
        }
    }
    failures
}

/// Runs every case; for tests.
///
/// # Panics
/// If a case fails, with all failures in the message.
#[track_caller]
pub fn run(make: &dyn Fn() -> Arc<dyn BlockDevice>) {
    let failures = failures(make);
    if !failures.is_empty() {
        let text: Vec<String> = failures.iter().map(|f| format!("\n  {f}")).collect();
        panic!("{} of {} conformance cases failed:{}", failures.len(), CASES.len(), text.concat());
    }
}

/// The logical block in bytes.
fn block(info: &DeviceInfo) -> u64 {
    u64::from(info.logical_block)
}

/// Blocks at the start of the device that cases work on.
fn area_blocks(info: &DeviceInfo) -> u64 {
    info.size.min(AREA_BYTES_MAX) / block(info)
}

/// Bytes for `[offset, offset + len)` that say who wrote them (`tag`) and where.
fn data(tag: u64, offset: u64, len: u64) -> Vec<u8> {
    let mut out = vec![0; len as usize];
    pattern::fill(tag, offset, &mut out);
    out
}

fn write(device: &Device, offset: u64, data: &[u8]) -> Verdict {
    device.write(offset, data.to_vec().into()).map_err(|e| format!("a good write failed: {e}"))
}

/// Reads, and checks that the answer has the length asked for.
fn read(device: &Device, offset: u64, len: u64) -> Result<Vec<u8>, String> {
    let got = device.read(offset, len).map_err(|e| format!("a good read failed: {e}"))?;
    if got.len() as u64 != len {
        return Err(format!("a read of {len} bytes at {offset} returned {}", got.len()));
    }
    Ok(got.to_vec())
}

/// Reads and compares; says where the first difference is.
fn expect(device: &Device, offset: u64, want: &[u8], when: &str) -> Verdict {
    same(&read(device, offset, want.len() as u64)?, want, offset, when)
}

fn same(got: &[u8], want: &[u8], offset: u64, when: &str) -> Verdict {
    match got.iter().zip(want).position(|(g, w)| g != w) {
        None if got.len() == want.len() => Ok(()),
        None => Err(format!("{when}: {} bytes instead of {}", got.len(), want.len())),
        Some(at) => Err(format!(
            "{when}: byte {} is {:#04x} instead of {:#04x}",
            offset + at as u64,
            got[at],
            want[at]
        )),
    }
}

/// A payload cut at the given places.
fn in_parts(data: &[u8], cuts: &[usize]) -> Payload {
    let bytes = bytes::Bytes::copy_from_slice(data);
    let mut payload = Payload::new();
    let mut from = 0;
    for to in cuts.iter().copied().chain([data.len()]) {
        payload.push(bytes.slice(from..to));
        from = to;
    }
    payload
}
