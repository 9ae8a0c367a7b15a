//! Compares what a recovered file system holds with what the workload was promised.
//!
//! For every sector of a file the account gives the operations that touched it, in order. What
//! may be found there after a cut at tick `t`:
//!
//! * the data of any write that touched it and started before `t`, unless a later operation on
//!   the sector was durable before `t`;
//! * nothing (zeros, or the file's end), unless a write to it was durable before `t` and nothing
//!   that clears it (a truncation, a hole) started after that write.
//!
//! The file's end may be where any operation that started after the last durable one has put it.
//!
//! Data that a truncation had cut off must not be there again when a later call has made the file
//! longer: its end shows that both have happened (`cut_off`).
//!
//! Memory keeps words of 8 bytes whole, not sectors: a sector may be put together of words of such
//! writes. It is judged by the oldest of them, and is torn.
//!
//! Anything else breaks the promise made to the newest durable write. docs/risk.md defines the
//! figures; this module computes them for one file and one cut.

mod cut_off;
mod partial;
mod writes_at;

use std::cell::LazyCell;
use std::collections::BTreeMap;

use steadfast_block::pattern::{self, SECTOR, Stamp};
use steadfast_devices::filter::record::Moment;
use steadfast_devices::store::Store;
use steadfast_runtime::Nanos;
use steadfast_vfs::FileSystem;

use self::cut_off::cut_off;
use self::partial::PartialSectors;
use self::writes_at::WritesAt;
use crate::account::{Action, Operation};
use crate::figures::StateFigures;
use crate::program::Call;

/// Bytes of the unit that a file system may be asked to keep whole where it journals data: the
/// usual block, at a multiple of its size in the file. What one write call has put into it is
/// found as it was before, or as it was after.
pub const UNIT: u64 = 4096;

/// Knows what a workload was promised, and looks whether a recovered file system keeps it.
pub trait Judge: Send + Sync {
    /// Judges what is left after a cut at `at` and adds what it took to `cut`.
    fn judge(&self, fs: &dyn FileSystem, at: Moment, cut: &mut StateFigures);

    /// The same, with what the disk below `fs` holds, where that is known.
    fn judge_on(
        &self,
        fs: &dyn FileSystem,
        _disk: Option<&Store>,
        at: Moment,
        cut: &mut StateFigures,
    ) {
        self.judge(fs, at, cut);
    }

    /// Judges a cut after which there is nothing to be read, because the mount was refused: all
    /// that was promised is missing until somebody repairs it by hand. Says nothing unless
    /// implemented.
    fn judge_refused(&self, _at: Moment, _cut: &mut StateFigures) {}

    /// How much had been done and promised before a tick: a number that grows. Equal contents of
    /// another age are another state to this judge. The same for all if nothing else is said.
    fn age(&self, _tick: u64) -> u64 {
        0
    }

    /// The ticks `[from, to)`, ascending, between which a cut finds something acknowledged that was
    /// not promised: where [`CrashPoints::Unsynced`](crate::states::CrashPoints::Unsynced) cuts.
    fn unsynced(&self) -> Vec<(u64, u64)> {
        Vec::new()
    }

    /// The calls of the workload as far as they are remembered, in the order in which they were
    /// made: to print what came before a cut.
    fn calls(&self) -> Vec<Call> {
        Vec::new()
    }

    /// What was written to each file and what of it was promised, as far as it is remembered: a
    /// file or, where files change their names, an object, with the operation. For those who count
    /// again.
    fn operations(&self) -> Vec<(String, Operation)> {
        Vec::new()
    }
}

