//! Moving and exchanging names.

use std::collections::BTreeSet;
use std::sync::Arc;

use steadfast_ext4_format::dir::{NameLocation, is_dot_name};
use steadfast_ext4_format::ondisk::InodeNo;
use steadfast_ext4_format::{Ext4Error, Result};
use steadfast_vfs::{FileType, FsError, NewNode, RenameFlags};

use super::entry::{
    check_changeable, check_key, check_name, check_project, check_removable, find,
    is_cached_absent, kind_of, make_inode, name_changed, record_name,
};
use super::links::{
    add_subdirectory, check_subdirectory, remove_link, remove_subdirectory, retire_directory,
};
use crate::dir::InodeBlocks;
use crate::meta::{Parts, Txn};
use crate::planted::Bug;
use crate::state::{Inode, NameChange};

/// A name that takes part: where it is and what it names.
struct Side {
    dir: InodeNo,
    found: NameLocation,
    kind: FileType,
}

impl Side {
    fn find(txn: &Txn<'_>, dir: InodeNo, name: &[u8]) -> Result<Option<Side>> {
        let Some(found) = find(txn, dir, name)? else { return Ok(None) };
        Ok(Some(Side { dir, found, kind: kind_of(txn, found.ino)? }))
    }

    fn no(&self) -> InodeNo {
        self.found.ino
    }

    fn is_dir(&self) -> bool {
        self.kind == FileType::Directory
    }

    /// Whether this is the directory `dir` or one above it: moving it there would cut it off the
    /// tree.
    fn holds(&self, txn: &Txn<'_>, dir: InodeNo) -> Result<bool> {
        if !self.is_dir() || self.dir == dir {
            return Ok(false);
        }
        let (mut at, mut seen) = (dir, BTreeSet::new());
        while at != InodeNo::ROOT {
            if at == self.no() {
                return Ok(true);
            }
            if !seen.insert(at) {
                let place = format!("directory inode {at}");
                return Err(Ext4Error::corrupt("\"..\" leads round in a circle", place));
            }
            let above = find(txn, at, b"..")?.ok_or(FsError::NotFound)?;
            at = above.ino;
        }
        Ok(false)
    }
}

/// Moves the name `from` of `from_dir` to `to` in `to_dir`, replacing what has that name as
/// rename(2) does; with flags as renameat2(2): `NO_REPLACE` refuses to replace, `EXCHANGE` lets
/// both names change places, `WHITEOUT` leaves a character device 0:0 at the old name, owned by
/// whom its directory belongs to. Two names of one inode are left as they are. Returns the replaced
/// inode if this was its last name: an orphan now, to be deleted when nobody has it open.
///
/// # Errors
/// ENOENT, EEXIST (`NO_REPLACE`), EINVAL (a directory into itself, both flags), EBUSY ("." or
/// ".."), ENOTDIR, EISDIR, ENOTEMPTY, EMLINK, ENOSPC, EPERM.
pub fn rename(
    parts: &Parts,
    (from_dir, from): (InodeNo, &[u8]),
    (to_dir, to): (InodeNo, &[u8]),
    flags: RenameFlags,
) -> Result<Option<Arc<Inode>>> {
    let mut txn = parts.begin_yielding()?;
    check_name(&txn, from_dir, from)?;
    check_name(&txn, to_dir, to)?;
    check_arguments(from, to, flags)?;
    let source = Side::find(&txn, from_dir, from)?.ok_or(FsError::NotFound)?;
    let target =
        if is_cached_absent(&txn, to_dir, to)? { None } else { Side::find(&txn, to_dir, to)? };
    let exchange = flags.contains(RenameFlags::EXCHANGE);
    if target.is_some() && flags.contains(RenameFlags::NO_REPLACE) {
        return Err(FsError::Exists.into());
    }
    if target.is_none() && exchange {
        return Err(FsError::NotFound.into());
    }
    let into_itself = FsError::Invalid { what: "a directory would be moved into itself" };
    if source.holds(&txn, to_dir)? {
        return Err(into_itself.into());
    }
    if let Some(target) = &target
        && target.holds(&txn, from_dir)?
    {
        return Err(if exchange { into_itself } else { FsError::NotEmpty }.into());
    }
    if target.as_ref().is_some_and(|t| t.no() == source.no()) {
        return Ok(None);
    }
    check_key(&txn, from_dir)?;
    check_key(&txn, to_dir)?;
    check_project(&txn, to_dir, source.no())?;
    check_removable(&txn, from_dir, source.no())?;
    let whiteout = match flags.contains(RenameFlags::WHITEOUT) {
        true => Some(new_whiteout(&mut txn, from_dir)?),
        false => None,
    };
    let comes = target.as_ref().filter(|_| exchange).map(Side::no).or(whiteout);
    name_changed(&mut txn, from_dir, from, comes)?;
    name_changed(&mut txn, to_dir, to, Some(source.no()))?;
    match target {
        None if is_split(parts, &source, flags) => {
            return move_in_two(parts, txn, &source, from, (to_dir, to)).map(|()| None);
        }
        None => {
            move_to_new(&mut txn, &source, from, (to_dir, to))?;
            match whiteout {
                Some(no) => add_whiteout(&mut txn, from_dir, from, no)?,
                None => {
                    record_name(&mut txn, NameChange::Linked, to_dir, source.no(), to)?;
                    record_name(&mut txn, NameChange::Unlinked, from_dir, source.no(), from)?;
                }
            }
        }
        Some(target) => {
            check_removable(&txn, to_dir, target.no())?;
            if exchange {
                check_project(&txn, from_dir, target.no())?;
                swap(&mut txn, &source, &target)?;
            } else {
                let last = replace(&mut txn, &source, &target)?;
                if let Some(no) = whiteout {
                    add_whiteout(&mut txn, from_dir, from, no)?;
                }
                let inode = txn.inode(target.no())?;
                txn.finish()?;
                return Ok(last.then_some(inode));
            }
        }
    }
    txn.finish()?;
    Ok(None)
}

