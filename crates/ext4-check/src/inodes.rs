//! Every inode in use: its fields, what it maps, and who it is for the later phases.

use std::fmt::Display;

use steadfast_ext4_format::Result;
use steadfast_ext4_format::ondisk::{Compat, GroupNo, InodeFlags, InodeNo, RawInode};
use steadfast_vfs::FileType;

use crate::FindingKind;
use crate::checker::Checker;
use crate::found::ScannedDirectory;
use crate::orphans::Fate;

/// Lists the device's bad blocks (`EXT4_BAD_INO`).
const BAD_BLOCKS: InodeNo = InodeNo(1);

/// What an inode maps.
#[derive(Debug, Default)]
pub(super) struct InodeExtents {
    /// Blocks, those of the tree included.
    pub(super) blocks: u64,
    /// The file block behind the last that is mapped.
    pub(super) end: u64,
    /// The same, but of written blocks only.
    pub(super) written_end: u64,
    /// File block, first block and length of each run, for those inodes whose contents are looked
    /// at, and without what has another owner.
    pub(super) runs: Vec<(u32, u64, u32)>,
}

impl Checker<'_> {
    /// Reads all inode tables as far as they were ever used.
    pub(super) fn scan_inodes(&mut self) -> Result<()> {
        let per_block = self.image.layout.inodes_per_block();
        let groups = self.image.layout.all_groups();
        let pieces =
            groups.flat_map(|group| self.image.table_pieces(group).map(|(_, piece)| piece));
        let pieces = pieces.collect();
        self.image.source.plan(pieces);
        for group in self.image.layout.all_groups() {
            let count = self.image.inodes_to_scan(group);
            self.inodes.open(group, count);
            let pieces: Vec<_> = self.image.table_pieces(group).collect();
            for (at, (first, len)) in pieces {
                let bytes = self.image.source.next(first, len.into())?;
                self.scan_slots(group, at * per_block, count, &bytes)?;
            }
        }
        Ok(())
    }

    fn scan_slots(&mut self, group: GroupNo, first: u32, count: u32, bytes: &[u8]) -> Result<()> {
        let slots = bytes.chunks_exact(usize::from(self.image.layout.inode_size));
        for (index, slot) in (first..count).zip(slots) {
            let ino = self.image.layout.inode_number(group, index);
            // Most slots of a table are blank.
            if slot.iter().all(|b| *b == 0) && !self.orphans.contains(&ino) {
                if ino < self.image.layout.first_inode {
                    self.note(ino, None, 0);
                }
                continue;
            }
            self.check_inode(ino, &RawInode::from_bytes(slot))?;
        }
        Ok(())
    }

    /// Notes that an inode is in use.
    fn note(&mut self, ino: InodeNo, kind: Option<FileType>, links: u16) {
        if let Some(known) = self.inodes.get_mut(ino) {
            known.used = true;
            known.kind = kind;
            known.links = links;
        }
        self.counts.inodes += 1;
        match kind {
            Some(FileType::Regular) => self.counts.files += 1,
            Some(FileType::Directory) => self.counts.directories += 1,
            Some(FileType::Symlink) => self.counts.symlinks += 1,
            Some(_) => self.counts.others += 1,
            None => {}
        }
    }

    pub(super) fn inode_finding(&mut self, ino: InodeNo, kind: FindingKind, text: impl Display) {
        self.findings.add(kind, format_args!("inode {ino}"), text);
    }

    /// Says that an inode's fields make no sense.
    pub(super) fn bad_inode(&mut self, ino: InodeNo, kind: FindingKind, text: impl Display) {
        self.inode_finding(ino, kind, text);
        if let Some(known) = self.inodes.get_mut(ino) {
            known.bad = true;
        }
    }

    fn check_inode(&mut self, ino: InodeNo, inode: &RawInode) -> Result<()> {
        if !self.image.layout.checksums.verify_inode(ino, inode) && !inode.is_blank() {
            self.inode_finding(ino, FindingKind::InodeChecksum, "the inode's checksum is wrong");
        }
        if ino < self.image.layout.first_inode && ino != InodeNo::ROOT {
            return self.check_reserved(ino, inode);
        }
        let orphan = self.orphans.contains(&ino);
        if inode.links() == 0 && !orphan {
            self.check_free(ino, inode);
            return Ok(());
        }
        self.note(ino, inode.file_type(), inode.links());
        self.quota.count(&self.image, ino, inode);
        self.check_fields(ino, inode, orphan);
        self.encryption.begin();
        let charged = self.check_inode_xattrs(ino, inode);
        self.values.note_holder(&self.image, ino, inode);
        self.check_contents(ino, inode, charged)?;
        if self.fate(ino, inode) != Fate::Deleted {
            self.encryption.note(&self.image, &mut self.findings, ino, inode);
        }
        Ok(())
    }

    /// A free inode that was used once says when it was deleted.
    fn check_free(&mut self, ino: InodeNo, inode: &RawInode) {
        let (mode, deleted) = (inode.core().mode.get(), inode.core().dtime.get());
        if mode != 0 && deleted == 0 {
            let text = "it has no links, but no time of deletion";
            self.inode_finding(ino, FindingKind::InodeField, text);
        } else if deleted != 0 && self.image.is_inode_number(deleted) {
            let text = "it was an orphan, but is not in the list of orphans";
            self.inode_finding(ino, FindingKind::Orphan, text);
        }
    }

    fn check_reserved(&mut self, ino: InodeNo, inode: &RawInode) -> Result<()> {
        self.note(ino, inode.file_type(), inode.links());
        if let Some(text) = self.reserved_problem(ino, inode) {
            self.inode_finding(ino, FindingKind::ReservedInode, text);
        }
        if ino == InodeNo::RESIZE {
            return self.check_resize(inode);
        }
        if matches!(ino, InodeNo::JOURNAL | InodeNo::USER_QUOTA | InodeNo::GROUP_QUOTA)
            && !self.image.is_named(ino)
        {
            // Nobody will look at what it maps.
            return Ok(());
        }
        self.check_contents(ino, inode, 0)
    }

    /// What a reserved inode holds that it must not.
    fn reserved_problem(&self, ino: InodeNo, inode: &RawInode) -> Option<&'static str> {
        const BOOT_LOADER: InodeNo = InodeNo(5);
        let (kind, core) = (inode.file_type(), inode.core());
        let mode = core.mode.get();
        let (wrong, text) = match ino {
            BAD_BLOCKS => {
                let fields = [mode, core.uid_lo.get(), core.gid_lo.get(), core.links.get()];
                (
                    fields != [0; 4] || inode.file_acl() != 0,
                    "the list of bad blocks has fields that it must not have",
                )
            }
            InodeNo::JOURNAL if self.image.is_named(ino) => {
                let file = kind == Some(FileType::Regular) && core.links.get() > 0;
                let encrypted = inode.flags().contains(InodeFlags::ENCRYPTED);
                (!file || encrypted, "the journal is no plain regular file with a link")
            }
            InodeNo::USER_QUOTA | InodeNo::GROUP_QUOTA if self.image.is_named(ino) => {
                (kind != Some(FileType::Regular), "the quota file is no regular file")
            }
            InodeNo::JOURNAL | InodeNo::USER_QUOTA | InodeNo::GROUP_QUOTA => {
                let used = core.links.get() != 0 || inode.blocks_field() != 0;
                (
                    used || core.block[..4] != [0; 4],
                    "it is in use, but the superblock names no such journal or quota",
                )
            }
            InodeNo::RESIZE => (
                mode != 0 && kind != Some(FileType::Regular),
                "the resize inode is no regular file",
            ),
            BOOT_LOADER => {
                (kind == Some(FileType::Directory), "the boot loader's inode is a directory")
            }
            _ => (mode != 0, "a reserved inode is in use"),
        };
        wrong.then_some(text)
    }

    /// Walks through what an inode maps.
    pub(super) fn walk_map(&mut self, ino: InodeNo, inode: &RawInode) -> Result<InodeExtents> {
        match inode.flags().contains(InodeFlags::EXTENTS) {
            true => self.walk_extents(ino, inode),
            false => self.walk_block_map(ino, inode),
        }
    }

    /// Walks through what an inode maps, and holds size and storage against it: that, and the
    /// blocks that it is `charged` for beside.
    fn check_contents(&mut self, ino: InodeNo, inode: &RawInode, charged: u64) -> Result<()> {
        if ino == BAD_BLOCKS {
            // Only what it maps counts: its size and storage were never kept.
            return self.walk_block_map(ino, inode).map(drop);
        }
        let kind = inode.file_type();
        let xattr_blocks = self.check_xattr_block(ino, inode)?;
        if inode.is_inline() {
            return self.check_inline(ino, inode, xattr_blocks + charged);
        }
        let fast_symlink = kind == Some(FileType::Symlink) && (1..60).contains(&inode.size());
        let maps =
            matches!(kind, Some(FileType::Regular | FileType::Directory | FileType::Symlink))
                && !fast_symlink;
        let mut mapped = if maps { self.walk_map(ino, inode)? } else { InodeExtents::default() };
        let goes = self.fate(ino, inode) == Fate::Deleted;
        if kind == Some(FileType::Symlink) && !goes {
            self.check_symlink(ino, inode, &mapped)?;
        }
        mapped.blocks += xattr_blocks + charged;
        self.check_sectors(ino, inode, mapped.blocks);
        if goes {
            return Ok(());
        }
        self.check_size(ino, inode, &mapped);
        if kind == Some(FileType::Directory) && ino >= InodeNo::ROOT {
            let indexed = inode.flags().contains(InodeFlags::INDEX)
                && self.image.layout.features.compat.contains(Compat::DIR_INDEX);
            self.directories.push(ScannedDirectory {
                ino,
                generation: inode.generation(),
                indexed,
                runs: mapped.runs,
                blocks: mapped.end as u32,
                encrypted: inode.flags().contains(InodeFlags::ENCRYPTED),
                casefold: inode.flags().contains(InodeFlags::CASEFOLD),
                inline: None,
            });
        } else {
            self.keep_special_runs(ino, mapped.runs);
        }
        Ok(())
    }
}
