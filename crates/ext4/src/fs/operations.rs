//! The operations of a file system.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use steadfast_ext4_format::ondisk::{Incompat, InodeFlags, InodeNo};
use steadfast_runtime::cpu;
use steadfast_vfs::{
    Attr, DirBlock, DirEntry, Fallocate, Fh, FileExtent, FileSystem, FileType, FsError, Ino,
    NewNode, OpenFlags, RenameFlags, Result, SeekTo, SetAttr, SetXattr, Shutdown, StatFs,
    TransactMask, TransactPolicy,
};

use crate::file::{CALL, NAME_CALL};
use crate::file::{
    delete_if_unused, delete_with_final_unlink, fallocate_file, list_extents, make_durable,
    read_file, seek_file, sync_all, sync_file, truncate, write_file,
};
use crate::meta::Txn;
use crate::mounted::{Ext4, key};
use crate::namespace;
use crate::state::{Inode, OpenFile};

/// Its hashes lie beyond its end and hold for good. They are not checked when it is read.
pub(super) const VERITY_IS_READ_ONLY: &str = "a verity file is never written";

fn number(ino: Ino) -> Result<InodeNo> {
    u32::try_from(ino.0).map(InodeNo).map_err(|_| FsError::NotFound)
}

/// What a write counts as in a transaction mask.
fn written_bits(how: OpenFlags) -> TransactMask {
    match how.intersects(OpenFlags::SYNC | OpenFlags::DSYNC) {
        true => TransactMask::WRITE | TransactMask::FSYNC,
        false => TransactMask::WRITE,
    }
}

impl Ext4 {
    pub(super) fn attr(&self, inode: &Inode) -> Attr {
        inode.attr(&self.volume.layout)
    }

    /// The beginning of every call, which takes this much simulated processor time.
    pub(crate) fn enter(&self, cost: Duration) -> Result<()> {
        cpu(cost);
        Ok(self.volume.status.check_up()?)
    }

    /// The inode of a number that a damaged directory or a caller may name: those of the file
    /// system's own are not read.
    pub(super) fn inode(&self, ino: Ino) -> Result<Arc<Inode>> {
        self.check_ordinary(number(ino)?)?;
        self.any_inode(ino)
    }

    /// Also one of the file system's own.
    fn any_inode(&self, ino: Ino) -> Result<Arc<Inode>> {
        let no = number(ino)?;
        if no == InodeNo::NONE || no.0 > self.volume.layout.inodes_count {
            return Err(FsError::NotFound);
        }
        self.run(|| match self.volume.inodes.get(no) {
            Some(inode) => Ok(inode),
            None => self.volume.look_yielding().inode(no),
        })
    }

    /// A number that a caller gives: one of the file system's own inodes, or one beyond all, is the
    /// caller's mistake, and no damage.
    fn given(&self, ino: Ino) -> Result<InodeNo> {
        let no = number(ino).map_err(|_| FsError::Stale)?;
        if no == InodeNo::NONE || no.0 > self.volume.layout.inodes_count {
            return Err(FsError::Stale);
        }
        self.check_ordinary(no).map(|()| no)
    }

    /// Refuses to touch the inodes that belong to the file system itself.
    pub(super) fn check_ordinary(&self, no: InodeNo) -> Result<()> {
        if no != InodeNo::ROOT && no.0 < self.volume.layout.first_inode.0 {
            return Err(FsError::NotPermitted { what: "an inode of the file system itself" });
        }
        Ok(())
    }

    fn add_handle(&self, inode: Arc<Inode>, flags: OpenFlags) -> Result<Fh> {
        let errors = self.pages.error_cursor(key(inode.no));
        Ok(self.handles.add(inode, flags, errors)?)
    }

    fn file(&self, fh: Fh, needs: OpenFlags) -> Result<Arc<OpenFile>> {
        let file = self.handles.get(fh)?;
        if file.flags.contains(needs) { Ok(file) } else { Err(FsError::BadHandle) }
    }

    /// Does `work` on an inode that no handle keeps. While it lasts the inode counts as open: it
    /// may lose its names, but its number cannot become another file's under the work's hands.
    pub(super) fn pinned<T>(
        &self,
        inode: &Inode,
        work: impl FnOnce() -> steadfast_vfs::Result<T>,
    ) -> steadfast_vfs::Result<T> {
        {
            let mut state = inode.state();
            if state.doomed {
                return Err(FsError::NotFound);
            }
            state.opens += 1;
        }
        let done = work();
        let last = {
            let mut state = inode.state();
            state.opens -= 1;
            state.opens == 0
        };
        if last {
            self.run(|| delete_if_unused(self, inode))?;
        }
        done
    }