fn check_arguments(from: &[u8], to: &[u8], flags: RenameFlags) -> Result<()> {
    if is_dot_name(from) {
        return Err(FsError::Busy { what: "\".\" and \"..\" cannot be renamed" }.into());
    }
    if is_dot_name(to) {
        if flags.contains(RenameFlags::NO_REPLACE) {
            return Err(FsError::Exists.into());
        }
        return Err(FsError::Busy { what: "\".\" and \"..\" cannot be replaced" }.into());
    }
    let exchange = flags.contains(RenameFlags::EXCHANGE);
    if exchange && flags.intersects(RenameFlags::NO_REPLACE | RenameFlags::WHITEOUT) {
        let what = "an exchange that must not replace, or that leaves a whiteout";
        return Err(FsError::Invalid { what }.into());
    }
    Ok(())
}

/// Moves the name `from` to a directory that does not have the name `to`.
fn move_to_new(
    txn: &mut Txn<'_>,
    source: &Side,
    from: &[u8],
    (to_dir, to): (InodeNo, &[u8]),
) -> Result<()> {
    check_changeable(txn, to_dir)?;
    let changes_parent = source.is_dir() && source.dir != to_dir;
    if changes_parent {
        check_subdirectory(txn, to_dir)?;
    }
    if txn.may_be_recorded() {
        // As it is replayed: a directory that has no room for both must not seem to have.
        InodeBlocks::directory(&mut *txn, to_dir)?.insert(to, source.no(), source.kind)?;
        let moved = InodeBlocks::directory(&*txn, source.dir)?.lookup(from)?;
        let found = moved.ok_or(FsError::NotFound)?;
        InodeBlocks::directory(&mut *txn, source.dir)?.remove(&found)?;
    } else {
        // First out, then in: the other way the insertion could move the old name.
        InodeBlocks::directory(&mut *txn, source.dir)?.remove(&source.found)?;
        InodeBlocks::directory(&mut *txn, to_dir)?.insert(to, source.no(), source.kind)?;
    }
    if changes_parent {
        set_parent(txn, source, to_dir)?;
        remove_subdirectory(txn, source.dir)?;
        add_subdirectory(txn, to_dir)?;
    }
    touch_all(txn, source, to_dir)
}

/// Whether this move is made as [`Bug::MoveInTwoTransactions`] makes it.
fn is_split(parts: &Parts, source: &Side, flags: RenameFlags) -> bool {
    parts.volume.has(Bug::MoveInTwoTransactions) && !source.is_dir() && flags.is_empty()
}

