//! Sectors that calls have changed in part: a program writes where it likes.
//!
//! The bytes of a write at an odd offset are those that the stamped sector has there. What such a
//! sector may hold is what the operations on it made of it, one after the other: which of these
//! versions is found says which operations are there.

use std::collections::BTreeMap;

use steadfast_block::pattern::{self, SECTOR, Stamp};

use super::{FileLoss, TornCounter};
use crate::account::{Action, Operation};

const WORD: usize = 8;
const WORDS: usize = SECTOR / WORD;

/// The sectors that an operation begins or ends in, each with all operations on it.
pub(super) struct PartialSectors(BTreeMap<usize, Vec<usize>>);

/// What one of them holds.
#[derive(Debug, PartialEq, Eq)]
enum Version {
    /// What the first so many operations on it have made.
    After(usize),
    /// Words of several versions: the oldest one, the newest.
    Words(usize, usize),
    Stale,
}

/// The bytes that an operation changes.
fn range(op: &Operation) -> Option<(u64, u64)> {
    match op.action {
        Action::Write { offset, len, .. } => Some((offset, offset.saturating_add(len))),
        other => other.cleared(),
    }
}

impl PartialSectors {
    /// Of the operations begun.
    pub fn of(started: &[&Operation]) -> PartialSectors {
        let sector = SECTOR as u64;
        let mut all = BTreeMap::new();
        for (from, to) in started.iter().filter_map(|op| range(op)) {
            for at in [from, to].into_iter().filter(|at| *at != u64::MAX && at % sector != 0) {
                all.entry((at / sector) as usize).or_insert_with(Vec::new);
            }
        }
        if !all.is_empty() {
            for (i, op) in started.iter().enumerate() {
                let Some((from, to)) = range(op).filter(|(from, to)| from < to) else { continue };
                let (first, last) = ((from / sector) as usize, ((to - 1) / sector) as usize);
                all.range_mut(first..=last).for_each(|(_, ops)| ops.push(i));
            }
        }
        PartialSectors(all)
    }

    /// One more than the last of them.
    pub fn end(&self) -> usize {
        self.0.keys().next_back().map_or(0, |last| last + 1)
    }

    /// Judges a sector, if it is one of them. `kept`: of each operation the bytes that are there
    /// and those that are not.
    pub fn judge(
        &self,
        sector: usize,
        (contents, started, cut): (&[u8], &[&Operation], u64),
        (loss, kept, units): (&mut FileLoss, &mut [(u64, u64)], &mut TornCounter),
    ) -> bool {
        let Some(ops) = self.0.get(&sector) else { return false };
        let start = sector * SECTOR;
        let mut found = [0; SECTOR];
        let there = contents.get(start..).unwrap_or_default();
        let there = &there[..there.len().min(SECTOR)];
        found[..there.len()].copy_from_slice(there);
        let version = version((&found, there.len()), start as u64, ops, started);
        let (survived, torn) = match version {
            Version::After(n) => (n, None),
            Version::Words(oldest, newest) => (oldest, newest.checked_sub(1)),
            Version::Stale => {
                loss.stale_bytes += there.len() as u64;
                (0, None)
            }
        };
        for (place, &i) in ops.iter().enumerate() {
            let bytes = answers_for(place, start as u64, ops, started);
            if bytes == 0 || !matches!(started[i].action, Action::Write { .. }) {
                continue;
            }
            let is_there = place < survived;
            let (has, misses) = &mut kept[i];
            *(if is_there { &mut *has } else { misses }) += bytes;
            units.count(sector, i, is_there);
            if torn == Some(place) && !is_there {
                kept[i].0 += 1;
                units.count(sector, i, true);
            }
        }
        let durable = |i: &usize| started[*i].durable.is_some_and(|d| d.tick < cut);
        if let Some(place) = ops.iter().rposition(durable)
            && place >= survived
            && !loss.broken.contains(&ops[place])
        {
            loss.broken.push(ops[place]);
        }
        true
    }
}

/// Bytes of an operation in the sector that no later one has changed.
fn answers_for(place: usize, start: u64, ops: &[usize], started: &[&Operation]) -> u64 {
    let end = start + SECTOR as u64;
    let within = |i: usize| range(started[i]).map_or((0, 0), |(a, b)| (a.max(start), b.min(end)));
    let (from, to) = within(ops[place]);
    let mut mine = [false; SECTOR];
    mine[(from - start) as usize..(to.max(from) - start) as usize].fill(true);
    for &later in &ops[place + 1..] {
        let (from, to) = within(later);
        mine[(from - start) as usize..(to.max(from) - start) as usize].fill(false);
    }
    mine.iter().filter(|mine| **mine).count() as u64
}

