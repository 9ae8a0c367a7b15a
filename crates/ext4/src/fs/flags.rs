//! Inode flags as `lsattr` shows and `chattr` changes them (ext4_fileattr_set in the kernel).

use steadfast_ext4_format::ondisk::{Incompat, InodeFlags};
use steadfast_vfs::{FileType, FsError, Result};

use crate::dir::InodeBlocks;
use crate::file::leave_page_cache;
use crate::inode::FOR_ALL;
use crate::meta::MetaLog;
use crate::mounted::{Ext4, key};
use crate::state::Inode;

/// What may be changed (`EXT4_FL_USER_MODIFIABLE`).
const CHANGEABLE: InodeFlags = InodeFlags::SECURE_DELETE
    .union(InodeFlags::UNDELETE)
    .union(InodeFlags::COMPRESSED)
    .union(InodeFlags::SYNC)
    .union(InodeFlags::IMMUTABLE)
    .union(InodeFlags::APPEND)
    .union(InodeFlags::NO_DUMP)
    .union(InodeFlags::NO_ATIME)
    .union(InodeFlags::JOURNAL_DATA)
    .union(InodeFlags::NO_TAIL)
    .union(InodeFlags::DIR_SYNC)
    .union(InodeFlags::TOP_DIR)
    .union(InodeFlags::EXTENTS)
    .union(InodeFlags::EOF_BLOCKS)
    .union(InodeFlags::DAX)
    .union(InodeFlags::PROJECT_INHERIT)
    .union(InodeFlags::CASEFOLD);

/// What is shown beside that (`EXT4_FL_USER_VISIBLE`): 0x700 are what is left of compression.
pub(super) const SHOWN: InodeFlags = CHANGEABLE
    .union(InodeFlags::from_bits_retain(0x700))
    .union(InodeFlags::ENCRYPTED)
    .union(InodeFlags::INDEX)
    .union(InodeFlags::VERITY)
    .union(InodeFlags::INLINE_DATA);

/// Of what may be changed, what only directories have.
const FOR_DIRECTORIES: InodeFlags = InodeFlags::DIR_SYNC
    .union(InodeFlags::TOP_DIR)
    .union(InodeFlags::CASEFOLD)
    .union(InodeFlags::PROJECT_INHERIT);

impl Ext4 {
    /// Changes the flags; who may is the front end's to know.
    pub(super) fn set_pinned_flags(&self, inode: &Inode, wanted: InodeFlags) -> Result<()> {
        let (now, kind) = {
            let state = inode.state();
            (state.raw.flags(), state.raw.file_type())
        };
        let allowed = match kind {
            Some(FileType::Directory) => CHANGEABLE,
            Some(FileType::Regular) => CHANGEABLE.difference(FOR_DIRECTORIES),
            _ => FOR_ALL,
        };
        let kept = wanted & CHANGEABLE;
        let refused = |what: &str| Err(FsError::Unsupported { what: what.into() });
        if !SHOWN.contains(wanted) || !allowed.contains(kept) {
            return refused(&format!("the inode flags {:#x}", wanted.difference(allowed).bits()));
        }
        let changed = (now & CHANGEABLE) ^ kept;
        if changed.contains(InodeFlags::EXTENTS) {
            // It would mean to build the inode anew.
            return refused("changing how a file is mapped (chattr e)");
        }
        let casefold = self.volume.layout.features.incompat.contains(Incompat::CASEFOLD);
        if changed.contains(InodeFlags::CASEFOLD) && !casefold {
            return refused("ignoring case (chattr F): the file system lacks casefold");
        }
        if kept.contains(InodeFlags::DAX | InodeFlags::JOURNAL_DATA) {
            return refused(
                "a file that is used in place (chattr x) and whose data is journalled (chattr j): \
                 one excludes the other",
            );
        }
        // Also if nothing changes, the time of change does, as in the kernel.
        if changed.contains(InodeFlags::JOURNAL_DATA) && self.parts.transacts() {
            return refused("journalling a file's data (chattr j) with data=transact");
        }
        self.run_pinned(inode, || self.change_flags(inode, changed))
    }

    fn change_flags(
        &self,
        inode: &Inode,
        changed: InodeFlags,
    ) -> steadfast_ext4_format::Result<()> {
        let _exclusive = inode.data_lock.write();
        if changed.contains(InodeFlags::JOURNAL_DATA) {
            // Before data takes the other way, what went the first must be in its place: a later
            // replay would bring it back over newer data.
            self.pages.flush(key(inode.no))?;
            if matches!(self.parts.log, MetaLog::Journal(_)) {
                self.parts.log.checkpoint_all()?;
            }
            self.pages.invalidate_before_direct_write(key(inode.no), 0..u64::MAX);
        }
        if self.dax && changed.intersects(InodeFlags::DAX | InodeFlags::JOURNAL_DATA) {
            leave_page_cache(self, inode)?;
        }
        if changed.contains(InodeFlags::IMMUTABLE) {
            self.pages.flush(key(inode.no))?;
        }
        let mut txn = self.parts.begin()?;
        if changed.contains(InodeFlags::CASEFOLD)
            && !InodeBlocks::directory(&txn, inode.no)?.is_empty()?
        {
            // Names that are there may become equal, and their hashes others.
            return Err(FsError::NotEmpty.into());
        }
        txn.modify_inode(inode.no, |raw| raw.set_flags(raw.flags() ^ changed))?;
        txn.touch(inode.no, false)?;
        txn.finish().map(drop)
    }
}
