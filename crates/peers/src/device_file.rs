//! A block device as the only file of a file system, so that the kernel can be given it.

use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use steadfast_block::{BlockDevice, BlockError, Request};
use steadfast_vfs::{
    Attr, Dirent, Fallocate, Fh, FileSystem, FileType, FsError, Ino, NewNode, OpenFlags,
    RenameFlags, Result, SetAttr, StatFs, Timestamp,
};

/// The file's name.
pub(crate) const NAME: &str = "disk";

const ROOT: Ino = Ino(1);
const FILE: Ino = Ino(2);
/// The longest request to the device, in bytes.
const LONGEST: u64 = 1 << 20;

/// One folder with one file in it: a device's blocks. A write to the file is a write to the
/// device, an fsync is a flush; where zeros are asked for (a hole is punched), zeros are written.
pub(crate) struct DeviceFile {
    device: Arc<dyn BlockDevice>,
    size: u64,
    block: u64,
}

impl DeviceFile {
    pub fn new(device: Arc<dyn BlockDevice>) -> Self {
        let info = device.info();
        DeviceFile { device, size: info.size, block: u64::from(info.logical_block) }
    }

    fn attr(&self, ino: Ino) -> Result<Attr> {
        let (kind, mode, size, nlink) = match ino {
            ROOT => (FileType::Directory, 0o700, 0, 2),
            FILE => (FileType::Regular, 0o600, self.size, 1),
            _ => return Err(FsError::NotFound),
        };
        let time = Timestamp::default();
        Ok(Attr {
            ino,
            kind,
            mode,
            nlink,
            uid: 0,
            gid: 0,
            size,
            blocks_512: size / 512,
            block_size: 4096,
            rdev: 0,
            atime: time,
            mtime: time,
            ctime: time,
            crtime: time,
            generation: 0,
        })
    }

    /// The whole blocks that hold `[from, to)` bytes: their start and end.
    fn blocks_around(&self, from: u64, to: u64) -> (u64, u64) {
        (from - from % self.block, to.next_multiple_of(self.block).min(self.size))
    }

    fn write_zeros(&self, offset: u64, len: u64) -> Result<()> {
        let end = offset.saturating_add(len).min(self.size);
        let zeros = Bytes::from(vec![0; LONGEST.min(end.saturating_sub(offset)) as usize]);
        let mut at = offset;
        while at < end {
            let piece = LONGEST.min(end - at);
            self.write_bytes(at, zeros.slice(..piece as usize))?;
            at += piece;
        }
        Ok(())
    }

    /// Writes at any place: blocks that are changed in part are read first. Nobody else writes to
    /// the same block meanwhile, as nobody does to one page of a file.
    fn write_bytes(&self, offset: u64, data: Bytes) -> Result<()> {
        let end = offset + data.len() as u64;
        let (first, last) = self.blocks_around(offset, end);
        let whole = if (first, last) == (offset, end) {
            data
        } else {
            let old = self.device.read(first, last - first).map_err(failed)?;
            let mut new = BytesMut::from(&old[..]);
            let at = (offset - first) as usize;
            new[at..at + data.len()].copy_from_slice(&data);
            new.freeze()
        };
        let request = Request::Write { offset: first, data: whole.into(), fua: false };
        self.device.submit(request).wait().map(drop).map_err(failed)
    }
}

fn failed(e: BlockError) -> FsError {
    FsError::Io { what: e.to_string() }
}

fn fixed<T>() -> Result<T> {
    Err(FsError::NotPermitted { what: "the folder of a device holds its file and nothing else" })
}

impl FileSystem for DeviceFile {
    fn root(&self) -> Ino {
        ROOT
    }

    fn lookup(&self, dir: Ino, name: &[u8]) -> Result<Attr> {
        match (dir, name) {
            (ROOT, b"." | b"..") => self.attr(ROOT),
            (ROOT, name) if name == NAME.as_bytes() => self.attr(FILE),
            (ROOT, _) => Err(FsError::NotFound),
            _ => Err(FsError::NotDirectory),
        }
    }

    fn getattr(&self, ino: Ino) -> Result<Attr> {
        self.attr(ino)
    }

