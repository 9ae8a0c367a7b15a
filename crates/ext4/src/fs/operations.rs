//! The operations of a file system.

use std::sync::Arc;

use bytes::Bytes;
use steadfast_ext4_format::ondisk::{Incompat, InodeFlags, InodeNo, RoCompat};
use steadfast_ext4_format::xattr::name::{self, USER};
use steadfast_pagecache::evict;
use steadfast_runtime::cpu;
use steadfast_vfs::{
    Advice, Attr, DirBlock, Dirent, Fallocate, Fh, FileExtent, FileSystem, FileType, FsError, Ino,
    NewNode, OpenFlags, RenameFlags, Result, SeekTo, SetAttr, SetXattr, Shutdown, StatFs,
    TransactMask, TransactPolicy,
};

use super::attributes::set_pinned;
use super::flags::SHOWN;
use super::inodes::number;
use super::xattrs::may_have_user;
use super::{data, names};
use crate::fastcommit::is_inode_number_taken;
use crate::file::{CALL, NAME_CALL, delete_with_final_unlink, fallocate_file, make_durable};
use crate::file::{list_extents, seek_file, sync_all, sync_file, truncate};
use crate::meta::Txn;
use crate::mounted::{Ext4, key};
use crate::namespace;
use crate::xattr::{AclType, read_acl, read_xattr, xattr_names};

/// Refuses what is negative as an `off_t`, as the kernel does (`rw_verify_area`, fs/read_write.c):
/// it is no place in a file of any size.
fn offset_ok(offset: u64) -> Result<()> {
    match i64::try_from(offset) {
        Ok(_) => Ok(()),
        Err(_) => Err(FsError::Invalid { what: "an offset or length of 2^63 or more" }),
    }
}

/// Blocks that can never hold data, as the kernel counts them for `statfs`.
fn overhead(fs: &Ext4) -> u64 {
    let clusters = fs.parts.lock_meta().superblock.overhead_clusters.get();
    let kept = u64::from(clusters) * u64::from(fs.volume.layout.blocks_per_cluster);
    if kept > 0 && kept < fs.volume.layout.blocks_count {
        return kept;
    }
    fs.volume.layout.first_data_block + fs.volume.system_blocks.len()
}

impl FileSystem for Ext4 {
    fn root(&self) -> Ino {
        Ino(InodeNo::ROOT.0.into())
    }

    fn lookup(&self, dir: Ino, name: &[u8]) -> Result<Attr> {
        self.enter(NAME_CALL)?;
        let inode =
            self.run_on(&[dir], || namespace::lookup(&self.parts, self.given(dir)?, name))?;
        Ok(self.attr(&inode))
    }

    fn getattr(&self, ino: Ino) -> Result<Attr> {
        self.enter(CALL)?;
        Ok(self.attr_to_keep(&*self.inode(ino)?))
    }

    /// The number may be anything, and what had it may be gone (open_by_handle_at(2), NFS): ESTALE
    /// for all but a file or directory that has a name (the kernel's ext4_nfs_get_inode).
    fn by_number(&self, ino: Ino) -> Result<Attr> {
        self.enter(CALL)?;
        let no = self.given(ino).map_err(|_| FsError::Stale)?;
        // What is not in use may hold anything: it is not read.
        if !self.run(|| is_inode_number_taken(&self.parts.look_yielding(), no))? {
            return Err(FsError::Stale);
        }
        let inode = self.inode(ino)?;
        let has_name = {
            let state = inode.state();
            state.raw.links() > 0 && !state.raw.flags().contains(InodeFlags::EA_INODE)
        };
        if has_name { Ok(self.attr(&inode)) } else { Err(FsError::Stale) }
    }

    fn hold(&self, ino: Ino) -> Result<Attr> {
        self.enter(CALL)?;
        let mut inode = self.inode(ino)?;
        loop {
            let state = inode.state();
            if !state.doomed {
                self.parts.holds.hold(inode.no);
                break;
            }
            drop(state);
            inode = self.found_again(&inode)?;
        }
        Ok(self.attr_to_keep(&inode))
    }

    fn hold_number(&self, ino: Ino) {
        if let Ok(no) = number(ino) {
            self.parts.holds.hold(no);
        }
    }

    /// Deletes nothing itself: that is for a task.
    fn let_go(&self, ino: Ino, holds: u64) -> bool {
        let is_last = number(ino).map_or(true, |no| self.parts.holds.let_go(no, holds));
        self.start_deleting();
        is_last
    }

