//! The writes over a place in a file, found without a look at all of them.

use steadfast_block::pattern::{self, SECTOR, Stamp};

use super::SectorState;
use crate::account::{Action, Operation};

/// The writes of a file by where they begin, in classes of lengths: those of class `n` are shorter
/// than 2^n bytes, so that one that lies over a place begins less than that before it.
pub(super) struct WritesAt(Vec<Vec<(u64, u64, usize)>>);

impl WritesAt {
    /// Of operations in the order in which they started.
    pub fn of(ops: &[&Operation]) -> WritesAt {
        let mut classes = Vec::new();
        for (i, op) in ops.iter().enumerate() {
            let Action::Write { offset, len, .. } = op.action else { continue };
            let class = (u64::BITS - len.leading_zeros()) as usize;
            if classes.len() <= class {
                classes.resize_with(class + 1, Vec::new);
            }
            classes[class].push((offset, offset + len, i));
        }
        classes.iter_mut().for_each(|class| class.sort_unstable());
        WritesAt(classes)
    }

    /// The indices of those that lie over the byte `here`, ascending.
    fn over(&self, here: u64) -> Vec<usize> {
        let mut found = Vec::new();
        for (class, writes) in self.0.iter().enumerate() {
            let longest = 1u64.checked_shl(class as u32).map_or(u64::MAX, |end| end - 1);
            let from = writes.partition_point(|(start, ..)| here - here.min(*start) >= longest);
            let near = writes[from..].iter().take_while(|(start, ..)| *start <= here);
            found.extend(near.filter(|(_, end, _)| *end > here).map(|(.., i)| *i));
        }
        found.sort_unstable();
        found
    }

    /// Whose words a sector at `here` holds, if each is that of a write of this place, or zeros.
    pub fn words(&self, bytes: &[u8], here: u64, ops: &[&Operation]) -> SectorState {
        const WORD: usize = 8;
        let is_zero = |word: &[u8]| word.iter().all(|b| *b == 0);
        let mut owners: Vec<Option<usize>> = vec![None; bytes.len() / WORD];
        let mut sector = [0; SECTOR];
        // Of two writes that agree in a word, the newer.
        for i in self.over(here) {
            let Action::Write { tag, .. } = ops[i].action else { continue };
            pattern::fill_sector(Stamp { tag, position: here }, &mut sector);
            let both = bytes.chunks_exact(WORD).zip(sector.chunks_exact(WORD));
            for (owner, (found, written)) in owners.iter_mut().zip(both) {
                if found == written {
                    *owner = Some(i);
                }
            }
        }
        let each = || bytes.chunks_exact(WORD).zip(&owners);
        if !bytes.len().is_multiple_of(WORD) || each().any(|(w, o)| o.is_none() && !is_zero(w)) {
            return SectorState::Stale;
        }
        let zeros = each().any(|(_, owner)| owner.is_none());
        let known = || owners.iter().flatten().copied();
        match known().min().zip(known().max()) {
            Some((oldest, newest)) => SectorState::Words { oldest, newest, zeros },
            None => SectorState::Nothing,
        }
    }
}

#[cfg(test)]
mod tests {
    use steadfast_block::rng::Rng;
    use steadfast_devices::filter::record::Moment;
    use steadfast_runtime::Nanos;

    use super::*;

    #[test]
    fn finds_what_a_look_at_all_of_them_finds() {
        let mut rng = Rng::new(1);
        let started = Moment { tick: 1, at: Nanos(1) };
        let ops: Vec<Operation> = (0..300)
            .map(|tag| {
                let (offset, most) = (rng.below(5000), 1 << rng.below(12));
                let len = rng.below(most);
                let action = Action::Write { offset, len, tag };
                Operation { action, started, acknowledged: None, durable: None }
            })
            .collect();
        let ops: Vec<&Operation> = ops.iter().collect();
        let writes = WritesAt::of(&ops);
        for here in 0..6000 {
            let lies_over = |op: &Operation| match op.action {
                Action::Write { offset, len, .. } => (offset..offset + len).contains(&here),
                _ => false,
            };
            let all: Vec<usize> = (0..ops.len()).filter(|i| lies_over(ops[*i])).collect();
            assert_eq!(writes.over(here), all, "at {here}");
        }
    }
}
