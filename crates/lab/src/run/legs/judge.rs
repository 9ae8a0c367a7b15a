//! What is there of a volume's blocks after a cut, and what was promised of them.

use bytes::Bytes;
use steadfast_block::{is_zero, pattern};
use steadfast_crash::account::{Action, History, Object, Operation};
use steadfast_devices::filter::record::Moment;

/// What is written at once.
pub const BLOCK: u64 = 4096;
/// What a cut leaves old or new.
const SECTOR: usize = 512;

/// What was done to blocks: each is an object of the account, which holds zeros before its first
/// write.
pub struct BlockRun {
    pub blocks: u64,
    pub history: History,
}

/// A block in the account.
pub fn object(block: u64) -> Object {
    Object(block + 1)
}

/// What a cut took, in bytes.
#[derive(Debug, Clone, Copy, Default)]
pub struct LostBytes {
    /// Promised by a flush, and not read any more.
    pub flushed: u64,
    /// Of these, what no leg holds.
    pub gone: u64,
    /// Acknowledged, not flushed, and not there.
    pub unflushed: u64,
    /// Legs that hold another thing than the volume says.
    pub differ: u64,
}

/// Reads a block at an offset; `None`: it cannot be read.
pub type ReadBlock<'a> = dyn Fn(u64) -> Option<Bytes> + 'a;
/// The same of a leg.
pub type Leg = Box<dyn Fn(u64) -> Option<Bytes>>;

/// Compares what is there with what had been promised by a cut. `went_on`: nothing was cut, and
/// what was acknowledged counts as promised.
pub fn judge(
    run: &BlockRun,
    cut: u64,
    went_on: bool,
    read: &ReadBlock<'_>,
    legs: &[Leg],
) -> LostBytes {
    let mut lost = LostBytes::default();
    for block in 0..run.blocks {
        // Each is by one task, after the one before.
        let versions = run.history.contents.get(&object(block)).map_or(&[][..], Vec::as_slice);
        let before = |of: fn(&Operation) -> Option<Moment>| {
            let done = |v: &Operation| of(v).is_some_and(|at| at.tick < cut);
            versions.iter().rposition(done).map_or(0, |n| n + 1)
        };
        let acknowledged = before(|v| v.acknowledged);
        let floor = if went_on { acknowledged } else { before(|v| v.durable) };
        let begun = versions.iter().filter(|v| v.started.tick < cut).count();
        let at = block * BLOCK;
        let volume = read(at);
        let of_legs: Vec<Option<Bytes>> = legs.iter().map(|leg| leg(at)).collect();
        for sector in 0..BLOCK as usize / SECTOR {
            let position = at + (sector * SECTOR) as u64;
            // Versions by their number, 0 for zeros; `None`: nothing that was written there.
            let found = |data: &Option<Bytes>| {
                let number = number_of(part(data, sector)?, position, versions)?;
                (number <= begun).then_some(number)
            };
            let here = found(&volume);
            let size = SECTOR as u64;
            if here.is_none_or(|n| n < floor) {
                lost.flushed += if floor > 0 { size } else { 0 };
                let held = of_legs.iter().any(|leg| found(leg).is_some_and(|n| n >= floor));
                lost.gone += if floor > 0 && !held { size } else { 0 };
            } else if here.is_some_and(|n| n < acknowledged) {
                lost.unflushed += size;
            }
            let differs = |leg: &Option<Bytes>| {
                let same = part(leg, sector) == part(&volume, sector);
                leg.is_some() && !same && found(leg) != here
            };
            lost.differ += if of_legs.iter().any(differs) { size } else { 0 };
        }
    }
    lost
}

/// A sector of a block, if the block could be read.
fn part(block: &Option<Bytes>, sector: usize) -> Option<&[u8]> {
    block.as_ref()?.get(sector * SECTOR..(sector + 1) * SECTOR)
}

/// Which version of a block a sector is of.
fn number_of(sector: &[u8], position: u64, versions: &[Operation]) -> Option<usize> {
    if is_zero(sector) {
        return Some(0);
    }
    let stamp = pattern::stamp_of(sector).filter(|stamp| stamp.position == position)?;
    let of = |v: &Operation| matches!(v.action, Action::Write { tag, .. } if tag == stamp.tag);
    versions.iter().position(of).map(|n| n + 1)
}