/// Which version of the sector at `start` this is: the newest that it can be. The file may end in
/// it, after so many bytes: data of a longer write may be there already, and its size not.
fn version(
    (found, there): (&[u8; SECTOR], usize),
    start: u64,
    ops: &[usize],
    started: &[&Operation],
) -> Version {
    let (mut made, mut stamped) = ([0; SECTOR], [0; SECTOR]);
    // Of each word the last version that has it so; and the last version that is it.
    let mut words = [None; WORDS];
    let mut whole = None;
    for n in 0..=ops.len() {
        if let Some(op) = n.checked_sub(1).map(|last| started[ops[last]])
            && let Some((from, to)) = range(op)
        {
            let end = start + SECTOR as u64;
            let part = (from.max(start) - start) as usize..(to.min(end) - start) as usize;
            match op.action {
                Action::Write { tag, .. } => {
                    pattern::fill_sector(Stamp { tag, position: start }, &mut stamped);
                    made[part.clone()].copy_from_slice(&stamped[part]);
                }
                _ => made[part].fill(0),
            }
        }
        let both = found.as_chunks::<WORD>().0.iter().zip(made.as_chunks::<WORD>().0);
        let mut differs = false;
        for (place, (word, (found, made))) in words.iter_mut().zip(both).enumerate() {
            let end = there.saturating_sub(place * WORD).min(WORD);
            // The word that the file ends in: as much of it as is there.
            if found == made || (1..WORD).contains(&end) && found[..end] == made[..end] {
                *word = Some(n);
            }
            differs |= found != made;
        }
        if !differs {
            whole = Some(n);
        }
    }
    let all: Option<Vec<usize>> = words.into_iter().collect();
    match (whole, all) {
        (Some(n), _) => Version::After(n),
        (None, Some(all)) => {
            let (oldest, newest) = (all.iter().min(), all.iter().max());
            Version::Words(oldest.copied().unwrap_or(0), newest.copied().unwrap_or(0))
        }
        (None, None) => Version::Stale,
    }
}

#[cfg(test)]
mod tests {
    use steadfast_devices::filter::record::Moment;
    use steadfast_runtime::Nanos;

    use super::super::{FileLoss, judge};
    use super::*;

    fn op(action: Action, at: u64, durable: bool) -> Operation {
        let moment = |tick| Moment { tick, at: Nanos(tick) };
        let acknowledged = Some(moment(at + 1));
        Operation {
            action,
            started: moment(at),
            acknowledged,
            durable: acknowledged.filter(|_| durable),
        }
    }

    fn write(offset: u64, len: u64, tag: u64) -> Action {
        Action::Write { offset, len, tag }
    }

    /// What a file holds after these.
    fn made(actions: &[Action]) -> Vec<u8> {
        let mut held: Vec<u8> = Vec::new();
        for action in actions {
            match *action {
                Action::Write { offset, len, tag } => {
                    let (from, to) = (offset as usize, (offset + len) as usize);
                    held.resize(held.len().max(to), 0);
                    let whole = pattern::bytes(tag, 0, to.next_multiple_of(SECTOR));
                    held[from..to].copy_from_slice(&whole[from..to]);
                }
                Action::Resize { size } => held.resize(size as usize, 0),
                _ => {}
            }
        }
        held
    }

    fn loss(ops: &[Operation], held: &[u8]) -> FileLoss {
        judge(ops, 100, Some(held))
    }

    #[test]
    fn appended_lines_are_there_or_not() {
        let lines = [write(0, 100, 1), write(100, 80, 2), write(180, 900, 3)];
        let ops = [op(lines[0], 1, true), op(lines[1], 3, false), op(lines[2], 5, false)];
        assert_eq!(loss(&ops, &made(&lines)), FileLoss::default());
        let two = loss(&ops, &made(&lines[..2]));
        assert_eq!((two.lost, two.lost_bytes, two.broken.len()), (vec![2], 900, 0));
        let one = loss(&ops, &made(&lines[..1]));
        assert_eq!((one.lost, one.lost_bytes, one.oldest_lost), (vec![1, 2], 980, Some(Nanos(4))));
        let none = loss(&ops, &[]);
        assert_eq!((none.broken, none.lost_bytes), (vec![0], 1080));
        // Its first sector only: the last line is torn.
        let part = loss(&ops, &made(&lines)[..512]);
        assert_eq!((part.torn, part.lost_bytes), (vec![2], 1080 - 512));
    }

    #[test]
    fn an_old_version_of_a_header_breaks_a_promise() {
        let (old, new) = (write(0, 4096, 1), write(8, 12, 2));
        let ops = [op(old, 1, true), op(new, 3, true)];
        let back = loss(&ops, &made(&[old]));
        assert_eq!((back.broken, back.lost, back.lost_bytes), (vec![1], vec![1], 12));
        assert_eq!(loss(&ops, &made(&[old, new])), FileLoss::default());
        // Neither: not of this file.
        let mut odd = made(&[old, new]);
        odd[40] ^= 1;
        let odd = loss(&ops, &odd);
        assert_eq!((odd.broken, odd.stale_bytes), (vec![1], 512));
    }

    #[test]
    fn words_of_two_versions_are_torn() {
        let (old, new) = (write(0, 512, 1), write(4, 60, 2));
        let ops = [op(old, 1, true), op(new, 3, false)];
        let mut held = made(&[old]);
        held[..32].copy_from_slice(&made(&[old, new])[..32]);
        let torn = loss(&ops, &held);
        assert_eq!((torn.torn, torn.stale_bytes, torn.broken.len()), (vec![1], 0, 0));
    }

    /// The data of a longer write is there, its size is not: the file ends within a word.
    #[test]
    fn a_file_that_ends_within_a_word_of_a_longer_write_is_torn() {
        let (old, new) = (write(0, 101, 1), write(0, 168, 2));
        let ops = [op(old, 1, true), op(new, 3, false)];
        let held = made(&[old, new])[..101].to_vec();
        let found = loss(&ops, &held);
        assert_eq!((found.broken.len(), found.stale_bytes), (0, 0), "{found:?}");
    }

    #[test]
    fn what_is_cut_off_in_a_sector_is_zeros_when_it_grows() {
        let (old, cut) = (write(0, 300, 1), Action::Resize { size: 100 });
        let grown = write(400, 10, 2);
        let ops = [op(old, 1, true), op(cut, 3, true), op(grown, 5, true)];
        assert_eq!(loss(&ops, &made(&[old, cut, grown])), FileLoss::default());
        let back = loss(&ops, &made(&[old, grown]));
        assert!(!back.broken.is_empty(), "{back:?}");
    }
}
