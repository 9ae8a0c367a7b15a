//! Checking all tables of a sector namespace, without changes.

use steadfast_block::BlockDevice;

use super::error::none;
use super::find::{BttInfo, LocatedArena, find, page, summary};
use super::info::{PAGE, Version};
use super::map::{BLOCKS_MAX, ENTRY_BYTES, Entry, State};
use super::recover::{flog, pending};
use crate::filter::namespace::{NamespaceError, Result, read};

/// So many blocks are counted in one pass over the map: 32 MiB of memory, four passes at most.
const PASS: u32 = 1 << 28;
/// Bytes of the map that are read at a time.
const PIECE: u64 = 1 << 20;
/// Most problems that are reported.
const PROBLEMS_MAX: usize = 100;

/// Something that is wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// Where, in bytes from the start of the device.
    pub at: u64,
    /// What, and what to do, in words.
    pub what: String,
}

/// What a check has found.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Report {
    /// What the namespace is; `None` if its info blocks cannot be trusted: a problem then.
    pub info: Option<BttInfo>,
    /// What is wrong; the first hundred.
    pub problems: Vec<Problem>,
    /// How many there are.
    pub problem_count: u64,
    /// Writes that a power cut has interrupted; opening finishes them.
    pub interrupted: u64,
    /// Sectors that hold something.
    pub written: u64,
    /// Sectors that were discarded and read as zeros.
    pub discarded: u64,
    /// Sectors that are marked as ones that could not be read.
    pub unreadable: u64,
}

impl Report {
    /// Whether nothing is wrong.
    pub fn is_good(&self) -> bool {
        self.problem_count == 0
    }

    fn add(&mut self, at: u64, what: impl Into<String>) {
        if self.problems.len() < PROBLEMS_MAX {
            self.problems.push(Problem { at, what: what.into() });
        }
        self.problem_count += 1;
    }

    fn add_error(&mut self, error: NamespaceError) {
        let at = if let NamespaceError::Corrupt { at, .. } = &error { *at } else { 0 };
        self.add(at, error.to_string());
    }
}

/// Looks at the info blocks and their copies, the flog and the whole map: whether each block is
/// named once. Reads 4 bytes for each sector, and takes up to 32 MiB of memory. Nobody may write
/// meanwhile; nothing is changed, and the device need not be memory.
///
/// # Errors
/// [`None`](NamespaceError::None) if there is no sector namespace, [`Io`](NamespaceError::Io). What
/// is wrong with it is in the report.
pub fn check(device: &dyn BlockDevice) -> Result<Report> {
    check_as(device, None)
}

/// As [`check`], of a namespace whose label says of which version it is.
///
/// # Errors
/// Those of [`check`].
pub fn check_as(device: &dyn BlockDevice, version: Option<Version>) -> Result<Report> {
    let mut report = Report::default();
    let arenas = match find(device, version) {
        Ok(Some(arenas)) => arenas,
        Ok(None) => return Err(none(device.info().name)),
        Err(error @ NamespaceError::Corrupt { .. }) => {
            report.add_error(error);
            return Ok(report);
        }
        Err(error) => return Err(error),
    };
    report.info = Some(summary(&arenas));
    for arena in &arenas {
        info_blocks(device, arena, &mut report);
        tables(device, arena, &mut report)?;
    }
    Ok(report)
}

fn info_blocks(device: &dyn BlockDevice, arena: &LocatedArena, report: &mut Report) {
    if arena.info.error {
        report.add(
            arena.at,
            "the arena is marked as one with an error and is read only: save what it holds, and \
             make the namespace anew",
        );
    }
    if arena.from_copy {
        let what = "the info block is damaged, its copy is good: restore it, or the kernel will \
                    not find the namespace";
        report.add(arena.at, what);
        return;
    }
    let at = arena.at + arena.info.layout.copy;
    if page(device, at).ok() != Some(arena.info.bytes()) {
        report.add(at, "the copy of the info block is damaged: restore it");
    }
}

