//! Checksums of metadata.
//!
//! With `metadata_csum` everything has a crc32c that starts from the file system's seed (from
//! the UUID, or stored with `metadata_csum_seed`) and takes in where the structure belongs, so
//! that a block written to the wrong place is found. With only `uninit_bg`, group descriptors
//! have a crc16. Else nothing has any, and every `verify_` here says yes and every `set_` does
//! nothing.

use zerocopy::{FromBytes, IntoBytes};

use crate::ondisk::{
    DIR_TAIL_LEN, DirentTail, DxCountLimit, DxTail, ExtentHeader, ExtentTail, Features,
    GOOD_OLD_INODE_SIZE, GroupDesc, GroupNo, Incompat, InodeNo, OrphanBlockTail, RawInode,
    RoCompat, Superblock, XattrBlockHeader, dx_entries_offset, orphan_slots,
};

/// Adds `data` to a crc32c as ext4 counts it: `seed` in and result out are not inverted.
pub fn crc32c(seed: u32, data: &[u8]) -> u32 {
    !crc32c::crc32c_append(!seed, data)
}

/// Adds `data` to a crc16 (polynomial 0x8005, reflected).
pub(crate) fn crc16(seed: u16, data: &[u8]) -> u16 {
    data.iter().fold(seed, |crc, byte| {
        (0..8)
            .fold(crc ^ u16::from(*byte), |c, _| if c & 1 != 0 { c >> 1 ^ 0xa001 } else { c >> 1 })
    })
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ChecksumKind {
    None,
    /// crc16 of group descriptors only.
    Groups {
        uuid: [u8; 16],
    },
    /// crc32c of everything.
    Metadata {
        seed: u32,
    },
}

/// Which checksums a file system has, and their seed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MetadataChecksums {
    kind: ChecksumKind,
}

/// Seed of everything that belongs to one inode: its number and generation are in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct InodeSeed(u32);

impl MetadataChecksums {
    /// Those that a superblock's features ask for.
    pub fn of(sb: &Superblock) -> Self {
        let Features { incompat, ro_compat, .. } = sb.features();
        let kind = if ro_compat.contains(RoCompat::METADATA_CSUM) {
            let stored = incompat.contains(Incompat::CSUM_SEED);
            let seed = if stored { sb.checksum_seed.get() } else { crc32c(!0, &sb.uuid) };
            ChecksumKind::Metadata { seed }
        } else if ro_compat.contains(RoCompat::GDT_CSUM) {
            ChecksumKind::Groups { uuid: sb.uuid }
        } else {
            ChecksumKind::None
        };
        MetadataChecksums { kind }
    }

    /// Whether all metadata has checksums.
    pub fn metadata(&self) -> bool {
        matches!(self.kind, ChecksumKind::Metadata { .. })
    }

    /// The file system's seed, if all metadata has checksums.
    pub fn seed(&self) -> Option<u32> {
        match self.kind {
            ChecksumKind::Metadata { seed } => Some(seed),
            _ => None,
        }
    }

    /// The seed of what belongs to an inode; meaningless, but harmless, without checksums.
    pub fn inode_seed(&self, ino: InodeNo, generation: u32) -> InodeSeed {
        let seed = crc32c(self.seed().unwrap_or(0), &ino.0.to_le_bytes());
        InodeSeed(crc32c(seed, &generation.to_le_bytes()))
    }

    // ---- group descriptors and bitmaps

    /// The checksum that a group descriptor should have.
    fn group_desc(&self, group: GroupNo, desc: &GroupDesc) -> u16 {
        let bytes = desc.as_bytes();
        let (head, rest) = bytes.split_at(GroupDesc::CHECKSUM_OFFSET.min(bytes.len()));
        let behind = rest.get(2..).unwrap_or(&[]);
        let number = group.0.to_le_bytes();
        match self.kind {
            ChecksumKind::None => 0,
            ChecksumKind::Groups { uuid } => {
                let crc = crc16(crc16(crc16(!0, &uuid), &number), head);
                desc.crc16_behind(crc16(crc, behind))
            }
            ChecksumKind::Metadata { seed } => {
                let crc = crc32c(crc32c(crc32c(seed, &number), head), &[0, 0]);
                desc.crc32c_behind(crc32c(crc, behind)) as u16
            }
        }
    }

