//! The block of multiple-mount protection (`struct mmp_struct`).

use zerocopy::little_endian::{U16, U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, Unaligned};

use crate::ondisk::csum::crc32c;

/// `EXT4_MMP_MAGIC`.
pub(crate) const MMP_MAGIC: u32 = 0x004d_4d50;

/// Says which host has the file system mounted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, FromBytes, IntoBytes, Immutable, Unaligned)]
#[repr(C)]
pub struct Mmp {
    /// `MMP_MAGIC` (`mmp_magic`).
    pub magic: U32,
    /// Changes while mounted (`mmp_seq`).
    pub sequence: U32,
    /// Last update, seconds (`mmp_time`).
    pub time: U64,
    /// Host (`mmp_nodename`).
    pub node_name: [u8; 64],
    /// Device (`mmp_bdevname`).
    pub device_name: [u8; 32],
    /// Seconds (`mmp_check_interval`).
    pub check_interval: U16,
    /// `mmp_pad1`.
    pub pad1: U16,
    /// `mmp_pad2`.
    pub pad2: [U32; 226],
    /// `mmp_checksum`.
    pub checksum: U32,
}

const _: () = assert!(size_of::<Mmp>() == 1024);

impl Mmp {
    /// The checksum that it should have with the file system's seed.
    pub fn checksum_with(&self, seed: u32) -> u32 {
        crc32c(seed, &self.as_bytes()[..std::mem::offset_of!(Mmp, checksum)])
    }
}