    fn read_open(&self, file: &OpenFile, direct: bool, offset: u64, len: usize) -> Result<Bytes> {
        let read = self.run(|| read_file(self, file, direct, offset, len))?;
        self.accessed(&file.inode);
        Ok(read)
    }

    /// An inode has changed, not by a write through a handle. With data=transact.
    fn changed_beside(&self, inode: &Arc<Inode>) {
        if self.transact.is_some() {
            self.handles.note_change(inode);
        }
    }

    fn write_open(
        &self,
        file: &OpenFile,
        how: OpenFlags,
        offset: u64,
        data: &Bytes,
    ) -> Result<usize> {
        let written = self.run(|| write_file(self, file, how, offset, data.clone()))?;
        file.note_write();
        self.point_after(written_bits(how))?;
        Ok(written)
    }

    /// Nobody has the file open any more.
    fn release_last(&self, inode: &Inode) -> Result<()> {
        let flush = std::mem::take(&mut inode.state().flush_on_close);
        let delays = self.options.delayed_allocation && self.options.auto_da_alloc;
        let delays = delays && !self.volume.transacts();
        if flush && inode.state().raw.links() > 0 && delays {
            // An error stays with the file, for fsync to tell.
            let _ = self.pages.flush(key(inode.no));
        }
        self.volume.lock_meta().alloc.windows.remove(inode.no);
        self.run(|| delete_if_unused(self, inode))
    }

    /// What is renamed over another file is written out first (the kernel's `auto_da_alloc`).
    fn flush_before_replacing(&self, from: (Ino, &[u8]), to: (Ino, &[u8])) -> Result<()> {
        if !self.options.auto_da_alloc {
            return Ok(());
        }
        let find = |(dir, name)| {
            let dir = self.given(dir)?;
            self.volume.with_blocks(|| namespace::lookup(&self.volume, dir, name))
        };
        // Mostly there is nothing to be replaced: asked first.
        let Ok(_target) = find(to) else { return Ok(()) };
        let Ok(source) = find(from) else { return Ok(()) };
        if source.state().delayed.is_empty() {
            return Ok(());
        }
        self.pages.flush(key(source.no))
    }
}

impl FileSystem for Ext4 {
    fn root(&self) -> Ino {
        Ino(InodeNo::ROOT.0.into())
    }

    fn lookup(&self, dir: Ino, name: &[u8]) -> Result<Attr> {
        self.enter(NAME_CALL)?;
        let inode = self.run(|| namespace::lookup(&self.volume, self.given(dir)?, name))?;
        Ok(self.attr(&inode))
    }

    fn getattr(&self, ino: Ino) -> Result<Attr> {
        self.enter(CALL)?;
        Ok(self.attr(&*self.inode(ino)?))
    }

    fn by_number(&self, ino: Ino) -> Result<Attr> {
        self.enter(CALL)?;
        self.named_inode(ino)
    }

    fn setattr(&self, ino: Ino, set: SetAttr) -> Result<Attr> {
        self.enter(NAME_CALL)?;
        let inode = self.inode(ino)?;
        self.run(|| self.volume.check_writable())?;
        self.check_settable(&inode, &set)?;
        let outcome = self.pinned(&inode, || {
            if let Some(size) = set.size {
                match self.attr(&inode).kind {
                    FileType::Regular => self.run(|| truncate(self, &inode, size))?,
                    FileType::Directory => return Err(FsError::IsDirectory),
                    _ => return Err(FsError::Invalid { what: "only regular files have a size" }),
                }
            }
            if (SetAttr { size: None, ..set }) != SetAttr::default() {
                self.run(|| self.set_fields(&inode, &set))?;
            }
            Ok(())
        });
        self.changed_beside(&inode);
        outcome?;
        if set.size.is_some() {
            self.point_after(TransactMask::TRUNCATE)?;
        }
        Ok(self.attr(&inode))
    }

    fn create(&self, dir: Ino, name: &[u8], node: NewNode, flags: OpenFlags) -> Result<(Attr, Fh)> {
        self.enter(NAME_CALL)?;
        let inode = self.run(|| namespace::create(&self.volume, self.given(dir)?, name, node))?;
        let attr = self.attr(&inode);
        let fh = self.add_handle(inode, flags)?;
        self.names_changed(&[dir], TransactMask::CREATE)?;
        Ok((attr, fh))
    }

