//! The home mark: how much of an external journal the disk must not do without.
//!
//! A checkpoint writes blocks of committed transactions home. From then on the disk fits only a log
//! that goes at least as far as the newest of them: replaying one that ends earlier, a copy of the
//! journal from before, writes old blocks beside new ones. So the disk remembers that transaction's
//! number, the *home mark*.
//!
//! # Where it is
//!
//! In the superblock's copy of the journal inode's map (`s_jnl_blocks`, 17 words). With an external
//! journal there is no such inode, so the kernel and e2fsprogs neither go by the words nor write
//! them, and keep them. `s_jnl_backup_type` is left alone: 0, but 1 where there was a journal
//! inside before; dumpe2fs then prints the words, and e2fsck still asks `s_journal_inum` first.
//! When a file system gets a journal inside, who puts it there writes its map over the mark.
//!
//! | word | what |
//! |---|---|
//! | 0 | [`MAGIC`] |
//! | 1 | the transaction's number |
//! | 2 | what keeps the superblock's checksum as it is; without one, the crc32c of word 1 |
//! | 3 | low half of `s_mtime` |
//! | 4 | `s_mnt_count`, and `s_mtime_hi` above it |
//! | 5 to 8 | `s_journal_uuid` |
//! | 9 | crc32c of the file system's UUID and words 0 and 3 to 8 |
//!
//! # Whose it is
//!
//! Transaction numbers mean something within one journal and one mount: e2fsck may begin again at
//! lower ones when it has replayed a log, a journal made anew starts at its own. So a mark counts
//! only together with the journal and the mount (words 3 to 8) that the superblock names as its
//! last. Whoever mounts next, a kernel say, changes the superblock's time and count of mounts, and
//! thereby takes the mark back; he does not need to know it.
//!
//! # How it is written
//!
//! Words 1 and 2 are the only ones that change while a file system is mounted. They are one aligned
//! group of 8 bytes in the superblock's first sector, and word 2 is chosen so that the superblock's
//! checksum stays what it is (as in `atomic_write`). So no power cut can tear it, on a disk or on
//! memory, and a superblock with any mark is whole.

use steadfast_journal::Tid;

use super::Superblock;
use super::atomic_write::Balance;
use super::csum::crc32c;
use crate::ondisk::Incompat;

const MAGIC: u32 = 0x4b72_4d48;
/// Words of the mark.
const WORDS: usize = 10;
const NUMBER: usize = 1;
const BALANCE: usize = 2;
const CHECK: usize = 9;

/// Byte of the superblock where the words that change begin.
pub const CHANGES_AT: usize = std::mem::offset_of!(Superblock, journal_blocks) + 4;

/// Word 2 as a place whose four bytes can give the superblock any checksum.
static SLACK: Balance = Balance::new(CHANGES_AT + 4);

const _: () = {
    assert!(CHANGES_AT.is_multiple_of(8));
    assert!(CHANGES_AT + 8 <= 512);
};

impl Superblock {
    /// The newest transaction of the external journal that is home in part, if this is known. Of a
    /// superblock whose checksum is right.
    pub fn home_mark(&self) -> Option<Tid> {
        let words = &self.journal_blocks;
        let tid = words[NUMBER].get();
        let mut wanted = *self;
        wanted.write_mark(tid);
        let wanted = &wanted.journal_blocks;
        let named = (0..WORDS).filter(|i| *i != BALANCE);
        let ours = self.has_external_journal() && named.into_iter().all(|i| words[i] == wanted[i]);
        let summed = self.features().metadata_csum();
        (ours && (summed || words[BALANCE] == wanted[BALANCE])).then_some(Tid(tid))
    }

    /// Sets the home mark, or takes it away where nothing is to be replayed. The checksum stays
    /// what it is, and as right as it is.
    pub fn set_home_mark(&mut self, tid: Tid) {
        if !self.features().incompat.contains(Incompat::NEEDS_RECOVERY) {
            return;
        }
        let right = self.checksum_ok();
        self.write_mark(tid.0);
        if right && self.features().metadata_csum() {
            let difference = self.computed_checksum() ^ self.checksum.get();
            let slack = SLACK.of(difference, self.journal_blocks[BALANCE].get());
            self.journal_blocks[BALANCE].set(slack);
            debug_assert!(self.checksum_ok(), "every difference can be made up for");
        }
    }

