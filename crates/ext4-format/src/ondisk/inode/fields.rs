//! The fields of an inode, as values.

use steadfast_vfs::{FileType, Timestamp};

use super::{InodeExtra, InodeFlags, RawInode, file_type_from_mode, mode_of};
use crate::ondisk::inode_time::{decode, encode, encode_short};

/// A 32-bit field beyond 128 bytes, if it exists.
macro_rules! extra_word {
    ($inode:expr, $field:ident) => {
        $inode
            .extra()
            .filter(|_| $inode.has_extra(std::mem::offset_of!(InodeExtra, $field), 4))
            .map(|e| e.$field.get())
    };
}

/// Getters and setters of numbers that are split into a low and a high half.
macro_rules! split {
    ($(#[doc = $doc:literal] $get:ident, $set:ident: $type:ty =
        $lo:ident, $hi:ident << $bits:literal;)*) => {$(
        #[doc = $doc]
        #[inline]
        pub fn $get(&self) -> $type {
            <$type>::from(self.core().$lo.get()) | <$type>::from(self.core().$hi.get()) << $bits
        }

        #[doc = concat!("Sets [`", stringify!($get), "`](Self::", stringify!($get), ").")]
        #[inline]
        pub fn $set(&mut self, value: $type) {
            self.core_mut().$lo.set(value as _);
            self.core_mut().$hi.set((value >> $bits) as _);
        }
    )*};
}

/// Getter and setter of one of the times.
macro_rules! time {
    ($get:ident, $set:ident, $word:ident, $extra:ident) => {
        #[doc = concat!("`i_", stringify!($word), "`, with nanoseconds where there is room.")]
        #[inline]
        pub fn $get(&self) -> Timestamp {
            decode(self.core().$word.get(), extra_word!(self, $extra))
        }

        #[doc = concat!("Sets [`", stringify!($get), "`](Self::", stringify!($get), ").")]
        #[inline]
        pub fn $set(&mut self, t: Timestamp) {
            if extra_word!(self, $extra).is_none() {
                self.core_mut().$word.set(encode_short(t));
                return;
            }
            let (seconds, extra) = encode(t);
            self.core_mut().$word.set(seconds);
            if let Some(e) = self.extra_mut() {
                e.$extra.set(extra);
            }
        }
    };
}

impl RawInode {
    /// Type; `None` if the mode holds no valid one.
    #[inline]
    pub fn file_type(&self) -> Option<FileType> {
        file_type_from_mode(self.core().mode.get())
    }

    /// Permission bits with set-id and sticky.
    #[inline]
    pub fn permissions(&self) -> u16 {
        self.core().mode.get() & 0o7777
    }

    /// Sets type and permissions.
    #[inline]
    pub fn set_mode(&mut self, kind: FileType, permissions: u16) {
        self.core_mut().mode.set(mode_of(kind) | permissions & 0o7777);
    }

    split! {
        /// Owner.
        uid, set_uid: u32 = uid_lo, uid_hi << 16;
        /// Group.
        gid, set_gid: u32 = gid_lo, gid_hi << 16;
        /// Size in bytes.
        size, set_size: u64 = size_lo, size_hi << 32;
        /// Block of extended attributes; 0 if there is none.
        file_acl, set_file_acl: u64 = file_acl_lo, file_acl_hi << 32;
    }

    /// The number in the `i_blocks` fields: sectors, or blocks with [`InodeFlags::HUGE_FILE`].
    #[inline]
    pub fn blocks_field(&self) -> u64 {
        u64::from(self.core().blocks_lo.get()) | u64::from(self.core().blocks_hi.get()) << 32
    }

    /// Whether there is room for a project id.
    #[inline]
    pub fn has_project(&self) -> bool {
        self.has_extra(std::mem::offset_of!(InodeExtra, project), 4)
    }

    /// Project id (`i_projid`); 0 if there is no room for one.
    #[inline]
    pub fn project(&self) -> u32 {
        extra_word!(self, project).unwrap_or(0)
    }

    /// Sets the project id, if there is room for it.
    #[inline]
    pub fn set_project(&mut self, project: u32) {
        if self.has_project()
            && let Some(e) = self.extra_mut()
        {
            e.project.set(project);
        }
    }

    /// Storage used, in 512-byte sectors.
    #[inline]
    pub fn sectors(&self, block_size: u32) -> u64 {
        let n = self.blocks_field();
        if self.flags().contains(InodeFlags::HUGE_FILE) {
            n * u64::from(block_size / 512)
        } else {
            n
        }
    }

