//! What a cut takes of work that nobody had been promised, of runs too large to be read whole.
//!
//! [`FilesJudge`](crate::account::FilesJudge) reads every byte of every file, after each cut. This
//! one reads only where the newest acknowledged write was not promised durable at the
//! cut, and there one sector of each 256 KiB: enough to find how much is missing, to that unit. It
//! says nothing of promises.

use steadfast_block::pattern::{self, SECTOR, Stamp};
use steadfast_devices::filter::record::Moment;
use steadfast_ext4_format::RangeSet;
use steadfast_vfs::path::resolve;
use steadfast_vfs::{Fh, FileSystem, FsError, OpenFlags};

use crate::account::{Action, History, Operation};
use crate::figures::StateFigures;
use crate::judge::Judge;

/// Bytes of which one sector is read.
const PIECE: u64 = 256 << 10;

/// Judges what is missing of the work that was not promised.
pub struct UnsyncedJudge(pub History);

/// A place of a file whose newest content was acknowledged and not promised.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct AtRisk {
    from: u64,
    to: u64,
    /// The write, by its number in the file's account.
    write: usize,
}

impl Judge for UnsyncedJudge {
    fn judge(&self, fs: &dyn FileSystem, at: Moment, cut: &mut StateFigures) {
        for (name, ops) in self.0.files() {
            if let Err(e) = look(fs, name, ops, at, cut) {
                cut.damage.push(format!("{name} cannot be read after recovery: {e}"));
            }
        }
    }

    fn judge_refused(&self, at: Moment, cut: &mut StateFigures) {
        for (_, ops) in self.0.files() {
            // OK to ignore: nothing is read.
            let _ = count(ops, at_risk(ops, at.tick), cut, |_, _| Ok(false));
        }
    }

    fn unsynced(&self) -> Vec<(u64, u64)> {
        let mut all = RangeSet::new();
        for (from, to) in self.0.files().flat_map(|(_, ops)| times(ops)) {
            all.insert(from, to);
        }
        all.iter().collect()
    }
}

fn look(
    fs: &dyn FileSystem,
    name: &str,
    ops: &[Operation],
    at: Moment,
    cut: &mut StateFigures,
) -> Result<(), FsError> {
    let places = at_risk(ops, at.tick);
    if places.is_empty() {
        return Ok(());
    }
    let file = match resolve(fs, name.as_bytes(), true) {
        Ok(attr) => Some(fs.open(attr.ino, OpenFlags::READ)?),
        Err(FsError::NotFound) => None,
        Err(e) => return Err(e),
    };
    count(ops, places, cut, |op, place| match file {
        Some(fh) => holds(fs, fh, op, place),
        None => Ok(false),
    })?;
    file.map_or(Ok(()), |fh| fs.release(fh))
}

/// Counts places that are at risk; `is_there` says of each whether it holds what was written.
fn count(
    ops: &[Operation],
    places: Vec<AtRisk>,
    cut: &mut StateFigures,
    is_there: impl Fn(&Operation, AtRisk) -> Result<bool, FsError>,
) -> Result<(), FsError> {
    let mut last = None;
    for place in places {
        let (op, bytes) = (&ops[place.write], place.to - place.from);
        let missing = !is_there(op, place)?;
        cut.unsynced_bytes += bytes;
        if missing {
            // One write may be at risk in several places.
            cut.lost_operations += u64::from(last.replace(place.write) != Some(place.write));
            cut.lost_bytes += bytes;
            if let Some(acknowledged) = op.acknowledged {
                cut.lost_age = cut.lost_age.max(cut.at.since(acknowledged.at));
            }
        }
    }
    Ok(())
}

/// Whether the last sector of a place holds what was written there.
fn holds(fs: &dyn FileSystem, fh: Fh, op: &Operation, place: AtRisk) -> Result<bool, FsError> {
    let Action::Write { tag, .. } = op.action else { return Ok(true) };
    let position = place.to - SECTOR as u64;
    let held = fs.read(fh, position, SECTOR)?;
    Ok(pattern::stamp_of(&held) == Some(Stamp { tag, position }))
}