    /// Whether a group descriptor's checksum is right.
    pub fn verify_group_desc(&self, group: GroupNo, desc: &GroupDesc) -> bool {
        self.kind == ChecksumKind::None || desc.checksum() == self.group_desc(group, desc)
    }

    /// Sets a group descriptor's checksum.
    pub fn set_group_desc(&self, group: GroupNo, desc: &mut GroupDesc) {
        if self.kind != ChecksumKind::None {
            let sum = self.group_desc(group, desc);
            desc.set_checksum(sum);
        }
    }

    /// The checksum of a bitmap: `bits` (clusters or inodes a group) of `bitmap`.
    fn bitmap(&self, bitmap: &[u8], bits: u32, desc: &GroupDesc) -> Option<u32> {
        let len = (bits as usize / 8).min(bitmap.len());
        let sum = crc32c(self.seed()?, &bitmap[..len]);
        Some(if desc.is_wide() { sum } else { sum & 0xffff })
    }

    /// Whether a block bitmap is the one that its group's descriptor means.
    pub fn verify_block_bitmap(
        &self,
        bitmap: &[u8],
        clusters_per_group: u32,
        d: &GroupDesc,
    ) -> bool {
        self.bitmap(bitmap, clusters_per_group, d).is_none_or(|sum| sum == d.block_bitmap_csum())
    }

    /// Puts a block bitmap's checksum into its group's descriptor (whose own is not renewed).
    pub fn set_block_bitmap(&self, bitmap: &[u8], clusters_per_group: u32, d: &mut GroupDesc) {
        if let Some(sum) = self.bitmap(bitmap, clusters_per_group, d) {
            d.set_block_bitmap_csum(sum);
        }
    }

    /// Whether an inode bitmap is the one that its group's descriptor means.
    pub fn verify_inode_bitmap(&self, bitmap: &[u8], inodes_per_group: u32, d: &GroupDesc) -> bool {
        self.bitmap(bitmap, inodes_per_group, d).is_none_or(|sum| sum == d.inode_bitmap_csum())
    }

    /// Puts an inode bitmap's checksum into its group's descriptor (whose own is not renewed).
    pub fn set_inode_bitmap(&self, bitmap: &[u8], inodes_per_group: u32, d: &mut GroupDesc) {
        if let Some(sum) = self.bitmap(bitmap, inodes_per_group, d) {
            d.set_inode_bitmap_csum(sum);
        }
    }

    // ---- inodes

    /// What an inode's checksum should be, and whether its upper half has a place.
    fn inode(&self, ino: InodeNo, inode: &RawInode) -> (u32, bool) {
        let bytes = inode.as_bytes();
        let InodeSeed(seed) = self.inode_seed(ino, inode.generation());
        let crc = crc32c(seed, &bytes[..0x7c]);
        let crc = crc32c(crc32c(crc, &[0, 0]), &bytes[0x7e..GOOD_OLD_INODE_SIZE]);
        if inode.extra_isize() < 4 {
            return (crc32c(crc, &bytes[GOOD_OLD_INODE_SIZE..]) & 0xffff, false);
        }
        let crc = crc32c(crc32c(crc, &bytes[GOOD_OLD_INODE_SIZE..0x82]), &[0, 0]);
        (crc32c(crc, &bytes[0x84..]), true)
    }

    /// Whether an inode's checksum is right.
    pub fn verify_inode(&self, ino: InodeNo, inode: &RawInode) -> bool {
        if !self.metadata() {
            return true;
        }
        let (sum, has_high) = self.inode(ino, inode);
        let high = inode.extra().filter(|_| has_high).map_or(0, |e| e.checksum_hi.get());
        sum == u32::from(inode.core().checksum_lo.get()) | u32::from(high) << 16
    }