/// What one cut took from one file.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct FileLoss {
    /// Durable writes whose effect is missing, in whole or in part: indices in the account.
    pub broken: Vec<usize>,
    /// Acknowledged writes (durable or not) whose effect is missing.
    pub lost: Vec<usize>,
    /// Bytes of `lost` that are missing.
    pub lost_bytes: u64,
    /// When the oldest of `lost` was acknowledged.
    pub oldest_lost: Option<Nanos>,
    /// Writes found half old, half new.
    pub torn: Vec<usize>,
    /// Units ([`UNIT`]) of one write found half old, half new.
    pub torn_units: u64,
    /// Bytes that were never written to this file, or that a truncation had cut off before it
    /// became longer.
    pub stale_bytes: u64,
    /// Lost writes for which a later one survived.
    pub out_of_order: Vec<usize>,
}

/// What a sector holds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum SectorState {
    /// Zeros, or beyond the end.
    Nothing,
    /// Data of the operation with this index, at its right place.
    Write(usize),
    /// Words of several: the operation of the oldest, of the newest, and whether some are zeros.
    Words { oldest: usize, newest: usize, zeros: bool },
    /// Anything else.
    Stale,
}

/// The operations that matter to a cut at `t`, sector by sector.
struct Sectors {
    /// The last operation started on each sector.
    newest: Vec<Option<usize>>,
    /// The last durable operation on each sector.
    durable: Vec<Option<usize>>,
    /// The last operation started that made each sector read as zeros.
    cleared: Vec<Option<usize>>,
}

/// Where the end of a file may be after a cut, and the durable operations that say so.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
struct Sizes {
    least: (u64, Option<usize>),
    most: (u64, Option<usize>),
}

impl Sizes {
    fn at(started: &[&Operation], cut: u64) -> Sizes {
        let mut s = Sizes::default();
        for (i, op) in started.iter().enumerate() {
            let durable = op.durable.is_some_and(|d| d.tick < cut);
            let end = match op.action {
                Action::Resize { size } if durable => {
                    s = Sizes { least: (size, Some(i)), most: (size, Some(i)) };
                    continue;
                }
                Action::Resize { size } => {
                    s.least = s.least.min((size, s.least.1));
                    size
                }
                Action::Write { offset, len, .. } => offset + len,
                Action::Allocate { offset, len, keep_size: false } => offset + len,
                Action::Allocate { .. } | Action::Clear { .. } => continue,
            };
            if durable && end > s.least.0 {
                s.least = (end, Some(i));
            }
            s.most.0 = s.most.0.max(end);
        }
        s
    }

    /// The operation whose promise a file of this size breaks.
    fn broken_by(&self, size: u64) -> Option<usize> {
        if size < self.least.0 { self.least.1 } else { self.most.1.filter(|_| size > self.most.0) }
    }
}

/// Judges one file. `contents` is what the recovered file holds (`None`: there is no such file).
pub fn judge(ops: &[Operation], cut: u64, contents: Option<&[u8]>) -> FileLoss {
    let started: Vec<&Operation> = ops.iter().take_while(|op| op.started.tick < cut).collect();
    let tags: BTreeMap<u64, usize> = started
        .iter()
        .enumerate()
        .filter_map(|(i, op)| match op.action {
            Action::Write { tag, .. } => Some((tag, i)),
            _ => None,
        })
        .collect();
    let contents = contents.unwrap_or_default();
    let partial = PartialSectors::of(&started);
    let sectors = Sectors::at(&started, cut, contents.len().div_ceil(SECTOR).max(partial.end()));
    let cut_off = cut_off(&started, contents.len() as u64);
    let mut loss = FileLoss::default();
    // Bytes of each write that it alone answers for: how many are there, how many are not.
    let mut kept = vec![(0u64, 0u64); started.len()];
    let mut units = TornCounter::default();
    let writes = LazyCell::new(|| WritesAt::of(&started));
    for sector in 0..sectors.newest.len() {
        let of = (contents, &started[..], cut);
        if partial.judge(sector, of, (&mut loss, &mut kept, &mut units)) {
            continue;
        }
        let found = look(contents, sector, &tags, &started, &writes);
        let was_cut_off = cut_off.is_some_and(|(by, from)| {
            let of_before = matches!(found, SectorState::Write(i) if i < by);
            of_before && (sector * SECTOR) as u64 >= from
        });
        if found == SectorState::Stale || was_cut_off {
            let from = sector * SECTOR;
            loss.stale_bytes += (contents.len().min(from + SECTOR) - from) as u64;
        }
        if let Some(owner) = sectors.newest[sector]
            && matches!(started[owner].action, Action::Write { .. })
        {
            let survived = found == SectorState::Write(owner);
            let (has, misses) = &mut kept[owner];
            *(if survived { &mut *has } else { misses }) += SECTOR as u64;
            units.count(sector, owner, survived);
            if matches!(found, SectorState::Words { newest, .. } if newest == owner) {
                *has += 1;
                units.count(sector, owner, true);
            }
        }
        if let Some(promised) = sectors.durable[sector]
            && !sectors.allows(sector, found, promised, &started)
            && loss.broken.last() != Some(&promised)
            && !loss.broken.contains(&promised)
        {
            loss.broken.push(promised);
        }
    }
    loss.broken.sort_unstable();
    // A write that is missing says so already.
    if loss.broken.is_empty() {
        loss.broken.extend(Sizes::at(&started, cut).broken_by(contents.len() as u64));
    }
    loss.torn_units = units.torn;
    account(&mut loss, &started, cut, &kept);
    loss
}