    fn mkdir(&self, dir: Ino, name: &[u8], node: NewNode) -> Result<Attr> {
        self.enter(NAME_CALL)?;
        let inode = self.run(|| namespace::mkdir(&self.volume, self.given(dir)?, name, node))?;
        self.names_changed(&[dir], TransactMask::MKDIR)?;
        Ok(self.attr(&inode))
    }

    fn symlink(&self, dir: Ino, name: &[u8], target: &[u8], node: NewNode) -> Result<Attr> {
        self.enter(NAME_CALL)?;
        let make = || namespace::symlink(&self.volume, self.given(dir)?, name, target, node);
        let inode = self.run(make)?;
        self.names_changed(&[dir], TransactMask::CREATE)?;
        Ok(self.attr(&inode))
    }

    fn mknod(
        &self,
        dir: Ino,
        name: &[u8],
        kind: FileType,
        rdev: u64,
        node: NewNode,
    ) -> Result<Attr> {
        self.enter(NAME_CALL)?;
        let make = || namespace::mknod(&self.volume, self.given(dir)?, name, (kind, rdev), node);
        let inode = self.run(make)?;
        self.names_changed(&[dir], TransactMask::CREATE)?;
        Ok(self.attr(&inode))
    }

    fn readlink(&self, ino: Ino) -> Result<Vec<u8>> {
        self.enter(NAME_CALL)?;
        let target = self.run(|| namespace::readlink(&self.volume, self.given(ino)?))?;
        self.accessed(&*self.inode(ino)?);
        Ok(target)
    }

    fn link(&self, ino: Ino, dir: Ino, name: &[u8]) -> Result<Attr> {
        self.enter(NAME_CALL)?;
        let no = self.given(ino)?;
        let inode = self.run(|| namespace::link(&self.volume, no, self.given(dir)?, name))?;
        self.names_changed(&[dir], TransactMask::LINK)?;
        Ok(self.attr(&inode))
    }

    fn unlink(&self, dir: Ino, name: &[u8]) -> Result<()> {
        self.enter(NAME_CALL)?;
        let unlink = || {
            let end =
                |txn: &mut Txn<'_>, inode: &Arc<Inode>| delete_with_final_unlink(self, txn, inode);
            namespace::unlink(&self.volume, self.given(dir)?, name, end)
        };
        if let Some(inode) = self.run(unlink)? {
            self.run(|| delete_if_unused(self, &inode))?;
        }
        self.names_changed(&[dir], TransactMask::UNLINK)
    }

    fn rmdir(&self, dir: Ino, name: &[u8]) -> Result<()> {
        self.enter(NAME_CALL)?;
        let inode = self.run(|| namespace::rmdir(&self.volume, self.given(dir)?, name))?;
        self.run(|| delete_if_unused(self, &inode))?;
        self.names_changed(&[dir], TransactMask::UNLINK)
    }

    fn rename(
        &self,
        from_dir: Ino,
        from: &[u8],
        to_dir: Ino,
        to: &[u8],
        flags: RenameFlags,
    ) -> Result<()> {
        self.enter(NAME_CALL)?;
        if self.options.delayed_allocation && flags.is_empty() && !self.volume.transacts() {
            self.flush_before_replacing((from_dir, from), (to_dir, to))?;
        }
        let dirs = (self.given(from_dir)?, self.given(to_dir)?);
        let rename = || namespace::rename(&self.volume, dirs.0, from, dirs.1, to, flags);
        if let Some(replaced) = self.run(rename)? {
            self.run(|| delete_if_unused(self, &replaced))?;
        }
        self.names_changed(&[from_dir, to_dir], TransactMask::RENAME)
    }

    fn open(&self, ino: Ino, flags: OpenFlags) -> Result<Fh> {
        self.enter(CALL)?;
        let inode = self.inode(ino)?;
        match self.attr(&inode).kind {
            FileType::Regular => {}
            FileType::Directory => return Err(FsError::IsDirectory),
            _ => return Err(FsError::Invalid { what: "only regular files are opened here" }),
        }
        if inode.state().raw.flags().contains(InodeFlags::ENCRYPTED) {
            return Err(FsError::NoKey);
        }
        if flags.intersects(OpenFlags::WRITE | OpenFlags::TRUNCATE) {
            self.run(|| self.volume.check_writable())?;
            let kept = inode.state().raw.flags();
            let appends = flags.contains(OpenFlags::APPEND) && !flags.contains(OpenFlags::TRUNCATE);
            let append_only = kept.contains(InodeFlags::APPEND) && !appends;
            if kept.contains(InodeFlags::IMMUTABLE) || append_only {
                return Err(FsError::NotPermitted { what: "the file is immutable or append-only" });
            }
            if kept.contains(InodeFlags::VERITY) {
                return Err(FsError::NotPermitted { what: VERITY_IS_READ_ONLY });
            }
        }
        let fh = self.add_handle(Arc::clone(&inode), flags)?;
        if flags.contains(OpenFlags::TRUNCATE)
            && let Err(e) = self.run(|| truncate(self, &inode, 0))
        {
            self.release(fh)?;
            return Err(e);
        }
        if flags.contains(OpenFlags::TRUNCATE) {
            self.point_after(TransactMask::TRUNCATE)?;
        }
        Ok(fh)
    }

