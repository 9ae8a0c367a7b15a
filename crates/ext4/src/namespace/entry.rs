//! Finding a name, and what all changes of names share.

use std::sync::Arc;

use steadfast_ext4_format::dir::{NameLocation, is_dot_name};
use steadfast_ext4_format::ondisk::{InodeFlags, InodeNo, NAME_MAX};
use steadfast_ext4_format::{Ext4Error, Result};
use steadfast_vfs::{Dirent, FileType, FsError, Ino, NewNode};

use crate::dir::InodeBlocks;
use crate::extents::block_of;
use crate::inode::create_inode;
use crate::meta::{Parts, Txn};
use crate::state::{Inode, InodeCache, NameCache, NameChange};
use crate::xattr::inherit_acls;

/// Finds `name` in the directory `dir`; "." and ".." work.
///
/// # Errors
/// ENOTDIR, ENOENT, ENAMETOOLONG; corrupt directories and inodes.
pub fn lookup(parts: &Parts, dir: InodeNo, name: &[u8]) -> Result<Arc<Inode>> {
    if let Some(answer) = look_up_cached(&parts.names, &parts.inodes, dir, name) {
        return answer;
    }
    let txn = parts.look_yielding();
    check_name(&txn, dir, name)?;
    let found = find(&txn, dir, name)?.map(|found| found.ino);
    if !is_dot_name(name) && has_one_spelling(flags_of(&txn, dir)?) {
        parts.names.learn(dir, name.into(), found);
    }
    txn.inode(found.ok_or(FsError::NotFound)?)
}

/// Whether only the very bytes of an entry find it.
pub(super) fn has_one_spelling(dir: InodeFlags) -> bool {
    !dir.intersects(InodeFlags::CASEFOLD | InodeFlags::ENCRYPTED)
}

/// Whether the name cache says that the directory has no such name.
pub(super) fn is_cached_absent(txn: &Txn<'_>, dir: InodeNo, name: &[u8]) -> Result<bool> {
    // The caller has the metadata lock, so what the cache says is true.
    let cached = txn.names.get(dir, name);
    Ok(cached == Some(None) && has_one_spelling(flags_of(txn, dir)?))
}

/// Answers a lookup from memory, without the metadata lock; `None` if that cannot be.
pub(super) fn look_up_cached(
    names: &NameCache,
    inodes: &InodeCache,
    dir: InodeNo,
    name: &[u8],
) -> Option<Result<Arc<Inode>>> {
    let moment = names.moment()?;
    let found = names.get(dir, name)?;
    {
        // What was a directory may be a file now that has its number.
        let above = inodes.get(dir)?;
        let state = above.state();
        let raw = &state.raw;
        if raw.file_type() != Some(FileType::Directory) || !has_one_spelling(raw.flags()) {
            return None;
        }
    }
    let answer = match found {
        None => Err(FsError::NotFound.into()),
        Some(no) => Ok(inodes.get(no)?),
    };
    // Otherwise the number may have become another inode's meanwhile.
    names.unchanged_since(moment).then_some(answer)
}

/// A name of `dir` names something else, or nothing, once the transaction is finished.
pub(super) fn name_changed(
    txn: &mut Txn<'_>,
    dir: InodeNo,
    name: &[u8],
    names: Option<InodeNo>,
) -> Result<()> {
    if has_one_spelling(flags_of(txn, dir)?) {
        txn.name_edits.push((dir, name.into(), names));
    }
    Ok(())
}

/// A name of a regular file comes or goes: that can be recorded in a fast commit.
pub(super) fn record_name(
    txn: &mut Txn<'_>,
    what: NameChange,
    dir: InodeNo,
    no: InodeNo,
    name: &[u8],
) -> Result<()> {
    if txn.may_be_recorded() && kind_of(txn, no)? == FileType::Regular {
        txn.record_name(what, dir, no, name);
    }
    Ok(())
}

