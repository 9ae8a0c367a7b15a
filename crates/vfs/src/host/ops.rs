//! The operations.

use std::num::NonZeroU64;
use std::os::fd::OwnedFd;

use bytes::Bytes;
use rustix::fs::{AtFlags, Dir, Gid, Mode, OFlags, Statx, Uid};
use rustix::io::Errno;

use super::handles::Handle;
use super::nodes::HostInode;
use super::{HostFs, HostName, NOFOLLOW, attr, buffer, checked};
use crate::{
    Advice, Attr, Dirent, Fallocate, Fh, FileSystem, FileType, FsError, Ino, NewNode, OpenFlags,
    RenameFlags, Result, SeekTo, SetAttr, SetXattr, StatFs,
};

impl FileSystem for HostFs {
    fn root(&self) -> Ino {
        self.nodes().root()
    }

    fn lookup(&self, dir: Ino, name: &[u8]) -> Result<Attr> {
        if name == b"." || name == b".." {
            let ino = if name == b"." { dir } else { self.nodes().parent(dir)? };
            self.dir(dir)?;
            return self.getattr(ino);
        }
        let folder = self.dir(dir)?;
        let (ino, x) = self.add_node(&folder, dir, checked(name)?)?;
        attr::attr(ino, &x)
    }

    fn getattr(&self, ino: Ino) -> Result<Attr> {
        match self.locate(ino) {
            Ok((_, x)) => attr::attr(ino, &x),
            Err(e) => match self.handles.any_of(ino) {
                Some(handle) => attr::attr(ino, &attr::of_fd(&handle.fd)?),
                None => Err(e),
            },
        }
    }

    fn setattr(&self, ino: Ino, set: SetAttr) -> Result<Attr> {
        match self.locate(ino) {
            Ok((place, x)) => set_at(&place, &x, &set)?,
            Err(e) => match self.handles.any_of(ino) {
                Some(handle) => set_open(&handle, &set)?,
                None => return Err(e),
            },
        }
        self.getattr(ino)
    }

    fn create(&self, dir: Ino, name: &[u8], node: NewNode, flags: OpenFlags) -> Result<(Attr, Fh)> {
        let folder = self.dir(dir)?;
        let name = checked(name)?;
        let exclusive = OFlags::CREATE | OFlags::EXCL;
        let fd = match rustix::fs::openat(&*folder, name, host(flags) | exclusive, mode(node)) {
            Ok(fd) => fd,
            Err(Errno::INVAL) if flags.contains(OpenFlags::DIRECT) => {
                // Linux makes the file before it finds that O_DIRECT is unknown there. O_EXCL
                // has shown that the name was free, so the file is ours to take away again.
                let _ = rustix::fs::unlinkat(&*folder, name, AtFlags::empty());
                return Err(buffer::no_direct_io(&*folder));
            }
            Err(e) => return Err(e.into()),
        };
        let (ino, x) = self.settle(&folder, dir, name, node)?;
        let fh = self.handles.add(Handle { fd, ino, flags });
        Ok((attr::attr(ino, &x)?, fh))
    }

    fn mkdir(&self, dir: Ino, name: &[u8], node: NewNode) -> Result<Attr> {
        let folder = self.dir(dir)?;
        let name = checked(name)?;
        rustix::fs::mkdirat(&*folder, name, mode(node))?;
        let (ino, x) = self.settle(&folder, dir, name, node)?;
        attr::attr(ino, &x)
    }

    fn symlink(&self, dir: Ino, name: &[u8], target: &[u8], node: NewNode) -> Result<Attr> {
        let folder = self.dir(dir)?;
        let name = checked(name)?;
        rustix::fs::symlinkat(target, &*folder, name)?;
        own(node, |uid, gid| rustix::fs::chownat(&*folder, name, uid, gid, NOFOLLOW))?;
        let (ino, x) = self.add_node(&folder, dir, name)?;
        attr::attr(ino, &x)
    }