/// The places at risk at a tick, in pieces, in the order of the file.
fn at_risk(ops: &[Operation], tick: u64) -> Vec<AtRisk> {
    let started = ops.partition_point(|op| op.started.tick < tick);
    // What no newer write has taken.
    let mut left = RangeSet::new();
    left.insert(0, u64::MAX);
    let mut places = Vec::new();
    for (write, op) in ops[..started].iter().enumerate().rev() {
        let (offset, len) = match op.action {
            Action::Write { offset, len, .. } => (offset, len),
            Action::EMPTY => break,
            _ => continue,
        };
        let acknowledged = op.acknowledged.is_some_and(|a| a.tick < tick);
        let promised = op.durable.is_some_and(|d| d.tick < tick);
        let own: Vec<(u64, u64)> = left.within(offset, offset + len).collect();
        left.remove(offset, offset + len);
        if acknowledged && !promised {
            for (mut from, end) in own {
                while from < end {
                    let to = (from - from % PIECE + PIECE).min(end);
                    places.push(AtRisk { from, to, write });
                    from = to;
                }
            }
        }
    }
    places.sort_unstable_by_key(|place| place.from);
    places
}

/// From when to when something of a file was acknowledged and not promised, write by write.
fn times(ops: &[Operation]) -> Vec<(u64, u64)> {
    let mut emptied = u64::MAX;
    let mut times = Vec::new();
    for op in ops.iter().rev() {
        match (op.action, op.acknowledged) {
            (Action::EMPTY, _) => emptied = op.started.tick,
            (Action::Write { .. }, Some(from)) => {
                // A synchronous write is promised when it returns: at the same tick.
                let to = op.durable.map_or(u64::MAX, |d| d.tick).min(emptied);
                if to > from.tick {
                    times.push((from.tick + 1, to));
                }
            }
            _ => {}
        }
    }
    times
}

#[cfg(test)]
mod tests {
    use steadfast_runtime::Nanos;

    use super::*;

    fn moment(tick: u64) -> Moment {
        Moment { tick, at: Nanos(tick) }
    }

    fn write(offset: u64, len: u64, ticks: [u64; 2], durable: Option<u64>) -> Operation {
        Operation {
            action: Action::Write { offset, len, tag: ticks[0] },
            started: moment(ticks[0]),
            acknowledged: Some(moment(ticks[1])),
            durable: durable.map(moment),
        }
    }

    #[test]
    fn the_newest_write_answers_for_its_place() {
        let ops = [
            write(0, 4096, [1, 2], Some(9)),
            write(1024, 1024, [3, 4], Some(4)),
            write(8192, PIECE, [5, 6], None),
        ];
        let places = |tick| -> Vec<(u64, u64, usize)> {
            at_risk(&ops, tick).iter().map(|p| (p.from, p.to, p.write)).collect()
        };
        assert_eq!(places(3), [(0, 4096, 0)]);
        let later = [(8192, PIECE, 2), (PIECE, PIECE + 8192, 2)];
        assert_eq!(places(7), [[(0, 1024, 0), (2048, 4096, 0)], later].concat());
        assert_eq!(places(10), later);
        // Not yet acknowledged: nothing to lose, but it has taken the place.
        assert_eq!(places(6), [(0, 1024, 0), (2048, 4096, 0)]);
    }

    #[test]
    fn it_is_at_risk_from_the_answer_to_the_promise() {
        let truncate = Operation { action: Action::EMPTY, ..write(0, 0, [20, 21], None) };
        let ops = [
            write(0, 512, [1, 2], Some(2)),
            write(0, 512, [3, 4], Some(9)),
            write(512, 512, [5, 6], None),
            truncate,
        ];
        let unsynced = |n: usize| {
            let all: Vec<_> = times(&ops[..n]).into_iter().filter(|(from, to)| from < to).collect();
            all
        };
        assert_eq!(unsynced(4), [(7, 20), (5, 9)]);
        assert_eq!(unsynced(2), [(5, 9)]);
        assert_eq!(unsynced(1), []);
    }
}
