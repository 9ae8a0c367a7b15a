//! Writing the journal superblock of a journal in use: one writer at a time.
//!
//! The superblock says where recovery begins. It is written when the first transaction goes into
//! a clean log, when a checkpoint has moved the tail, when the log is clean again, and when the
//! journal is aborted. Its block is written whole, and only the first sector changes.
//!
//! If sectors can tear, a power cut may leave any 8-byte words old. The incompatible features are
//! in one word, and determine the meaning of other words; so they change in a write of their own.

use std::ops::Range;

use bytes::Bytes;
use steadfast_runtime::Mutex;

use crate::ondisk::features::JournalFeatures;
use crate::ondisk::superblock::JournalSuperblock;
use crate::{Log, LogBlock, Result, Tid};

struct CurrentSuperblock {
    sb: JournalSuperblock,
    /// The whole block; what lies beyond the superblock is kept.
    block: Vec<u8>,
}

/// The superblock; the lock is held while it is written.
pub(crate) struct SuperblockWriter {
    log: Log,
    inner: Mutex<CurrentSuperblock>,
}

impl SuperblockWriter {
    pub(crate) fn new(log: Log, sb: JournalSuperblock, block: &[u8]) -> Self {
        SuperblockWriter { log, inner: Mutex::new(CurrentSuperblock { sb, block: block.to_vec() }) }
    }

    pub(crate) fn get(&self) -> JournalSuperblock {
        self.inner.lock().sb
    }

    /// Writes the superblock as changed by `change`; durable on return if `durable`. `change` runs
    /// under the lock, so it sees the last written state; if it returns `None` nothing is written.
    pub(crate) fn update(
        &self,
        durable: bool,
        change: impl FnOnce(&mut JournalSuperblock) -> Option<()>,
    ) -> Result<()> {
        let mut inner = self.inner.lock();
        let mut sb = inner.sb;
        if change(&mut sb).is_none() {
            return Ok(());
        }
        inner.sb = sb;
        let new = sb.encode();
        if self.log.tears_sectors() {
            for step in steps_to_features(&inner.block, &new) {
                self.log.write_block(self.log.superblock_at(), step.into(), true)?;
            }
        }
        inner.block[..JournalSuperblock::BYTES].copy_from_slice(&new);
        let block = Bytes::copy_from_slice(&inner.block);
        self.log.write_block(self.log.superblock_at(), block, durable)
    }

    pub(crate) fn set_tail(&self, start: LogBlock, tid: Tid, durable: bool) -> Result<()> {
        self.update(durable, |sb| {
            sb.set_tail(Some(start), tid);
            Some(())
        })
    }
}

/// The word with the incompatible features, and the word whose meaning they determine: the checksum
/// type, and the number of fast-commit blocks.
const INCOMPAT: Range<usize> = 0x28..0x30;
const MEANT: Range<usize> = 0x50..0x58;

/// States that must be durable, one after the other, before a superblock with other incompatible
/// features: first the older checksum feature is removed, which excludes the newer ones, and the
/// dependent word is set; then the features are set.
fn steps_to_features(old: &[u8], new: &[u8]) -> Vec<Vec<u8>> {
    if old[INCOMPAT] == new[INCOMPAT] {
        return Vec::new();
    }
    let mut first = old.to_vec();
    // Big-endian, at 0x24.
    first[0x27] &= !(JournalFeatures::COMPAT_CHECKSUM as u8);
    if new[MEANT.start] != 0 {
        // Else it is still the old features' kind of checksums.
        first[MEANT].copy_from_slice(&new[MEANT]);
    }
    let mut second = first.clone();
    second[INCOMPAT].copy_from_slice(&new[INCOMPAT]);
    vec![first, second]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Checksums;

    const BLOCKS: u32 = 1024;

    fn superblock(checksums: Checksums) -> JournalSuperblock {
        let mut sb = JournalSuperblock::new(1024, BLOCKS, 1, Tid(1));
        let mut features = JournalFeatures::default();
        features.set_checksums(checksums);
        sb.set_features(features);
        sb
    }

    fn is_read(bytes: &[u8]) -> Result<()> {
        JournalSuperblock::decode(bytes, 1024, BLOCKS, true).map(drop)
    }

    /// Every set of words that a power cut may leave new.
    fn torn(old: &[u8], new: &[u8], mut each: impl FnMut(&[u8])) {
        let words: Vec<usize> =
            (0..old.len()).step_by(8).filter(|at| old[*at..at + 8] != new[*at..at + 8]).collect();
        for set in 0..1u32 << words.len() {
            let mut block = old.to_vec();
            for (_, at) in words.iter().enumerate().filter(|(n, _)| set >> n & 1 == 1) {
                block[*at..at + 8].copy_from_slice(&new[*at..at + 8]);
            }
            each(&block);
        }
    }

    #[test]
    fn any_words_of_a_first_commit_are_a_superblock() {
        let kinds = [Checksums::None, Checksums::V1, Checksums::V2, Checksums::V3];
        for (from, to) in kinds.iter().flat_map(|a| kinds.iter().map(move |b| (*a, *b))) {
            let old = superblock(from).encode();
            let mut sb = superblock(to);
            sb.set_tail(Some(LogBlock(1)), Tid(7));
            let new = sb.encode();
            let mut before = old.to_vec();
            for step in steps_to_features(&old, &new).into_iter().chain([new.to_vec()]) {
                torn(&before, &step, |block| {
                    is_read(block).unwrap_or_else(|e| panic!("{from:?} to {to:?}: {e}"));
                });
                before = step;
            }
        }
        // The control: in one step, checksums are said to be there without their kind.
        let (mut old, mut new) = (superblock(Checksums::None), superblock(Checksums::V3));
        let mut refused = 0;
        torn(&old.encode(), &new.encode(), |block| refused += u32::from(is_read(block).is_err()));
        assert!(refused > 0);
    }
}