    fn readlink(&self, ino: Ino) -> Result<Vec<u8>> {
        let (place, x) = self.locate(ino)?;
        if attr::kind(&x)? != FileType::Symlink {
            return Err(FsError::Invalid { what: "not a symbolic link" });
        }
        let target = rustix::fs::readlinkat(&*place.dir, place.name.as_slice(), Vec::new())?;
        Ok(target.into_bytes())
    }

    fn link(&self, ino: Ino, dir: Ino, name: &[u8]) -> Result<Attr> {
        let name = checked(name)?;
        let (from, _) = match self.locate(ino) {
            Ok(found) => found,
            Err(FsError::NotFound) => return self.link_open(ino, dir, name),
            Err(e) => return Err(e),
        };
        let folder = self.dir(dir)?;
        let old = from.name.as_slice();
        rustix::fs::linkat(&*from.dir, old, &*folder, name, AtFlags::empty()).map_err(
            |e| match e {
                Errno::PERM => FsError::NotPermitted { what: "a link to a directory" },
                e => e.into(),
            },
        )?;
        let (ino, x) = self.add_node(&folder, dir, name)?;
        attr::attr(ino, &x)
    }

    fn unlink(&self, dir: Ino, name: &[u8]) -> Result<()> {
        self.remove(dir, name, AtFlags::empty())
    }

    fn rmdir(&self, dir: Ino, name: &[u8]) -> Result<()> {
        self.remove(dir, name, AtFlags::REMOVEDIR)
    }

    fn rename(&self, from: (Ino, &[u8]), to: (Ino, &[u8]), flags: RenameFlags) -> Result<()> {
        let ((from_dir, from), (to_dir, to)) = (from, to);
        let (old, new) = (self.dir(from_dir)?, self.dir(to_dir)?);
        let (moved, x) = self.add_node(&old, from_dir, checked(from)?)?;
        let target = match self.add_node(&new, to_dir, checked(to)?) {
            Ok((ino, x)) => Some((ino, HostInode::of(&x))),
            Err(FsError::NotFound) => None,
            Err(e) => return Err(e),
        };
        let host = rustix::fs::RenameFlags::from_bits_truncate(flags.bits());
        rustix::fs::renameat_with(&*old, from, &*new, to, host)?;
        let same = target.is_some_and(|(ino, _)| ino == moved);
        if same {
            // Two names of one inode: rename(2) does nothing.
            return Ok(());
        }
        self.nodes().forget_place(moved, from_dir, from);
        if let Some((ino, identity)) = target {
            self.forget(ino, to_dir, to);
            if flags.contains(RenameFlags::EXCHANGE) {
                self.nodes().add_node(identity, from_dir, from);
            }
        }
        self.nodes().add_node(HostInode::of(&x), to_dir, to);
        Ok(())
    }

    fn open(&self, ino: Ino, flags: OpenFlags) -> Result<Fh> {
        let (place, x) = self.locate(ino)?;
        // Opening a FIFO or a device would wait or act; only regular files are opened.
        match attr::kind(&x)? {
            FileType::Regular => {}
            FileType::Directory => return Err(FsError::IsDirectory),
            _ => return Err(FsError::Invalid { what: "only regular files can be opened" }),
        }
        let fd = open_at(&place, host(flags)).map_err(|e| match e {
            Errno::INVAL if flags.contains(OpenFlags::DIRECT) => buffer::no_direct_io(&*place.dir),
            e => e.into(),
        })?;
        if HostInode::of(&attr::of_fd(&fd)?) != HostInode::of(&x) {
            return Err(FsError::NotFound);
        }
        Ok(self.handles.add(Handle { fd, ino, flags }))
    }

    fn release(&self, fh: Fh) -> Result<()> {
        let handle = self.handles.remove(fh)?;
        if self.handles.any_of(handle.ino).is_none() {
            self.nodes().forget_if_unlinked(handle.ino);
        }
        Ok(())
    }

