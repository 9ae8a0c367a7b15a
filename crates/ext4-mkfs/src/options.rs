//! What the new file system is to be like.

use std::sync::Arc;

use steadfast_block::BlockDevice;
use steadfast_ext4_format::Ext4Error;
use steadfast_ext4_format::ondisk::{Compat, Features, Incompat, RoCompat};
use uuid::Uuid;

/// Where the journal is to be.
#[derive(Clone, Default)]
pub enum JournalChoice {
    /// In the file system, in the middle of it.
    #[default]
    Internal,
    /// In the file system, with so many blocks (at least 1024). With the feature `fast_commit`
    /// those for fast commits come in addition.
    InternalOf(u32),
    /// On this device, which [`make_journal_device`](super::make_journal_device) or
    /// `mke2fs -O journal_dev` has made and no file system uses yet.
    External {
        /// The journal device.
        device: Arc<dyn BlockDevice>,
        /// Takes a device that would lose the journal with the power.
        accept_volatile: bool,
    },
    /// None.
    None,
}

impl std::fmt::Debug for JournalChoice {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            JournalChoice::Internal => f.write_str("Internal"),
            JournalChoice::InternalOf(n) => write!(f, "InternalOf({n})"),
            JournalChoice::External { device, accept_volatile } => {
                write!(f, "External({}, {accept_volatile})", device.info().name)
            }
            JournalChoice::None => f.write_str("None"),
        }
    }
}

/// What is known of the device's contents.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Contents {
    /// Nothing. Unused inode tables are marked as not yet zeroed, for the kernel to do later (as
    /// `-E lazy_itable_init=1`); the journal is overwritten with zeros.
    #[default]
    Unknown,
    /// Nothing, and inode tables are zeroed now.
    UnknownZeroTables,
    /// All zeros (a fresh RAM disk, model or sparse image): nothing needs to be overwritten.
    Zeros,
}

/// What the new file system is to be like. `None` means what mke2fs would choose.
#[derive(Debug, Clone)]
pub struct Options {
    /// Identity of the file system.
    pub uuid: Uuid,
    /// Seed of directory hashes.
    pub hash_seed: Uuid,
    /// Seconds since 1970, for all times in the file system.
    pub time: u64,
    /// Bytes a block: a power of two from 1024 to 65536.
    pub block_size: Option<u32>,
    /// Bytes a cluster (`-C`), with `bigalloc` only: a power of two, more than a block and at most
    /// 256 MiB; by default 16 blocks.
    pub cluster_size: Option<u32>,
    /// Blocks in all; by default the whole device.
    pub blocks: Option<u64>,
    /// Bytes of space for each inode (`-i`).
    pub inode_ratio: Option<u32>,
    /// Inodes in all (`-N`); rounded up to whole blocks of each group's table.
    pub inodes: Option<u32>,
    /// Bytes an inode: 128 to the block size, a power of two.
    pub inode_size: u16,
    /// Features. The journal's follow from [`journal`](Self::journal).
    pub features: Features,
    /// Groups a flexible group, a power of two (`-G`).
    pub groups_per_flex: u32,
    /// Percent of the blocks that are reserved for the super-user (`-m`): 0 to 50.
    pub reserved_percent: f64,
    /// Label, at most 16 bytes (`-L`).
    pub label: String,
    /// The journal.
    pub journal: JournalChoice,
    /// What is known of the device's contents.
    pub contents: Contents,
    /// User and group of the root directory (`-E root_owner`).
    pub root_owner: (u32, u32),
    /// Permissions of the root directory (`-E root_perms`).
    pub root_mode: u16,
    /// Blocks of a RAID's chunk (`-E stride`), 0 if there is none.
    pub raid_stride: u32,
    /// Blocks of a RAID's stripe (`-E stripe_width`), 0 if there is none.
    pub raid_stripe_width: u32,
    /// Blocks that it is to be able to grow to while it is mounted (`-E resize`).
    pub grows_to: Option<u64>,
    /// With `casefold`: names that are no UTF-8 are refused (`-E encoding_flags=strict`).
    pub strict_encoding: bool,
}

impl Options {
    /// The features of mke2fs -t ext2; those of -t ext3 differ only in the journal.
    pub fn ext2_features() -> Features {
        Features {
            compat: Compat::EXT_ATTR | Compat::RESIZE_INODE | Compat::DIR_INDEX,
            incompat: Incompat::FILETYPE,
            ro_compat: RoCompat::SPARSE_SUPER | RoCompat::LARGE_FILE,
        }
    }

    /// The features of Debian 12's mke2fs -t ext4.
    pub fn debian_features() -> Features {
        Features {
            compat: Compat::EXT_ATTR | Compat::RESIZE_INODE | Compat::DIR_INDEX,
            incompat: Incompat::FILETYPE | Incompat::EXTENT | Incompat::BIT64 | Incompat::FLEX_BG,
            ro_compat: RoCompat::SPARSE_SUPER
                | RoCompat::LARGE_FILE
                | RoCompat::HUGE_FILE
                | RoCompat::DIR_NLINK
                | RoCompat::EXTRA_ISIZE
                | RoCompat::METADATA_CSUM,
        }
    }

    /// The features of upstream's mke2fs 1.47 -t ext4: Debian's, metadata_csum_seed and
    /// orphan_file.
    pub fn upstream_features() -> Features {
        let mut features = Self::debian_features();
        features.compat |= Compat::ORPHAN_FILE;
        features.incompat |= Incompat::CSUM_SEED;
        features
    }

    /// Debian's defaults: `uuid` and `hash_seed` are the file system's, `time` is in seconds
    /// since 1970.
    pub fn new(uuid: Uuid, hash_seed: Uuid, time: u64) -> Self {
        Options {
            uuid,
            hash_seed,
            time,
            block_size: None,
            cluster_size: None,
            blocks: None,
            inode_ratio: None,
            inodes: None,
            inode_size: 256,
            features: Self::debian_features(),
            groups_per_flex: 16,
            reserved_percent: 5.0,
            label: String::new(),
            journal: JournalChoice::Internal,
            contents: Contents::Unknown,
            root_owner: (0, 0),
            root_mode: 0o755,
            raid_stride: 0,
            raid_stripe_width: 0,
            grows_to: None,
            strict_encoding: false,
        }
    }

    /// Debian's defaults with an identity from the runtime's random numbers (in a simulation:
    /// from its seed).
    pub fn random(time: u64) -> Self {
        Self::new(random_uuid(), random_uuid(), time)
    }

    /// Whether there is to be a journal.
    pub(super) fn has_journal(&self) -> bool {
        !matches!(self.journal, JournalChoice::None)
    }
}

/// A random (version 4) UUID from the runtime's random numbers.
pub fn random_uuid() -> Uuid {
    let (a, b) = (steadfast_runtime::random_u64(), steadfast_runtime::random_u64());
    uuid::Builder::from_random_bytes((u128::from(a) << 64 | u128::from(b)).to_le_bytes())
        .into_uuid()
}

/// A hash seed that follows from the file system's UUID, for who wants the same file system again.
pub fn hash_seed_of(uuid: Uuid) -> Uuid {
    let (high, low) = uuid.as_u64_pair();
    let mut drawn = steadfast_runtime::rng::Rng::new(high ^ low.rotate_left(17));
    let (a, b) = (drawn.bits(), drawn.bits());
    uuid::Builder::from_random_bytes((u128::from(a) << 64 | u128::from(b)).to_le_bytes())
        .into_uuid()
}

/// The answer to options that cannot be.
pub(super) fn refused(what: impl Into<String>) -> Ext4Error {
    Ext4Error::Refused { what: what.into() }
}