/// Counts torn units while the sectors go by in order.
#[derive(Default)]
struct TornCounter {
    /// The unit at hand, and the writes that answer for sectors in it: do they hold, miss?
    unit: usize,
    writes: Vec<(usize, bool, bool)>,
    torn: u64,
}

impl TornCounter {
    fn count(&mut self, sector: usize, write: usize, survived: bool) {
        let unit = sector * SECTOR / UNIT as usize;
        if unit != self.unit {
            (self.unit, self.writes) = (unit, Vec::new());
        }
        let known = self.writes.iter().position(|(w, ..)| *w == write);
        let at = known.unwrap_or_else(|| {
            self.writes.push((write, false, false));
            self.writes.len() - 1
        });
        let (_, has, misses) = &mut self.writes[at];
        let was_torn = *has && *misses;
        *has |= survived;
        *misses |= !survived;
        self.torn += u64::from(!was_torn && *has && *misses);
    }
}

impl Sectors {
    fn at(started: &[&Operation], cut: u64, sectors_found: usize) -> Sectors {
        let end = started
            .iter()
            .map(|op| match op.action {
                Action::Write { offset, len, .. } => (offset + len).div_ceil(SECTOR as u64),
                _ => 0,
            })
            .max()
            .unwrap_or(0);
        let count = usize::try_from(end).unwrap_or(usize::MAX).max(sectors_found);
        let none = || vec![None; count];
        let mut s = Sectors { newest: none(), durable: none(), cleared: none() };
        for (i, op) in started.iter().enumerate() {
            let (from, to) = match (op.action, op.action.cleared()) {
                (_, Some(range)) => range,
                (Action::Write { offset, len, .. }, None) => (offset, offset + len),
                _ => continue,
            };
            let sector = |at: u64| (at / SECTOR as u64).min(count as u64) as usize;
            let range = sector(from.next_multiple_of(SECTOR as u64))..sector(to);
            if range.is_empty() {
                continue;
            }
            if op.action.cleared().is_some() {
                s.cleared[range.clone()].fill(Some(i));
            }
            s.newest[range.clone()].fill(Some(i));
            if op.durable.is_some_and(|d| d.tick < cut) {
                s.durable[range].fill(Some(i));
            }
        }
        s
    }

    /// Whether `found` keeps the promise made to the durable operation `promised`.
    fn allows(
        &self,
        sector: usize,
        found: SectorState,
        promised: usize,
        ops: &[&Operation],
    ) -> bool {
        match found {
            SectorState::Write(i) => i >= promised,
            SectorState::Nothing => {
                self.cleared[sector].is_some_and(|t| t > promised)
                    || ops[promised].action.cleared().is_some()
            }
            SectorState::Words { oldest, zeros, .. } => {
                let nothing = || self.allows(sector, SectorState::Nothing, promised, ops);
                oldest >= promised && (!zeros || nothing())
            }
            SectorState::Stale => false,
        }
    }
}