    /// Sets an inode's checksum.
    pub fn set_inode(&self, ino: InodeNo, inode: &mut RawInode) {
        if !self.metadata() {
            return;
        }
        let (sum, has_high) = self.inode(ino, inode);
        inode.core_mut().checksum_lo.set(sum as u16);
        if let Some(extra) = inode.extra_mut().filter(|_| has_high) {
            extra.checksum_hi.set((sum >> 16) as u16);
        }
    }

    // ---- blocks of a directory

    /// Whether a leaf block of a directory ends with the right checksum.
    pub fn verify_dir_block(&self, seed: InodeSeed, block: &[u8]) -> bool {
        if !self.metadata() {
            return true;
        }
        let covered = block.len().saturating_sub(DIR_TAIL_LEN);
        DirentTail::find(block)
            .is_some_and(|tail| tail.checksum.get() == crc32c(seed.0, &block[..covered]))
    }

    /// Writes the checksum entry over the last 12 bytes of a leaf block of a directory.
    pub fn set_dir_block(&self, seed: InodeSeed, block: &mut [u8]) {
        if !self.metadata() {
            return;
        }
        let covered = block.len() - DIR_TAIL_LEN;
        let mut tail = DirentTail::new();
        tail.checksum.set(crc32c(seed.0, &block[..covered]));
        block[covered..].copy_from_slice(tail.as_bytes());
    }

    /// Where the checksum of an index block is and what it should be; `None` if the block is no
    /// index block or its count or limit cannot be. Covers *count* pairs, not *limit*.
    fn dx_block(&self, seed: InodeSeed, block: &[u8]) -> Option<(usize, u32)> {
        let offset = dx_entries_offset(block)?;
        let pairs = DxCountLimit::read(block, offset)?;
        let (limit, count) = (usize::from(pairs.limit.get()), usize::from(pairs.count.get()));
        let tail = offset + limit * 8;
        if count > limit || tail + size_of::<DxTail>() > block.len() {
            return None;
        }
        let crc = crc32c(seed.0, &block[..offset + count * 8]);
        let crc = crc32c(crc, &block[tail..tail + 4]);
        Some((tail + 4, crc32c(crc, &[0; 4])))
    }

    /// Whether an index block of a directory has the right checksum.
    pub fn verify_dx_block(&self, seed: InodeSeed, block: &[u8]) -> bool {
        !self.metadata()
            || self
                .dx_block(seed, block)
                .is_some_and(|(at, sum)| block[at..at + 4] == sum.to_le_bytes())
    }

    /// Sets the checksum of an index block of a directory, whose limit must leave room for it.
    ///
    /// # Panics
    /// If the block is no index block: a bug of the caller.
    pub(crate) fn set_dx_block(&self, seed: InodeSeed, block: &mut [u8]) {
        if self.metadata() {
            // OK to expect: the caller has just laid the block out.
            let (at, sum) = self.dx_block(seed, block).expect("an index block");
            block[at..at + 4].copy_from_slice(&sum.to_le_bytes());
        }
    }

    // ---- other blocks

    fn extent_block(seed: InodeSeed, block: &[u8]) -> Option<(usize, u32)> {
        let (header, _) = ExtentHeader::read_from_prefix(block).ok()?;
        let at = header.tail_offset();
        (at + size_of::<ExtentTail>() <= block.len()).then(|| (at, crc32c(seed.0, &block[..at])))
    }

    /// Whether a block of an extent tree has the right checksum.
    pub fn verify_extent_block(&self, seed: InodeSeed, block: &[u8]) -> bool {
        !self.metadata()
            || Self::extent_block(seed, block)
                .is_some_and(|(at, sum)| block[at..at + 4] == sum.to_le_bytes())
    }

    /// Sets the checksum of a block of an extent tree.
    ///
    /// # Panics
    /// If its header leaves no room: a bug of the caller.
    pub fn set_extent_block(&self, seed: InodeSeed, block: &mut [u8]) {
        if self.metadata() {
            // OK to expect: the caller made the header for a block of this size.
            let (at, sum) = Self::extent_block(seed, block).expect("room for a checksum");
            block[at..at + 4].copy_from_slice(&sum.to_le_bytes());
        }
    }