    /// Sets the storage used, in 512-byte sectors. What does not fit into 48 bits as sectors is
    /// counted in blocks, with [`InodeFlags::HUGE_FILE`] (needs the `huge_file` feature).
    #[inline]
    pub fn set_sectors(&mut self, sectors: u64, block_size: u32) {
        let huge = sectors >= 1 << 48;
        let n = if huge { sectors / u64::from(block_size / 512) } else { sectors };
        let mut flags = self.flags();
        flags.set(InodeFlags::HUGE_FILE, huge);
        self.set_flags(flags);
        self.core_mut().blocks_lo.set(n as u32);
        self.core_mut().blocks_hi.set((n >> 32) as u16);
    }

    /// Flags.
    #[inline]
    pub fn flags(&self) -> InodeFlags {
        InodeFlags::from_bits_retain(self.core().flags.get())
    }

    /// Sets the flags.
    #[inline]
    pub fn set_flags(&mut self, flags: InodeFlags) {
        self.core_mut().flags.set(flags.bits());
    }

    /// Links.
    #[inline]
    pub fn links(&self) -> u16 {
        self.core().links.get()
    }

    /// Sets the links.
    #[inline]
    pub fn set_links(&mut self, links: u16) {
        self.core_mut().links.set(links);
    }

    /// Changes when the number is used again.
    #[inline]
    pub fn generation(&self) -> u32 {
        self.core().generation.get()
    }

    /// The 60 bytes of `i_block`.
    #[inline]
    pub fn block(&self) -> &[u8; 60] {
        &self.core().block
    }

    /// The 60 bytes of `i_block`, to be changed.
    #[inline]
    pub fn block_mut(&mut self) -> &mut [u8; 60] {
        &mut self.core_mut().block
    }

    time!(atime, set_atime, atime, atime_extra);
    time!(ctime, set_ctime, ctime, ctime_extra);
    time!(mtime, set_mtime, mtime, mtime_extra);

    /// Creation, if there is room for it.
    #[inline]
    pub fn crtime(&self) -> Option<Timestamp> {
        Some(decode(extra_word!(self, crtime)?, extra_word!(self, crtime_extra)))
    }

    /// Sets the time of creation, if there is room for it.
    #[inline]
    pub fn set_crtime(&mut self, t: Timestamp) {
        if extra_word!(self, crtime_extra).is_none() {
            return;
        }
        let (seconds, extra) = encode(t);
        if let Some(e) = self.extra_mut() {
            e.crtime.set(seconds);
            e.crtime_extra.set(extra);
        }
    }

    /// The target of a symbolic link that is kept in the inode: no extents flag, size below 60,
    /// no blocks but those of attributes. `None` for any other inode.
    #[inline]
    pub fn fast_symlink_target(&self) -> Option<&[u8]> {
        let size = usize::try_from(self.size()).ok()?;
        let fast = self.file_type() == Some(FileType::Symlink)
            && !self.flags().intersects(InodeFlags::EXTENTS | InodeFlags::INLINE_DATA)
            && size < self.block().len();
        fast.then(|| &self.block()[..size])
    }

    /// Device number (major << 32 | minor) of a device node, else 0. The old form is one 16-bit
    /// word, the new one splits the minor number (`new_decode_dev`).
    #[inline]
    pub fn rdev(&self) -> u64 {
        if !matches!(self.file_type(), Some(FileType::CharDevice | FileType::BlockDevice)) {
            return 0;
        }
        let b = self.block();
        let word = |i: usize| u32::from_le_bytes([b[i], b[i + 1], b[i + 2], b[i + 3]]);
        let (old, new) = (word(0), word(4));
        let (major, minor) = if old != 0 {
            (old >> 8 & 0xff, old & 0xff)
        } else {
            (new >> 8 & 0xfff, new & 0xff | new >> 12 & 0xfff00)
        };
        u64::from(major) << 32 | u64::from(minor)
    }

    /// Sets the device number (major << 32 | minor) in `i_block`, in the old form if it fits.
    /// Says whether it fits at all: 12 bits of major and 20 of minor number.
    #[inline]
    pub fn set_rdev(&mut self, rdev: u64) -> bool {
        let (major, minor) = ((rdev >> 32) as u32, rdev as u32);
        if major >= 1 << 12 || minor >= 1 << 20 {
            return false;
        }
        let old_fits = major < 256 && minor < 256;
        let (old, new) = if old_fits {
            (major << 8 | minor, 0)
        } else {
            (0, minor & 0xff | major << 8 | (minor & !0xff) << 12)
        };
        self.block_mut()[..4].copy_from_slice(&old.to_le_bytes());
        self.block_mut()[4..8].copy_from_slice(&new.to_le_bytes());
        self.block_mut()[8..].fill(0);
        true
    }
}