fn look(
    contents: &[u8],
    sector: usize,
    tags: &BTreeMap<u64, usize>,
    ops: &[&Operation],
    writes: &WritesAt,
) -> SectorState {
    let from = (sector * SECTOR).min(contents.len());
    let bytes = &contents[from..contents.len().min(from + SECTOR)];
    if bytes.iter().all(|b| *b == 0) {
        return SectorState::Nothing;
    }
    let Some(Stamp { tag, position }) = pattern::stamp_of(bytes) else {
        return writes.words(bytes, from as u64, ops);
    };
    let Some(&i) = tags.get(&tag) else { return SectorState::Stale };
    let Action::Write { offset, len, .. } = ops[i].action else { return SectorState::Stale };
    let here = from as u64;
    if position == here && (offset..offset + len).contains(&here) {
        SectorState::Write(i)
    } else {
        SectorState::Stale
    }
}

fn account(loss: &mut FileLoss, started: &[&Operation], cut: u64, kept: &[(u64, u64)]) {
    // The newest write that survived whole or in part.
    let last_survivor = kept.iter().rposition(|(has, _)| *has > 0);
    for (i, (has, misses)) in kept.iter().enumerate() {
        if *misses == 0 {
            continue;
        }
        if *has > 0 {
            loss.torn.push(i);
        }
        let Some(acknowledged) = started[i].acknowledged.filter(|a| a.tick < cut) else { continue };
        loss.lost.push(i);
        loss.lost_bytes += misses;
        loss.oldest_lost =
            Some(loss.oldest_lost.map_or(acknowledged.at, |o: Nanos| o.min(acknowledged.at)));
        if last_survivor.is_some_and(|s| s > i && started[s].started.tick > acknowledged.tick) {
            loss.out_of_order.push(i);
        }
    }
}

#[cfg(test)]
mod tests {
    use steadfast_devices::filter::record::Moment;

    use super::*;

    const LEN: u64 = 1024;

    fn moment(tick: u64) -> Moment {
        Moment { tick, at: Nanos(tick) }
    }

    fn write(slot: u64, tag: u64, start: u64, ack: Option<u64>, durable: bool) -> Operation {
        Operation {
            action: Action::Write { offset: slot * LEN, len: LEN, tag },
            started: moment(start),
            acknowledged: ack.map(moment),
            durable: ack.filter(|_| durable).map(moment),
        }
    }

    fn data(parts: &[(u64, u64)]) -> Vec<u8> {
        let mut v = Vec::new();
        for (slot, tag) in parts {
            v.extend_from_slice(&pattern::bytes(*tag, slot * LEN, LEN as usize));
        }
        v
    }

    #[test]
    fn a_kept_promise() {
        let ops = [write(0, 1, 1, Some(2), true), write(1, 2, 3, Some(4), true)];
        let loss = judge(&ops, 10, Some(&data(&[(0, 1), (1, 2)])));
        assert_eq!(loss, FileLoss::default());
    }

    #[test]
    fn a_missing_durable_write_is_a_broken_promise() {
        let ops = [write(0, 1, 1, Some(2), true), write(1, 2, 3, Some(4), true)];
        let loss = judge(&ops, 10, Some(&data(&[(0, 1)])));
        assert_eq!((loss.broken, loss.lost_bytes), (vec![1], LEN));
        let loss = judge(&ops, 10, None);
        assert_eq!(loss.broken, [0, 1]);
    }