    /// Takes the home mark away, if there is one; the checksum is for the caller to mend.
    pub fn clear_home_mark(&mut self) {
        if self.has_external_journal() && self.journal_blocks[0].get() == MAGIC {
            self.journal_blocks = [0.into(); 17];
        }
    }

    /// All words, as of a file system without `metadata_csum`.
    fn write_mark(&mut self, tid: u32) {
        let mount = u32::from(self.mount_count.get()) | u32::from(self.mount_time_hi) << 16;
        let mut words = [0u32; WORDS];
        words[0] = MAGIC;
        words[3] = self.mount_time.get();
        words[4] = mount;
        for (word, bytes) in words[5..CHECK].iter_mut().zip(self.journal_uuid.chunks_exact(4)) {
            // OK to unwrap: the chunks have four bytes.
            *word = u32::from_le_bytes(bytes.try_into().unwrap());
        }
        let sum = |seed, words: &[u32]| {
            words.iter().fold(seed, |sum, word| crc32c(sum, &word.to_le_bytes()))
        };
        let seed = crc32c(!0, &self.uuid);
        words[CHECK] = sum(sum(seed, &words[..1]), &words[3..CHECK]);
        words[NUMBER] = tid;
        words[BALANCE] = sum(words[CHECK], &words[NUMBER..=NUMBER]);
        for (slot, word) in self.journal_blocks.iter_mut().zip(words) {
            slot.set(word);
        }
    }
}

#[cfg(test)]
mod tests {
    use zerocopy::IntoBytes;

    use super::*;
    use crate::ondisk::{Compat, RoCompat};

    fn mounted(summed: bool) -> Superblock {
        let mut sb = Superblock::zeroed();
        sb.feature_compat.set(Compat::HAS_JOURNAL.bits());
        sb.feature_incompat.set(Incompat::NEEDS_RECOVERY.bits());
        if summed {
            sb.feature_ro_compat.set(RoCompat::METADATA_CSUM.bits());
        }
        sb.uuid = [7; 16];
        sb.journal_uuid = [9; 16];
        sb.mount_time.set(1_700_000_000);
        sb.mount_count.set(3);
        sb.update_checksum();
        sb
    }

    #[test]
    fn eight_bytes_change_and_the_checksum_stays() {
        for summed in [false, true] {
            let mut sb = mounted(summed);
            assert_eq!(sb.home_mark(), None);
            sb.set_home_mark(Tid(5));
            let checksum = sb.checksum;
            for tid in [5, 6, 7_000, u32::MAX, 0].map(Tid) {
                let before = sb;
                sb.set_home_mark(tid);
                assert_eq!(sb.home_mark(), Some(tid));
                assert!(sb.checksum_ok() && sb.checksum == checksum);
                let changed = (0..1024).filter(|i| sb.as_bytes()[*i] != before.as_bytes()[*i]);
                assert!(changed.into_iter().all(|i| (CHANGES_AT..CHANGES_AT + 8).contains(&i)));
            }
            sb.clear_home_mark();
            assert!(sb.home_mark().is_none() && sb.journal_blocks.iter().all(|w| w.get() == 0));
        }
    }

    #[test]
    fn it_is_of_one_mount_and_one_journal() {
        type Change = fn(&mut Superblock);
        let changes: [Change; 5] = [
            |sb| sb.mount_time.set(1_700_000_001),
            |sb| sb.mount_count.set(4),
            |sb| sb.journal_uuid[3] = 0,
            |sb| sb.uuid[3] = 0,
            |sb| sb.journal_inode.set(8),
        ];
        for change in changes {
            let mut sb = mounted(true);
            sb.set_home_mark(Tid(5));
            change(&mut sb);
            sb.update_checksum();
            assert_eq!(sb.home_mark(), None);
        }
        // Without a checksum of the superblock a changed number is noticed all the same.
        let mut sb = mounted(false);
        sb.set_home_mark(Tid(5));
        sb.journal_blocks[NUMBER].set(6);
        assert_eq!(sb.home_mark(), None);
        // One that needs no recovery gets none.
        let mut sb = mounted(true);
        sb.feature_incompat.set(0);
        sb.set_home_mark(Tid(5));
        assert_eq!(sb.home_mark(), None);
    }

    /// What is no journal's map is not taken for one.
    #[test]
    fn it_is_no_copy_of_an_inode() {
        let mut sb = mounted(true);
        sb.set_home_mark(Tid(5));
        assert!(sb.journal_backup().is_none());
    }
}
