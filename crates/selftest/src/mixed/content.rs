//! The model of one file's data: what it is, and what a power cut may leave of it.

use steadfast_suite::operation::{Change as ContentChange, OperationIndex, byte, fill};
use steadfast_vfs::Fallocate;

/// A change of the data.
#[derive(Debug, Clone, Copy)]
enum DataChange {
    /// By the operation with this index; what is there now stood `moved` bytes before this when it
    /// was written.
    Write {
        index: OperationIndex,
        offset: u64,
        end: u64,
        moved: i64,
    },
    /// Nothing is there.
    Zeros {
        offset: u64,
        end: u64,
    },
    Truncate {
        size: u64,
    },
}

/// A change and its number, from 1.
#[derive(Debug, Clone, Copy)]
struct Change {
    number: u32,
    what: DataChange,
}

/// A file's data after some operations, with what has been promised of it.
#[derive(Debug, Clone, Default)]
pub(super) struct Content {
    task: usize,
    /// As a reader sees it now.
    pub data: Vec<u8>,
    changes: Vec<Change>,
    /// The number of the last change.
    last: u32,
    /// For each byte: the last change when it was promised; 0: never.
    promised: Vec<u32>,
    /// The file is at least so long.
    size_min: u64,
    /// And at most so long.
    size_max: u64,
    /// Sizes since all was promised last, with the change that made each; the first is that of
    /// then.
    sizes: Vec<(u32, u64)>,
    /// A range has come out of the file, or gone into it, and that was not promised: the file as it
    /// was before.
    before: Option<Box<MoveOrigin>>,
}

/// A file before what is behind `to` moved by so many bytes, and what is between `from` and `to`
/// came out of it.
#[derive(Debug, Clone)]
struct MoveOrigin {
    content: Content,
    from: u64,
    to: u64,
    by: i64,
}

impl MoveOrigin {
    /// Blocks that are written in place after the move are those of before, too, in another place
    /// of the file: a move that does not survive is one of places only, as in the kernel's.
    fn write_in_place(&mut self, what: DataChange) {
        let (offset, end) = match what {
            DataChange::Write { offset, end, .. } | DataChange::Zeros { offset, end } => {
                (offset, end)
            }
            DataChange::Truncate { size } => (size, size.next_multiple_of(BLOCK_MAX)),
        };
        let moved = self.to.saturating_add_signed(self.by);
        let back = |at: u64| at.saturating_add_signed(-self.by);
        let parts = [(offset, end.min(self.from), 0), (offset.max(moved), end, self.by)];
        for (offset, end, by) in parts.into_iter().filter(|(offset, end, _)| offset < end) {
            let (offset, end) = if by == 0 { (offset, end) } else { (back(offset), back(end)) };
            let end = end.min(self.content.data.len() as u64);
            if offset < end {
                self.content.change_in_place(match what {
                    DataChange::Write { index, moved, .. } => {
                        DataChange::Write { index, offset, end, moved: moved - by }
                    }
                    DataChange::Zeros { .. } | DataChange::Truncate { .. } => {
                        DataChange::Zeros { offset, end }
                    }
                });
            }
        }
    }
}

/// Why data is not what it may be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Fault {
    /// Something promised is missing.
    Broken(String),
    /// Bytes nobody wrote there.
    Stale(String),
}

/// Bytes of the largest block of a page: within it a new end is followed by zeros.
const BLOCK_MAX: u64 = 4096;
/// What a device writes whole: a size that is a multiple of it may be one on the way to another.
const SECTOR: u64 = 512;

impl Content {
    pub fn new(task: usize) -> Self {
        Content { task, sizes: vec![(0, 0)], ..Content::default() }
    }

    /// A change that may be seen, where it is not known what it belongs to.
    fn change_in_place(&mut self, what: DataChange) {
        self.last += 1;
        self.changes.push(Change { number: self.last, what });
        if let Some(before) = &mut self.before {
            before.write_in_place(what);
        }
    }

    fn change(&mut self, what: DataChange) {
        self.change_in_place(what);
        let size = self.data.len() as u64;
        if self.sizes.last().is_none_or(|(_, last)| *last != size) {
            self.sizes.push((self.last, size));
        }
    }

    /// What the operation with this index does.
    pub fn apply(&mut self, index: OperationIndex, change: ContentChange) {
        match change {
            ContentChange::Write { offset, len } => self.write(index, offset, len),
            ContentChange::Truncate { size } => self.truncate(size),
            ContentChange::Fallocate { what, offset, len } => self.fallocate(what, offset, len),
        }
    }