    fn setattr(&self, ino: Ino, set: SetAttr) -> Result<Attr> {
        if set.size.is_some_and(|size| size != self.size) {
            return Err(FsError::Invalid { what: "a device's size is what it is" });
        }
        self.attr(ino)
    }

    fn create(&self, _: Ino, _: &[u8], _: NewNode, _: OpenFlags) -> Result<(Attr, Fh)> {
        fixed()
    }

    fn mkdir(&self, _: Ino, _: &[u8], _: NewNode) -> Result<Attr> {
        fixed()
    }

    fn symlink(&self, _: Ino, _: &[u8], _: &[u8], _: NewNode) -> Result<Attr> {
        fixed()
    }

    fn readlink(&self, _: Ino) -> Result<Vec<u8>> {
        Err(FsError::Invalid { what: "not a symbolic link" })
    }

    fn link(&self, _: Ino, _: Ino, _: &[u8]) -> Result<Attr> {
        fixed()
    }

    fn unlink(&self, _: Ino, _: &[u8]) -> Result<()> {
        fixed()
    }

    fn rmdir(&self, _: Ino, _: &[u8]) -> Result<()> {
        fixed()
    }

    fn rename(&self, _: (Ino, &[u8]), _: (Ino, &[u8]), _: RenameFlags) -> Result<()> {
        fixed()
    }

    fn open(&self, ino: Ino, _: OpenFlags) -> Result<Fh> {
        self.attr(ino).map(|a| Fh(a.ino.0))
    }

    fn release(&self, _: Fh) -> Result<()> {
        Ok(())
    }

    fn read(&self, _: Fh, offset: u64, len: usize) -> Result<Bytes> {
        let end = offset.saturating_add(len as u64).min(self.size);
        if offset >= end {
            return Ok(Bytes::new());
        }
        let (first, last) = self.blocks_around(offset, end);
        let blocks = self.device.read(first, last - first).map_err(failed)?;
        Ok(blocks.slice((offset - first) as usize..(end - first) as usize))
    }

    fn write(&self, _: Fh, offset: u64, data: Bytes) -> Result<usize> {
        let room = self.size.saturating_sub(offset).min(data.len() as u64);
        if room == 0 && !data.is_empty() {
            return Err(FsError::NoSpace { what: "blocks" });
        }
        let data = data.slice(..room as usize);
        if !data.is_empty() {
            self.write_bytes(offset, data)?;
        }
        Ok(room as usize)
    }

    fn fsync(&self, _: Fh, _data_only: bool) -> Result<()> {
        self.device.flush().map_err(failed)
    }

    fn readdir(&self, dir: Ino, from: u64) -> Result<Vec<Dirent>> {
        if dir != ROOT {
            return Err(FsError::NotDirectory);
        }
        let folder = FileType::Directory;
        let all = [(ROOT, folder, "."), (ROOT, folder, ".."), (FILE, FileType::Regular, NAME)];
        let entries = (1..).zip(all).filter(|(next, _)| *next > from);
        let entry = |(next, (ino, kind, name)): (u64, (Ino, FileType, &str))| Dirent {
            ino,
            kind,
            name: name.as_bytes().to_vec(),
            next,
        };
        Ok(entries.map(entry).collect())
    }

    fn fsyncdir(&self, _: Ino) -> Result<()> {
        Ok(())
    }

    fn statfs(&self) -> Result<StatFs> {
        let blocks = self.size / 4096;
        Ok(StatFs { block_size: 4096, blocks, inodes: 2, name_max: 255, ..StatFs::default() })
    }

    fn sync(&self) -> Result<()> {
        self.device.flush().map_err(failed)
    }

    fn fallocate(&self, _: Fh, what: Fallocate, offset: u64, len: u64) -> Result<()> {
        match what {
            Fallocate::Allocate { .. } => Ok(()),
            Fallocate::PunchHole | Fallocate::ZeroRange { .. } => self.write_zeros(offset, len),
            Fallocate::CollapseRange | Fallocate::InsertRange => {
                Err(FsError::Invalid { what: "a device's blocks do not shift" })
            }
        }
    }
}
