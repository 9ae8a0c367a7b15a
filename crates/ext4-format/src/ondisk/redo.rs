//! A superblock that changes as a whole where a power cut keeps single words.
//!
//! Memory keeps aligned words of 8 bytes, and the log cannot hold every write of the superblock: a
//! replay and an unmount take the flag away by which the log counts, and a file system that gets
//! another journal names it there. So what is to change is written down first, in a part of the
//! superblock that has no meaning (`s_reserved`), and taken away when it has been done.
//!
//! # Order
//!
//! Each step is durable before the next. Of the words of a step a cut may leave any.
//!
//! 1. The area is marked: one word, which has four bytes that keep the checksum right.
//! 2. The record: which groups of four bytes change and what they will be, the checksum among
//!    them; a hash of the superblock that comes of it; and one of the record.
//! 3. The change itself.
//! 4. The record goes, but for the mark.
//! 5. The mark goes.
//!
//! # What is found
//!
//! Without the mark the superblock is what it is. With it, and a record that is whole and makes
//! the superblock that it says, it is that one: step 2 was finished, step 4 not. Else it is the
//! one without the area: the old one before step 3, the new one after it.
//!
//! The hashes are no crc32c: the home mark, and what `atomic_write` writes, are made to change no
//! crc32c, neither of the superblock nor of a record that they are in. And the crc32c of a
//! superblock with its checksum is the same for all.
//!
//! While there is a record the checksum is wrong, so that nobody who does not know it changes the
//! superblock meanwhile and has his change undone.

use std::ops::Range;

use zerocopy::IntoBytes;

use super::atomic_write::Balance;
use super::{SUPERBLOCK_LEN, Superblock};

/// The last part of `s_reserved`, in whole words.
const AREA: Range<usize> = 0x2a8..0x3f8;
const MARK: Range<usize> = AREA.start..AREA.start + 4;
/// Hash of what follows in the area.
const SUM: Range<usize> = AREA.start + 8..AREA.start + 16;
/// Hash of the superblock that comes of it.
const RESULT: Range<usize> = SUM.end..SUM.end + 8;
/// A bit for each four bytes of the superblock.
const CHANGED: Range<usize> = RESULT.end..RESULT.end + SUPERBLOCK_LEN / 32;
/// What they will be, one after the other.
const VALUES: Range<usize> = CHANGED.end..AREA.end;

const MAGIC: [u8; 4] = *b"Redo";
/// Bytes that a cut leaves old or new.
const WORD: usize = 8;

/// The second half of the mark's word: four bytes that can give the superblock any checksum.
static SLACK: Balance = Balance::new(MARK.end);

const _: () = {
    assert!(std::mem::offset_of!(Superblock, reserved) <= AREA.start);
    assert!(std::mem::offset_of!(Superblock, checksum) >= AREA.end);
    assert!(AREA.start.is_multiple_of(WORD) && AREA.end.is_multiple_of(WORD));
};

/// FNV-1a of 64 bits, little-endian.
fn hash(bytes: &[u8]) -> [u8; 8] {
    let each = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3);
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, each).to_le_bytes()
}

impl Superblock {
    /// As [`parse_unchecked`](Self::parse_unchecked), with a change that a cut has interrupted
    /// finished, or undone if it had not begun.
    ///
    /// # Errors
    /// Too few bytes or no magic.
    pub fn parse_mended(bytes: &[u8]) -> crate::error::Result<Superblock> {
        let found = Superblock::parse_unchecked(bytes)?;
        Ok(found.mended().unwrap_or(found))
    }

    /// What is to be durable, one after the other, for this superblock to become `new`; `new` is
    /// the last. `None` if that is not possible: one of the two is damaged, or somebody uses the
    /// area, or too much changes at a time.
    pub(crate) fn steps_to(&self, new: &Superblock) -> Option<Vec<Superblock>> {
        let unused = |sb: &Superblock| sb.as_bytes()[AREA].iter().all(|byte| *byte == 0);
        if !(unused(self) && unused(new) && self.checksum_ok() && new.checksum_ok()) {
            return None;
        }
        let words = (0..SUPERBLOCK_LEN).step_by(WORD);
        let differs =
            |at: &usize, len| self.as_bytes()[*at..at + len] != new.as_bytes()[*at..at + len];
        if words.filter(|at| differs(at, WORD)).count() <= 1 {
            return Some(vec![*new]);
        }
        let changed: Vec<usize> =
            (0..SUPERBLOCK_LEN).step_by(4).filter(|at| differs(at, 4)).collect();
        if changed.len() > VALUES.len() / 4 {
            return None;
        }
        let marked = self.marked();
        let mut recorded = marked;
        let bytes = recorded.as_mut_bytes();
        for (value, at) in VALUES.step_by(4).zip(&changed) {
            bytes[CHANGED.start + at / 32] |= 1 << (at / 4 % 8);
            bytes[value..value + 4].copy_from_slice(&new.as_bytes()[*at..at + 4]);
        }
        bytes[RESULT].copy_from_slice(&hash(new.as_bytes()));
        let sum = hash(&bytes[SUM.end..AREA.end]);
        bytes[SUM].copy_from_slice(&sum);
        Some(vec![marked, recorded, new.with_area_of(&recorded), new.marked(), *new])
    }