    fn let_go_all(&self) {
        self.parts.holds.let_go_all();
        self.start_deleting();
    }

    fn setattr(&self, ino: Ino, set: SetAttr) -> Result<Attr> {
        offset_ok(set.size.unwrap_or(0))?;
        self.enter(NAME_CALL)?;
        let inode = self.inode(ino)?;
        self.run(|| self.parts.check_writable())?;
        let attr = self.pinned(inode, |inode| {
            self.check_settable(inode, &set)?;
            let outcome = set_pinned(self, inode, &set);
            self.changed_beside(inode);
            outcome.map(|()| self.attr(inode))
        })?;
        if set.size.is_some() {
            self.point_after(TransactMask::TRUNCATE)?;
        }
        Ok(attr)
    }

    fn create(&self, dir: Ino, name: &[u8], node: NewNode, flags: OpenFlags) -> Result<(Attr, Fh)> {
        self.enter(NAME_CALL)?;
        let create = || namespace::create(&self.parts, self.given(dir)?, name, node);
        let inode = self.run_on(&[dir], create)?;
        let attr = self.attr(&inode);
        let fh = self.add_handle(inode, flags)?;
        self.or_close(fh, self.names_changed(&[dir], TransactMask::CREATE))?;
        Ok((attr, fh))
    }

    fn mkdir(&self, dir: Ino, name: &[u8], node: NewNode) -> Result<Attr> {
        self.enter(NAME_CALL)?;
        let make = |dir| namespace::mkdir(&self.parts, dir, name, node);
        names::make(self, dir, TransactMask::MKDIR, make)
    }

    fn symlink(&self, dir: Ino, name: &[u8], target: &[u8], node: NewNode) -> Result<Attr> {
        self.enter(NAME_CALL)?;
        let make = |dir| namespace::symlink(&self.parts, dir, name, target, node);
        names::make(self, dir, TransactMask::CREATE, make)
    }

    fn mknod(&self, dir: Ino, name: &[u8], what: (FileType, u64), node: NewNode) -> Result<Attr> {
        self.enter(NAME_CALL)?;
        let make = |dir| namespace::mknod(&self.parts, dir, name, what, node);
        names::make(self, dir, TransactMask::CREATE, make)
    }

    fn readlink(&self, ino: Ino) -> Result<Vec<u8>> {
        self.enter(NAME_CALL)?;
        let target = self.run_on(&[ino], || namespace::readlink(&self.parts, self.given(ino)?))?;
        self.accessed(&*self.inode(ino)?);
        Ok(target)
    }

    fn link(&self, ino: Ino, dir: Ino, name: &[u8]) -> Result<Attr> {
        self.enter(NAME_CALL)?;
        let no = self.given(ino)?;
        let link = || namespace::link(&self.parts, no, self.given(dir)?, name);
        let inode = self.run_on(&[ino, dir], link)?;
        self.names_changed(&[dir], TransactMask::LINK)?;
        Ok(self.attr(&inode))
    }

    fn unlink(&self, dir: Ino, name: &[u8]) -> Result<()> {
        self.enter(NAME_CALL)?;
        let unlink = || {
            let end =
                |txn: &mut Txn<'_>, inode: &Arc<_>| delete_with_final_unlink(self, txn, inode);
            namespace::unlink(&self.parts, self.given(dir)?, name, end)
        };
        if let Some(inode) = self.run_on(&[dir], unlink)? {
            names::nameless(self, &inode)?;
        }
        self.names_changed(&[dir], TransactMask::UNLINK)
    }

    fn rmdir(&self, dir: Ino, name: &[u8]) -> Result<()> {
        self.enter(NAME_CALL)?;
        let rmdir = || namespace::rmdir(&self.parts, self.given(dir)?, name);
        names::nameless(self, &*self.run_on(&[dir], rmdir)?)?;
        self.names_changed(&[dir], TransactMask::UNLINK)
    }

    fn rename(&self, from: (Ino, &[u8]), to: (Ino, &[u8]), flags: RenameFlags) -> Result<()> {
        self.enter(NAME_CALL)?;
        if self.options.delayed_allocation && flags.is_empty() && !self.parts.transacts() {
            names::flush_before_replacing(self, from, to)?;
        }
        let dirs = [from.0, to.0];
        let (old, new) = ((self.given(from.0)?, from.1), (self.given(to.0)?, to.1));
        let rename = || namespace::rename(&self.parts, old, new, flags);
        if let Some(replaced) = self.run_on(&dirs, rename)? {
            names::nameless(self, &replaced)?;
        }
        self.names_changed(&dirs, TransactMask::RENAME)
    }

