//! Counts of links.
//!
//! A directory counts its own two names and the ".." of each subdirectory. Beyond 65,000 it stops
//! counting (`dir_nlink`): the count is 1 from then on, for good. Files have no such way out.

use steadfast_ext4_format::Result;
use steadfast_ext4_format::ondisk::{InodeFlags, InodeNo, RoCompat};
use steadfast_vfs::FsError;

use crate::meta::Txn;

/// Most links of an inode (`EXT4_LINK_MAX`).
pub(super) const LINKS_MAX: u16 = 65_000;

/// Whether this directory may stop counting.
fn may_stop_counting(txn: &Txn<'_>, dir: InodeNo) -> Result<bool> {
    let feature = txn.superblock().features().ro_compat.contains(RoCompat::DIR_NLINK);
    Ok(feature && txn.raw_inode(dir)?.flags().contains(InodeFlags::INDEX))
}

/// EMLINK if the directory can take no further subdirectory.
pub(super) fn check_subdirectory(txn: &Txn<'_>, dir: InodeNo) -> Result<()> {
    if txn.look_at(dir, |raw| raw.links())? >= LINKS_MAX && !may_stop_counting(txn, dir)? {
        return Err(FsError::TooManyLinks.into());
    }
    Ok(())
}

/// Counts a new subdirectory, after [`check_subdirectory`].
pub(crate) fn add_subdirectory(txn: &mut Txn<'_>, dir: InodeNo) -> Result<()> {
    txn.modify_inode(dir, |raw| {
        raw.set_links(match raw.links() {
            1 => 1,
            links if links >= LINKS_MAX => 1,
            links => links + 1,
        });
    })
}

/// Counts a subdirectory out.
pub(crate) fn remove_subdirectory(txn: &mut Txn<'_>, dir: InodeNo) -> Result<()> {
    txn.modify_inode(dir, |raw| {
        if raw.links() > 2 {
            raw.set_links(raw.links() - 1);
        }
    })
}

/// Counts a link of a file out; it becomes an orphan with the last. Says whether it was the last.
pub(super) fn remove_link(txn: &mut Txn<'_>, no: InodeNo) -> Result<bool> {
    let links = txn.look_at(no, |raw| raw.links())?.saturating_sub(1);
    txn.modify_inode(no, |raw| raw.set_links(links))?;
    txn.touch(no, false)?;
    if links == 0 {
        txn.orphans.add(txn, no)?;
    }
    Ok(links == 0)
}

/// Takes all links from an empty directory: nothing can be put into it any more, and it is an
/// orphan.
pub(super) fn retire_directory(txn: &mut Txn<'_>, no: InodeNo) -> Result<()> {
    txn.modify_inode(no, |raw| {
        raw.set_links(0);
        raw.set_size(0);
    })?;
    txn.touch(no, false)?;
    txn.orphans.add(txn, no)
}