    #[test]
    fn an_old_version_breaks_the_promise_of_a_durable_overwrite() {
        let ops = [write(0, 1, 1, Some(2), true), write(0, 2, 3, Some(4), true)];
        assert_eq!(judge(&ops, 10, Some(&data(&[(0, 1)]))).broken, [1]);
        // Cut before the overwrite was acknowledged: either version will do.
        let ops = [ops[0], write(0, 2, 3, Some(7), true)];
        for tag in [1, 2] {
            assert!(judge(&ops, 5, Some(&data(&[(0, tag)]))).broken.is_empty());
        }
    }

    #[test]
    fn acknowledged_but_not_durable_is_exposure() {
        let ops = [write(0, 1, 1, Some(2), false), write(1, 2, 3, Some(4), false)];
        let loss = judge(&ops, 10, Some(&[]));
        assert!(loss.broken.is_empty());
        assert_eq!((loss.lost, loss.lost_bytes), (vec![0, 1], 2 * LEN));
        assert_eq!(loss.oldest_lost, Some(Nanos(2)));
    }

    #[test]
    fn half_a_write_is_torn_and_a_later_survivor_is_out_of_order() {
        let ops = [write(0, 1, 1, Some(2), false), write(1, 2, 3, Some(4), false)];
        let mut held = data(&[(0, 1), (1, 2)]);
        held[..512].fill(0);
        let loss = judge(&ops, 10, Some(&held));
        assert_eq!((loss.torn, loss.out_of_order, loss.torn_units), (vec![0], vec![0], 1));
    }

    #[test]
    fn a_write_of_two_units_may_be_torn_between_them_or_in_one() {
        let two_units = Operation {
            action: Action::Write { offset: 0, len: 2 * UNIT, tag: 1 },
            ..write(0, 1, 1, Some(2), false)
        };
        let whole = pattern::bytes(1, 0, 2 * UNIT as usize);
        let torn = |held: &[u8]| {
            let loss = judge(&[two_units], 10, Some(held));
            (loss.torn.len(), loss.torn_units)
        };
        assert_eq!(torn(&whole), (0, 0));
        assert_eq!(torn(&whole[..UNIT as usize]), (1, 0));
        assert_eq!(torn(&whole[..UNIT as usize + 512]), (1, 1));
        assert_eq!(torn(&[]), (0, 0));
        // Each unit once, however ragged.
        let mut ragged = whole.to_vec();
        for sector in [0, 2, 9, 13] {
            ragged[sector * SECTOR..][..SECTOR].fill(0);
        }
        assert_eq!(torn(&ragged), (1, 2));
    }

    #[test]
    fn stale_data_is_counted_in_bytes() {
        let ops = [write(0, 1, 1, Some(2), false)];
        // Another file's tag, and this file's data at a wrong place.
        assert_eq!(judge(&ops, 9, Some(&data(&[(0, 77)]))).stale_bytes, LEN);
        let moved = pattern::bytes(1, LEN, LEN as usize);
        assert_eq!(judge(&ops, 9, Some(&moved)).stale_bytes, LEN);
    }

    #[test]
    fn a_sector_of_words_of_several_writes_is_torn_and_not_foreign() {
        let mixed = |old: u64, new: u64, words: usize| {
            let mut held = data(&[(0, old)]);
            held[..words * 8].copy_from_slice(&data(&[(0, new)])[..words * 8]);
            held
        };
        let verdict = |ops: &[Operation], held: &[u8]| {
            let loss = judge(ops, 10, Some(held));
            (loss.broken, loss.torn, loss.torn_units, loss.stale_bytes)
        };
        // The overwrite was not promised: of it a cut may leave any words.
        let ops = [write(0, 1, 1, Some(2), true), write(0, 2, 3, Some(4), false)];
        assert_eq!(verdict(&ops, &mixed(1, 2, 5)), (vec![], vec![1], 1, 0));
        // It was: old words are too old.
        let promised = [ops[0], write(0, 2, 3, Some(4), true)];
        assert_eq!(verdict(&promised, &mixed(1, 2, 5)), (vec![1], vec![1], 1, 0));
        // Zeros among the words, where something was promised before.
        let mut holes = mixed(1, 2, 5);
        holes[16..24].fill(0);
        assert_eq!(verdict(&ops, &holes), (vec![0], vec![1], 1, 0));
        let new = [write(0, 2, 3, Some(4), false)];
        let mut holes = data(&[(0, 2)]);
        holes[16..24].fill(0);
        assert_eq!(verdict(&new, &holes), (vec![], vec![0], 1, 0));
        // A word that nobody wrote there.
        holes[16] = 77;
        assert_eq!(judge(&new, 10, Some(&holes)).stale_bytes, SECTOR as u64);
    }

