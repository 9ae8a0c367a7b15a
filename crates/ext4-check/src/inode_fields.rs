//! Fields of an inode that contradict its type, its features or what it maps.

use steadfast_ext4_format::Result;
use steadfast_ext4_format::ondisk::{
    Compat, EXTENT_MAGIC, ExtentHeader, GOOD_OLD_INODE_SIZE, Incompat, InodeFlags, InodeNo,
    RawInode, RoCompat,
};
use steadfast_vfs::FileType;

use crate::FindingKind;
use crate::checker::Checker;
use crate::inodes::InodeExtents;
use crate::orphans::Fate;

/// Files mapped by extents are shorter than 2^32 blocks.
const EXTENT_BLOCKS: u64 = 1 << 32;

impl Checker<'_> {
    /// Everything but what the inode maps.
    pub(super) fn check_fields(&mut self, ino: InodeNo, inode: &RawInode, orphan: bool) {
        let deleted = inode.core().dtime.get();
        if deleted != 0 && !orphan {
            self.inode_finding(ino, FindingKind::InodeField, "it has links and a time of deletion");
        }
        if ino == InodeNo::ROOT && inode.file_type() != Some(FileType::Directory) {
            self.inode_finding(ino, FindingKind::InodeMode, "the root is no directory");
        }
        self.check_flags(ino, inode);
        self.check_odd_fields(ino, inode);
        self.check_type(ino, inode);
        self.check_extra(ino, inode);
    }

    fn check_flags(&mut self, ino: InodeNo, inode: &RawInode) {
        let (flags, kind) = (inode.flags(), inode.file_type());
        let features = self.image.layout.features;
        let mut bad = |text: &str| {
            self.inode_finding(ino, FindingKind::InodeFlags, text);
        };
        if flags.contains(InodeFlags::CASEFOLD) {
            if !features.incompat.contains(Incompat::CASEFOLD) {
                bad("it ignores case, but the casefold feature is off");
            } else if kind != Some(FileType::Directory) {
                bad("it ignores case, but is no directory");
            }
        }
        let may_be_inline = features.incompat.contains(Incompat::INLINE_DATA);
        if flags.contains(InodeFlags::INLINE_DATA) && !may_be_inline {
            bad("its data is in the inode, but the inline_data feature is off");
        }
        let may_be_encrypted = features.incompat.contains(Incompat::ENCRYPT);
        if flags.contains(InodeFlags::ENCRYPTED) && !may_be_encrypted {
            bad("it is encrypted, but the encrypt feature is off");
        }
        if flags.contains(InodeFlags::EA_INODE) && !features.incompat.contains(Incompat::EA_INODE) {
            bad("it holds an attribute, but the ea_inode feature is off");
        }
        if flags.contains(InodeFlags::IMAGIC) && !features.compat.contains(Compat::IMAGIC_INODES) {
            bad("the imagic flag is set, but not the feature");
        }
        if flags.contains(InodeFlags::INDEX) {
            if kind != Some(FileType::Directory) {
                bad("it has an index, but is no directory");
            } else if !features.compat.contains(Compat::DIR_INDEX) {
                bad("it has an index, but the dir_index feature is off");
            }
        }
        if flags.contains(InodeFlags::EXTENTS) && !features.incompat.contains(Incompat::EXTENT) {
            bad("it is mapped by extents, but the extent feature is off");
        }
        let maps = matches!(kind, Some(FileType::Regular | FileType::Directory));
        let inline = flags.contains(InodeFlags::INLINE_DATA);
        if maps
            && !inline
            && !flags.contains(InodeFlags::EXTENTS)
            && looks_like_extents(inode.block())
        {
            bad("it holds an extent tree, but the flag for that is clear");
        }
    }

    fn check_odd_fields(&mut self, ino: InodeNo, inode: &RawInode) {
        let core = inode.core();
        let features = self.image.layout.features;
        let directory = inode.file_type() == Some(FileType::Directory);
        let odd = [
            (core.obsolete_fragment.get() != 0, "the obsolete fragment address is set"),
            (
                directory
                    && core.size_hi.get() != 0
                    && !features.incompat.contains(Incompat::LARGE_DIR),
                "a directory of 4 GiB or more without the large_dir feature",
            ),
            (
                !features.incompat.contains(Incompat::BIT64) && core.file_acl_hi.get() != 0,
                "an attribute block beyond 2^32 without the 64bit feature",
            ),
            (
                !features.ro_compat.contains(RoCompat::HUGE_FILE) && core.blocks_hi.get() != 0,
                "2^32 sectors or more without the huge_file feature",
            ),
        ];
        for (is, text) in odd {
            if is {
                self.bad_inode(ino, FindingKind::InodeField, text);
            }
        }
    }

    fn check_type(&mut self, ino: InodeNo, inode: &RawInode) {
        let flags = inode.flags();
        let fixed = InodeFlags::IMMUTABLE | InodeFlags::APPEND;
        match inode.file_type() {
            None => {
                let mode = inode.core().mode.get();
                self.bad_inode(ino, FindingKind::InodeMode, format_args!("mode {mode:#o}"));
            }
            Some(FileType::Regular | FileType::Directory) => {}
            Some(FileType::Symlink) => {
                if flags.intersects(fixed) {
                    let text = "an immutable or append-only symbolic link";
                    self.inode_finding(ino, FindingKind::InodeFlags, text);
                }
            }
            Some(_) => {
                if flags.intersects(InodeFlags::EXTENTS | InodeFlags::INDEX) {
                    let text = "a device, FIFO or socket with extents or an index";
                    self.bad_inode(ino, FindingKind::InodeFlags, text);
                } else if flags.intersects(fixed) {
                    let text = "an immutable or append-only device, FIFO or socket";
                    self.inode_finding(ino, FindingKind::InodeFlags, text);
                }
                if inode.size() != 0 {
                    let size = inode.size();
                    let text = format_args!("a device, FIFO or socket of {size} bytes");
                    self.inode_finding(ino, FindingKind::InodeSize, text);
                }
            }
        }
    }

    /// The fields beyond 128 bytes.
    fn check_extra(&mut self, ino: InodeNo, inode: &RawInode) {
        let Some(extra) = inode.extra() else { return };
        let (len, room) =
            (usize::from(extra.extra_isize.get()), inode.as_bytes().len() - GOOD_OLD_INODE_SIZE);
        if len != 0 && (len < 4 || len > room || !len.is_multiple_of(4)) {
            let text = format_args!("{len} bytes of extra fields");
            self.inode_finding(ino, FindingKind::InodeField, text);
        }
    }

    /// The target of a symbolic link: as long as the size says.
    pub(super) fn check_symlink(
        &mut self,
        ino: InodeNo,
        inode: &RawInode,
        mapped: &InodeExtents,
    ) -> Result<()> {
        let size = inode.size();
        let flags = inode.flags();
        let encrypted = flags.contains(InodeFlags::ENCRYPTED);
        // An encrypted target has its length in front.
        let len_of = |bytes: &[u8]| match bytes {
            [low, high, ..] if encrypted => usize::from(u16::from_le_bytes([*low, *high])) + 2,
            _ => bytes.iter().position(|b| *b == 0).unwrap_or(bytes.len()),
        };
        let len = if size == 0 || flags.contains(InodeFlags::INDEX) {
            None
        } else if size < inode.block().len() as u64 {
            let inside = !flags.contains(InodeFlags::EXTENTS);
            inside.then(|| len_of(inode.block())).filter(|n| *n < inode.block().len())
        } else {
            match mapped.runs.as_slice() {
                [(0, block, 1)] => {
                    let bytes = self.image.source.block(*block)?;
                    Some(len_of(&bytes)).filter(|n| *n < bytes.len())
                }
                _ => None,
            }
        };
        if len.is_none_or(|n| n as u64 != size) {
            let text = format_args!("a symbolic link of {size} bytes whose target is not so long");
            self.bad_inode(ino, FindingKind::Symlink, text);
        }
        Ok(())
    }

    /// Size against what is mapped.
    pub(super) fn check_size(&mut self, ino: InodeNo, inode: &RawInode, mapped: &InodeExtents) {
        let bs = u64::from(self.image.layout.block_size);
        let size = inode.size();
        let kind = inode.file_type();
        let wrong = match kind {
            Some(FileType::Symlink) => false,
            Some(FileType::Directory) => {
                let spare = u64::from(self.image.sb.prealloc_dir_blocks);
                let blocks = size / bs;
                mapped.end == 0
                    || !size.is_multiple_of(bs)
                    || blocks > mapped.end
                    || blocks + spare < mapped.end
            }
            _ => {
                let written = mapped.written_end;
                let extents = inode.flags().contains(InodeFlags::EXTENTS);
                // A verity file's hashes lie beyond its end.
                let verity = inode.flags().contains(InodeFlags::VERITY);
                // So do blocks that are about to be cut off.
                let may_be_beyond = verity || self.fate(ino, inode) == Fate::Cut;
                (written > 0 && size < (written - 1) * bs && !may_be_beyond)
                    || (extents && size >= EXTENT_BLOCKS * bs)
                    || (!extents && size > block_map_bytes(bs))
            }
        };
        if wrong {
            self.inode_finding(
                ino,
                FindingKind::InodeSize,
                format_args!("size is {size}, but blocks are mapped up to {}", mapped.end * bs),
            );
        }
        let needs_feature = kind == Some(FileType::Regular) && size > i32::MAX as u64;
        if needs_feature && !self.image.layout.features.ro_compat.contains(RoCompat::LARGE_FILE) {
            let text = format_args!("{size} bytes without the large_file feature");
            self.inode_finding(ino, FindingKind::InodeSize, text);
        }
    }

    pub(super) fn check_sectors(&mut self, ino: InodeNo, inode: &RawInode, blocks: u64) {
        let huge = inode.flags().contains(InodeFlags::HUGE_FILE)
            && self.image.layout.features.ro_compat.contains(RoCompat::HUGE_FILE);
        let unit = if huge { 1 } else { u64::from(self.image.layout.block_size / 512) };
        let (found, counted) = (inode.blocks_field(), blocks * unit);
        if found != counted {
            let text = format_args!("storage used is {found}, counted {counted}");
            self.inode_finding(ino, FindingKind::InodeBlocks, text);
        }
    }
}

fn looks_like_extents(block: &[u8; 60]) -> bool {
    let word = |at: usize| u16::from_le_bytes([block[at], block[at + 1]]);
    let (entries, max) = (word(2), word(4));
    let room = ExtentHeader::capacity(block.len());
    word(0) == EXTENT_MAGIC && entries <= max && max <= room && max + 2 >= room
}

/// Largest file that a block map reaches: twelve blocks, and those behind one, two and three levels
/// of indirect blocks.
fn block_map_bytes(block_size: u64) -> u64 {
    let pointers = block_size / 4;
    let blocks = 12 + pointers + pointers.pow(2) + pointers.pow(3);
    blocks.saturating_mul(block_size)
}