    fn open(&self, ino: Ino, flags: OpenFlags) -> Result<Fh> {
        self.enter(CALL)?;
        let inode = self.inode(ino)?;
        data::check_openable(self, &inode, flags)?;
        let fh = self.add_handle(Arc::clone(&inode), flags)?;
        if flags.contains(OpenFlags::TRUNCATE) {
            let cut = self.run(|| truncate(self, &inode, 0));
            self.or_close(fh, cut.and_then(|()| self.point_after(TransactMask::TRUNCATE)))?;
        }
        Ok(fh)
    }

    fn release(&self, fh: Fh) -> Result<()> {
        cpu(CALL);
        data::release(self, fh)
    }

    fn flush(&self, fh: Fh) -> Result<()> {
        cpu(CALL);
        let file = self.handles.get(fh)?;
        if self.volume.status.is_down() {
            return Ok(());
        }
        self.point_after_close(&file)
    }

    fn read(&self, fh: Fh, offset: u64, len: usize) -> Result<Bytes> {
        offset_ok(offset)?;
        self.enter(CALL)?;
        let file = self.file(fh, OpenFlags::READ)?;
        data::read_from(self, &file, file.flags.contains(OpenFlags::DIRECT), offset, len)
    }

    fn read_as(&self, fh: Fh, offset: u64, len: usize, direct: bool) -> Result<Bytes> {
        offset_ok(offset)?;
        self.enter(CALL)?;
        let file = self.file(fh, OpenFlags::READ)?;
        data::read_from(self, &file, direct, offset, len)
    }

    fn read_into(&self, fh: Fh, offset: u64, out: &mut [u8], direct: bool) -> Result<usize> {
        offset_ok(offset)?;
        self.enter(CALL)?;
        let file = self.file(fh, OpenFlags::READ)?;
        data::read_into(self, &file, direct, offset, out)
    }

    fn write(&self, fh: Fh, offset: u64, data: Bytes) -> Result<usize> {
        offset_ok(offset)?;
        self.enter(CALL)?;
        let file = self.file(fh, OpenFlags::WRITE)?;
        data::write_to(self, &file, file.flags, offset, &data)
    }

    fn write_as(&self, fh: Fh, offset: u64, data: Bytes, how: OpenFlags) -> Result<usize> {
        offset_ok(offset)?;
        self.enter(CALL)?;
        let file = self.file(fh, OpenFlags::WRITE)?;
        let mut flags = file.flags - OpenFlags::BY_CALL;
        if how.contains(OpenFlags::WRITTEN_BACK) {
            // A page has its own place.
            flags -= OpenFlags::APPEND;
        }
        data::write_to(self, &file, flags | how, offset, &data)
    }

    fn fsync(&self, fh: Fh, data_only: bool) -> Result<()> {
        self.enter(CALL)?;
        let file = self.handles.get(fh)?;
        if self.parts.transacts() {
            return self.point_after(TransactMask::FSYNC);
        }
        self.run(|| sync_file(self, &file, None, data_only))
    }

    fn readdir(&self, dir: Ino, from: u64) -> Result<Vec<Dirent>> {
        self.enter(NAME_CALL)?;
        let read = || namespace::readdir(&self.parts, self.given(dir)?, from);
        let entries = self.run_on(&[dir], read)?;
        self.accessed(&*self.inode(dir)?);
        Ok(entries)
    }

    fn readdir_block(&self, dir: Ino, from: u64) -> Result<Option<DirBlock>> {
        self.enter(NAME_CALL)?;
        self.run_on(&[dir], || namespace::readdir_block(&self.parts, self.given(dir)?, from))
    }

    fn fsyncdir(&self, dir: Ino) -> Result<()> {
        self.enter(CALL)?;
        let inode = self.inode(dir)?;
        if self.parts.transacts() {
            return self.point_after(TransactMask::FSYNC);
        }
        let tid = inode.state().sync_tid;
        self.run(|| make_durable(self, tid, 0))
    }

