//! The journal superblock (kernel: `journal_superblock_t`), versions 1 and 2.

use uuid::Uuid;
use zerocopy::big_endian::U32;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use super::{BlockType, Header, MAGIC};
use crate::checksum::crc32c;
use crate::{Checksums, JournalError, JournalFeatures, LogBlock, Result, Tid};

/// Raw journal superblock: the first 1024 bytes of its block.
#[derive(Debug, Clone, Copy, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
struct Raw {
    header: Header,
    /// `s_blocksize`
    block_size: U32,
    /// `s_maxlen`
    max_len: U32,
    /// `s_first`
    first: U32,
    /// `s_sequence`
    sequence: U32,
    /// `s_start`
    start: U32,
    /// `s_errno`
    errno: U32,
    /// `s_feature_compat`
    feature_compat: U32,
    /// `s_feature_incompat`
    feature_incompat: U32,
    /// `s_feature_ro_compat`
    feature_ro_compat: U32,
    /// `s_uuid`
    uuid: [u8; 16],
    /// `s_nr_users`
    nr_users: U32,
    /// `s_dynsuper`
    dynsuper: U32,
    /// `s_max_transaction`
    max_transaction: U32,
    /// `s_max_trans_data`
    max_trans_data: U32,
    /// `s_checksum_type`
    checksum_type: u8,
    padding2: [u8; 3],
    /// `s_num_fc_blks`
    num_fc_blocks: U32,
    /// `s_head`
    head: U32,
    padding: [u8; 160],
    /// `s_checksum`
    checksum: U32,
    /// `s_users`
    users: [[u8; 16]; 48],
}

const _: () = {
    assert!(size_of::<Raw>() == 1024);
    assert!(std::mem::offset_of!(Raw, first) == 0x14);
    assert!(std::mem::offset_of!(Raw, feature_compat) == 0x24);
    assert!(std::mem::offset_of!(Raw, uuid) == 0x30);
    assert!(std::mem::offset_of!(Raw, nr_users) == 0x40);
    assert!(std::mem::offset_of!(Raw, checksum_type) == 0x50);
    assert!(std::mem::offset_of!(Raw, num_fc_blocks) == 0x54);
    assert!(std::mem::offset_of!(Raw, head) == 0x58);
    assert!(std::mem::offset_of!(Raw, checksum) == 0xfc);
    assert!(std::mem::offset_of!(Raw, users) == 0x100);
};

/// `JBD2_CRC32C_CHKSUM`
const CHECKSUM_TYPE_CRC32C: u8 = 4;
/// `JBD2_DEFAULT_FAST_COMMIT_BLOCKS`
const DEFAULT_FAST_COMMIT_BLOCKS: u32 = 256;
/// `JBD2_MIN_JOURNAL_BLOCKS`
pub(crate) const MIN_LOG_BLOCKS: u32 = 1024;
/// Most file systems that an external journal can name (kernel: `JBD2_USERS_MAX`).
pub(crate) const USERS_MAX: u32 = 48;

const PLACE: &str = "journal superblock";

/// A journal superblock whose magic, features, checksum and geometry have been checked.
///
/// Bytes that this version does not know are kept and written back as they were.
#[derive(Debug, Clone, Copy)]
pub struct JournalSuperblock {
    raw: Raw,
}

impl JournalSuperblock {
    /// Bytes that the structure occupies at the start of its block.
    pub const BYTES: usize = size_of::<Raw>();

    /// A version-2 superblock of an empty log.
    pub(crate) fn new(block_size: u32, max_len: u32, first: u32, sequence: Tid) -> Self {
        let header = Header::new(BlockType::SuperblockV2, Tid(0));
        let mut raw = <Raw as zerocopy::FromZeros>::new_zeroed();
        raw.header = header;
        raw.block_size = U32::new(block_size);
        raw.max_len = U32::new(max_len);
        raw.first = U32::new(first);
        raw.sequence = U32::new(sequence.0);
        JournalSuperblock { raw }
    }

    /// Sets `s_num_fc_blks`: blocks at the log's end that are for fast commits once the journal
    /// has that feature; 0 for the default of 256.
    pub(crate) fn set_fast_blocks(&mut self, blocks: u32) {
        self.raw.num_fc_blocks = U32::new(blocks);
    }