    fn read(&self, fh: Fh, offset: u64, len: usize) -> Result<Bytes> {
        buffer::read(&*self.handles.get(fh)?, offset, len)
    }

    fn write(&self, fh: Fh, offset: u64, data: Bytes) -> Result<usize> {
        buffer::write(&*self.handles.get(fh)?, offset, &data)
    }

    fn fsync(&self, fh: Fh, data_only: bool) -> Result<()> {
        let handle = self.handles.get(fh)?;
        let sync = if data_only { rustix::fs::fdatasync } else { rustix::fs::fsync };
        Ok(sync(&handle.fd)?)
    }

    fn readdir(&self, dir: Ino, from: u64) -> Result<Vec<Dirent>> {
        let mut entries = self.entries(dir)?;
        let from = usize::try_from(from).unwrap_or(usize::MAX).min(entries.len());
        Ok(entries.split_off(from))
    }

    fn forget_inode(&self, ino: Ino) {
        if self.handles.any_of(ino).is_none() {
            self.nodes().remove(ino);
        }
    }

    fn fsyncdir(&self, dir: Ino) -> Result<()> {
        Ok(rustix::fs::fsync(self.readable(dir)?)?)
    }

    fn statfs(&self) -> Result<StatFs> {
        let s = rustix::fs::fstatvfs(&*self.root)?;
        Ok(StatFs {
            block_size: u32::try_from(s.f_frsize).unwrap_or(u32::MAX),
            blocks: s.f_blocks,
            blocks_free: s.f_bfree,
            blocks_available: s.f_bavail,
            inodes: s.f_files,
            inodes_free: s.f_ffree,
            name_max: u32::try_from(s.f_namemax).unwrap_or(u32::MAX),
        })
    }

    fn sync(&self) -> Result<()> {
        // A place only (O_PATH) cannot be synced.
        Ok(rustix::fs::syncfs(self.readable(self.root())?)?)
    }

    fn mknod(&self, dir: Ino, name: &[u8], what: (FileType, u64), node: NewNode) -> Result<Attr> {
        let folder = self.dir(dir)?;
        let name = checked(name)?;
        let (kind, rdev) = what;
        let kind = attr::to_host(kind)?;
        // OK to cast: the two halves are the numbers.
        let device = rustix::fs::makedev((rdev >> 32) as u32, rdev as u32);
        rustix::fs::mknodat(&*folder, name, kind, mode(node), device)?;
        let (ino, x) = self.settle(&folder, dir, name, node)?;
        attr::attr(ino, &x)
    }

    fn tmpfile(&self, dir: Ino, node: NewNode, flags: OpenFlags) -> Result<(Attr, Fh)> {
        self.create_unnamed(dir, node, flags)
    }

    fn fallocate(&self, fh: Fh, what: Fallocate, offset: u64, len: u64) -> Result<()> {
        self.allocate(fh, what, offset, len)
    }

    fn seek(&self, fh: Fh, offset: u64, to: SeekTo) -> Result<u64> {
        self.seek_to(fh, offset, to)
    }

    fn advise(&self, fh: Fh, offset: u64, len: u64, advice: Advice) -> Result<()> {
        let advice = match advice {
            Advice::Sequential => rustix::fs::Advice::Sequential,
            Advice::Random => rustix::fs::Advice::Random,
            Advice::DontNeed => rustix::fs::Advice::DontNeed,
        };
        let handle = self.handles.get(fh)?;
        Ok(rustix::fs::fadvise(&handle.fd, offset, NonZeroU64::new(len), advice)?)
    }

    fn inode_flags(&self, ino: Ino) -> Result<u32> {
        self.get_flags(ino)
    }

    fn set_inode_flags(&self, ino: Ino, flags: u32) -> Result<()> {
        self.set_flags(ino, flags)
    }

    fn getxattr(&self, ino: Ino, name: &[u8]) -> Result<Vec<u8>> {
        self.get_attribute(ino, name)
    }

