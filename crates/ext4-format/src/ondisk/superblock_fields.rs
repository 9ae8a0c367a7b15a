//! Bits and codes inside the superblock.

bitflags::bitflags! {
    /// State of the file system (`s_state`).
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub struct StateFlags: u16 {
        /// Unmounted cleanly (`EXT4_VALID_FS`).
        const VALID = 1;
        /// Errors were found (`EXT4_ERROR_FS`).
        const ERROR = 2;
        /// The kernel is working through orphans (`EXT4_ORPHAN_FS`).
        const ORPHANS = 4;
        const _ = !0;
    }
}

bitflags::bitflags! {
    /// Flags of the file system (`s_flags`).
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub struct SuperFlags: u32 {
        /// Directory hashes take bytes as signed (`EXT2_FLAGS_SIGNED_HASH`).
        const SIGNED_HASH = 1;
        /// Directory hashes take bytes as unsigned (`EXT2_FLAGS_UNSIGNED_HASH`).
        const UNSIGNED_HASH = 2;
        /// May be used by code in development (`EXT2_FLAGS_TEST_FILESYS`).
        const TEST = 4;
        const _ = !0;
    }
}

bitflags::bitflags! {
    /// Mount options that hold without being named (`s_default_mount_opts`).
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub struct DefaultMountOptions: u32 {
        /// `debug`.
        const DEBUG = 0x1;
        /// `bsdgroups`.
        const BSD_GROUPS = 0x2;
        /// `user_xattr`.
        const USER_XATTR = 0x4;
        /// `acl`.
        const ACL = 0x8;
        /// `uid16`.
        const UID16 = 0x10;
        /// `journal_data` (data=journal).
        const JOURNAL_DATA = 0x20;
        /// `journal_data_ordered`.
        const JOURNAL_ORDERED = 0x40;
        /// `journal_data_writeback` (both bits).
        const JOURNAL_WRITEBACK = 0x60;
        /// `nobarrier`.
        const NO_BARRIER = 0x100;
        /// `block_validity`.
        const BLOCK_VALIDITY = 0x200;
        /// `discard`.
        const DISCARD = 0x400;
        /// `nodelalloc`.
        const NO_DELALLOC = 0x800;
        const _ = !0;
    }
}

impl DefaultMountOptions {
    /// Names as dumpe2fs prints them.
    pub fn names(self) -> Vec<&'static str> {
        let alone = |flag: Self, name| (flag, flag, name);
        let data = |mode: Self, name| (Self::JOURNAL_WRITEBACK, mode, name);
        let all = [
            alone(Self::DEBUG, "debug"),
            alone(Self::BSD_GROUPS, "bsdgroups"),
            alone(Self::USER_XATTR, "user_xattr"),
            alone(Self::ACL, "acl"),
            alone(Self::UID16, "uid16"),
            data(Self::JOURNAL_DATA, "journal_data"),
            data(Self::JOURNAL_ORDERED, "journal_data_ordered"),
            data(Self::JOURNAL_WRITEBACK, "journal_data_writeback"),
            alone(Self::NO_BARRIER, "nobarrier"),
            alone(Self::BLOCK_VALIDITY, "block_validity"),
            alone(Self::DISCARD, "discard"),
            alone(Self::NO_DELALLOC, "nodelalloc"),
        ];
        let set = all.into_iter().filter(|(mask, value, _)| self.intersection(*mask) == *value);
        set.map(|(_, _, name)| name).collect()
    }
}