    /// Decodes the first 1024 bytes of the superblock's block. `log_blocks` is what the owner
    /// maps. A checksum that does not match is an error unless `checksum_may_differ`.
    pub(crate) fn decode(
        bytes: &[u8],
        block_size: u32,
        log_blocks: u32,
        checksum_may_differ: bool,
    ) -> Result<Self> {
        let (raw, _) = Raw::read_from_prefix(bytes)
            .map_err(|_| JournalError::corrupt("shorter than 1024 bytes", PLACE))?;
        let sb = JournalSuperblock { raw };
        sb.check_identity(block_size)?;
        sb.features().validate()?;
        if sb.has_block_checksums() {
            if sb.raw.checksum_type != CHECKSUM_TYPE_CRC32C {
                let what = format!("checksum type {}", sb.raw.checksum_type);
                return Err(JournalError::Unsupported { what });
            }
            if !sb.checksum_matches() && !checksum_may_differ && !sb.is_sealed_for_other_users() {
                return Err(JournalError::corrupt("the checksum does not match", PLACE));
            }
        }
        sb.check_geometry(log_blocks)?;
        Ok(sb)
    }

    fn check_identity(&self, block_size: u32) -> Result<()> {
        if self.raw.header.magic.get() != MAGIC {
            return Err(JournalError::corrupt("no JBD2 magic number", PLACE));
        }
        if !matches!(self.raw.header.kind(), BlockType::SuperblockV1 | BlockType::SuperblockV2) {
            let what = format!("block type {} is no superblock", self.raw.header.block_type.get());
            return Err(JournalError::corrupt(what, PLACE));
        }
        let found = self.block_size();
        if found != block_size {
            return Err(JournalError::Refused {
                what: format!(
                    "the journal has {found}-byte blocks, the file system {block_size}-byte \
                     blocks; they must be equal: make a journal with the same block size"
                ),
            });
        }
        Ok(())
    }

    fn check_geometry(&self, log_blocks: u32) -> Result<()> {
        let (max_len, first) = (self.max_len(), self.first().0);
        let corrupt = |what: String| Err(JournalError::corrupt(what, PLACE));
        if max_len > log_blocks {
            return corrupt(format!("claims {max_len} blocks, the log has only {log_blocks}"));
        }
        if max_len < MIN_LOG_BLOCKS {
            return corrupt(format!("{max_len} blocks; a log has at least {MIN_LOG_BLOCKS}"));
        }
        if first == 0 || first >= self.end().0 || self.capacity() < MIN_LOG_BLOCKS / 2 {
            return corrupt(format!("the log starts at block {first} of {max_len}"));
        }
        if self.raw.start.get() != 0 && !(first..self.end().0).contains(&self.raw.start.get()) {
            let start = self.raw.start.get();
            return corrupt(format!("first transaction at block {start}, outside the log"));
        }
        Ok(())
    }

    fn is_v2(&self) -> bool {
        self.raw.header.kind() == BlockType::SuperblockV2
    }

    /// The feature bits; none for a version-1 superblock.
    pub fn features(&self) -> JournalFeatures {
        if !self.is_v2() {
            return JournalFeatures::default();
        }
        JournalFeatures {
            compat: self.raw.feature_compat.get(),
            incompat: self.raw.feature_incompat.get(),
            ro_compat: self.raw.feature_ro_compat.get(),
        }
    }

    /// Sets the feature bits; makes a version-1 superblock version 2 if any is set.
    pub(crate) fn set_features(&mut self, features: JournalFeatures) {
        if !self.is_v2() {
            if features == JournalFeatures::default() {
                return;
            }
            // What a version-1 superblock has beyond its fields means nothing.
            let kept = *self;
            let (sequence, start) = (kept.sequence(), kept.raw.start);
            *self =
                JournalSuperblock::new(kept.block_size(), kept.max_len(), kept.first().0, sequence);
            self.raw.start = start;
            self.raw.errno = kept.raw.errno;
            self.set_nr_users(1);
        }
        self.raw.feature_compat = U32::new(features.compat);
        self.raw.feature_incompat = U32::new(features.incompat);
        self.raw.feature_ro_compat = U32::new(features.ro_compat);
        self.raw.checksum_type = if self.has_block_checksums() { CHECKSUM_TYPE_CRC32C } else { 0 };
    }

    fn has_block_checksums(&self) -> bool {
        matches!(self.features().checksums(), Checksums::V2 | Checksums::V3)
    }

    pub(crate) fn checksum_matches(&self) -> bool {
        !self.has_block_checksums() || self.raw.checksum.get() == self.computed_checksum()
    }

    /// Whether the checksum is right but for the list of users: mke2fs and tune2fs enter and
    /// remove a file system there and leave the old checksum. Whose journal it is does not hang on
    /// it: that is compared with the file system.
    fn is_sealed_for_other_users(&self) -> bool {
        (0..=self.nr_users().min(USERS_MAX)).any(|n| {
            let mut before = *self;
            before.set_nr_users(n);
            before.raw.users[n as usize..].fill([0; 16]);
            before.checksum_matches()
        })
    }

    fn computed_checksum(&self) -> u32 {
        let raw = Raw { checksum: U32::new(0), ..self.raw };
        crc32c(!0, raw.as_bytes())
    }