    fn setxattr(&self, ino: Ino, name: &[u8], value: &[u8], how: SetXattr) -> Result<()> {
        self.set_attribute(ino, name, value, how)
    }

    fn listxattr(&self, ino: Ino) -> Result<Vec<Vec<u8>>> {
        self.list_attributes(ino)
    }

    fn removexattr(&self, ino: Ino, name: &[u8]) -> Result<()> {
        self.remove_attribute(ino, name)
    }
}

impl HostFs {
    fn remove(&self, dir: Ino, name: &[u8], kind: AtFlags) -> Result<()> {
        let folder = self.dir(dir)?;
        let (ino, _) = self.add_node(&folder, dir, checked(name)?)?;
        rustix::fs::unlinkat(&*folder, name, kind)?;
        self.forget(ino, dir, name);
        Ok(())
    }

    /// Gives something new its owner and mode. The process's umask has been at the mode: what was
    /// asked for is set exactly, unless the folder's default ACL has decided.
    fn settle(
        &self,
        folder: &OwnedFd,
        dir: Ino,
        name: &[u8],
        node: NewNode,
    ) -> Result<(Ino, Statx)> {
        let (ino, x) = self.add_node(folder, dir, name)?;
        let (directory, mut now) = (attr::kind(&x)? == FileType::Directory, x.stx_mode & 0o7777);
        let inherits_group = directory && now & 0o2000 != 0;
        let gid = match attr::of_fd(folder)?.stx_mode & 0o2000 {
            0 => node.gid,
            _ => x.stx_gid,
        };
        let mut changed = false;
        if (x.stx_uid, x.stx_gid) != (node.uid, gid) {
            let node = NewNode { gid, ..node };
            own(node, |uid, gid| rustix::fs::chownat(folder, name, uid, gid, NOFOLLOW))?;
            // Taken away by a change of owner.
            now &= if directory { 0o7777 } else { 0o1777 };
            changed = true;
        }
        let group = if inherits_group { 0o2000 } else { 0 };
        let wanted = node.mode & 0o7777 & !(node.umask & 0o777) | group;
        if now != wanted && !self.has_default_acl(folder) {
            let mode = Mode::from_raw_mode(u32::from(wanted));
            rustix::fs::chmodat(folder, name, mode, AtFlags::empty())?;
            changed = true;
        }
        if changed { self.add_node(folder, dir, name) } else { Ok((ino, x)) }
    }

    fn readable(&self, dir: Ino) -> Result<OwnedFd> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        Ok(rustix::fs::openat(self.dir(dir)?, c".", flags, Mode::empty())?)
    }

    /// All entries, sorted by name behind "." and "..", so that the order is the same on every
    /// host file system. The position after an entry is its number.
    fn entries(&self, dir: Ino) -> Result<Vec<Dirent>> {
        let mut entries = Vec::new();
        let mut reader = Dir::new(self.readable(dir)?)?;
        while let Some(entry) = reader.read() {
            let entry = entry?;
            let name = entry.file_name().to_bytes().to_vec();
            if name == b"." || name == b".." {
                continue;
            }
            let (ino, kind) = match attr::from_host(entry.file_type()) {
                Some(kind) => (self.nodes().number_on_root(entry.ino()), kind),
                // Some file systems do not say the type in the directory.
                None => match self.lookup(dir, &name) {
                    Ok(found) => (found.ino, found.kind),
                    Err(FsError::NotFound) => continue,
                    Err(e) => return Err(e),
                },
            };
            entries.push(Dirent { ino, kind, name, next: 0 });
        }
        entries.sort_by(|a, b| a.name.cmp(&b.name));
        let parent = self.nodes().parent(dir)?;
        let dots = [(dir, b".".to_vec()), (parent, b"..".to_vec())].map(|(ino, name)| Dirent {
            ino,
            kind: FileType::Directory,
            name,
            next: 0,
        });
        entries.splice(0..0, dots);
        for (i, entry) in entries.iter_mut().enumerate() {
            entry.next = i as u64 + 1;
        }
        Ok(entries)
    }
}

