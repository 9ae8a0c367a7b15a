//! Runs of free blocks that growing files have a first right to.

use std::collections::BTreeMap;

use steadfast_ext4_format::ondisk::InodeNo;

/// At most one window a file; windows do not overlap.
#[derive(Debug, Default)]
pub(crate) struct Windows {
    by_start: BTreeMap<u64, (u64, InodeNo)>,
    by_owner: BTreeMap<InodeNo, u64>,
}

impl Windows {
    /// Gives `owner` the window `[start, end)` instead of the one it has.
    pub fn set(&mut self, owner: InodeNo, start: u64, end: u64) {
        self.remove(owner);
        if start < end && self.others(start, end, owner).next().is_none() {
            self.by_start.insert(start, (end, owner));
            self.by_owner.insert(owner, start);
        }
    }

    pub fn remove(&mut self, owner: InodeNo) {
        if let Some(start) = self.by_owner.remove(&owner) {
            self.by_start.remove(&start);
        }
    }

    pub fn clear(&mut self) {
        self.by_start.clear();
        self.by_owner.clear();
    }

    pub fn is_empty(&self) -> bool {
        self.by_start.is_empty()
    }

    /// The owner's window.
    pub fn of(&self, owner: InodeNo) -> Option<(u64, u64)> {
        let start = *self.by_owner.get(&owner)?;
        Some((start, self.by_start.get(&start)?.0))
    }

    /// The parts of `[start, end)` that are in windows of others than `owner`.
    pub fn others(
        &self,
        start: u64,
        end: u64,
        owner: InodeNo,
    ) -> impl Iterator<Item = (u64, u64)> + '_ {
        let before = self.by_start.range(..start).next_back();
        let first = before.filter(|(_, (e, _))| *e > start).map_or(start, |(s, _)| *s);
        self.by_start
            .range(first..end.max(first))
            .filter(move |(_, (_, o))| *o != owner)
            .map(move |(s, (e, _))| ((*s).max(start), (*e).min(end)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_do_not_overlap_and_hide_from_their_owner() {
        let mut w = Windows::default();
        w.set(InodeNo(1), 10, 20);
        w.set(InodeNo(2), 15, 30);
        assert_eq!(w.of(InodeNo(2)), None);
        w.set(InodeNo(2), 20, 30);
        let seen = |owner| w.others(12, 25, InodeNo(owner)).collect::<Vec<_>>();
        assert_eq!(seen(1), [(20, 25)]);
        assert_eq!(seen(2), [(12, 20)]);
        assert_eq!(seen(3), [(12, 20), (20, 25)]);
        w.set(InodeNo(1), 40, 50);
        assert_eq!(w.others(0, 100, InodeNo(3)).collect::<Vec<_>>(), [(20, 30), (40, 50)]);
    }
}