    /// The checksum of a block of the orphan file: place, then the inode numbers.
    fn orphan_block(seed: InodeSeed, number: u64, block: &[u8]) -> u32 {
        let crc = crc32c(seed.0, &number.to_le_bytes());
        crc32c(crc, &block[..orphan_slots(block.len()) * 4])
    }

    /// Whether a block of the orphan file has the right checksum. `number` is the physical block.
    pub fn verify_orphan_block(&self, seed: InodeSeed, number: u64, block: &[u8]) -> bool {
        !self.metadata()
            || OrphanBlockTail::of(block)
                .is_some_and(|t| t.checksum.get() == Self::orphan_block(seed, number, block))
    }

    /// Sets the checksum of a block of the orphan file.
    pub fn set_orphan_block(&self, seed: InodeSeed, number: u64, block: &mut [u8]) {
        if self.metadata() {
            let sum = Self::orphan_block(seed, number, block);
            let at = block.len() - 4;
            block[at..].copy_from_slice(&sum.to_le_bytes());
        }
    }

    /// Whether a block of extended attributes has the right checksum. It belongs to no one inode
    /// (it may be shared), so only its place is taken in.
    pub fn verify_xattr_block(&self, number: u64, block: &[u8]) -> bool {
        let Ok((header, rest)) = XattrBlockHeader::read_from_prefix(block) else { return false };
        self.seed().is_none_or(|seed| {
            header.checksum.get() == Self::xattr_block(seed, number, header, rest)
        })
    }

    fn xattr_block(seed: u32, number: u64, mut header: XattrBlockHeader, rest: &[u8]) -> u32 {
        header.checksum.set(0);
        let crc = crc32c(crc32c(seed, &number.to_le_bytes()), header.as_bytes());
        crc32c(crc, rest)
    }

    /// Sets the checksum of a block of extended attributes.
    pub fn set_xattr_block(&self, number: u64, block: &mut [u8]) {
        let Some(seed) = self.seed() else { return };
        if let Ok((header, rest)) = XattrBlockHeader::mut_from_prefix(block) {
            header.checksum.set(Self::xattr_block(seed, number, *header, rest));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_values() {
        // The check values of the two polynomials ("123456789"): CRC-32/ISCSI is inverted at
        // both ends, CRC-16/ARC starts from 0.
        assert_eq!(!crc32c(!0, b"123456789"), 0xe306_9283);
        assert_eq!(crc16(0, b"123456789"), 0xbb3d);
    }

    #[test]
    fn what_is_set_verifies_and_a_flipped_bit_does_not() {
        let mut sb = Superblock::zeroed();
        sb.uuid = [7; 16];
        sb.feature_ro_compat.set(RoCompat::METADATA_CSUM.bits());
        let sums = MetadataChecksums::of(&sb);
        let mut inode = RawInode::new(256, 32);
        inode.set_size(5);
        sums.set_inode(InodeNo(12), &mut inode);
        assert!(sums.verify_inode(InodeNo(12), &inode));
        assert!(!sums.verify_inode(InodeNo(13), &inode));
        let mut desc = GroupDesc::zeroed(64);
        sums.set_block_bitmap(&[0xff; 1024], 8192, &mut desc);
        sums.set_group_desc(GroupNo(3), &mut desc);
        assert!(sums.verify_group_desc(GroupNo(3), &desc));
        assert!(!sums.verify_group_desc(GroupNo(4), &desc));
        assert!(!sums.verify_block_bitmap(&[0xfe; 1024], 8192, &desc));
        let seed = sums.inode_seed(InodeNo(12), 0);
        let mut block = vec![1; 1024];
        sums.set_dir_block(seed, &mut block);
        assert!(sums.verify_dir_block(seed, &block));
        block[3] ^= 1;
        assert!(!sums.verify_dir_block(seed, &block));
    }
}
