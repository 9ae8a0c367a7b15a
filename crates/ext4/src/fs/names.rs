//! Operations on names.

use std::sync::Arc;

use steadfast_vfs::{
    Attr, Dirent, Fh, FileType, Ino, NewNode, OpenFlags, RenameFlags, Result, TransactMask,
};

use crate::file::{delete_if_unused, delete_with_final_unlink, make_durable};
use crate::meta::Txn;
use crate::mounted::{Ext4, key};
use crate::namespace;
use crate::state::Inode;

pub(super) fn create(
    fs: &Ext4,
    dir: Ino,
    name: &[u8],
    node: NewNode,
    flags: OpenFlags,
) -> Result<(Attr, Fh)> {
    let inode = fs.run_on(&[dir], || namespace::create(&fs.parts, fs.given(dir)?, name, node))?;
    let attr = fs.attr(&inode);
    let fh = fs.add_handle(inode, flags)?;
    fs.or_close(fh, fs.names_changed(&[dir], TransactMask::CREATE))?;
    Ok((attr, fh))
}

pub(super) fn mkdir(fs: &Ext4, dir: Ino, name: &[u8], node: NewNode) -> Result<Attr> {
    let inode = fs.run_on(&[dir], || namespace::mkdir(&fs.parts, fs.given(dir)?, name, node))?;
    fs.names_changed(&[dir], TransactMask::MKDIR)?;
    Ok(fs.attr(&inode))
}

pub(super) fn symlink(
    fs: &Ext4,
    dir: Ino,
    name: &[u8],
    target: &[u8],
    node: NewNode,
) -> Result<Attr> {
    let make = || namespace::symlink(&fs.parts, fs.given(dir)?, name, target, node);
    let inode = fs.run_on(&[dir], make)?;
    fs.names_changed(&[dir], TransactMask::CREATE)?;
    Ok(fs.attr(&inode))
}

pub(super) fn mknod(
    fs: &Ext4,
    dir: Ino,
    name: &[u8],
    kind: FileType,
    rdev: u64,
    node: NewNode,
) -> Result<Attr> {
    let make = || namespace::mknod(&fs.parts, fs.given(dir)?, name, (kind, rdev), node);
    let inode = fs.run_on(&[dir], make)?;
    fs.names_changed(&[dir], TransactMask::CREATE)?;
    Ok(fs.attr(&inode))
}

pub(super) fn readlink(fs: &Ext4, ino: Ino) -> Result<Vec<u8>> {
    let target = fs.run_on(&[ino], || namespace::readlink(&fs.parts, fs.given(ino)?))?;
    fs.accessed(&*fs.inode(ino)?);
    Ok(target)
}

pub(super) fn link(fs: &Ext4, ino: Ino, dir: Ino, name: &[u8]) -> Result<Attr> {
    let no = fs.given(ino)?;
    let inode = fs.run_on(&[ino, dir], || namespace::link(&fs.parts, no, fs.given(dir)?, name))?;
    fs.names_changed(&[dir], TransactMask::LINK)?;
    Ok(fs.attr(&inode))
}

pub(super) fn unlink(fs: &Ext4, dir: Ino, name: &[u8]) -> Result<()> {
    let unlink = || {
        let end = |txn: &mut Txn<'_>, inode: &Arc<Inode>| delete_with_final_unlink(fs, txn, inode);
        namespace::unlink(&fs.parts, fs.given(dir)?, name, end)
    };
    if let Some(inode) = fs.run_on(&[dir], unlink)? {
        nameless(fs, &inode)?;
    }
    fs.names_changed(&[dir], TransactMask::UNLINK)
}

/// The last name of an inode has gone.
fn nameless(fs: &Ext4, inode: &Inode) -> Result<()> {
    fs.run(|| delete_if_unused(fs, inode))?;
    fs.parts.holds.relieve();
    Ok(())
}

pub(super) fn rmdir(fs: &Ext4, dir: Ino, name: &[u8]) -> Result<()> {
    let inode = fs.run_on(&[dir], || namespace::rmdir(&fs.parts, fs.given(dir)?, name))?;
    nameless(fs, &inode)?;
    fs.names_changed(&[dir], TransactMask::UNLINK)
}

pub(super) fn rename(
    fs: &Ext4,
    from_dir: Ino,
    from: &[u8],
    to_dir: Ino,
    to: &[u8],
    flags: RenameFlags,
) -> Result<()> {
    if fs.options.delayed_allocation && flags.is_empty() && !fs.parts.transacts() {
        flush_before_replacing(fs, (from_dir, from), (to_dir, to))?;
    }
    let dirs = (fs.given(from_dir)?, fs.given(to_dir)?);
    let rename = || namespace::rename(&fs.parts, dirs.0, from, dirs.1, to, flags);
    if let Some(replaced) = fs.run_on(&[from_dir, to_dir], rename)? {
        nameless(fs, &replaced)?;
    }
    fs.names_changed(&[from_dir, to_dir], TransactMask::RENAME)
}

pub(super) fn readdir(fs: &Ext4, dir: Ino, from: u64) -> Result<Vec<Dirent>> {
    let entries = fs.run_on(&[dir], || namespace::readdir(&fs.parts, fs.given(dir)?, from))?;
    fs.accessed(&*fs.inode(dir)?);
    Ok(entries)
}

pub(super) fn fsyncdir(fs: &Ext4, dir: Ino) -> Result<()> {
    let inode = fs.inode(dir)?;
    if fs.parts.transacts() {
        return fs.point_after(TransactMask::FSYNC);
    }
    let tid = inode.state().sync_tid;
    fs.run(|| make_durable(fs, tid, 0))
}

pub(super) fn tmpfile(fs: &Ext4, dir: Ino, node: NewNode, flags: OpenFlags) -> Result<(Attr, Fh)> {
    let inode = fs.run_on(&[dir], || namespace::tmpfile(&fs.parts, fs.given(dir)?, node))?;
    let attr = fs.attr(&inode);
    Ok((attr, fs.add_handle(inode, flags)?))
}

/// What is renamed over another file is written out first (the kernel's `auto_da_alloc`).
fn flush_before_replacing(fs: &Ext4, from: (Ino, &[u8]), to: (Ino, &[u8])) -> Result<()> {
    if !fs.options.auto_da_alloc {
        return Ok(());
    }
    let find = |(dir, name)| {
        let dir = fs.given(dir)?;
        fs.parts.with_blocks(|| namespace::lookup(&fs.parts, dir, name))
    };
    // Mostly there is nothing to be replaced: asked first.
    let Ok(_target) = find(to) else { return Ok(()) };
    let Ok(source) = find(from) else { return Ok(()) };
    if source.state().delayed.is_empty() {
        return Ok(());
    }
    fs.pages.flush(key(source.no))
}