    /// The bytes to write, with the checksum brought up to date where the features want one.
    pub(crate) fn encode(&mut self) -> [u8; JournalSuperblock::BYTES] {
        self.raw.checksum =
            U32::new(if self.has_block_checksums() { self.computed_checksum() } else { 0 });
        zerocopy::transmute!(self.raw)
    }

    /// `s_blocksize`, bytes.
    pub fn block_size(&self) -> u32 {
        self.raw.block_size.get()
    }

    /// `s_maxlen`: blocks of the journal, the superblock and a fast-commit area included.
    pub fn max_len(&self) -> u32 {
        self.raw.max_len.get()
    }

    /// `s_first`: the first block that transactions use.
    pub fn first(&self) -> LogBlock {
        LogBlock(self.raw.first.get())
    }

    /// One past the last block that transactions use (kernel: `j_last`): `s_maxlen`, less the
    /// fast-commit area if the journal has one.
    pub fn end(&self) -> LogBlock {
        let max_len = self.max_len();
        if !self.features().has_incompat(JournalFeatures::FAST_COMMIT) {
            return LogBlock(max_len);
        }
        LogBlock(if self.has_room_for_fast_commits() {
            max_len - self.fast_blocks_wanted()
        } else {
            max_len
        })
    }

    /// How many blocks fast commits have, or would have: `s_num_fc_blks` or the default.
    pub(crate) fn fast_blocks_wanted(&self) -> u32 {
        match self.raw.num_fc_blocks.get() {
            n if n != 0 && self.is_v2() => n,
            _ => DEFAULT_FAST_COMMIT_BLOCKS,
        }
    }

    /// Whether the fewest blocks of a log are left beside them.
    pub(crate) fn has_room_for_fast_commits(&self) -> bool {
        let left = self.max_len().checked_sub(self.fast_blocks_wanted());
        left.is_some_and(|left| left >= MIN_LOG_BLOCKS)
    }

    /// Blocks of the fast-commit area, from the first that is used (kernel: `j_fc_first`, one past
    /// `j_last`: a block in between belongs to nobody) on. Empty without one.
    pub(crate) fn fast_blocks(&self) -> std::ops::Range<u32> {
        let max_len = self.max_len();
        self.end().0.saturating_add(1).min(max_len)..max_len
    }

    /// Blocks that transactions can use.
    pub fn capacity(&self) -> u32 {
        self.end().0.saturating_sub(self.first().0)
    }

    /// `s_sequence`: number of the transaction at [`start`](Self::start).
    pub fn sequence(&self) -> Tid {
        Tid(self.raw.sequence.get())
    }

    /// `s_start`: where the oldest transaction begins; `None` when the log is clean.
    pub fn start(&self) -> Option<LogBlock> {
        let start = self.raw.start.get();
        (start != 0).then_some(LogBlock(start))
    }

    pub(crate) fn set_tail(&mut self, start: Option<LogBlock>, sequence: Tid) {
        self.raw.start = U32::new(start.map_or(0, |b| b.0));
        self.raw.sequence = U32::new(sequence.0);
        // The kernel starts a clean log at `s_head` if it is set; ours start at `s_first`.
        self.raw.head = U32::new(0);
    }

    /// `s_errno`: the error with which the journal was aborted, negative as in the kernel; or 0.
    pub fn errno(&self) -> i32 {
        self.raw.errno.get().cast_signed()
    }

    pub(crate) fn set_errno(&mut self, errno: i32) {
        self.raw.errno = U32::new(errno.cast_unsigned());
    }

    /// `s_uuid`: of an external journal, equal to the UUID of its device's ext superblock.
    pub fn uuid(&self) -> Uuid {
        Uuid::from_bytes(self.raw.uuid)
    }

    pub(crate) fn set_uuid(&mut self, uuid: Uuid) {
        self.raw.uuid = *uuid.as_bytes();
    }

    /// `s_nr_users`: file systems that use this journal: 1 for an internal one, 0 for an
    /// external one that nobody has attached.
    pub fn nr_users(&self) -> u32 {
        self.raw.nr_users.get()
    }

    /// `s_users`: UUIDs of those file systems, as far as `nr_users` says and the field holds.
    pub fn users(&self) -> Vec<Uuid> {
        let n = self.nr_users().min(USERS_MAX) as usize;
        self.raw.users[..n].iter().map(|u| Uuid::from_bytes(*u)).collect()
    }

    pub(crate) fn set_users(&mut self, users: &[Uuid]) {
        let users = &users[..users.len().min(USERS_MAX as usize)];
        self.raw.users = [[0; 16]; 48];
        for (slot, user) in self.raw.users.iter_mut().zip(users) {
            *slot = *user.as_bytes();
        }
        self.set_nr_users(users.len() as u32);
    }

    pub(crate) fn with_users(&self, users: &[Uuid]) -> JournalSuperblock {
        let mut with = *self;
        with.set_users(users);
        with
    }

