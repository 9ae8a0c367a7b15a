//! Storage of the host's files: allocation, holes, files without a name; and inode flags.

use std::os::fd::AsRawFd;

use rustix::fs::{AtFlags, FallocateFlags, IFlags, Mode, OFlags, SeekFrom};

use super::handles::Handle;
use super::nodes::HostInode;
use super::{HostFs, attr, ops};
use crate::{Attr, Fallocate, Fh, FsError, Ino, NewNode, OpenFlags, Result, SeekTo};

impl HostFs {
    pub(super) fn allocate(&self, fh: Fh, what: Fallocate, offset: u64, len: u64) -> Result<()> {
        let keep = |yes| if yes { FallocateFlags::KEEP_SIZE } else { FallocateFlags::empty() };
        let flags = match what {
            Fallocate::Allocate { keep_size } => keep(keep_size),
            Fallocate::PunchHole => FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE,
            Fallocate::ZeroRange { keep_size } => FallocateFlags::ZERO_RANGE | keep(keep_size),
            Fallocate::CollapseRange => FallocateFlags::COLLAPSE_RANGE,
            Fallocate::InsertRange => FallocateFlags::INSERT_RANGE,
        };
        Ok(rustix::fs::fallocate(&self.handles.get(fh)?.fd, flags, offset, len)?)
    }

    /// Moves the host's file position, which nothing here goes by.
    pub(super) fn seek_to(&self, fh: Fh, offset: u64, to: SeekTo) -> Result<u64> {
        let from = match to {
            SeekTo::Data => SeekFrom::Data(offset),
            SeekTo::Hole => SeekFrom::Hole(offset),
        };
        Ok(rustix::fs::seek(&self.handles.get(fh)?.fd, from)?)
    }

    pub(super) fn create_unnamed(
        &self,
        dir: Ino,
        node: NewNode,
        flags: OpenFlags,
    ) -> Result<(Attr, Fh)> {
        let folder = self.dir(dir)?;
        // O_TMPFILE wants a file that can be written.
        let host = ops::host(flags | OpenFlags::WRITE) | OFlags::TMPFILE;
        let fd =
            rustix::fs::openat(&*folder, c".", host.difference(OFlags::NOFOLLOW), ops::mode(node))?;
        ops::own(node, |uid, gid| rustix::fs::fchown(&fd, uid, gid))?;
        if !self.has_default_acl(&folder) {
            let mode = u32::from(node.mode & 0o7777 & !(node.umask & 0o777));
            rustix::fs::fchmod(&fd, Mode::from_raw_mode(mode))?;
        }
        let x = attr::of_fd(&fd)?;
        let ino = self.nodes().number(HostInode::of(&x));
        let fh = self.handles.add(Handle { fd, ino, flags });
        Ok((attr::attr(ino, &x)?, fh))
    }

    /// Names an open file that has no name.
    pub(super) fn link_open(&self, ino: Ino, dir: Ino, name: &[u8]) -> Result<Attr> {
        let file = self.handles.any_of(ino).ok_or(FsError::NotFound)?;
        let folder = self.dir(dir)?;
        let path = format!("/proc/self/fd/{}", file.fd.as_raw_fd());
        let follow = AtFlags::SYMLINK_FOLLOW;
        rustix::fs::linkat(rustix::fs::CWD, path, &*folder, name, follow)?;
        let (ino, x) = self.add_node(&folder, dir, name)?;
        attr::attr(ino, &x)
    }

    pub(super) fn get_flags(&self, ino: Ino) -> Result<u32> {
        Ok(rustix::fs::ioctl_getflags(self.open_to_look(ino)?)?.bits())
    }

    pub(super) fn set_flags(&self, ino: Ino, flags: u32) -> Result<()> {
        let flags = IFlags::from_bits_retain(flags);
        Ok(rustix::fs::ioctl_setflags(self.open_to_look(ino)?, flags)?)
    }

    /// Opens a file or directory; nothing else, whose opening could wait or act.
    fn open_to_look(&self, ino: Ino) -> Result<std::os::fd::OwnedFd> {
        let (place, x) = self.locate(ino)?;
        if !matches!(attr::kind(&x)?, crate::FileType::Regular | crate::FileType::Directory) {
            return Err(FsError::Unsupported { what: "inode flags of special files".into() });
        }
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK;
        Ok(rustix::fs::openat(&*place.dir, place.name.as_slice(), flags, Mode::empty())?)
    }
}
