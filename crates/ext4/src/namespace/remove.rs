//! Names that go.

use std::sync::Arc;

use steadfast_ext4_format::Result;
use steadfast_ext4_format::dir::is_dot_name;
use steadfast_ext4_format::ondisk::InodeNo;
use steadfast_vfs::{FileType, FsError};

use super::entry::{check_name, check_removable, find, kind_of, name_changed, record_name};
use super::links::{remove_link, remove_subdirectory, retire_directory};
use crate::dir::InodeBlocks;
use crate::meta::{Parts, Txn};
use crate::state::{Deletion, Inode, NameChange};

/// Removes the name of a file that is not a directory. Returns the inode if this was its last
/// name: it is an orphan now, to be deleted when nobody has it open. `end` is asked before that: if
/// it deletes the inode in the same transaction, what it returns is kept until the transaction is
/// finished, and there is no orphan.
///
/// # Errors
/// ENOENT, EISDIR, ENOTDIR, EPERM (immutable or append-only).
pub(crate) fn unlink(
    parts: &Parts,
    dir: InodeNo,
    name: &[u8],
    end: impl FnOnce(&mut Txn<'_>, &Arc<Inode>) -> Result<Option<Deletion>>,
) -> Result<Option<Arc<Inode>>> {
    let mut txn = parts.begin_yielding()?;
    check_name(&txn, dir, name)?;
    if is_dot_name(name) {
        return Err(FsError::IsDirectory.into());
    }
    let found = find(&txn, dir, name)?.ok_or(FsError::NotFound)?;
    let no = found.ino;
    check_removable(&txn, dir, no)?;
    if kind_of(&txn, no)? == FileType::Directory {
        return Err(FsError::IsDirectory.into());
    }
    InodeBlocks::directory(&mut txn, dir)?.remove(&found)?;
    name_changed(&mut txn, dir, name, None)?;
    txn.touch(dir, true)?;
    let inode = txn.inode(no)?;
    if txn.look_at(no, |raw| raw.links())? <= 1
        && let Some(deletion) = end(&mut txn, &inode)?
    {
        txn.finish()?;
        deletion.done();
        return Ok(None);
    }
    let last = remove_link(&mut txn, no)?;
    record_name(&mut txn, NameChange::Unlinked, dir, no, name)?;
    txn.finish()?;
    Ok(last.then_some(inode))
}

/// Removes an empty directory. Returns its inode: an orphan now, to be deleted when nobody has it
/// open.
///
/// # Errors
/// ENOENT, ENOTDIR, ENOTEMPTY (also for ".."), EINVAL for ".", EPERM.
pub fn rmdir(parts: &Parts, dir: InodeNo, name: &[u8]) -> Result<Arc<Inode>> {
    let mut txn = parts.begin_yielding()?;
    check_name(&txn, dir, name)?;
    match name {
        b"." => return Err(FsError::Invalid { what: "\".\" cannot be removed" }.into()),
        b".." => return Err(FsError::NotEmpty.into()),
        _ => {}
    }
    let found = find(&txn, dir, name)?.ok_or(FsError::NotFound)?;
    let no = found.ino;
    check_removable(&txn, dir, no)?;
    // ENOTDIR comes from here.
    if !InodeBlocks::directory(&txn, no)?.is_empty()? {
        return Err(FsError::NotEmpty.into());
    }
    InodeBlocks::directory(&mut txn, dir)?.remove(&found)?;
    name_changed(&mut txn, dir, name, None)?;
    retire_directory(&mut txn, no)?;
    remove_subdirectory(&mut txn, dir)?;
    txn.touch(dir, true)?;
    let inode = txn.inode(no)?;
    txn.finish()?;
    Ok(inode)
}