    /// What is to be durable, one after the other, for these to be the users; the last has them. Of
    /// a step a power cut may leave any words of 8 bytes, of which a UUID has two. No half of one
    /// is ever counted where there was one user at most, and of several none is lost that stays.
    pub(crate) fn steps_to_users(&self, users: &[Uuid]) -> Vec<JournalSuperblock> {
        let new = self.with_users(users);
        let counted = |mut sb: JournalSuperblock, n: u32| {
            sb.set_nr_users(n);
            sb
        };
        if self.nr_users() <= 1 {
            return vec![counted(*self, 0), counted(new, 0), new];
        }
        // Those that are counted no more stay until that is durable.
        let mut first = *self;
        for (slot, user) in first.raw.users.iter_mut().zip(users) {
            *slot = *user.as_bytes();
        }
        vec![first, counted(first, new.nr_users()), new]
    }

    pub(crate) fn set_nr_users(&mut self, n: u32) {
        self.raw.nr_users = U32::new(n);
    }

    /// Seed of all block checksums (kernel: `j_csum_seed`).
    pub(crate) fn checksum_seed(&self) -> u32 {
        crc32c(!0, &self.raw.uuid)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decoded(sb: JournalSuperblock) -> Result<JournalSuperblock> {
        let bytes: [u8; JournalSuperblock::BYTES] = zerocopy::transmute!(sb.raw);
        JournalSuperblock::decode(&bytes, 4096, 2048, false)
    }

    /// The users that any words of any step may leave.
    fn torn_users(old: JournalSuperblock, users: &[Uuid]) -> Vec<Vec<Uuid>> {
        let mut before: [u8; JournalSuperblock::BYTES] = zerocopy::transmute!(old.raw);
        let mut found = Vec::new();
        for mut step in old.steps_to_users(users) {
            let after = step.encode();
            let words: Vec<usize> = (0..JournalSuperblock::BYTES)
                .step_by(8)
                .filter(|at| before[*at..at + 8] != after[*at..at + 8])
                .collect();
            for set in 0..1u32 << words.len() {
                let mut torn = before;
                for (_, at) in words.iter().enumerate().filter(|(n, _)| set >> n & 1 == 1) {
                    torn[*at..at + 8].copy_from_slice(&after[*at..at + 8]);
                }
                found.push(JournalSuperblock::decode(&torn, 4096, 2048, true).unwrap().users());
            }
            before = after;
        }
        found
    }

    #[test]
    fn users_that_a_cut_leaves_in_words() {
        let mut sb = JournalSuperblock::new(4096, 2048, 2, Tid(1));
        sb.set_features(JournalFeatures {
            incompat: JournalFeatures::CSUM_V3,
            ..JournalFeatures::default()
        });
        let [a, b] = [1, 2].map(|n| Uuid::from_bytes([n; 16]));
        let sets: [&[Uuid]; 3] = [&[], &[a], &[b]];
        for (from, to) in sets.iter().flat_map(|from| sets.iter().map(move |to| (*from, *to))) {
            let mut old = sb.with_users(from);
            old.encode();
            let found = torn_users(old, to);
            assert!(found.iter().all(|users| users.is_empty() || users == from || users == to));
            assert_eq!(found.last().unwrap(), to);
        }
        // Of several, who stays is there all the time.
        let mut old = sb.with_users(&[a, b]);
        old.encode();
        for kept in [a, b] {
            let found = torn_users(old, &[kept]);
            assert!(found.iter().all(|users| users.contains(&kept)));
            assert_eq!(found.last().unwrap(), &[kept]);
        }
    }

    /// What mke2fs and tune2fs do to the users of a journal with a checksum.
    #[test]
    fn users_entered_without_a_new_checksum() {
        let mut sb = JournalSuperblock::new(4096, 2048, 2, Tid(1));
        let checksums =
            JournalFeatures { incompat: JournalFeatures::CSUM_V3, ..JournalFeatures::default() };
        sb.set_features(checksums);
        sb.set_users(&[Uuid::from_bytes([1; 16])]);
        sb.encode();
        let mut entered = sb;
        entered.raw.users[1] = [2; 16];
        entered.set_nr_users(2);
        assert_eq!(decoded(entered).unwrap().nr_users(), 2);
        let mut taken_out = entered;
        taken_out.set_nr_users(1);
        assert_eq!(decoded(taken_out).unwrap().users(), [Uuid::from_bytes([1; 16])]);
        // Anything else that does not go with the checksum is damage.
        let mut other = entered;
        other.raw.sequence = U32::new(7);
        assert!(matches!(decoded(other), Err(JournalError::Corrupt { .. })));
        let mut other = sb;
        other.raw.users[0] = [3; 16];
        assert!(matches!(decoded(other), Err(JournalError::Corrupt { .. })));
    }
}
