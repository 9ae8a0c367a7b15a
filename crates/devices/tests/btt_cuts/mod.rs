//! Power cuts of a sector namespace: what each may leave, and whether that is what was promised.
//!
//! The memory below is recorded: each store, persist and fence. At a power cut a word of 8 bytes is
//! there or not unless its cache line was persisted and that waited for.

pub mod every;
pub mod some;

use std::sync::Arc;

use steadfast_block::BlockDevice;
use steadfast_block::planted::BugSwitch;
use steadfast_devices::filter::btt::planted::Bug;
use steadfast_devices::filter::btt::{self, Btt};
use steadfast_devices::source::Ram;
use steadfast_devices::store::Store;

/// The smallest of version 1.1.
pub const BYTES: u64 = (16 << 20) + 4096;

/// Labels of the notes before a request and after its answer; the detail is the request's number.
pub const BEGUN: u64 = 1;
pub const DONE: u64 = 2;

/// Something done to some sectors: a write of a version, or (version 0) a discard.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Op {
    pub sector: u64,
    pub count: u64,
    pub version: u8,
}

pub const fn write(sector: u64, version: u8) -> Op {
    Op { sector, count: 1, version }
}

/// An op, and the ticks of its notes; those of what has not happened are beyond every cut.
#[derive(Debug, Clone, Copy)]
pub struct Done {
    pub op: Op,
    pub begun: u64,
    pub done: u64,
}

/// What a sector may hold after a power cut.
pub fn allowed(ops: &[Done], sector: u64, cut: u64) -> Vec<u8> {
    let of = |done: &&Done| (done.op.sector..done.op.sector + done.op.count).contains(&sector);
    let begun: Vec<&Done> = ops.iter().filter(of).filter(|op| op.begun < cut).collect();
    // Covered: another one began when it was done, and is done.
    let covered = |op: &Done| begun.iter().any(|other| op.done < other.begun && other.done < cut);
    let mut versions: Vec<u8> =
        begun.iter().filter(|op| !covered(op)).map(|op| op.op.version).collect();
    if !begun.iter().any(|op| op.done < cut) {
        versions.push(0);
    }
    versions
}

/// Bytes of a sector; only three of its words differ from those of other versions, so that a power
/// cut has few different outcomes.
pub fn bytes(op: Op, sector: u64, len: usize) -> Vec<u8> {
    let mut bytes = vec![0; len];
    if op.version != 0 {
        for at in [0, len / 2 + 24, len - 8] {
            bytes[at..at + 8].fill(op.version);
            bytes[at] = sector as u8;
        }
    }
    bytes
}

/// Opens what a power cut has left.
pub fn open(device: &Arc<dyn BlockDevice>, planted: BugSwitch<Bug>) -> Result<Btt, String> {
    Btt::open_planted(device, planted).map_err(|error| error.to_string())
}

/// A formatted namespace.
pub fn made(sector: u32, nfree: u32) -> Store {
    let ram = Ram::new("pmem0", BYTES).persistent();
    let device: Arc<dyn BlockDevice> = Arc::new(ram.clone());
    let options = btt::Options { sector, nfree, ..btt::Options::default() };
    btt::format(&device, options).unwrap();
    ram.store()
}

/// Whether the tables are whole.
pub fn check(device: &dyn BlockDevice) -> Result<btt::Report, String> {
    let report = btt::check(device).map_err(|error| error.to_string())?;
    match report.is_good() {
        true => Ok(report),
        false => Err(format!("{:?}", report.problems)),
    }
}

/// Which version a sector holds, if it is a whole one.
pub fn version(got: &[u8], sector: u64) -> Option<u8> {
    let version = got[got.len() - 1];
    let whole = bytes(Op { sector, count: 1, version }, sector, got.len());
    (got == whole).then_some(version)
}

/// Whether each sector holds one of what it may.
pub fn judge(btt: &Btt, sectors: u64, ops: &[Done], cut: u64) -> Result<(), String> {
    let size = u64::from(btt.namespace().sector);
    for sector in 0..sectors {
        let got = btt.read(sector * size, size).map_err(|error| error.to_string())?;
        let may = allowed(ops, sector, cut);
        match version(&got, sector) {
            None => return Err(format!("sector {sector} is torn")),
            Some(version) if !may.contains(&version) => {
                return Err(format!("sector {sector} has version {version} instead of {may:?}"));
            }
            Some(_) => {}
        }
    }
    Ok(())
}
