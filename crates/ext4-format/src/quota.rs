//! Which quota files there are, and what they count.

use crate::ondisk::{InodeFlags, InodeNo, RawInode, Superblock};

/// Whose usage is counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum QuotaKind {
    /// By owner.
    User,
    /// By group.
    Group,
    /// By project id.
    Project,
}

/// All of them, in the order of their numbers on disk.
pub const KINDS: [QuotaKind; 3] = [QuotaKind::User, QuotaKind::Group, QuotaKind::Project];

/// The inode of a kind's file, by the superblock; 0 is none.
pub fn file_of(sb: &Superblock, kind: QuotaKind) -> InodeNo {
    InodeNo(match kind {
        QuotaKind::User => sb.user_quota_inode.get(),
        QuotaKind::Group => sb.group_quota_inode.get(),
        QuotaKind::Project => sb.project_quota_inode.get(),
    })
}

/// Whether the inode counts: none of the file system's own, and no attribute's value.
pub fn counts(sb: &Superblock, no: InodeNo, raw: &RawInode) -> bool {
    (no == InodeNo::ROOT || no.0 >= sb.first_inode.get())
        && no != file_of(sb, QuotaKind::Project)
        && no.0 != sb.orphan_file_inode.get()
        && !raw.flags().contains(InodeFlags::EA_INODE)
}

/// To whom the inode belongs.
pub fn owner(raw: &RawInode, kind: QuotaKind) -> u32 {
    match kind {
        QuotaKind::User => raw.uid(),
        QuotaKind::Group => raw.gid(),
        QuotaKind::Project => raw.project(),
    }
}