    pub fn write(&mut self, index: OperationIndex, offset: u64, len: u64) {
        let end = offset + len;
        if self.data.len() < end as usize {
            self.data.resize(end as usize, 0);
        }
        fill(self.task, index, offset, &mut self.data[offset as usize..end as usize]);
        self.change(DataChange::Write { index, offset, end, moved: 0 });
        self.size_max = self.size_max.max(end);
    }

    pub fn truncate(&mut self, size: u64) {
        self.data.resize(size as usize, 0);
        self.change(DataChange::Truncate { size });
        self.size_min = self.size_min.min(size);
        self.size_max = self.size_max.max(size);
    }

    /// What fallocate does to the range; allocation does nothing that can be seen.
    pub fn fallocate(&mut self, what: Fallocate, offset: u64, len: u64) {
        let end = (offset + len).min(self.data.len() as u64);
        match what {
            Fallocate::Allocate { .. } => {}
            Fallocate::PunchHole | Fallocate::ZeroRange { .. } => {
                if offset < end {
                    self.data[offset as usize..end as usize].fill(0);
                    self.change(DataChange::Zeros { offset, end });
                }
            }
            Fallocate::CollapseRange => self.shift(offset, end, |c| {
                c.data.drain(offset as usize..end as usize);
            }),
            Fallocate::InsertRange => self.shift(offset, offset, |c| {
                let at = offset as usize;
                c.data.splice(at..at, std::iter::repeat_n(0, len as usize));
            }),
        }
    }

    /// What is behind `to` moves as `shift` moves it; what is between `from` and `to` goes.
    fn shift(&mut self, from: u64, to: u64, shift: impl FnOnce(&mut Content)) {
        let before = self.clone();
        shift(self);
        let by = self.data.len() as i64 - before.data.len() as i64;
        let moved = |at: u64| at.saturating_add_signed(by);
        let changes = std::mem::take(&mut self.changes);
        for Change { number, what } in changes {
            let mut keep = |what| self.changes.push(Change { number, what });
            match what {
                DataChange::Write { index, offset, end, moved: before } => {
                    if offset < from {
                        keep(DataChange::Write {
                            index,
                            offset,
                            end: end.min(from),
                            moved: before,
                        });
                    }
                    if end > to {
                        let (offset, end) = (moved(offset.max(to)), moved(end));
                        keep(DataChange::Write { index, offset, end, moved: before + by });
                    }
                }
                DataChange::Zeros { offset, end } => {
                    if offset < from {
                        keep(DataChange::Zeros { offset, end: end.min(from) });
                    }
                    if end > to {
                        keep(DataChange::Zeros { offset: moved(offset.max(to)), end: moved(end) });
                    }
                }
                DataChange::Truncate { size } if size <= from => keep(what),
                DataChange::Truncate { size } => {
                    keep(DataChange::Truncate { size: moved(size.max(to)) })
                }
            }
        }
        let mut promised = self.promised.clone();
        promised.resize(before.data.len().max(promised.len()), 0);
        let tail = promised.split_off(to as usize);
        promised.truncate(from as usize);
        promised.resize(moved(to) as usize, 0);
        promised.extend(tail);
        self.promised = promised;
        let size = self.data.len() as u64;
        self.last += 1;
        if by > 0 {
            let what = DataChange::Zeros { offset: from, end: moved(to) };
            self.changes.push(Change { number: self.last, what });
        }
        // A shift is made in one transaction, after all that was written before: the file is as it
        // was or has this size.
        (self.size_min, self.size_max) = (size, size);
        self.sizes = vec![(self.last, size)];
        self.before = Some(Box::new(MoveOrigin { content: before, from, to, by }));
    }

    /// All of it was promised: fsync, sync.
    pub fn promise_all(&mut self) {
        self.promised.clear();
        self.promised.resize(self.data.len(), self.last);
        self.size_min = self.data.len() as u64;
        self.size_max = self.size_min;
        self.sizes = vec![(self.last, self.size_min)];
        self.before = None;
    }

    /// This part was promised: O_SYNC.
    pub fn promise(&mut self, offset: u64, len: u64) {
        let (from, to) = (offset as usize, (offset + len) as usize);
        if self.promised.len() < to {
            self.promised.resize(to, 0);
        }
        self.promised[from..to].fill(self.last);
        self.size_min = self.size_min.max(to as u64);
        self.before = None;
    }

