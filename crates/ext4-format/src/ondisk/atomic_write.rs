//! A superblock that a power cut cannot tear.
//!
//! The superblock has two sectors of 512 bytes, and its checksum is in the second. What changes
//! in daily use (state, features, counters, the journal's name) is all in the first. If one of
//! the two is old and one is new, the checksum is wrong and the kernel does not mount.
//!
//! So the second sector is left as it is: four bytes of the first that nobody uses
//! (`s_algorithm_usage_bitmap`, "not used in e2fsprogs and Linux") are set so that the checksum
//! comes out as before. A crc32c is linear and those four bytes reach each of its values exactly
//! once. Then old and new differ in one sector, which a cut leaves old or new.

use std::sync::OnceLock;

use zerocopy::IntoBytes;

use super::csum::crc32c;
use super::{SUPERBLOCK_LEN, Superblock};

/// Bytes of the first sector.
const FIRST_SECTOR: usize = 512;
/// Where the four bytes are.
const SLACK_AT: usize = std::mem::offset_of!(Superblock, algorithm_usage);
const CHECKSUM_AT: usize = std::mem::offset_of!(Superblock, checksum);

/// The four bytes that keep the checksum as it is.
static SLACK: Balance = Balance::new(SLACK_AT);

/// Four bytes of the superblock, from byte `at` on, with which its checksum can be made any.
pub struct Balance {
    at: usize,
    /// Bit `i` of a difference of checksums to the change of the bytes that makes it.
    slack_of_bits: OnceLock<[u32; 32]>,
}

impl Balance {
    pub const fn new(at: usize) -> Balance {
        Balance { at, slack_of_bits: OnceLock::new() }
    }

    /// What the bytes, now `slack`, must be for the checksum to change by `difference`.
    pub fn of(&self, difference: u32, slack: u32) -> u32 {
        let bits = self.slack_of_bits.get_or_init(|| slack_of_bits(self.at)).iter().enumerate();
        bits.filter(|(i, _)| difference >> i & 1 == 1).fold(slack, |slack, (_, s)| slack ^ s)
    }
}

fn slack_of_bits(at: usize) -> [u32; 32] {
    let mut tail = [0; SUPERBLOCK_LEN];
    let mut pairs = [(0, 0); 32];
    for (i, pair) in pairs.iter_mut().enumerate() {
        let slack = 1u32 << i;
        tail[at..at + 4].copy_from_slice(&slack.to_le_bytes());
        *pair = (crc32c(0, &tail[at..CHECKSUM_AT]), slack);
    }
    for bit in 0..32 {
        // A row is always found: the checksum of four bytes can be inverted.
        let Some(row) = (bit..32).find(|r| pairs[*r].0 >> bit & 1 == 1) else { break };
        pairs.swap(bit, row);
        let pivot = pairs[bit];
        for (i, pair) in pairs.iter_mut().enumerate() {
            if i != bit && pair.0 >> bit & 1 == 1 {
                *pair = (pair.0 ^ pivot.0, pair.1 ^ pivot.1);
            }
        }
    }
    pairs.map(|(_, slack)| slack)
}

impl Superblock {
    /// Itself, but with what `other` has in the second sector, the checksum included.
    pub(crate) fn with_second_sector_of(&self, other: &Superblock) -> Superblock {
        let mut mixed = *self;
        mixed.as_mut_bytes()[FIRST_SECTOR..].copy_from_slice(&other.as_bytes()[FIRST_SECTOR..]);
        mixed
    }

    /// Sets the checksum, if there is to be one, so that the second sector stays what it is in
    /// `before`, the superblock that this one replaces. Where something else in the second sector
    /// has changed too it cannot, and the checksum is simply brought up to date.
    pub fn make_atomic(&mut self, before: &Superblock) {
        let behind = FIRST_SECTOR..CHECKSUM_AT;
        let alike = self.as_bytes()[behind.clone()] == before.as_bytes()[behind];
        let summed = self.features().metadata_csum() && before.features().metadata_csum();
        if !alike || !summed || !before.checksum_ok() {
            self.update_checksum();
            return;
        }
        let difference = self.computed_checksum() ^ before.checksum.get();
        let slack = SLACK.of(difference, self.algorithm_usage.get());
        self.algorithm_usage.set(slack);
        self.checksum = before.checksum;
        debug_assert!(self.checksum_ok(), "every difference can be made up for");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ondisk::RoCompat;

    #[test]
    fn only_the_first_sector_changes() {
        let mut before = Superblock::zeroed();
        before.feature_ro_compat.set(RoCompat::METADATA_CSUM.bits());
        before.update_checksum();
        let mut last = before;
        for i in 1..200u32 {
            let mut sb = last;
            sb.state.set(i as u16);
            sb.journal_uuid = [i as u8; 16];
            sb.set_free_blocks(u64::from(i) * 977);
            sb.make_atomic(&last);
            assert!(sb.checksum_ok());
            assert_eq!(sb.as_bytes()[FIRST_SECTOR..], before.as_bytes()[FIRST_SECTOR..]);
            last = sb;
        }
        let mut other = last;
        other.write_time_hi = 1;
        other.make_atomic(&last);
        assert!(other.checksum_ok() && other.checksum != last.checksum);
    }
}
