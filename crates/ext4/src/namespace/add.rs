//! New names.

use std::sync::Arc;

use steadfast_ext4_format::Result;
use steadfast_ext4_format::dir::is_dot_name;
use steadfast_ext4_format::extents::{Node, ROOT_BYTES};
use steadfast_ext4_format::ondisk::{InodeFlags, InodeNo};
use steadfast_vfs::{FileType, FsError, NewNode};

use super::entry::{
    check_changeable, check_key, check_name, check_not_fixed, check_project, find,
    is_cached_absent, kind_of, make_inode, name_changed, record_name,
};
use super::links::{LINKS_MAX, add_subdirectory, check_subdirectory};
use crate::dir::InodeBlocks;
use crate::extents::append_block;
use crate::meta::{Parts, Txn};
use crate::planted::Bug;
use crate::state::{Inode, NameChange};

/// Longest target of a symbolic link that fits into the inode.
const FAST_TARGET_MAX: usize = ROOT_BYTES - 1;
/// Longest target at all (`PATH_MAX` with its NUL).
const TARGET_MAX: usize = 4095;

/// Makes an empty regular file.
///
/// # Errors
/// EEXIST, ENOTDIR, ENOENT (the directory was removed), ENOSPC, name errors.
pub fn create(parts: &Parts, dir: InodeNo, name: &[u8], node: NewNode) -> Result<Arc<Inode>> {
    let mut txn = parts.begin_yielding()?;
    check_new(&txn, dir, name)?;
    let no = make_inode(&mut txn, dir, (FileType::Regular, name), node)?;
    txn.modify_inode(no, |raw| raw.set_links(1))?;
    record_name(&mut txn, NameChange::Created, dir, no, name)?;
    finish_new(txn, dir, name, no)
}

/// Makes a device node, a FIFO, a socket or an empty regular file. The device's number is
/// major << 32 | minor.
///
/// # Errors
/// As [`create`]; EINVAL for another type, or a number that does not fit.
pub fn mknod(
    parts: &Parts,
    dir: InodeNo,
    name: &[u8],
    (kind, rdev): (FileType, u64),
    node: NewNode,
) -> Result<Arc<Inode>> {
    if matches!(kind, FileType::Directory | FileType::Symlink) {
        return Err(FsError::Invalid { what: "mknod makes no directory or symbolic link" }.into());
    }
    let device = matches!(kind, FileType::CharDevice | FileType::BlockDevice);
    let mut txn = parts.begin()?;
    check_new(&txn, dir, name)?;
    let no = make_inode(&mut txn, dir, (kind, name), node)?;
    let fits = txn.modify_inode(no, |raw| {
        raw.set_links(1);
        !device || raw.set_rdev(rdev)
    })?;
    if !fits {
        let what = "a device number beyond 12 bits of major and 20 of minor number";
        return Err(FsError::Invalid { what }.into());
    }
    finish_new(txn, dir, name, no)
}

/// Makes an empty directory.
///
/// # Errors
/// As [`create`], and EMLINK.
pub fn mkdir(parts: &Parts, dir: InodeNo, name: &[u8], node: NewNode) -> Result<Arc<Inode>> {
    let mut txn = parts.begin_yielding()?;
    check_new(&txn, dir, name)?;
    check_subdirectory(&txn, dir)?;
    let no = make_inode(&mut txn, dir, (FileType::Directory, name), node)?;
    InodeBlocks::directory(&mut txn, no)?.init(dir)?;
    txn.modify_inode(no, |raw| raw.set_links(2))?;
    add_subdirectory(&mut txn, dir)?;
    finish_new(txn, dir, name, no)
}

/// Makes a symbolic link to `target`: any bytes but NUL, at most 4095 and less than a block. Its
/// permission bits are rwxrwxrwx, whatever `node` says.
///
/// # Errors
/// As [`create`]; ENOENT for an empty target, ENAMETOOLONG for one that does not fit.
pub fn symlink(
    parts: &Parts,
    dir: InodeNo,
    name: &[u8],
    target: &[u8],
    node: NewNode,
) -> Result<Arc<Inode>> {
    let mut txn = parts.begin_yielding()?;
    if target.is_empty() {
        return Err(FsError::NotFound.into());
    }
    if target.contains(&0) {
        return Err(FsError::Invalid { what: "NUL in the target of a symbolic link" }.into());
    }
    // With its NUL it has to fit a block.
    let most = (TARGET_MAX as u64).min(parts.volume.block_size() - 1);
    if target.len() as u64 > most {
        return Err(FsError::TargetTooLong { most }.into());
    }
    check_new(&txn, dir, name)?;
    let no = make_inode(&mut txn, dir, (FileType::Symlink, name), NewNode { mode: 0o777, ..node })?;
    txn.modify_inode(no, |raw| raw.set_links(1))?;
    if target.len() <= FAST_TARGET_MAX {
        txn.modify_inode(no, |raw| raw.block_mut()[..target.len()].copy_from_slice(target))?;
    } else {
        write_long_target(&mut txn, no, target)?;
    }
    txn.modify_inode(no, |raw| raw.set_size(target.len() as u64))?;
    finish_new(txn, dir, name, no)
}

