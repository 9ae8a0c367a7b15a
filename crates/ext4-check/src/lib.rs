//! Checks the structure of a file system, reading only.
//!
//! What e2fsck -fn would find wrong is found here too, and what it calls clean is clean; the
//! tests hold the two against each other. Beside a device the check takes an overlay of blocks,
//! such as [`recover_dry`](steadfast_journal::recover_dry) gives, so that a file system can be
//! judged as it would be after recovery without writing to it.
//!
//! # How
//!
//! 1. Superblock and group descriptors; the places of all metadata are claimed.
//! 2. Every inode in use (`inodes`): its fields, and each block that it maps is claimed.
//! 3. Every directory block (`directory`), the indices (`index`), then who is whose parent and
//!    how many links each inode should have (`tree`).
//! 4. Bitmaps and counters against what was claimed (`bitmaps`).
//!
//! `Checker` goes through these phases and has what they hand on; `Image` is what is on the disk.
//! Apart are directories and the tree (`DirectoryCheck`), bitmaps (`BitmapCheck`), quotas
//! (`QuotaCheck`), policies of encryption (`Encryption`), attributes' values in inodes (`Values`).
//!
//! # Invariants
//!
//! * Nothing is written. Nothing on the device is believed before it has been checked: no number
//!   from disk is used as an index, a size or a place without a bound.
//! * Time and memory are bounded by the size of the file system in use, whatever its bytes say:
//!   a block is walked through only by the first who claims it, so trees cannot have cycles, and
//!   parts that descriptors mark as never used are not read.
//! * Findings are bounded in number; the rest is counted.
//!
//! ```
//! use std::sync::Arc;
//! use steadfast_block::BlockDevice;
//! use steadfast_devices::source::Ram;
//!
//! // Nothing was made on it yet: there is nothing to be damaged.
//! let disk: Arc<dyn BlockDevice> = Arc::new(Ram::new("disk", 16 << 20));
//! let said = steadfast_ext4_check::check(&disk, None).unwrap_err().to_string();
//! assert_eq!(said, "no ext2/3/4 file system: it holds zeros");
//! ```

mod ahead;
mod bitmaps;
mod blockmap;
mod checker;
mod claims;
mod directory;
mod encryption;
mod extents;
mod finding;
mod found;
mod groups;
mod image;
mod index;
mod info;
mod inline;
mod inode_fields;
mod inodes;
mod journal;
mod mmp;
mod orphans;
mod quota;
mod report;
mod resize;
mod source;
mod superblock;
mod table;
mod tree;
mod values;
mod xattr;

use std::sync::Arc;

use steadfast_block::BlockDevice;
use steadfast_ext4_format::Result;
use steadfast_journal::Overlay;

pub use finding::{Finding, FindingKind};
pub use info::{Field, Info, info};
pub use report::{Counts, Report};

use checker::Checker;
use finding::Findings;

/// Checks the file system on `device` as it would be with the blocks of `overlay` in place.
///
/// # Errors
/// Of the device; [`Ext4Error::Unsupported`](steadfast_ext4_format::Ext4Error::Unsupported) if the
/// file system uses what this version does not know;
/// [`Ext4Error::NoFileSystem`](steadfast_ext4_format::Ext4Error::NoFileSystem) where there is none.
/// Damage is no error but a finding, even where nothing else could be looked at.
pub fn check(device: &Arc<dyn BlockDevice>, overlay: Option<&Overlay>) -> Result<Report> {
    let mut findings = Findings::default();
    let Some((sb, layout)) = superblock::load(device, overlay, &mut findings)? else {
        return Ok(Report::of_superblock(findings));
    };
    Checker::new(device, overlay, sb, layout, findings).run(overlay.is_some())
}

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
