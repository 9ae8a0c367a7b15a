//! The fields of a superblock, as values.

use zerocopy::little_endian::U32;

use super::Superblock;
use crate::ondisk::{
    Compat, EXTENT_MAGIC, FIRST_INODE_REV0, GOOD_OLD_INODE_SIZE, Incompat, InodeFlags, InodeNo,
    RawInode, RoCompat,
};

fn join(lo: U32, hi: u64) -> u64 {
    u64::from(lo.get()) | hi << 32
}

impl Superblock {
    /// The high half of a split number, which counts only with `64bit`.
    fn hi(&self, hi: U32) -> u64 {
        let wide = self.features().incompat.contains(Incompat::BIT64);
        if wide { u64::from(hi.get()) } else { 0 }
    }

    /// Blocks in all.
    pub fn blocks_count(&self) -> u64 {
        join(self.blocks_count_lo, self.hi(self.blocks_count_hi))
    }

    /// Sets the number of blocks.
    pub fn set_blocks_count(&mut self, n: u64) {
        self.blocks_count_lo.set(n as u32);
        self.blocks_count_hi.set((n >> 32) as u32);
    }

    /// Blocks reserved for the super-user.
    pub fn reserved_blocks(&self) -> u64 {
        join(self.reserved_blocks_lo, self.hi(self.reserved_blocks_hi))
    }

    /// Sets the number of reserved blocks.
    pub fn set_reserved_blocks(&mut self, n: u64) {
        self.reserved_blocks_lo.set(n as u32);
        self.reserved_blocks_hi.set((n >> 32) as u32);
    }

    /// Free blocks.
    pub fn free_blocks(&self) -> u64 {
        join(self.free_blocks_lo, self.hi(self.free_blocks_hi))
    }

    /// Sets the number of free blocks.
    pub fn set_free_blocks(&mut self, n: u64) {
        self.free_blocks_lo.set(n as u32);
        self.free_blocks_hi.set((n >> 32) as u32);
    }

    /// Bytes a block; `None` if the field makes no sense (over 64 KiB).
    pub fn block_size(&self) -> Option<u32> {
        let log = self.log_block_size.get();
        (log <= 6).then(|| 1024 << log)
    }

    /// Bytes an inode: 128 in revision 0.
    pub fn inode_size(&self) -> u16 {
        if self.revision.get() == 0 { 128 } else { self.inode_size.get() }
    }

    /// The first inode that is not reserved.
    pub fn first_inode(&self) -> InodeNo {
        let first =
            if self.revision.get() == 0 { FIRST_INODE_REV0 } else { self.first_inode.get() };
        InodeNo(first)
    }

    /// Whether a journal is named.
    pub fn has_journal(&self) -> bool {
        self.features().compat.contains(Compat::HAS_JOURNAL)
    }

    /// Whether the journal is a device of its own.
    pub fn has_external_journal(&self) -> bool {
        self.has_journal() && self.journal_inode.get() == 0
    }

    /// How many bytes beyond 128 hold fields in a new inode: those of the 32 that are known, or
    /// more where the superblock asks for it with a number that an inode of this size can have.
    /// 0 if inodes have 128 bytes. The kernel asks the superblock only with `extra_isize`
    /// (fs/ext4/super.c); e2fsck calls others "bad".
    pub fn extra_of_new_inodes(&self) -> u16 {
        /// The fields up to `i_projid`.
        const KNOWN: u16 = 32;
        let room = u32::from(self.inode_size()).saturating_sub(128);
        if room < u32::from(KNOWN) {
            return 0;
        }
        if !self.features().ro_compat.contains(RoCompat::EXTRA_ISIZE) {
            return KNOWN;
        }
        let asked = self.want_extra_isize.get().max(self.min_extra_isize.get()).max(KNOWN);
        if u32::from(asked) > room || !asked.is_multiple_of(4) { KNOWN } else { asked }
    }

    /// The label without its padding, as text.
    pub fn label(&self) -> String {
        text(&self.volume_name)
    }

    /// The folder it was last mounted on, as text.
    pub fn last_mounted(&self) -> String {
        text(&self.last_mounted)
    }

    /// The mount options that hold without being named, in words (`s_mount_opts`).
    pub fn mount_words(&self) -> String {
        text(&self.mount_options)
    }

    /// Keeps a copy of the journal inode's map and size (`s_jnl_blocks`).
    pub fn set_journal_backup(&mut self, inode: &RawInode) {
        for (word, bytes) in self.journal_blocks.iter_mut().zip(inode.block().chunks_exact(4)) {
            // OK to unwrap: the chunks have four bytes.
            word.set(u32::from_le_bytes(bytes.try_into().unwrap()));
        }
        self.journal_blocks[15].set((inode.size() >> 32) as u32);
        self.journal_blocks[16].set(inode.size() as u32);
        self.journal_backup_type = 1;
    }

    /// The journal's inode as the superblock keeps a copy of it: its map and its size, and from
    /// the map whether it is a tree of extents. `None` if there is no copy.
    pub(crate) fn journal_backup(&self) -> Option<RawInode> {
        let words = &self.journal_blocks;
        if self.journal_backup_type != 1 || words[0].get() == 0 {
            return None;
        }
        let mut inode = RawInode::new(GOOD_OLD_INODE_SIZE, 0);
        inode.set_mode(steadfast_vfs::FileType::Regular, 0o600);
        inode.set_links(1);
        inode.set_size(u64::from(words[15].get()) << 32 | u64::from(words[16].get()));
        for (bytes, word) in inode.block_mut().chunks_exact_mut(4).zip(words) {
            bytes.copy_from_slice(&word.get().to_le_bytes());
        }
        if words[0].get() & 0xffff == u32::from(EXTENT_MAGIC) {
            inode.set_flags(InodeFlags::EXTENTS);
        }
        Some(inode)
    }
}

/// Text up to the first NUL.
fn text(bytes: &[u8]) -> String {
    let end = bytes.iter().position(|b| *b == 0).unwrap_or(bytes.len());
    String::from_utf8_lossy(&bytes[..end]).into_owned()
}