    /// Whether a cut may have left `found`. `stale_allowed`: what was not promised may be
    /// anything.
    pub fn judge(&self, found: &[u8], stale_allowed: bool) -> Result<(), Fault> {
        let now = self.judge_as_it_is(found, stale_allowed);
        match &self.before {
            Some(before) if now.is_err() => before.content.judge(found, stale_allowed).or(now),
            _ => now,
        }
    }

    fn judge_as_it_is(&self, found: &[u8], stale_allowed: bool) -> Result<(), Fault> {
        let size = found.len() as u64;
        if size < self.size_min || size > self.size_max {
            let (min, max) = (self.size_min, self.size_max);
            let what = format!("{size} bytes long, not {min} to {max}");
            return Err(if size < min { Fault::Broken(what) } else { Fault::Stale(what) });
        }
        // Most are as they were written.
        if found == self.data && self.promised.len() <= found.len() {
            return Ok(());
        }
        let shown = if stale_allowed { 0 } else { self.shown_by(size) };
        for at in 0..found.len().max(self.promised.len()) {
            let value = found.get(at).copied();
            if value.is_some() && value == self.data.get(at).copied() {
                continue;
            }
            self.judge_byte(at, value, stale_allowed, shown)?;
        }
        Ok(())
    }

    /// The last change that must have happened where the file is found so long. Sizes are put down
    /// in their order, and with a smaller one the zeros behind it; a write that makes the file
    /// longer may do so step by step, whole sectors each.
    fn shown_by(&self, size: u64) -> u32 {
        let may_be_on_the_way = |to: u64| size.is_multiple_of(SECTOR) && size < to;
        let first = self.sizes.iter().find(|(_, s)| *s == size || may_be_on_the_way(*s));
        first.map_or(0, |(number, _)| *number)
    }

    /// What was done to a place, in words.
    fn describe(&self, at: usize) -> String {
        let place = at as u64;
        let promised = self.promised.get(at).copied().unwrap_or(0);
        let changes = self.changes.iter().filter_map(|Change { number, what }| {
            let kept = if *number <= promised { " (promised)" } else { "" };
            match *what {
                DataChange::Write { index, offset, end, moved }
                    if (offset..end).contains(&place) =>
                {
                    let value = byte(self.task, index, place.saturating_add_signed(-moved));
                    Some(format!("operation {index} wrote {value} in {offset}..{end}{kept}"))
                }
                DataChange::Zeros { offset, end } if (offset..end).contains(&place) => {
                    Some(format!("zeros in {offset}..{end}{kept}"))
                }
                DataChange::Truncate { size } => Some(format!("truncated to {size}{kept}")),
                DataChange::Write { .. } | DataChange::Zeros { .. } => None,
            }
        });
        let changes: Vec<String> = changes.collect();
        if changes.is_empty() { "never written".into() } else { changes.join(", ") }
    }

    /// `None`: beyond the end of the file. Changes up to `shown` have happened as far as they are
    /// truncations.
    fn judge_byte(
        &self,
        at: usize,
        value: Option<u8>,
        stale: bool,
        shown: u32,
    ) -> Result<(), Fault> {
        let promised = self.promised.get(at).copied().unwrap_or(0);
        let place = at as u64;
        let mut zero_allowed = promised == 0;
        // The newest change of this place that was promised, and all later ones.
        let mut base_seen = promised == 0;
        for Change { number, what } in self.changes.iter().rev() {
            let candidate = match *what {
                DataChange::Write { index, offset, end, moved }
                    if (offset..end).contains(&place) =>
                {
                    Some(byte(self.task, index, place.saturating_add_signed(-moved)))
                }
                DataChange::Zeros { offset, end } if (offset..end).contains(&place) => None,
                DataChange::Truncate { size } if size <= place => None,
                _ => continue,
            };
            match candidate {
                Some(b) if value == Some(b) => return Ok(()),
                Some(_) => {}
                None => zero_allowed = true,
            }
            let cut = matches!(what, DataChange::Truncate { .. }) && *number <= shown;
            if *number <= promised || cut {
                base_seen = true;
                break;
            }
        }
        // Promised before anything was written here: a hole.
        zero_allowed |= !base_seen;
        if zero_allowed && value.unwrap_or(0) == 0 {
            return Ok(());
        }
        let untouched = self.last <= promised;
        let what = format!("byte {at} is {value:?}, {}", self.describe(at));
        match (promised > 0, value) {
            (true, None | Some(0)) => Err(Fault::Broken(what)),
            (true, _) if untouched || !stale => Err(Fault::Broken(what)),
            (false, Some(_)) if !stale => Err(Fault::Stale(what)),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests;
