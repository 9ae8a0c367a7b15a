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
        let mut out = Vec::new();
        let plain = [
            (Self::DEBUG, "debug"),
            (Self::BSD_GROUPS, "bsdgroups"),
            (Self::USER_XATTR, "user_xattr"),
            (Self::ACL, "acl"),
            (Self::UID16, "uid16"),
        ];
        out.extend(plain.iter().filter(|(f, _)| self.contains(*f)).map(|(_, n)| *n));
        match self.intersection(Self::JOURNAL_WRITEBACK) {
            Self::JOURNAL_DATA => out.push("journal_data"),
            Self::JOURNAL_ORDERED => out.push("journal_data_ordered"),
            Self::JOURNAL_WRITEBACK => out.push("journal_data_writeback"),
            _ => {}
        }
        let later = [
            (Self::NO_BARRIER, "nobarrier"),
            (Self::BLOCK_VALIDITY, "block_validity"),
            (Self::DISCARD, "discard"),
            (Self::NO_DELALLOC, "nodelalloc"),
        ];
        out.extend(later.iter().filter(|(f, _)| self.contains(*f)).map(|(_, n)| *n));
        out
    }
}

/// What the kernel does when it finds an error (`s_errors`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ErrorsBehaviour {
    /// Goes on.
    Continue,
    /// Becomes read-only.
    ReadOnly,
    /// Panics.
    Panic,
    /// A code without a meaning.
    Unknown(u16),
}

impl From<u16> for ErrorsBehaviour {
    fn from(code: u16) -> Self {
        match code {
            1 => ErrorsBehaviour::Continue,
            2 => ErrorsBehaviour::ReadOnly,
            3 => ErrorsBehaviour::Panic,
            other => ErrorsBehaviour::Unknown(other),
        }
    }
}
