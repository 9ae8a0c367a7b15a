//! What can be wrong.

use std::fmt::{self, Display};

use steadfast_ext4_format::{Ext4Error, Result};
use steadfast_journal::JournalError;

/// Findings kept; more are only counted.
const MOST: usize = 1000;

/// What is wrong, without the particulars.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FindingKind {
    // The file system as a whole.
    /// There is no superblock, or its numbers or flags contradict each other or the device.
    Superblock,
    /// A group descriptor holds a number that cannot be.
    GroupDescriptor,
    /// A group descriptor's checksum is wrong.
    GroupDescriptorChecksum,
    /// Two pieces of metadata lie in the same place.
    MetadataPlace,
    /// The block of multiple-mount protection is damaged.
    Mmp,
    /// The journal's file or superblock is damaged.
    Journal,
    /// The resize inode does not hold what is reserved for growth.
    ResizeInode,
    // Bitmaps and counters.
    /// Blocks are marked that nobody uses, or used that are not marked.
    BlockBitmap,
    /// A block bitmap's checksum is wrong.
    BlockBitmapChecksum,
    /// The same of inodes.
    InodeBitmap,
    /// An inode bitmap's checksum is wrong.
    InodeBitmapChecksum,
    /// Bits beyond the end of a bitmap are clear.
    BitmapPadding,
    /// A counter of free blocks is wrong.
    FreeBlocks,
    /// A counter of free inodes is wrong.
    FreeInodes,
    /// A counter of directories is wrong.
    UsedDirectories,
    // Inodes.
    /// An inode's checksum is wrong.
    InodeChecksum,
    /// An inode is of no type, or the root is no directory.
    InodeMode,
    /// An inode's flags contradict its type or the features.
    InodeFlags,
    /// Another field of an inode cannot be.
    InodeField,
    /// The size contradicts what is mapped.
    InodeSize,
    /// The storage used is not what is mapped.
    InodeBlocks,
    /// A reserved inode holds what it must not.
    ReservedInode,
    /// The target of a symbolic link is not as long as the size says.
    Symlink,
    /// Attributes in an inode are damaged.
    XattrInode,
    /// A block of attributes is damaged, or not where it should be.
    XattrBlock,
    /// A block of attributes' checksum is wrong.
    XattrChecksum,
    /// A block of attributes is shared by more or fewer inodes than it says.
    XattrRefcount,
    /// An attribute's value is not in the inode that it should be in, or that inode is used by more
    /// or fewer attributes than it says.
    XattrValue,
    /// The encryption context of an inode is missing or damaged.
    Encryption,
    // What inodes map.
    /// A node of an extent tree makes no sense.
    ExtentNode,
    /// The checksum of a node of an extent tree is wrong.
    ExtentChecksum,
    /// Extents or indices are out of order, or reach beyond their node.
    ExtentOrder,
    /// An extent or a node lies outside the file system.
    ExtentRange,
    /// With `bigalloc`: a cluster of a file does not lie in one cluster of the device, block for
    /// block.
    Cluster,
    /// A block map points outside the file system.
    BlockMap,
    /// A block has two owners.
    BlockShared,
    // Directories.
    /// A directory has a hole.
    DirectoryHole,
    /// The checksum of a directory block is wrong or missing.
    DirectoryChecksum,
    /// Directory entries do not follow each other as they should.
    DirectoryEntry,
    /// "." or ".." is missing or names the wrong inode.
    DirectoryDots,
    /// An entry names an inode that is free, damaged or not to be named.
    EntryInode,
    /// The type in an entry is not that of the inode.
    EntryType,
    /// An entry of an encrypted directory names an inode that is encrypted otherwise, or not.
    EntryPolicy,
    /// A name that no file may have.
    EntryName,
    /// A name is twice in a directory.
    DuplicateName,
    /// The root of a directory index makes no sense.
    IndexRoot,
    /// A node of a directory index makes no sense, or leads nowhere.
    IndexNode,
    /// The checksum of a node of a directory index is wrong.
    IndexChecksum,
    /// The hashes in a directory index are out of order.
    IndexOrder,
    /// A name is in another leaf than the index says, or a leaf is in no index.
    IndexLeaf,
    // The tree.
    /// An inode has more or fewer names than it says.
    LinkCount,
    /// An inode in use has no name.
    Unattached,
    /// A directory is above itself.
    DirectoryLoop,
    /// The list of orphans leads astray, or an orphan is not in it.
    Orphan,
    /// The orphan file is damaged.
    OrphanFile,
    /// A quota file is damaged, or says something else than what was counted.
    Quota,
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
    pub(super) fn add(&mut self, kind: FindingKind, place: impl Display, text: impl Display) {
        if self.list.len() < MOST {
            self.list.push(Finding { kind, place: place.to_string(), text: text.to_string() });
        } else {
            self.dropped += 1;
        }
    }

    /// Whether something was found at this place.
    pub(super) fn any_at(&self, place: &str) -> bool {
        self.list.iter().any(|f| f.place == place)
    }

    pub(super) fn dropped(&self) -> u64 {
        self.dropped
    }

    pub(super) fn into_vec(self) -> Vec<Finding> {
        self.list
    }
}

/// Turns what a validation says into a finding; errors of the device stay errors, and so does what
/// is not implemented.
pub(super) fn as_finding(e: Ext4Error) -> Result<String> {
    match e {
        Ext4Error::Corrupt { what, .. } | Ext4Error::Refused { what } => Ok(what),
        Ext4Error::Journal(e) => match e {
            JournalError::Block(e) => Err(Ext4Error::Block(e)),
            // Nothing is known to be wrong with it.
            e @ JournalError::Unsupported { .. } => Err(Ext4Error::Journal(e)),
            other => Ok(other.to_string()),
        },
        other => Err(other),
    }
}