    #[test]
    fn a_truncation_releases_older_promises() {
        let truncate = Operation {
            action: Action::EMPTY,
            started: moment(5),
            acknowledged: Some(moment(6)),
            durable: None,
        };
        let ops = [write(0, 1, 1, Some(2), true), truncate];
        for held in [data(&[]), data(&[(0, 1)])] {
            assert!(judge(&ops, 10, Some(&held)).broken.is_empty());
        }
        let ops = [ops[0], truncate, write(0, 2, 7, Some(8), true)];
        assert_eq!(judge(&ops, 10, Some(&data(&[(0, 1)]))).broken, [2]);
    }

    fn other(action: Action, start: u64, durable: bool) -> Operation {
        Operation { action, ..write(0, 0, start, Some(start + 1), durable) }
    }

    #[test]
    fn what_was_cleared_for_good_must_not_come_back() {
        let hole = Action::Clear { offset: 0, len: 512 };
        let held = data(&[(0, 1), (1, 2)]);
        let mut holed = held.clone();
        holed[..512].fill(0);
        for durable in [false, true] {
            let ops = [
                write(0, 1, 1, Some(2), true),
                write(1, 2, 3, Some(4), true),
                other(hole, 5, durable),
            ];
            assert_eq!(judge(&ops, 9, Some(&holed)).broken, []);
            let back: &[usize] = if durable { &[2] } else { &[] };
            assert_eq!(judge(&ops, 9, Some(&held)).broken, back);
            // What is beside it is still promised.
            assert_eq!(judge(&ops, 9, Some(&[0; 1024])).broken, [0, 1]);
        }
        // The tail of a block, cut off and grown over: not to be seen again.
        let ops = [
            write(0, 1, 1, Some(2), true),
            other(Action::Resize { size: 512 }, 3, true),
            write(1, 2, 5, Some(6), true),
        ];
        assert_eq!(judge(&ops, 9, Some(&held)).broken, [1]);
    }

    #[test]
    fn a_promised_size_is_there() {
        let allocate = |keep_size| Action::Allocate { offset: 0, len: 2 * LEN, keep_size };
        let resize = |size, durable| other(Action::Resize { size }, 5, durable);
        let broken = |ops: &[Operation], size: u64| {
            let mut held = data(&[(0, 1), (1, 2), (2, 3)]);
            held[LEN as usize..].fill(0);
            judge(ops, 9, Some(&held[..size as usize])).broken
        };
        let first = write(0, 1, 1, Some(2), true);
        let ops = [first, other(allocate(false), 3, true)];
        assert_eq!((broken(&ops, 2 * LEN), broken(&ops, LEN)), (vec![], vec![1]));
        let kept = [first, other(allocate(true), 3, true)];
        assert_eq!((broken(&kept, LEN), broken(&kept, 2 * LEN)), (vec![], vec![]));
        // A truncation that was not promised may have been made, and an allocation too.
        let loose = [first, other(allocate(false), 3, false), resize(512, false)];
        assert_eq!(broken(&loose, 512), []);
        assert_eq!(broken(&loose, 2 * LEN), []);
        let ops = [first, other(allocate(false), 3, true), resize(LEN, true)];
        assert_eq!((broken(&ops, LEN), broken(&ops, 2 * LEN)), (vec![], vec![2]));
    }
}