fn open_at(place: &HostName, flags: OFlags) -> rustix::io::Result<OwnedFd> {
    rustix::fs::openat(&*place.dir, place.name.as_slice(), flags, Mode::empty())
}

/// open(2)'s flags for ours.
pub(super) fn host(flags: OpenFlags) -> OFlags {
    flags.to_raw() | OFlags::CLOEXEC | OFlags::NOFOLLOW | OFlags::NOCTTY
}

pub(super) fn mode(node: NewNode) -> Mode {
    Mode::from_raw_mode(u32::from(node.mode & 0o7777))
}

/// Gives a new inode its owner. Only root may; anybody else's files are his own, as with open(2).
pub(super) fn own(
    node: NewNode,
    chown: impl FnOnce(Option<Uid>, Option<Gid>) -> rustix::io::Result<()>,
) -> Result<()> {
    if !rustix::process::geteuid().is_root() {
        return Ok(());
    }
    Ok(chown(Some(uid(node.uid)?), Some(gid(node.gid)?))?)
}

/// All bits set means "leave it" to chown(2), so it is nobody's number.
const NO_ID: FsError = FsError::Invalid { what: "user or group number 4294967295" };

fn uid(raw: u32) -> Result<Uid> {
    if raw == u32::MAX { Err(NO_ID) } else { Ok(Uid::from_raw(raw)) }
}

fn gid(raw: u32) -> Result<Gid> {
    if raw == u32::MAX { Err(NO_ID) } else { Ok(Gid::from_raw(raw)) }
}

/// The owner to set, or `None` if neither user nor group is.
fn owner(set: &SetAttr) -> Result<Option<(Option<Uid>, Option<Gid>)>> {
    let ids = (set.uid.map(uid).transpose()?, set.gid.map(gid).transpose()?);
    Ok((ids != (None, None)).then_some(ids))
}

fn set_at(place: &HostName, x: &Statx, set: &SetAttr) -> Result<()> {
    let (dir, name) = (&*place.dir, place.name.as_slice());
    let kind = attr::kind(x)?;
    if let Some(size) = set.size {
        match kind {
            FileType::Regular => {}
            FileType::Directory => return Err(FsError::IsDirectory),
            _ => return Err(FsError::Invalid { what: "only regular files have a size to set" }),
        }
        let fd = open_at(place, OFlags::WRONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC)?;
        rustix::fs::ftruncate(fd, size)?;
    }
    // Owner before mode: chown clears the set-id bits.
    if let Some((uid, gid)) = owner(set)? {
        rustix::fs::chownat(dir, name, uid, gid, NOFOLLOW)?;
    }
    if let Some(mode) = set.mode {
        if kind == FileType::Symlink {
            return Err(FsError::Unsupported { what: "the mode of a symbolic link".into() });
        }
        let mode = Mode::from_raw_mode(u32::from(mode & 0o7777));
        rustix::fs::chmodat(dir, name, mode, AtFlags::empty())?;
    }
    if let Some(times) = attr::times(set) {
        rustix::fs::utimensat(dir, name, &times, NOFOLLOW)?;
    }
    Ok(())
}

fn set_open(handle: &Handle, set: &SetAttr) -> Result<()> {
    if let Some(size) = set.size {
        rustix::fs::ftruncate(&handle.fd, size)?;
    }
    if let Some((uid, gid)) = owner(set)? {
        rustix::fs::fchown(&handle.fd, uid, gid)?;
    }
    if let Some(mode) = set.mode {
        rustix::fs::fchmod(&handle.fd, Mode::from_raw_mode(u32::from(mode & 0o7777)))?;
    }
    if let Some(times) = attr::times(set) {
        rustix::fs::futimens(&handle.fd, &times)?;
    }
    Ok(())
}
