//! Flags of an inode that mean something here (`include/uapi/linux/fs.h`).

/// FS_SYNC_FL.
pub(super) const SYNCHRONOUS: u32 = 0x8;
/// FS_IMMUTABLE_FL.
pub(super) const IMMUTABLE: u32 = 0x10;
/// FS_APPEND_FL.
pub(super) const APPEND_ONLY: u32 = 0x20;
/// FS_JOURNAL_DATA_FL.
pub(super) const JOURNAL_DATA: u32 = 0x4000;