    fn statfs(&self) -> Result<StatFs> {
        self.enter(CALL)?;
        // As on the kernel's ext4, where a final unlink has deleted the file when it returns.
        self.parts.holds.settle(0);
        let layout = &self.volume.layout;
        let space = *self.parts.allocator.counts();
        let free = space.free_blocks.saturating_sub(space.promised());
        let withheld = space.reserved_blocks + space.cushion_blocks;
        Ok(StatFs {
            block_size: layout.block_size,
            blocks: match self.options.minix_df {
                true => layout.blocks_count,
                false => layout.blocks_count.saturating_sub(overhead(self)),
            },
            blocks_free: free,
            blocks_available: free.saturating_sub(withheld),
            inodes: layout.inodes_count.into(),
            inodes_free: space.free_inodes,
            name_max: 255,
        })
    }

    fn sync(&self) -> Result<()> {
        self.enter(CALL)?;
        self.parts.holds.settle(0);
        if self.parts.transacts() {
            return self.point_after(TransactMask::SYNC);
        }
        self.run(|| sync_all(self))
    }

    fn tmpfile(&self, dir: Ino, node: NewNode, flags: OpenFlags) -> Result<(Attr, Fh)> {
        self.enter(NAME_CALL)?;
        let make = || namespace::tmpfile(&self.parts, self.given(dir)?, node);
        let inode = self.run_on(&[dir], make)?;
        let attr = self.attr(&inode);
        Ok((attr, self.add_handle(inode, flags)?))
    }

    fn seek(&self, fh: Fh, offset: u64, to: SeekTo) -> Result<u64> {
        self.enter(CALL)?;
        let file = self.handles.get(fh)?;
        self.run(|| seek_file(self, &file.inode, offset, to))
    }

    /// Only what is not needed makes a difference: read-ahead finds by itself how a file is read.
    fn advise(&self, fh: Fh, offset: u64, len: u64, advice: Advice) -> Result<()> {
        self.enter(CALL)?;
        let file = self.handles.get(fh)?;
        if advice == Advice::DontNeed {
            let end = if len == 0 { u64::MAX } else { offset.saturating_add(len) };
            evict(&self.pages, key(file.inode.no), offset..end);
        }
        Ok(())
    }

    fn extents(&self, ino: Ino, offset: u64, len: u64) -> Result<Vec<FileExtent>> {
        self.enter(CALL)?;
        let inode = self.any_inode(ino)?;
        match inode.kind() {
            FileType::Regular | FileType::Directory => {}
            _ => return Err(FsError::Invalid { what: "neither a file nor a directory" }),
        }
        self.run(|| list_extents(self, &inode, offset, len))
    }

    /// From then on every operation fails with EIO, and nothing is written any more but what is on
    /// its way to the device already.
    fn shutdown(&self, how: Shutdown) -> Result<()> {
        self.enter(CALL)?;
        let written = match how {
            // Without its data the transaction must not be committed.
            Shutdown::Flush | Shutdown::FlushJournal if self.parts.transacts() => self.make_point(),
            Shutdown::Flush => self.run(|| sync_all(self)),
            Shutdown::FlushJournal => {
                self.run(|| self.parts.log.commit(self.parts.log.running_tid()))
            }
            Shutdown::Now => Ok(()),
        };
        self.volume.status.set_down();
        if let Some(journal) = self.journal() {
            journal.abandon();
        }
        // Its writes fail at once now; what is in flight arrives.
        self.pages.shutdown();
        written
    }

    fn fallocate(&self, fh: Fh, what: Fallocate, offset: u64, len: u64) -> Result<()> {
        offset_ok(offset)?;
        offset_ok(len)?;
        self.enter(NAME_CALL)?;
        let file = self.file(fh, OpenFlags::WRITE)?;
        self.run_once(|| fallocate_file(self, &file.inode, what, offset, len))?;
        file.note_write();
        if self.parts.transacts() {
            return self.point_after(data::written_bits(file.flags));
        }
        if file.flags.intersects(OpenFlags::SYNC | OpenFlags::DSYNC) {
            let data_only = !file.flags.contains(OpenFlags::SYNC);
            self.run(|| sync_file(self, &file, None, data_only))?;
        }
        Ok(())
    }

    fn names_have_one_spelling(&self) -> bool {
        !self.volume.layout.features.incompat.contains(Incompat::CASEFOLD)
    }

    fn project(&self, ino: Ino) -> Result<u32> {
        self.enter(CALL)?;
        Ok(self.inode(ino)?.state().raw.project())
    }

