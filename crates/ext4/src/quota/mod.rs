//! Space and inodes that each user, group and project uses, and may use (`quota`, `project`).
//!
//! The hidden quota files are changed by the transaction that changes what they count: when it is
//! finished, every inode it touched is compared with what it was before. So they are right after
//! any crash, whatever an operation does, and no operation has to know of them.
//!
//! Limits hold for everybody who calls: who that is, and whether he may exceed them, is not known
//! here. Space for data that has no place yet is charged when it is reserved; what has been
//! promised that way is never refused later.

mod file;
mod interface;
mod limits;
mod usage;

use steadfast_ext4_format::ondisk::{InodeNo, QUOTA_MAGIC, QUOTA_VERSION, QuotaInfo, RoCompat};
pub use steadfast_ext4_format::quota::QuotaKind;
use steadfast_ext4_format::quota::{KINDS, file_of};
use steadfast_ext4_format::{Ext4Error, Result, unsupported};
use steadfast_vfs::FileType;

use crate::meta::Parts;
use crate::state::Quotas;
use file::quota_info;

/// What an id uses and may use; limits of 0 are none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Quota {
    /// Bytes in use, without data that has no place yet.
    pub space: u64,
    /// Inodes in use.
    pub inodes: u64,
    /// The limits.
    pub limits: QuotaLimits,
}

/// What an id may use; 0 is no limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct QuotaLimits {
    /// Most space, in units of 1 KiB.
    pub space_hard_kib: u64,
    /// Space that may be exceeded for a week or as long as the file says, in units of 1 KiB.
    pub space_soft_kib: u64,
    /// Most inodes.
    pub inodes_hard: u64,
    /// Inodes that may be exceeded for a while.
    pub inodes_soft: u64,
}

/// Finds the quota files; empty without the feature.
///
/// # Errors
/// Corrupt: no quota file. Unsupported: one of another version.
pub(crate) fn load(parts: &Parts) -> Result<Quotas> {
    let txn = parts.look();
    let sb = *txn.superblock();
    let mut quotas = Quotas::default();
    if !sb.features().ro_compat.contains(RoCompat::QUOTA) {
        return Ok(quotas);
    }
    for kind in KINDS {
        let no = file_of(&sb, kind);
        if no == InodeNo::NONE {
            continue;
        }
        let corrupt = |what: &str| Ext4Error::corrupt(what, format!("{kind:?} quota, inode {no}"));
        let raw = txn.own_inode(no, "quota file")?;
        if raw.file_type() != Some(FileType::Regular) || raw.is_inline() {
            return Err(corrupt("no ordinary file"));
        }
        let info: QuotaInfo = quota_info(&txn, no)?;
        if info.magic.get() != QUOTA_MAGIC[kind as usize] {
            return Err(corrupt("wrong magic number"));
        }
        if info.version.get() != QUOTA_VERSION {
            return unsupported(format!("{kind:?} quota file of version {}", info.version));
        }
        quotas.files.insert(kind, no);
    }
    Ok(quotas)
}
