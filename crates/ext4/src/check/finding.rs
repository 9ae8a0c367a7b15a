//! What can be wrong.

use std::fmt;

/// Findings kept; more are only counted.
const MOST: usize = 1000;

/// What is wrong, without the particulars.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[allow(missing_docs, reason = "each name and its group say it; the finding's text says more")]
pub enum FindingKind {
    // The file system as a whole.
    Superblock,
    GroupDescriptor,
    GroupDescriptorChecksum,
    MetadataPlace,
    Journal,
    ResizeInode,
    // Bitmaps and counters.
    BlockBitmap,
    BlockBitmapChecksum,
    InodeBitmap,
    InodeBitmapChecksum,
    BitmapPadding,
    FreeBlocks,
    FreeInodes,
    UsedDirectories,
    UnusedInodes,
    // Inodes.
    InodeChecksum,
    InodeMode,
    InodeFlags,
    InodeField,
    InodeTime,
    InodeSize,
    InodeBlocks,
    ReservedInode,
    Symlink,
    XattrInode,
    XattrBlock,
    XattrChecksum,
    XattrRefcount,
    // What inodes map.
    ExtentNode,
    ExtentChecksum,
    ExtentOrder,
    ExtentRange,
    BlockMap,
    BlockShared,
    // Directories.
    DirectoryHole,
    DirectoryChecksum,
    DirectoryEntry,
    DirectoryDots,
    EntryInode,
    EntryType,
    EntryName,
    DuplicateName,
    IndexRoot,
    IndexNode,
    IndexChecksum,
    IndexOrder,
    IndexLeaf,
    // The tree.
    LinkCount,
    Unattached,
    DirectoryLoop,
    Orphan,
    OrphanFile,
}

/// One thing that is wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// What, in general.
    pub kind: FindingKind,
    /// Where: "inode 12", "group 3", "directory inode 2, block 0".
    pub place: String,
    /// What, in particular.
    pub text: String,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.place, self.text)
    }
}

/// A list of findings that does not grow without bound.
#[derive(Debug, Default)]
pub(super) struct Findings {
    list: Vec<Finding>,
    dropped: u64,
}

impl Findings {
    /// Adds one; what it says is put together only if it is kept.
    pub(super) fn add(
        &mut self,
        kind: FindingKind,
        place: fmt::Arguments<'_>,
        text: fmt::Arguments<'_>,
    ) {
        if self.list.len() < MOST {
            self.list.push(Finding { kind, place: place.to_string(), text: text.to_string() });
        } else {
            self.dropped += 1;
        }
    }

    pub(super) fn dropped(&self) -> u64 {
        self.dropped
    }

    pub(super) fn into_vec(self) -> Vec<Finding> {
        self.list
    }
}
