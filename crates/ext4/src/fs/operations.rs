//! The operations of a file system, each by its kind: names, data, attributes, space.

use bytes::Bytes;
use steadfast_ext4_format::ondisk::{Incompat, InodeNo};
use steadfast_runtime::cpu;
use steadfast_vfs::{
    Attr, DirBlock, Dirent, Fallocate, Fh, FileExtent, FileSystem, FileType, FsError, Ino, NewNode,
    OpenFlags, RenameFlags, Result, SeekTo, SetAttr, SetXattr, Shutdown, StatFs, TransactMask,
    TransactPolicy,
};

use super::{attributes, data, names, space};
use crate::file::{CALL, NAME_CALL};
use crate::file::{list_extents, seek_file, sync_all};
use crate::mounted::Ext4;
use crate::namespace;

/// Refuses what is negative as an `off_t`, as the kernel does (`rw_verify_area`, fs/read_write.c):
/// it is no place in a file of any size.
fn offset_ok(offset: u64) -> Result<()> {
    match i64::try_from(offset) {
        Ok(_) => Ok(()),
        Err(_) => Err(FsError::Invalid { what: "an offset or length of 2^63 or more" }),
    }
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

    fn by_number(&self, ino: Ino) -> Result<Attr> {
        self.enter(CALL)?;
        self.named_inode(ino)
    }

    fn hold(&self, ino: Ino) -> Result<Attr> {
        self.enter(CALL)?;
        self.hold_inode(ino)
    }

    fn hold_number(&self, ino: Ino) {
        self.hold_unread(ino);
    }

    fn let_go(&self, ino: Ino, holds: u64) -> bool {
        self.let_go_of(ino, holds)
    }

    fn let_go_all(&self) {
        self.let_go_of_all();
    }

    fn setattr(&self, ino: Ino, set: SetAttr) -> Result<Attr> {
        offset_ok(set.size.unwrap_or(0))?;
        self.enter(NAME_CALL)?;
        attributes::setattr(self, ino, set)
    }

    fn create(&self, dir: Ino, name: &[u8], node: NewNode, flags: OpenFlags) -> Result<(Attr, Fh)> {
        self.enter(NAME_CALL)?;
        names::create(self, dir, name, node, flags)
    }

    fn mkdir(&self, dir: Ino, name: &[u8], node: NewNode) -> Result<Attr> {
        self.enter(NAME_CALL)?;
        names::mkdir(self, dir, name, node)
    }

    fn symlink(&self, dir: Ino, name: &[u8], target: &[u8], node: NewNode) -> Result<Attr> {
        self.enter(NAME_CALL)?;
        names::symlink(self, dir, name, target, node)
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
        names::mknod(self, dir, name, kind, rdev, node)
    }

    fn readlink(&self, ino: Ino) -> Result<Vec<u8>> {
        self.enter(NAME_CALL)?;
        names::readlink(self, ino)
    }

    fn link(&self, ino: Ino, dir: Ino, name: &[u8]) -> Result<Attr> {
        self.enter(NAME_CALL)?;
        names::link(self, ino, dir, name)
    }

    fn unlink(&self, dir: Ino, name: &[u8]) -> Result<()> {
        self.enter(NAME_CALL)?;
        names::unlink(self, dir, name)
    }

    fn rmdir(&self, dir: Ino, name: &[u8]) -> Result<()> {
        self.enter(NAME_CALL)?;
        names::rmdir(self, dir, name)
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
        names::rename(self, from_dir, from, to_dir, to, flags)
    }

    fn open(&self, ino: Ino, flags: OpenFlags) -> Result<Fh> {
        self.enter(CALL)?;
        data::open(self, ino, flags)
    }

    fn release(&self, fh: Fh) -> Result<()> {
        cpu(CALL);
        data::release(self, fh)
    }

    fn flush(&self, fh: Fh) -> Result<()> {
        cpu(CALL);
        data::flush(self, fh)
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

    fn write(&self, fh: Fh, offset: u64, data: Bytes) -> Result<usize> {
        offset_ok(offset)?;
        self.enter(CALL)?;
        let file = self.file(fh, OpenFlags::WRITE)?;
        data::write_to(self, &file, file.flags, offset, &data)
    }

    fn write_as(&self, fh: Fh, offset: u64, data: Bytes, how: OpenFlags) -> Result<usize> {
        offset_ok(offset)?;
        self.enter(CALL)?;
        data::write_as(self, fh, offset, data, how)
    }

    fn fsync(&self, fh: Fh, data_only: bool) -> Result<()> {
        self.enter(CALL)?;
        data::fsync(self, fh, data_only)
    }

    fn readdir(&self, dir: Ino, from: u64) -> Result<Vec<Dirent>> {
        self.enter(NAME_CALL)?;
        names::readdir(self, dir, from)
    }

    fn readdir_block(&self, dir: Ino, from: u64) -> Result<Option<DirBlock>> {
        self.enter(NAME_CALL)?;
        self.run_on(&[dir], || namespace::readdir_block(&self.parts, self.given(dir)?, from))
    }

    fn fsyncdir(&self, dir: Ino) -> Result<()> {
        self.enter(CALL)?;
        names::fsyncdir(self, dir)
    }

    fn statfs(&self) -> Result<StatFs> {
        self.enter(CALL)?;
        space::statfs(self)
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
        names::tmpfile(self, dir, node, flags)
    }

    fn seek(&self, fh: Fh, offset: u64, to: SeekTo) -> Result<u64> {
        self.enter(CALL)?;
        let file = self.handles.get(fh)?;
        self.run(|| seek_file(self, &file.inode, offset, to))
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

    fn shutdown(&self, how: Shutdown) -> Result<()> {
        self.enter(CALL)?;
        self.go_down(how)
    }

    fn fallocate(&self, fh: Fh, what: Fallocate, offset: u64, len: u64) -> Result<()> {
        offset_ok(offset)?;
        offset_ok(len)?;
        self.enter(NAME_CALL)?;
        data::fallocate(self, fh, what, offset, len)
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
        // What was removed is free after this point.
        self.parts.holds.settle(0);
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
