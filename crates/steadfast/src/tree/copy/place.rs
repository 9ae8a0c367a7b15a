//! Making an object at its name, and replacing what is there.

use steadfast_vfs::{Attr, Fh, FileType, FsError, Ino, OpenFlags, RenameFlags};

use super::{Copy, CopyError};
use crate::tree::Side;
use crate::tree::names::joined;

/// Spare names that are tried before giving up.
const SPARE_TRIES: u32 = 100;

impl Copy<'_, '_, '_> {
    /// The name that the caller has given must not be a link, nor a device that would be replaced
    /// by a file.
    pub(super) fn refuse_top(&self, dir: Ino, name: &[u8]) -> Result<(), CopyError> {
        let why = match self.to.fs.lookup(dir, name) {
            Err(FsError::NotFound) => return Ok(()),
            Err(e) => return Err(CopyError::To(e)),
            Ok(there) => match there.kind {
                FileType::Regular | FileType::Directory => return Ok(()),
                FileType::Symlink => "the target is a symbolic link, which is not followed",
                _ => "the target is a device, a FIFO or a socket",
            },
        };
        Err(CopyError::Blocked(format!("{why}: remove it first, or choose another name")))
    }

    /// Copies an object that is no folder to the name `name` of `dir`.
    pub(super) fn object(&mut self, attr: &Attr, dir: Ino, name: &[u8]) -> Result<(), CopyError> {
        if self.from.image.contains(&attr.ino) {
            let path = joined(&self.from.path, &self.below);
            self.failures.note("is the image itself, and left out", &path);
            return Ok(());
        }
        if let Some(copy) = self.links.copy_of(attr) {
            let linked = self.link(copy, dir, name)?;
            let done = self.links.met(attr);
            if linked {
                done.into_iter().for_each(|ino| self.to.fs.forget_inode(ino));
                return Ok(());
            }
        }
        let ino = match self.new_object(attr, dir, name) {
            Err(CopyError::To(FsError::Exists)) => self.replacement(attr, dir, name)?,
            made => made?,
        };
        self.links.copied(attr, ino);
        if !self.links.expects(attr.ino) {
            self.to.fs.forget_inode(ino);
        }
        Ok(())
    }

    /// Gives a copy its next name. False if it cannot have it: then it is copied again.
    fn link(&mut self, copy: Ino, dir: Ino, name: &[u8]) -> Result<bool, CopyError> {
        match self.to.fs.link(copy, dir, name) {
            Ok(_) => Ok(true),
            Err(FsError::Exists) => {
                let there = self.to.fs.lookup(dir, name).map_err(CopyError::To)?;
                if there.ino == copy {
                    return Ok(true);
                }
                self.check_replaceable(&there)?;
                let spare = self.spare(|c, spare| c.to.fs.link(copy, dir, spare).map(drop))?;
                self.rename_over(dir, &spare, name)?;
                Ok(true)
            }
            Err(e) if super::nothing_fits(&e) => Err(CopyError::To(e)),
            Err(e) => {
                let what = format!("hard links are not kept: copied once more ({e})");
                let path = joined(&self.to.path, &self.below);
                self.failures.note(&what, &path);
                Ok(false)
            }
        }
    }

    /// Copies an object to a name that is taken.
    fn replacement(&mut self, attr: &Attr, dir: Ino, name: &[u8]) -> Result<Ino, CopyError> {
        let there = self.to.fs.lookup(dir, name).map_err(CopyError::To)?;
        self.check_replaceable(&there)?;
        // Without a name as long as it is not finished: a power cut leaves nothing of it.
        if self.to.side == Side::Image && attr.kind == FileType::Regular {
            match self.nameless(attr, dir) {
                Ok((fh, ino)) => {
                    let named = self.spare(|c, spare| c.to.fs.link(ino, dir, spare).map(drop));
                    self.to.fs.release(fh).map_err(CopyError::To)?;
                    self.rename_over(dir, &named?, name)?;
                    return Ok(ino);
                }
                // There is no room for both.
                Err(CopyError::To(full @ FsError::NoSpace { .. })) => {
                    if !self.fits_instead_of(&there, attr) {
                        return Err(CopyError::To(full));
                    }
                    self.to.fs.unlink(dir, name).map_err(CopyError::To)?;
                    return self.new_object(attr, dir, name);
                }
                Err(e) => return Err(e),
            }
        }
        let mut made = Err(CopyError::To(FsError::Exists));
        let mut spare = Vec::new();
        for _ in 0..SPARE_TRIES {
            spare = self.spare_name();
            made = self.new_object(attr, dir, &spare);
            if !matches!(made, Err(CopyError::To(FsError::Exists))) {
                break;
            }
        }
        match made {
            Ok(ino) => {
                self.rename_over(dir, &spare, name)?;
                Ok(ino)
            }
            Err(CopyError::To(FsError::Exists)) => Err(CopyError::To(FsError::Exists)),
            Err(e) => {
                // Half-done; the old one stays. OK to ignore: it may not have come to that.
                let _ = self.to.fs.unlink(dir, &spare);
                Err(e)
            }
        }
    }

    /// Whether an object surely fits once the one at its place is removed: if not, the old one is
    /// worth more than a failed attempt.
    fn fits_instead_of(&self, there: &Attr, new: &Attr) -> bool {
        /// Units of 512 bytes for pointers, attributes and the folder.
        const BESIDE: u64 = 2048;
        let Ok(room) = self.to.fs.statfs() else { return false };
        let free = room.blocks_available.saturating_mul(u64::from(room.block_size)) / 512;
        // Other names of it, or who has it open, would keep its blocks.
        let freed = if there.nlink == 1 { there.blocks_512 } else { 0 };
        // As if it had no holes: what a file takes on another file system says little.
        let data = new.size / 512;
        free.saturating_add(freed) >= data + data / 64 + BESIDE
    }

    fn check_replaceable(&self, there: &Attr) -> Result<(), CopyError> {
        if there.kind == FileType::Directory {
            return Err(CopyError::Blocked("is in the way: it exists and is a folder".into()));
        }
        if self.to.image.contains(&there.ino) {
            return Err(CopyError::Blocked("is the image itself, and not replaced".into()));
        }
        Ok(())
    }

    fn rename_over(&self, dir: Ino, spare: &[u8], name: &[u8]) -> Result<(), CopyError> {
        let renamed = self.to.fs.rename((dir, spare), (dir, name), RenameFlags::empty());
        renamed.map_err(|e| {
            // OK to ignore: the rename's failure is what is reported.
            let _ = self.to.fs.unlink(dir, spare);
            CopyError::To(e)
        })
    }

    fn spare_name(&mut self) -> Vec<u8> {
        self.spare += 1;
        format!(".steadfast-{:x}-{:x}", std::process::id(), self.spare).into_bytes()
    }

    /// Does `make` with a name that is free.
    fn spare(
        &mut self,
        make: impl Fn(&Self, &[u8]) -> Result<(), FsError>,
    ) -> Result<Vec<u8>, CopyError> {
        for _ in 0..SPARE_TRIES {
            let name = self.spare_name();
            match make(self, &name) {
                Err(FsError::Exists) => {}
                made => return made.map(|()| name).map_err(CopyError::To),
            }
        }
        Err(CopyError::To(FsError::Exists))
    }

    /// Makes the object under a name that is free, with all that belongs to it.
    fn new_object(&mut self, attr: &Attr, dir: Ino, name: &[u8]) -> Result<Ino, CopyError> {
        let node = self.node(attr, 0o600);
        let made = match attr.kind {
            FileType::Directory => return Err(CopyError::Refused("is a folder".into())),
            FileType::Regular => {
                let from = self.open(attr)?;
                let ino = match self.to.fs.create(dir, name, node, OpenFlags::WRITE) {
                    Ok((made, to)) => self.filled(attr, from, (to, made.ino)).map(|()| made.ino),
                    Err(e) => Err(CopyError::To(e)),
                };
                self.from.fs.release(from).map_err(CopyError::From)?;
                ino?
            }
            FileType::Symlink => {
                let target = self.from.fs.readlink(attr.ino).map_err(CopyError::From)?;
                self.to.fs.symlink(dir, name, &target, node).map_err(CopyError::To)?.ino
            }
            kind => {
                let made = self.to.fs.mknod(dir, name, (kind, attr.rdev), node);
                made.map_err(CopyError::To)?.ino
            }
        };
        self.attributes(attr, made)?;
        Ok(made)
    }

    /// Makes the file without a name; it is there as long as the handle is open.
    fn nameless(&mut self, attr: &Attr, dir: Ino) -> Result<(Fh, Ino), CopyError> {
        let from = self.open(attr)?;
        let node = self.node(attr, 0o600);
        let made = match self.to.fs.tmpfile(dir, node, OpenFlags::WRITE) {
            Ok((made, to)) => match self.contents(attr, from, (to, made.ino)) {
                Ok(()) => Ok((to, made.ino)),
                Err(e) => self.to.fs.release(to).map_err(CopyError::To).and(Err(e)),
            },
            Err(e) => Err(CopyError::To(e)),
        };
        self.from.fs.release(from).map_err(CopyError::From)?;
        let (to, ino) = made?;
        match self.attributes(attr, ino) {
            Ok(()) => Ok((to, ino)),
            Err(e) => self.to.fs.release(to).map_err(CopyError::To).and(Err(e)),
        }
    }

    fn open(&self, attr: &Attr) -> Result<Fh, CopyError> {
        let flags = OpenFlags::READ | OpenFlags::CALLER_CACHES;
        self.from.fs.open(attr.ino, flags).map_err(CopyError::From)
    }

    /// Fills a new file and closes it.
    fn filled(&mut self, attr: &Attr, from: Fh, (to, made): (Fh, Ino)) -> Result<(), CopyError> {
        let copied = self.contents(attr, from, (to, made));
        let closed = self.to.fs.release(to).map_err(CopyError::To);
        copied.and(closed)
    }
}
