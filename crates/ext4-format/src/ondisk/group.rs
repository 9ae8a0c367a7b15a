//! Group descriptors: 32 bytes, or 64 and more with the `64bit` feature (`struct ext4_group_desc`).

use zerocopy::little_endian::{U16, U32};
use zerocopy::{FromBytes, FromZeros, Immutable, IntoBytes, Unaligned};

use crate::ondisk::csum::{crc16, crc32c};

bitflags::bitflags! {
    /// Flags of a group (`bg_flags`); valid only where descriptors have checksums.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub struct GroupFlags: u16 {
        /// No inode is in use; bitmap and table were never written (`EXT4_BG_INODE_UNINIT`).
        const INODE_UNINIT = 1;
        /// No block beyond metadata is in use; the bitmap was never written
        /// (`EXT4_BG_BLOCK_UNINIT`).
        const BLOCK_UNINIT = 2;
        /// The inode table is zeroed (`EXT4_BG_INODE_ZEROED`).
        const INODE_ZEROED = 4;
        const _ = !0;
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, FromBytes, IntoBytes, Immutable, Unaligned)]
#[repr(C)]
struct Raw {
    block_bitmap_lo: U32,
    inode_bitmap_lo: U32,
    inode_table_lo: U32,
    free_blocks_lo: U16,
    free_inodes_lo: U16,
    used_dirs_lo: U16,
    flags: U16,
    exclude_bitmap_lo: U32,
    block_bitmap_csum_lo: U16,
    inode_bitmap_csum_lo: U16,
    itable_unused_lo: U16,
    checksum: U16,
    block_bitmap_hi: U32,
    inode_bitmap_hi: U32,
    inode_table_hi: U32,
    free_blocks_hi: U16,
    free_inodes_hi: U16,
    used_dirs_hi: U16,
    itable_unused_hi: U16,
    exclude_bitmap_hi: U32,
    block_bitmap_csum_hi: U16,
    inode_bitmap_csum_hi: U16,
    reserved: U32,
}

const _: () = {
    use std::mem::offset_of;
    assert!(size_of::<Raw>() == 64);
    assert!(offset_of!(Raw, checksum) == 0x1e);
    assert!(offset_of!(Raw, block_bitmap_hi) == 0x20);
    assert!(offset_of!(Raw, itable_unused_hi) == 0x32);
    assert!(offset_of!(Raw, inode_bitmap_csum_hi) == 0x3a);
};

/// Largest descriptor (`EXT4_MAX_DESC_SIZE`).
pub const DESC_SIZE_MAX: u16 = 1024;

/// What stands behind the 64 bytes that have a meaning. It is kept as it is on the disk; the
/// descriptor's checksum covers it, and a CRC is linear, so its own CRC is all that is needed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct DescriptorTail {
    len: u16,
    crc16: u16,
    crc32c: u32,
}

impl DescriptorTail {
    fn of(bytes: &[u8]) -> Self {
        let bytes = &bytes[..bytes.len().min(usize::from(DESC_SIZE_MAX))];
        // OK to cast: at most DESC_SIZE_MAX.
        DescriptorTail { len: bytes.len() as u16, crc16: crc16(0, bytes), crc32c: crc32c(0, bytes) }
    }
}

/// A group descriptor of any size. The halves that a short one lacks read as zero and are not
/// written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GroupDesc {
    raw: Raw,
    wide: bool,
    behind: DescriptorTail,
}