fn tables(device: &dyn BlockDevice, arena: &LocatedArena, report: &mut Report) -> Result<()> {
    let layout = &arena.info.layout;
    let name = device.info().name;
    let log = match flog(device, &name, arena) {
        Ok(log) => log,
        Err(error @ NamespaceError::Corrupt { .. }) => {
            report.add_error(error);
            return Ok(());
        }
        Err(error) => return Err(error),
    };
    let one = |sector: u32| {
        let at = layout.entry_at(sector);
        let page = page(device, arena.at + (at - at % PAGE))?;
        let within = (at % PAGE) as usize;
        // OK to unwrap: four bytes; the map begins with a page.
        let raw = u32::from_le_bytes(page[within..within + 4].try_into().unwrap());
        Ok(Entry::decode(raw, sector))
    };
    // As they will be when it is opened.
    let mut pending = pending(layout, &log.changes, one)?;
    report.interrupted += pending.len() as u64;
    pending.sort_unstable();
    let mut first = 0;
    while first < layout.blocks {
        let end = layout.blocks.min(first.saturating_add(PASS)).min(BLOCKS_MAX);
        let mut named = BlockBitmap::new(first, end);
        for lane in &log.lanes {
            named.add(lane.block);
        }
        each_entry(device, arena, |sector, mut entry| {
            if let Ok(place) = pending.binary_search_by_key(&sector, |(sector, _)| *sector) {
                entry = Entry { state: State::Normal, block: pending[place].1 };
            }
            let at = arena.at + layout.entry_at(sector);
            if first == 0 {
                match entry.state {
                    State::Initial => {}
                    State::Normal => report.written += 1,
                    State::Zero => report.discarded += 1,
                    State::Error => report.unreadable += 1,
                }
                if entry.block >= layout.blocks {
                    let (block, blocks) = (entry.block, layout.blocks);
                    let what = format!("map: sector {sector} is in block {block} of {blocks}");
                    report.add(at, format!("{what}: restore it from a backup"));
                }
            }
            if !named.add(entry.block) {
                let block = entry.block;
                let what = format!(
                    "map: sector {sector} is in block {block}, which is another sector's too, or a \
                     free one: restore both from a backup"
                );
                report.add(at, what);
            }
        })?;
        first = end;
    }
    Ok(())
}

/// Which of some blocks were named.
struct BlockBitmap {
    first: u32,
    end: u32,
    bits: Vec<u64>,
}

impl BlockBitmap {
    fn new(first: u32, end: u32) -> BlockBitmap {
        BlockBitmap { first, end, bits: vec![0; (end - first).div_ceil(64) as usize] }
    }

    /// Names a block; false if it was before. Others are left alone.
    fn add(&mut self, block: u32) -> bool {
        if !(self.first..self.end).contains(&block) {
            return true;
        }
        let place = block - self.first;
        let (word, bit) = (&mut self.bits[(place / 64) as usize], 1 << (place % 64));
        let new = *word & bit == 0;
        *word |= bit;
        new
    }
}

fn each_entry(
    device: &dyn BlockDevice,
    arena: &LocatedArena,
    mut each: impl FnMut(u32, Entry),
) -> Result<()> {
    let layout = &arena.info.layout;
    let mut sector = 0;
    while sector < layout.sectors {
        let entries = (layout.sectors - sector).min((PIECE / ENTRY_BYTES) as u32);
        let bytes = (u64::from(entries) * ENTRY_BYTES).next_multiple_of(PAGE);
        let mut piece = vec![0; bytes as usize];
        read(device, arena.at + layout.entry_at(sector), &mut piece)?;
        for raw in piece.chunks_exact(ENTRY_BYTES as usize).take(entries as usize) {
            // OK to unwrap: a chunk has four bytes.
            each(sector, Entry::decode(u32::from_le_bytes(raw.try_into().unwrap()), sector));
            sector += 1;
        }
    }
    Ok(())
}