/// Names in the directory `dir` after the position `from` (0 = the start), "." and ".." too: a
/// block's worth or more; empty at the end. Positions stay good while names come and go.
///
/// # Errors
/// ENOTDIR; corrupt directories. Entries that make no sense are left out, and then the end is an
/// error: nobody takes what he has got for all.
pub fn readdir(parts: &Parts, dir: InodeNo, from: u64) -> Result<Vec<Dirent>> {
    let txn = parts.look_yielding();
    let part = InodeBlocks::directory(&txn, dir)?.read(from)?;
    {
        let inode = txn.inode(dir)?;
        let mut state = inode.state();
        state.left_out = state.left_out.take().or(part.damage.map(Box::new));
        if let (true, Some(damage)) = (part.names.is_empty(), &state.left_out) {
            return Err((**damage).clone());
        }
    }
    let mut entries = Vec::with_capacity(part.names.len());
    for entry in part.names {
        let kind = entry.kind.map_or_else(|| kind_to_list(&txn, entry.ino), Ok)?;
        let ino = Ino(entry.ino.0.into());
        entries.push(Dirent { ino, kind, name: entry.name, next: entry.next });
    }
    Ok(entries)
}

/// The target of the symbolic link `no`.
///
/// # Errors
/// EINVAL if it is none; corrupt links.
pub fn readlink(parts: &Parts, no: InodeNo) -> Result<Vec<u8>> {
    let txn = parts.look_yielding();
    let raw = txn.raw_inode(no)?;
    if raw.file_type() != Some(FileType::Symlink) {
        return Err(FsError::Invalid { what: "not a symbolic link" }.into());
    }
    let encrypted = raw.flags().contains(InodeFlags::ENCRYPTED);
    if let Some(target) = raw.fast_symlink_target().filter(|_| encrypted) {
        return encrypted_target(no, target);
    }
    if let Some(target) = raw.fast_symlink_target() {
        return Ok(target.to_vec());
    }
    let corrupt = |what| Ext4Error::corrupt(what, format!("symbolic link inode {no}"));
    if raw.is_inline() {
        let mut target = raw.inline_contents(no)?;
        let len = usize::try_from(raw.size()).unwrap_or(usize::MAX);
        if len == 0 || len > target.len() || target[..len].contains(&0) {
            return Err(corrupt("impossible length or NUL in the target"));
        }
        target.truncate(len);
        return Ok(target);
    }
    if raw.size() >= parts.volume.block_size() || raw.size() == 0 {
        return Err(corrupt("impossible length"));
    }
    let block = block_of(&txn, no, 0)?.ok_or_else(|| corrupt("no target"))?;
    let contents = txn.read(block)?;
    // OK to cast: less than a block.
    let target = &contents[..raw.size() as usize];
    if encrypted {
        return encrypted_target(no, target);
    }
    if target.contains(&0) {
        return Err(corrupt("NUL in the target"));
    }
    Ok(target.to_vec())
}

/// The target of an encrypted link, which has its length in front, as it is shown without the key.
pub(super) fn encrypted_target(no: InodeNo, stored: &[u8]) -> Result<Vec<u8>> {
    let len = stored.first_chunk::<2>().map(|b| usize::from(u16::from_le_bytes(*b)));
    let target = len.filter(|len| *len > 0).and_then(|len| stored.get(2..2 + len));
    let corrupt = || Ext4Error::corrupt("impossible length", format!("encrypted link inode {no}"));
    Ok(steadfast_ext4_format::dir::nokey::show(0, 0, target.ok_or_else(corrupt)?))
}

/// Refuses what can be no name in `dir`.
pub(super) fn check_name(txn: &Txn<'_>, dir: InodeNo, name: &[u8]) -> Result<()> {
    if kind_of(txn, dir)? != FileType::Directory {
        return Err(FsError::NotDirectory.into());
    }
    if name.is_empty() {
        return Err(FsError::NotFound.into());
    }
    if name.len() > NAME_MAX {
        return Err(FsError::NameTooLong.into());
    }
    if name.iter().any(|b| matches!(b, b'/' | 0)) {
        return Err(FsError::Invalid { what: "'/' or NUL in a name" }.into());
    }
    Ok(())
}