    /// The superblock that this one is while it is being changed, or after that was interrupted;
    /// `None` if it is not, or damaged.
    pub(crate) fn mended(&self) -> Option<Superblock> {
        if self.as_bytes()[MARK] != MAGIC {
            return None;
        }
        let whole = |sb: &Superblock| sb.checksum_ok();
        self.recorded().filter(whole).or_else(|| Some(self.without_area()).filter(whole))
    }

    /// As [`steps_to`](Self::steps_to), for this superblock to become what it is
    /// [`mended`](Self::mended); none if it is whole.
    pub(crate) fn steps_to_mended(&self) -> Vec<Superblock> {
        let Some(whole) = self.mended() else { return Vec::new() };
        let again = self.recorded().map(|_| whole.with_area_of(self));
        again.into_iter().chain([whole.marked(), whole]).collect()
    }

    /// What comes of the record; `None` if there is none that is whole and of this superblock.
    fn recorded(&self) -> Option<Superblock> {
        let bytes = self.as_bytes();
        if bytes[SUM] != hash(&bytes[SUM.end..AREA.end]) {
            return None;
        }
        let mut redone = self.without_area();
        let bit = |at: &usize| bytes[CHANGED.start + at / 32] >> (at / 4 % 8) & 1 == 1;
        let changed = (0..SUPERBLOCK_LEN).step_by(4).filter(bit);
        for (value, at) in VALUES.step_by(4).zip(changed) {
            redone.as_mut_bytes()[at..at + 4].copy_from_slice(&bytes[value..value + 4]);
        }
        (bytes[RESULT] == hash(redone.as_bytes())).then_some(redone)
    }

    fn without_area(&self) -> Superblock {
        let mut without = *self;
        without.as_mut_bytes()[AREA].fill(0);
        without
    }

    fn with_area_of(&self, other: &Superblock) -> Superblock {
        let mut with = *self;
        with.as_mut_bytes()[AREA].copy_from_slice(&other.as_bytes()[AREA]);
        with
    }