/// Getters and setters of numbers that are split into a low and a high half.
macro_rules! split {
    ($($(#[$doc:meta])* $get:ident, $set:ident: $type:ty = $half:ty, $lo:ident, $hi:ident;)*) => {$(
        $(#[$doc])*
        pub fn $get(&self) -> $type {
            let hi = if self.wide { <$type>::from(self.raw.$hi.get()) } else { 0 };
            <$type>::from(self.raw.$lo.get()) | hi << <$half>::BITS
        }

        #[doc = concat!("Sets [`", stringify!($get), "`](Self::", stringify!($get), ").")]
        pub fn $set(&mut self, value: $type) {
            self.raw.$lo.set(value as $half);
            if self.wide {
                self.raw.$hi.set((value >> <$half>::BITS) as $half);
            }
        }
    )*};
}

impl GroupDesc {
    /// Offset of the checksum in the descriptor, in bytes.
    pub(crate) const CHECKSUM_OFFSET: usize = 0x1e;

    /// A descriptor of zeros, of `desc_size` bytes (32, or 64 and more).
    pub fn zeroed(desc_size: usize) -> Self {
        // OK to cast: a descriptor has no more bytes than that.
        let len = desc_size.saturating_sub(64).min(usize::from(DESC_SIZE_MAX)) as u16;
        let behind = DescriptorTail { len, ..DescriptorTail::default() };
        GroupDesc { raw: Raw::new_zeroed(), wide: desc_size >= 64, behind }
    }

    /// Reads one of `bytes.len()` bytes; fewer than 32 read as zeros.
    pub fn parse(bytes: &[u8]) -> Self {
        let mut raw = Raw::new_zeroed();
        let len = if bytes.len() >= 64 { 64 } else { bytes.len().min(32) };
        raw.as_mut_bytes()[..len].copy_from_slice(&bytes[..len]);
        GroupDesc {
            raw,
            wide: len == 64,
            behind: DescriptorTail::of(bytes.get(64..).unwrap_or(&[])),
        }
    }

    /// Adds what is behind the bytes that have a meaning to a crc16.
    pub(crate) fn crc16_behind(&self, crc: u16) -> u16 {
        let zeros = [0; DESC_SIZE_MAX as usize];
        crc16(crc, &zeros[..usize::from(self.behind.len)]) ^ self.behind.crc16
    }

    /// The same of a crc32c.
    pub(crate) fn crc32c_behind(&self, crc: u32) -> u32 {
        let zeros = [0; DESC_SIZE_MAX as usize];
        crc32c(crc, &zeros[..usize::from(self.behind.len)]) ^ self.behind.crc32c
    }

    /// The bytes that have a meaning: 32 or 64.
    pub fn as_bytes(&self) -> &[u8] {
        let len = if self.wide { 64 } else { 32 };
        &self.raw.as_bytes()[..len]
    }

    /// Writes it over the beginning of `out`, as far as both reach; the rest is kept.
    pub fn write_to(&self, out: &mut [u8]) {
        let bytes = self.as_bytes();
        let len = bytes.len().min(out.len());
        out[..len].copy_from_slice(&bytes[..len]);
    }

    split! {
        /// Block of the block bitmap (`bg_block_bitmap`).
        block_bitmap, set_block_bitmap: u64 = u32, block_bitmap_lo, block_bitmap_hi;
        /// Block of the inode bitmap (`bg_inode_bitmap`).
        inode_bitmap, set_inode_bitmap: u64 = u32, inode_bitmap_lo, inode_bitmap_hi;
        /// First block of the inode table (`bg_inode_table`).
        inode_table, set_inode_table: u64 = u32, inode_table_lo, inode_table_hi;
        /// Free blocks (`bg_free_blocks_count`).
        free_blocks, set_free_blocks: u32 = u16, free_blocks_lo, free_blocks_hi;
        /// Free inodes (`bg_free_inodes_count`).
        free_inodes, set_free_inodes: u32 = u16, free_inodes_lo, free_inodes_hi;
        /// Directories (`bg_used_dirs_count`).
        used_dirs, set_used_dirs: u32 = u16, used_dirs_lo, used_dirs_hi;
        /// Inodes at the end of the table that were never used (`bg_itable_unused`).
        itable_unused, set_itable_unused: u32 = u16, itable_unused_lo, itable_unused_hi;
        /// Checksum of the block bitmap; 16 bits in a short descriptor (`bg_block_bitmap_csum`).
        block_bitmap_csum, set_block_bitmap_csum: u32
            = u16, block_bitmap_csum_lo, block_bitmap_csum_hi;
        /// Checksum of the inode bitmap; 16 bits in a short descriptor (`bg_inode_bitmap_csum`).
        inode_bitmap_csum, set_inode_bitmap_csum: u32
            = u16, inode_bitmap_csum_lo, inode_bitmap_csum_hi;
    }

    /// Flags (`bg_flags`).
    pub fn flags(&self) -> GroupFlags {
        GroupFlags::from_bits_retain(self.raw.flags.get())
    }

    /// Sets the flags.
    pub fn set_flags(&mut self, flags: GroupFlags) {
        self.raw.flags.set(flags.bits());
    }

    /// Checksum of the descriptor (`bg_checksum`).
    pub fn checksum(&self) -> u16 {
        self.raw.checksum.get()
    }

    /// Sets the checksum of the descriptor.
    pub fn set_checksum(&mut self, checksum: u16) {
        self.raw.checksum.set(checksum);
    }

    /// Whether it has 64 bytes.
    pub(crate) fn is_wide(&self) -> bool {
        self.wide
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_short_descriptor_has_no_high_halves() {
        let mut d = GroupDesc::zeroed(32);
        d.set_inode_table(0x1_2345_6789);
        d.set_block_bitmap_csum(0xdead_beef);
        assert_eq!((d.inode_table(), d.block_bitmap_csum()), (0x2345_6789, 0xbeef));
        assert_eq!(d.as_bytes().len(), 32);
        let mut w = GroupDesc::zeroed(64);
        w.set_inode_table(0x1_2345_6789);
        w.set_free_blocks(0x12345);
        assert_eq!((w.inode_table(), w.free_blocks()), (0x1_2345_6789, 0x12345));
        assert_eq!(GroupDesc::parse(w.as_bytes()), w);
    }

    #[test]
    fn what_is_behind_counts_for_the_checksum() {
        let bytes: Vec<u8> = (0..128u8).map(|i| i.wrapping_mul(7)).collect();
        let d = GroupDesc::parse(&bytes);
        assert_eq!(d.crc16_behind(crc16(0xbeef, &bytes[..64])), crc16(0xbeef, &bytes));
        assert_eq!(d.crc32c_behind(crc32c(77, &bytes[..64])), crc32c(77, &bytes));
        let zeros = [0; 256];
        assert_eq!(GroupDesc::parse(&zeros), GroupDesc::zeroed(256));
    }
}