    fn release(&self, fh: Fh) -> Result<()> {
        cpu(CALL);
        let (file, last) = self.handles.remove(fh)?;
        if self.volume.status.is_down() {
            return Ok(());
        }
        if last {
            self.release_last(&file.inode)?;
        }
        self.point_after_close(&file)
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
        self.enter(CALL)?;
        let file = self.file(fh, OpenFlags::READ)?;
        self.read_open(&file, file.flags.contains(OpenFlags::DIRECT), offset, len)
    }

    fn read_as(&self, fh: Fh, offset: u64, len: usize, direct: bool) -> Result<Bytes> {
        self.enter(CALL)?;
        let file = self.file(fh, OpenFlags::READ)?;
        self.read_open(&file, direct, offset, len)
    }

    fn write(&self, fh: Fh, offset: u64, data: Bytes) -> Result<usize> {
        self.enter(CALL)?;
        let file = self.file(fh, OpenFlags::WRITE)?;
        self.write_open(&file, file.flags, offset, &data)
    }

    fn write_as(&self, fh: Fh, offset: u64, data: Bytes, how: OpenFlags) -> Result<usize> {
        self.enter(CALL)?;
        let file = self.file(fh, OpenFlags::WRITE)?;
        let mut flags = file.flags - OpenFlags::BY_CALL;
        if how.contains(OpenFlags::WRITTEN_BACK) {
            // A page has its own place.
            flags -= OpenFlags::APPEND;
        }
        self.write_open(&file, flags | how, offset, &data)
    }

    fn fsync(&self, fh: Fh, data_only: bool) -> Result<()> {
        self.enter(CALL)?;
        let file = self.handles.get(fh)?;
        if self.volume.transacts() {
            return self.point_after(TransactMask::FSYNC);
        }
        self.run(|| sync_file(self, &file, None, data_only))
    }

    fn readdir(&self, dir: Ino, from: u64) -> Result<Vec<DirEntry>> {
        self.enter(NAME_CALL)?;
        let entries = self.run(|| namespace::readdir(&self.volume, self.given(dir)?, from))?;
        self.accessed(&*self.inode(dir)?);
        Ok(entries)
    }

    fn readdir_block(&self, dir: Ino, from: u64) -> Result<Option<DirBlock>> {
        self.enter(NAME_CALL)?;
        self.run(|| namespace::readdir_block(&self.volume, self.given(dir)?, from))
    }

    fn fsyncdir(&self, dir: Ino) -> Result<()> {
        self.enter(CALL)?;
        let inode = self.inode(dir)?;
        if self.volume.transacts() {
            return self.point_after(TransactMask::FSYNC);
        }
        let tid = inode.state().sync_tid;
        self.run(|| make_durable(self, tid, 0))
    }

    fn statfs(&self) -> Result<StatFs> {
        self.enter(CALL)?;
        let layout = &self.volume.layout;
        let space = *self.volume.space();
        let free = space.free_blocks.saturating_sub(space.promised());
        let withheld = space.reserved_blocks + space.cushion_blocks;
        Ok(StatFs {
            block_size: layout.block_size,
            blocks: layout.blocks_count.saturating_sub(self.overhead()),
            blocks_free: free,
            blocks_available: free.saturating_sub(withheld),
            inodes: layout.inodes_count.into(),
            inodes_free: space.free_inodes,
            name_max: 255,
        })
    }

    fn sync(&self) -> Result<()> {
        self.enter(CALL)?;
        if self.volume.transacts() {
            return self.point_after(TransactMask::SYNC);
        }
        self.run(|| sync_all(self))
    }