fn move_in_two(
    parts: &Parts,
    mut txn: Txn<'_>,
    source: &Side,
    from: &[u8],
    (to_dir, to): (InodeNo, &[u8]),
) -> Result<()> {
    InodeBlocks::directory(&mut txn, to_dir)?.insert(to, source.no(), source.kind)?;
    txn.finish()?;
    let mut txn = parts.begin_yielding()?;
    let found = InodeBlocks::directory(&txn, source.dir)?.lookup(from)?;
    InodeBlocks::directory(&mut txn, source.dir)?.remove(&found.ok_or(FsError::NotFound)?)?;
    name_changed(&mut txn, source.dir, from, None)?;
    name_changed(&mut txn, to_dir, to, Some(source.no()))?;
    touch_all(&mut txn, source, to_dir)?;
    txn.finish().map(drop)
}

/// Makes what takes the place of a name that moves; as yet without one.
fn new_whiteout(txn: &mut Txn<'_>, dir: InodeNo) -> Result<InodeNo> {
    let above = txn.raw_inode(dir)?;
    let node = NewNode { mode: 0, uid: above.uid(), gid: above.gid(), umask: 0 };
    let no = make_inode(txn, dir, (FileType::CharDevice, b""), node)?;
    txn.modify_inode(no, |raw| {
        raw.set_links(1);
        raw.set_rdev(0);
    })?;
    Ok(no)
}

fn add_whiteout(txn: &mut Txn<'_>, dir: InodeNo, name: &[u8], no: InodeNo) -> Result<()> {
    InodeBlocks::directory(&mut *txn, dir)?.insert(name, no, FileType::CharDevice)
}

/// Puts `source` in the place of `target`. Says whether the target lost its last name.
fn replace(txn: &mut Txn<'_>, source: &Side, target: &Side) -> Result<bool> {
    match (source.is_dir(), target.is_dir()) {
        (true, false) => return Err(FsError::NotDirectory.into()),
        (false, true) => return Err(FsError::IsDirectory.into()),
        (true, true) if !InodeBlocks::directory(&*txn, target.no())?.is_empty()? => {
            return Err(FsError::NotEmpty.into());
        }
        _ => {}
    }
    // Neither moves an entry, so both places stay good in one directory, too.
    InodeBlocks::directory(&mut *txn, target.dir)?.repoint(
        &target.found,
        source.no(),
        source.kind,
    )?;
    InodeBlocks::directory(&mut *txn, source.dir)?.remove(&source.found)?;
    touch_all(txn, source, target.dir)?;
    if !source.is_dir() {
        return remove_link(txn, target.no());
    }
    if source.dir != target.dir {
        set_parent(txn, source, target.dir)?;
    }
    // The target's directory has lost one subdirectory and won one.
    remove_subdirectory(txn, source.dir)?;
    retire_directory(txn, target.no())?;
    Ok(true)
}

/// Lets two names change places.
fn swap(txn: &mut Txn<'_>, one: &Side, other: &Side) -> Result<()> {
    if one.dir != other.dir {
        for (mover, stayer) in [(one, other), (other, one)] {
            if mover.is_dir() && !stayer.is_dir() {
                check_subdirectory(txn, stayer.dir)?;
            }
        }
    }
    for (place, new) in [(one, other), (other, one)] {
        let mut dir = InodeBlocks::directory(&mut *txn, place.dir)?;
        dir.repoint(&place.found, new.no(), new.kind)?;
    }
    if one.dir != other.dir {
        for (mover, stayer) in [(one, other), (other, one)] {
            if !mover.is_dir() {
                continue;
            }
            set_parent(txn, mover, stayer.dir)?;
            if !stayer.is_dir() {
                remove_subdirectory(txn, mover.dir)?;
                add_subdirectory(txn, stayer.dir)?;
            }
        }
    }
    txn.touch(other.no(), false)?;
    touch_all(txn, one, other.dir)
}

/// Lets ".." of a directory that moves point to its new parent.
fn set_parent(txn: &mut Txn<'_>, side: &Side, parent: InodeNo) -> Result<()> {
    let mut dir = InodeBlocks::directory(&mut *txn, side.no())?;
    match dir.lookup(b"..")? {
        Some(found) if found.ino == side.dir => dir.repoint(&found, parent, FileType::Directory),
        _ => {
            let place = format!("directory inode {}", side.no());
            Err(Ext4Error::corrupt("\"..\" is not the directory that it is in", place))
        }
    }
}

fn touch_all(txn: &mut Txn<'_>, source: &Side, to_dir: InodeNo) -> Result<()> {
    if !txn.volume().has(Bug::RenameForgetsInode) {
        txn.touch(source.no(), false)?;
    }
    txn.touch(source.dir, true)?;
    txn.touch(to_dir, true)
}