fn write_long_target(txn: &mut Txn<'_>, no: InodeNo, target: &[u8]) -> Result<()> {
    if txn.volume().uses_extents() {
        txn.modify_inode(no, |raw| {
            raw.set_flags(raw.flags() | InodeFlags::EXTENTS);
            Node::empty(ROOT_BYTES).encode(raw.block_mut());
        })?;
    }
    let (_, block) = append_block(txn, no)?;
    let mut contents = target.to_vec();
    // OK to cast: a block is at most 64 KiB.
    contents.resize(txn.volume().block_size() as usize, 0);
    txn.create(block, contents);
    Ok(())
}

/// Makes an empty regular file without a name: an orphan, which [`link`] may make a file like
/// others. It belongs to the directory `dir` as far as its place, owner and flags go.
///
/// # Errors
/// ENOTDIR, ENOENT (the directory was removed), ENOSPC, EPERM.
pub fn tmpfile(parts: &Parts, dir: InodeNo, node: NewNode) -> Result<Arc<Inode>> {
    let mut txn = parts.begin_yielding()?;
    if kind_of(&txn, dir)? != FileType::Directory {
        return Err(FsError::NotDirectory.into());
    }
    check_changeable(&txn, dir)?;
    let no = make_inode(&mut txn, dir, (FileType::Regular, b""), node)?;
    txn.orphans.add(&mut txn, no)?;
    let inode = txn.inode(no)?;
    txn.finish()?;
    inode.state().linkable = true;
    Ok(inode)
}

/// Gives the inode `no`, not a directory, another name; or its first, if [`tmpfile`] made it.
///
/// # Errors
/// EEXIST, EPERM for a directory, EMLINK, ENOENT if it has lost its last name, and as [`create`].
pub fn link(parts: &Parts, no: InodeNo, dir: InodeNo, name: &[u8]) -> Result<Arc<Inode>> {
    let mut txn = parts.begin_yielding()?;
    check_new(&txn, dir, name)?;
    let raw = txn.raw_inode(no)?;
    if raw.file_type() == Some(FileType::Directory) {
        return Err(FsError::NotPermitted { what: "a second name for a directory" }.into());
    }
    check_not_fixed(&txn, no)?;
    check_project(&txn, dir, no)?;
    let inode = txn.inode(no)?;
    match raw.links() {
        0 if inode.state().linkable => {
            txn.orphans.remove(&mut txn, no)?;
            txn.modify_inode(no, |raw| raw.set_links(1))?;
        }
        0 => return Err(FsError::NotFound.into()),
        links if links >= LINKS_MAX => return Err(FsError::TooManyLinks.into()),
        _ if parts.volume.has(Bug::LinkInTwoTransactions) => {}
        links => txn.modify_inode(no, |raw| raw.set_links(links + 1))?,
    }
    txn.touch(no, false)?;
    record_name(&mut txn, NameChange::Linked, dir, no, name)?;
    finish_new(txn, dir, name, no)?;
    if parts.volume.has(Bug::LinkInTwoTransactions) && raw.links() > 0 {
        let mut txn = parts.begin_yielding()?;
        txn.modify_inode(no, |raw| raw.set_links(raw.links() + 1))?;
        txn.finish()?;
    }
    inode.state().linkable = false;
    Ok(inode)
}

/// Refuses a name that cannot be added to `dir`.
fn check_new(txn: &Txn<'_>, dir: InodeNo, name: &[u8]) -> Result<()> {
    check_name(txn, dir, name)?;
    if is_dot_name(name) || (!is_cached_absent(txn, dir, name)? && find(txn, dir, name)?.is_some())
    {
        return Err(FsError::Exists.into());
    }
    check_key(txn, dir)?;
    check_changeable(txn, dir)
}

/// Adds the name and finishes.
fn finish_new(mut txn: Txn<'_>, dir: InodeNo, name: &[u8], no: InodeNo) -> Result<Arc<Inode>> {
    let kind = kind_of(&txn, no)?;
    let early = txn.volume().has(Bug::EntryBeforeInode).then(|| txn.block_numbers());
    InodeBlocks::directory(&mut txn, dir)?.insert(name, no, kind)?;
    if let Some(later) = early {
        txn.submit_early(&later)?;
    }
    txn.touch(dir, true)?;
    name_changed(&mut txn, dir, name, Some(no))?;
    let inode = txn.inode(no)?;
    txn.finish()?;
    Ok(inode)
}
