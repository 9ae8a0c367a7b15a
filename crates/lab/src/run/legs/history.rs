//! What was written where, what was promised, and what is there after a cut.

use std::sync::Arc;

use bytes::Bytes;
use steadfast_block::{BlockDevice, is_zero, pattern};
use steadfast_devices::filter::record::RecordLog;
use steadfast_runtime::Mutex;

use crate::VariantError;

/// What is written at once.
pub const BLOCK: u64 = 4096;
/// What a cut leaves old or new.
const SECTOR: usize = 512;

/// A write of a block. Each is by one task, after the one before.
#[derive(Debug, Clone, Copy)]
struct Version {
    tag: u64,
    began: u64,
    acknowledged: Option<u64>,
}

#[derive(Default)]
struct HistoryCore {
    /// Of each block its writes, oldest first; before the first it holds zeros.
    blocks: Vec<Vec<Version>>,
    /// When each flush was asked for and answered.
    flushes: Vec<(u64, u64)>,
    tags: u64,
}

/// The history of a run. Clones are the same one.
#[derive(Clone)]
pub struct History {
    log: RecordLog,
    inner: Arc<Mutex<HistoryCore>>,
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

impl History {
    /// Of so many blocks.
    pub fn new(log: &RecordLog, blocks: u64) -> History {
        let blocks = (0..blocks).map(|_| Vec::new()).collect();
        let inner = HistoryCore { blocks, ..HistoryCore::default() };
        History { log: log.clone(), inner: Arc::new(Mutex::new(inner)) }
    }

    /// How many blocks there are.
    pub fn blocks(&self) -> u64 {
        self.inner.lock().blocks.len() as u64
    }

    fn now(&self) -> u64 {
        self.log.note(0, [0; 3]).tick
    }

    /// Writes a block anew.
    pub fn write(&self, disk: &Arc<dyn BlockDevice>, block: u64) -> Result<(), VariantError> {
        let began = self.now();
        let (tag, number) = {
            let mut inner = self.inner.lock();
            inner.tags += 1;
            let tag = inner.tags;
            let versions = &mut inner.blocks[block as usize];
            versions.push(Version { tag, began, acknowledged: None });
            (tag, versions.len() - 1)
        };
        let data = pattern::bytes(tag, block * BLOCK, BLOCK as usize);
        disk.write(block * BLOCK, data.into()).map_err(VariantError::request("writing"))?;
        let now = self.now();
        self.inner.lock().blocks[block as usize][number].acknowledged = Some(now);
        Ok(())
    }

    /// Flushes the disk.
    pub fn flush(&self, disk: &Arc<dyn BlockDevice>) -> Result<(), VariantError> {
        let began = self.now();
        disk.flush().map_err(VariantError::request("flushing"))?;
        let now = self.now();
        self.inner.lock().flushes.push((began, now));
        Ok(())
    }

    /// Compares what is there with what had been promised by a cut. `went_on`: nothing was cut, and
    /// what was acknowledged counts as promised.
    pub fn judge(&self, cut: u64, went_on: bool, read: &ReadBlock<'_>, legs: &[Leg]) -> LostBytes {
        let inner = self.inner.lock();
        // Of several flushes that were answered by then the one that began last promises most.
        let flushed = inner.flushes.iter().filter(|(_, done)| *done < cut).map(|(began, _)| *began);
        let promised_before = if went_on { Some(u64::MAX) } else { flushed.max() };
        let mut lost = LostBytes::default();
        for (block, versions) in (0..).zip(&inner.blocks) {
            let before = |limit: u64| {
                let done = |v: &Version| v.acknowledged.is_some_and(|at| at < limit);
                versions.iter().rposition(done).map_or(0, |n| n + 1)
            };
            let floor = promised_before.map_or(0, |limit| before(limit.min(cut)));
            let acknowledged = before(cut);
            let begun = versions.iter().filter(|v| v.began < cut).count();
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
}

/// A sector of a block, if the block could be read.
fn part(block: &Option<Bytes>, sector: usize) -> Option<&[u8]> {
    block.as_ref()?.get(sector * SECTOR..(sector + 1) * SECTOR)
}

/// Which version of a block a sector is of.
fn number_of(sector: &[u8], position: u64, versions: &[Version]) -> Option<usize> {
    if is_zero(sector) {
        return Some(0);
    }
    let stamp = pattern::stamp_of(sector).filter(|stamp| stamp.position == position)?;
    // Tags were given out in the order of the versions.
    versions.binary_search_by_key(&stamp.tag, |v| v.tag).ok().map(|n| n + 1)
}