    fn tmpfile(&self, dir: Ino, node: NewNode, flags: OpenFlags) -> Result<(Attr, Fh)> {
        self.enter(NAME_CALL)?;
        let inode = self.run(|| namespace::tmpfile(&self.volume, self.given(dir)?, node))?;
        let attr = self.attr(&inode);
        Ok((attr, self.add_handle(inode, flags)?))
    }

    fn seek(&self, fh: Fh, offset: u64, to: SeekTo) -> Result<u64> {
        self.enter(CALL)?;
        let file = self.handles.get(fh)?;
        self.run(|| seek_file(self, &file.inode, offset, to))
    }

    fn extents(&self, ino: Ino, offset: u64, len: u64) -> Result<Vec<FileExtent>> {
        self.enter(CALL)?;
        let inode = self.any_inode(ino)?;
        match self.attr(&inode).kind {
            FileType::Regular | FileType::Directory => {}
            _ => return Err(FsError::Invalid { what: "neither a file nor a directory" }),
        }
        self.run(|| list_extents(self, &inode, offset, len))
    }

    fn shutdown(&self, how: Shutdown) -> Result<()> {
        self.enter(CALL)?;
        self.go_down(how)
    }

    fn fallocate(&self, fh: Fh, what: Fallocate, offset: u64, len: u64) -> Result<()> {
        self.enter(NAME_CALL)?;
        let file = self.file(fh, OpenFlags::WRITE)?;
        self.run_once(|| fallocate_file(self, &file.inode, what, offset, len))?;
        file.note_write();
        if self.volume.transacts() {
            return self.point_after(written_bits(file.flags));
        }
        if file.flags.intersects(OpenFlags::SYNC | OpenFlags::DSYNC) {
            self.run(|| sync_file(self, &file, None, !file.flags.contains(OpenFlags::SYNC)))?;
        }
        Ok(())
    }

    fn names_have_one_spelling(&self) -> bool {
        !self.volume.layout.features.incompat.contains(Incompat::CASEFOLD)
    }

    fn project(&self, ino: Ino) -> Result<u32> {
        self.enter(CALL)?;
        Ext4::project(self, ino)
    }

    fn set_project(&self, ino: Ino, project: u32) -> Result<()> {
        self.enter(NAME_CALL)?;
        Ext4::set_project(self, ino, project)
    }

    fn label(&self) -> Result<Vec<u8>> {
        self.enter(CALL)?;
        Ok(self.label_bytes())
    }

    fn set_label(&self, label: &[u8]) -> Result<()> {
        self.enter(NAME_CALL)?;
        self.change_label(label)
    }

    fn inode_flags(&self, ino: Ino) -> Result<u32> {
        self.enter(CALL)?;
        self.flags_of(ino)
    }

    fn set_inode_flags(&self, ino: Ino, flags: u32) -> Result<()> {
        self.enter(NAME_CALL)?;
        self.set_flags_of(ino, flags)
    }

    fn getxattr(&self, ino: Ino, name: &[u8]) -> Result<Vec<u8>> {
        self.enter(NAME_CALL)?;
        self.get_xattr(ino, name)
    }

    fn setxattr(&self, ino: Ino, name: &[u8], value: &[u8], how: SetXattr) -> Result<()> {
        self.enter(NAME_CALL)?;
        self.set_xattr(ino, name, Some(value), how)
    }

    fn listxattr(&self, ino: Ino) -> Result<Vec<Vec<u8>>> {
        self.enter(NAME_CALL)?;
        self.list_xattrs(ino)
    }

    fn removexattr(&self, ino: Ino, name: &[u8]) -> Result<()> {
        self.enter(NAME_CALL)?;
        self.set_xattr(ino, name, None, SetXattr::Any)
    }

    fn transact(&self) -> Result<()> {
        self.enter(CALL)?;
        self.make_point()
    }

    fn rollback(&self) -> Result<()> {
        self.roll_back().map(drop)
    }

    fn transact_policy(&self) -> Result<TransactPolicy> {
        self.policy()
    }

    fn set_transact_policy(&self, policy: TransactPolicy) -> Result<()> {
        self.set_policy(policy)
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

impl Ext4 {
    /// Blocks that can never hold data, as the kernel counts them for `statfs`.
    fn overhead(&self) -> u64 {
        let clusters = self.volume.lock_meta().superblock.overhead_clusters.get();
        let kept = u64::from(clusters) * u64::from(self.volume.layout.blocks_per_cluster);
        if kept > 0 && kept < self.volume.layout.blocks_count {
            return kept;
        }
        self.volume.layout.first_data_block + self.volume.free.system_blocks.len()
    }
}