/// Finds a name whose inode may be reached by names: none of those that the file system keeps for
/// itself.
pub(super) fn find(txn: &Txn<'_>, dir: InodeNo, name: &[u8]) -> Result<Option<NameLocation>> {
    let found = InodeBlocks::directory(txn, dir)?.lookup(name)?;
    if let Some(found) = &found
        && txn.volume().layout.is_reserved(found.ino)
    {
        let what = format!("a name points to the reserved inode {}", found.ino);
        return Err(Ext4Error::corrupt(what, format!("directory inode {dir}")));
    }
    Ok(found)
}

/// The type of an inode whose directory entry does not say it. Of an inode that cannot be read it
/// is a regular file's: the error comes when the name is used, and the other names are listed.
pub(super) fn kind_to_list(txn: &Txn<'_>, no: InodeNo) -> Result<FileType> {
    match kind_of(txn, no) {
        Err(e @ Ext4Error::NotCached { .. }) => Err(e),
        kind => Ok(kind.unwrap_or(FileType::Regular)),
    }
}

pub(super) fn kind_of(txn: &Txn<'_>, no: InodeNo) -> Result<FileType> {
    let kind = txn.look_at(no, |raw| raw.file_type())?;
    kind.ok_or_else(|| Ext4Error::corrupt("no valid file type", format!("inode {no}")))
}

pub(super) fn flags_of(txn: &Txn<'_>, no: InodeNo) -> Result<InodeFlags> {
    txn.look_at(no, |raw| raw.flags())
}

/// Refuses a new name in an encrypted directory: it would have to be encrypted.
pub(super) fn check_key(txn: &Txn<'_>, dir: InodeNo) -> Result<()> {
    if flags_of(txn, dir)?.contains(InodeFlags::ENCRYPTED) {
        return Err(FsError::NoKey.into());
    }
    Ok(())
}

/// Refuses changes of directories that are marked immutable, or that were removed and are still
/// held.
pub(super) fn check_changeable(txn: &Txn<'_>, dir: InodeNo) -> Result<()> {
    let (flags, links) = txn.look_at(dir, |raw| (raw.flags(), raw.links()))?;
    if links == 0 {
        return Err(FsError::NotFound.into());
    }
    if flags.contains(InodeFlags::IMMUTABLE) {
        return Err(FsError::NotPermitted { what: "the directory is immutable" }.into());
    }
    Ok(())
}

/// Refuses to take the name of `no` out of `dir` if either is marked against it.
pub(super) fn check_removable(txn: &Txn<'_>, dir: InodeNo, no: InodeNo) -> Result<()> {
    check_changeable(txn, dir)?;
    if flags_of(txn, dir)?.contains(InodeFlags::APPEND) {
        return Err(FsError::NotPermitted { what: "the directory is append-only" }.into());
    }
    check_not_fixed(txn, no)
}

/// Refuses a name in a directory whose project it would leave.
pub(super) fn check_project(txn: &Txn<'_>, dir: InodeNo, no: InodeNo) -> Result<()> {
    let (flags, project) = txn.look_at(dir, |above| (above.flags(), above.project()))?;
    let inherits = flags.contains(InodeFlags::PROJECT_INHERIT);
    if inherits && project != txn.look_at(no, |raw| raw.project())? {
        return Err(FsError::CrossDevice { what: "the project" }.into());
    }
    Ok(())
}

/// Refuses changes of the names of an immutable or append-only inode.
pub(super) fn check_not_fixed(txn: &Txn<'_>, no: InodeNo) -> Result<()> {
    if flags_of(txn, no)?.intersects(InodeFlags::IMMUTABLE | InodeFlags::APPEND) {
        return Err(FsError::NotPermitted { what: "the file is immutable or append-only" }.into());
    }
    Ok(())
}

/// Makes an inode in or near the directory `parent`, without a name. Its mode and access control
/// list follow the directory's default list or, without one, the umask.
///
/// # Errors
/// No space: no inode is free.
pub(super) fn make_inode(
    txn: &mut Txn<'_>,
    parent: InodeNo,
    (kind, name): (FileType, &[u8]),
    node: NewNode,
) -> Result<InodeNo> {
    let no = create_inode(txn, parent, (kind, name), node)?;
    inherit_acls(txn, parent, no, node.umask)?;
    Ok(no)
}