    /// With the mark alone in the area; the checksum is as right as it is.
    fn marked(&self) -> Superblock {
        let mut marked = self.without_area();
        let before = marked.computed_checksum();
        marked.as_mut_bytes()[MARK].copy_from_slice(&MAGIC);
        let slack = SLACK.of(marked.computed_checksum() ^ before, 0);
        marked.as_mut_bytes()[MARK.end..SUM.start].copy_from_slice(&slack.to_le_bytes());
        marked
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ondisk::{Compat, Incompat, RoCompat};

    fn superblock(summed: bool) -> Superblock {
        let mut sb = Superblock::zeroed();
        sb.magic.set(crate::ondisk::SUPERBLOCK_MAGIC);
        sb.uuid = [7; 16];
        if summed {
            sb.feature_ro_compat.set(RoCompat::METADATA_CSUM.bits());
        }
        sb.update_checksum();
        sb
    }

    /// Another journal, and what is mounted: more than ever changes at a time.
    fn another(old: &Superblock) -> Superblock {
        let mut new = *old;
        new.feature_compat.set(Compat::HAS_JOURNAL.bits());
        new.feature_incompat.set(Incompat::NEEDS_RECOVERY.bits());
        new.journal_uuid = [9; 16];
        new.journal_device.set(77);
        new.mount_count.set(1);
        new.set_free_blocks(12345);
        new.write_time_hi = 1;
        new.update_checksum();
        new
    }

    /// Every superblock of which any words are of `new` and the others of `old`.
    fn torn(old: &Superblock, new: &Superblock, mut each: impl FnMut(Superblock)) {
        let of = |sb: &Superblock, at: usize| number_of_word(&sb.as_bytes()[at..at + WORD]);
        let words: Vec<usize> =
            (0..SUPERBLOCK_LEN).step_by(WORD).filter(|at| of(old, *at) != of(new, *at)).collect();
        assert!(words.len() <= 24, "{} words: too many to try all", words.len());
        let mut mixed = *old;
        for set in 0..1u32 << words.len() {
            // In Gray's order one word changes at a time.
            if set > 0 {
                let at = words[set.trailing_zeros() as usize];
                let from = if of(&mixed, at) == of(old, at) { new } else { old };
                mixed.as_mut_bytes()[at..at + WORD]
                    .copy_from_slice(&from.as_bytes()[at..at + WORD]);
            }
            each(mixed);
        }
    }

    fn number_of_word(bytes: &[u8]) -> u64 {
        u64::from_le_bytes([0, 1, 2, 3, 4, 5, 6, 7].map(|i| bytes[i]))
    }

    fn whole(found: &Superblock) -> Superblock {
        let whole = found.mended().unwrap_or(*found);
        assert!(whole.checksum_ok());
        whole
    }

    #[test]
    fn any_words_of_any_step_are_the_old_one_or_the_new_one() {
        for summed in [false, true] {
            let old = superblock(summed);
            let new = another(&old);
            let steps = old.steps_to(&new).unwrap();
            assert_eq!((steps.len(), steps[4]), (5, new));
            let (mut before, mut states) = (old, 0);
            for (number, step) in steps.iter().enumerate() {
                torn(&before, step, |found| {
                    states += 1;
                    let is = whole(&found);
                    match number {
                        0 => assert_eq!(is, old),
                        1 => assert!(is == old || found == *step && is == new),
                        _ => assert_eq!(is, new),
                    }
                });
                before = *step;
            }
            assert!(states > 700, "{states}");
        }
    }

    /// What changes no crc32c, and what is taken away, are among what changes.
    #[test]
    fn a_home_mark_comes_and_goes() {
        let mut old = superblock(true);
        old.feature_compat.set(Compat::HAS_JOURNAL.bits());
        old.feature_incompat.set(Incompat::NEEDS_RECOVERY.bits());
        old.journal_uuid = [9; 16];
        old.mount_time.set(1_700_000_000);
        old.update_checksum();
        let mut marked = old;
        // An even number of groups before the mark, and none of its own that stays: its words are
        // whole words of the record.
        marked.set_free_blocks(9);
        marked.mount_count.set(1);
        marked.update_checksum();
        marked.set_home_mark(steadfast_journal::Tid(10));
        for (from, to) in [(old, marked), (marked, old)] {
            let mut before = from;
            for step in from.steps_to(&to).unwrap() {
                torn(&before, &step, |found| {
                    let is = whole(&found);
                    assert!(is == from || is == to);
                });
                before = step;
            }
            assert_eq!(before, to);
        }
    }

    /// Who finishes it may be cut too.
    #[test]
    fn finished_in_steps_that_can_be_cut() {
        let old = superblock(true);
        let new = another(&old);
        let steps = old.steps_to(&new).unwrap();
        let mut before = old;
        for step in &steps {
            // Half of each step: every second word of it.
            let mut half = before;
            for at in (0..SUPERBLOCK_LEN).step_by(2 * WORD) {
                half.as_mut_bytes()[at..at + WORD].copy_from_slice(&step.as_bytes()[at..at + WORD]);
            }
            let is = whole(&half);
            let mut at = half;
            for finishing in half.steps_to_mended() {
                torn(&at, &finishing, |found| assert_eq!(whole(&found), is));
                at = finishing;
            }
            assert_eq!(at, is);
            before = *step;
        }
    }

    #[test]
    fn what_others_have_changed_meanwhile_is_kept() {
        let old = superblock(true);
        let steps = old.steps_to(&another(&old)).unwrap();
        // The mark alone: the checksum is right, so anybody may go on with it.
        for marked in [&steps[0], &steps[3]] {
            assert!(marked.checksum_ok());
            let mut changed = *marked;
            changed.errors.set(3);
            changed.update_checksum();
            let mut wanted = changed.without_area();
            wanted.update_checksum();
            assert_eq!(changed.mended(), Some(wanted));
        }
        // With a record it is wrong; who mends it all the same is not undone.
        assert!(!steps[1].checksum_ok() && !steps[2].checksum_ok());
        let mut changed = steps[2];
        changed.errors.set(3);
        assert_eq!(changed.mended(), None);
        // What is there already is nobody's of ours, and stays.
        let mut used = old;
        used.reserved[40].set(1);
        used.update_checksum();
        assert!(used.steps_to(&another(&used)).is_none() && used.mended().is_none());
    }

    #[test]
    fn a_word_is_written_as_it_is() {
        let old = superblock(false);
        let mut new = old;
        new.feature_incompat.set(Incompat::NEEDS_RECOVERY.bits());
        assert_eq!(old.steps_to(&new).unwrap(), [new]);
    }
}