    /// New files and directories are of the project of their directory if that has the
    /// project-inherit flag.
    fn set_project(&self, ino: Ino, project: u32) -> Result<()> {
        self.enter(NAME_CALL)?;
        let feature = self.volume.layout.features.ro_compat.contains(RoCompat::PROJECT);
        self.pinned(self.inode(ino)?, |inode| {
            if !feature || !inode.state().raw.has_project() {
                let what = "project ids: the file system, or this inode, has no room for them";
                return Err(FsError::Unsupported { what: what.into() });
            }
            self.run_pinned(inode, || {
                let mut txn = self.parts.begin()?;
                txn.modify_inode(inode.no, |raw| raw.set_project(project))?;
                txn.touch(inode.no, false)?;
                txn.finish().map(drop)
            })
        })
    }

    fn label(&self) -> Result<Vec<u8>> {
        self.enter(CALL)?;
        let txn = self.parts.look();
        let padded = txn.superblock().volume_name;
        Ok(padded.split(|b| *b == 0).next().unwrap_or_default().to_vec())
    }

    /// Changes it, durably and in its place, where other programs look for it while the file system
    /// is mounted (with data=transact: with the next point). Backups of the superblock keep the old
    /// one.
    fn set_label(&self, label: &[u8]) -> Result<()> {
        self.enter(NAME_CALL)?;
        let mut padded = [0; 16];
        let Some(place) = padded.get_mut(..label.len()) else {
            return Err(FsError::Invalid { what: "a label of more than 16 bytes" });
        };
        place.copy_from_slice(label);
        self.run(|| {
            let mut txn = self.parts.begin()?;
            txn.superblock_mut().volume_name = padded;
            let tid = txn.finish()?;
            if self.parts.transacts() {
                return Ok(());
            }
            self.parts.log.commit(tid)?;
            self.parts.log.checkpoint_all()
        })
    }

    fn inode_flags(&self, ino: Ino) -> Result<u32> {
        self.enter(CALL)?;
        let flags = self.inode(ino)?.state().raw.flags();
        Ok((flags & SHOWN).bits())
    }

    fn set_inode_flags(&self, ino: Ino, flags: u32) -> Result<()> {
        self.enter(NAME_CALL)?;
        let inode = self.inode(ino)?;
        self.run(|| self.parts.check_writable())?;
        let wanted = InodeFlags::from_bits_retain(flags);
        self.pinned(inode, |inode| self.set_pinned_flags(inode, wanted))
    }

    fn getxattr(&self, ino: Ino, name: &[u8]) -> Result<Vec<u8>> {
        self.enter(NAME_CALL)?;
        let inode = self.inode(ino)?;
        let name = name::split(name)?;
        if name.0 == USER && !may_have_user(&inode) {
            return Err(FsError::NoData);
        }
        let look = || {
            let txn = self.parts.look_yielding();
            match AclType::of(name.0) {
                Some(which) => Ok(read_acl(&txn, inode.no, which)?.map(|acl| acl.to_wire())),
                None => read_xattr(&txn, inode.no, name),
            }
        };
        self.run(look)?.ok_or(FsError::NoData)
    }

    fn setxattr(&self, ino: Ino, name: &[u8], value: &[u8], how: SetXattr) -> Result<()> {
        self.enter(NAME_CALL)?;
        self.set_xattr(ino, name, Some(value), how)
    }

    fn listxattr(&self, ino: Ino) -> Result<Vec<Vec<u8>>> {
        self.enter(NAME_CALL)?;
        let inode = self.inode(ino)?;
        self.run(|| xattr_names(&self.parts.look_yielding(), inode.no))
    }

    fn removexattr(&self, ino: Ino, name: &[u8]) -> Result<()> {
        self.enter(NAME_CALL)?;
        self.set_xattr(ino, name, None, SetXattr::Any)
    }

    fn transact(&self) -> Result<()> {
        self.enter(CALL)?;
        // What was removed is free after this point.
        self.parts.holds.settle(0);
        self.make_point()
    }

    fn rollback(&self) -> Result<()> {
        self.roll_back().map(drop)
    }

    fn transact_policy(&self) -> Result<TransactPolicy> {
        Ok(self.transacting()?.policy())
    }

    fn set_transact_policy(&self, policy: TransactPolicy) -> Result<()> {
        let transact = self.transacting()?;
        transact.state().policy = policy;
        transact.timer.set_period(policy.timed);
        self.note_change();
        Ok(())
    }

    fn begin_group(&self) -> Result<()> {
        self.enter(CALL)?;
        self.open_group()
    }

    fn end_group(&self, commit: bool) -> Result<()> {
        self.enter(CALL)?;
        self.close_group(commit)
    }
}
