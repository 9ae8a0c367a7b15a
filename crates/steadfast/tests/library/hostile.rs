//! A file system that is made to do harm: names that lead out of it, a link and a second entry of
//! its name, folders inside themselves.

use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use bytes::Bytes;
use steadfast::vfs::{
    Attr, Dirent, Fh, FileSystem, FileType, FsError, Ino, NewNode, OpenFlags, RenameFlags, Result,
    SetAttr, StatFs,
};

/// Its files: number, name in the root, kind.
const ENTRIES: [(u64, &[u8], FileType); 10] = [
    (3, b"../outside", FileType::Regular),
    (3, b"a/b", FileType::Regular),
    (3, b"nul\0byte", FileType::Regular),
    (3, b"", FileType::Regular),
    (4, b"evil", FileType::Symlink),
    // Written through the link, if it were taken.
    (5, b"evil", FileType::Directory),
    (3, b"good", FileType::Regular),
    (2, b"cycle", FileType::Directory),
    (5, b"folder", FileType::Directory),
    // A second name of a folder.
    (5, b"folder2", FileType::Directory),
];

pub struct Hostile {
    target: Vec<u8>,
}

impl Hostile {
    pub const CONTENTS: &[u8] = b"contents";

    /// Its link leads to this folder.
    pub fn new(outside: &Path) -> Hostile {
        Hostile { target: outside.as_os_str().as_bytes().to_vec() }
    }

    fn attr(number: u64) -> Result<Attr> {
        let kind = match number {
            2 | 5 => FileType::Directory,
            3 => FileType::Regular,
            4 => FileType::Symlink,
            _ => return Err(FsError::NotFound),
        };
        // More than there is: the contents end before.
        let size = if number == 3 { Self::CONTENTS.len() as u64 } else { 4096 };
        let time = steadfast::vfs::Timestamp { secs: 0, nanos: 0 };
        Ok(Attr {
            ino: Ino(number),
            kind,
            size,
            mode: 0o755,
            uid: rustix::process::geteuid().as_raw(),
            gid: rustix::process::getegid().as_raw(),
            nlink: 1,
            rdev: 0,
            blocks_512: 8,
            block_size: 4096,
            atime: time,
            mtime: time,
            ctime: time,
            crtime: time,
            generation: 0,
        })
    }
}

fn read_only<T>() -> Result<T> {
    Err(FsError::ReadOnly { why: "it is for reading".into() })
}

impl FileSystem for Hostile {
    fn root(&self) -> Ino {
        Ino(2)
    }

    fn lookup(&self, dir: Ino, name: &[u8]) -> Result<Attr> {
        match (dir.0, name) {
            // Every folder says that it is below the root.
            (_, b"..") => Self::attr(2),
            (2, name) => {
                let found = ENTRIES.iter().find(|(_, n, _)| *n == name);
                Self::attr(found.ok_or(FsError::NotFound)?.0)
            }
            (5, b"file") => Self::attr(3),
            (5, b"inside") => Self::attr(5),
            _ => Err(FsError::NotFound),
        }
    }

    fn getattr(&self, ino: Ino) -> Result<Attr> {
        Self::attr(ino.0)
    }

    fn readlink(&self, _ino: Ino) -> Result<Vec<u8>> {
        Ok(self.target.clone())
    }

    fn open(&self, ino: Ino, _flags: OpenFlags) -> Result<Fh> {
        Ok(Fh(ino.0))
    }

    fn release(&self, _fh: Fh) -> Result<()> {
        Ok(())
    }

    fn read(&self, _fh: Fh, offset: u64, len: usize) -> Result<Bytes> {
        let from = Self::CONTENTS.len().min(usize::try_from(offset).unwrap_or(usize::MAX));
        let to = Self::CONTENTS.len().min(from.saturating_add(len));
        Ok(Bytes::from_static(&Self::CONTENTS[from..to]))
    }

    fn readdir(&self, dir: Ino, from: u64) -> Result<Vec<Dirent>> {
        let entries: Vec<(u64, &[u8], FileType)> = match dir.0 {
            2 => ENTRIES.to_vec(),
            _ => vec![(3, b"file", FileType::Regular), (5, b"inside", FileType::Directory)],
        };
        let entries = entries.into_iter().zip(1..).skip(usize::try_from(from).unwrap_or(0));
        let entry = |((number, name, kind), next): ((u64, &[u8], FileType), u64)| Dirent {
            ino: Ino(number),
            name: name.to_vec(),
            kind,
            next,
        };
        Ok(entries.map(entry).take(3).collect())
    }

    fn statfs(&self) -> Result<StatFs> {
        Ok(StatFs {
            block_size: 4096,
            blocks: 1024,
            blocks_free: 0,
            blocks_available: 0,
            inodes: 16,
            inodes_free: 0,
            name_max: 255,
        })
    }

    fn setattr(&self, _ino: Ino, _set: SetAttr) -> Result<Attr> {
        read_only()
    }

    fn create(&self, _: Ino, _: &[u8], _: NewNode, _: OpenFlags) -> Result<(Attr, Fh)> {
        read_only()
    }

    fn mkdir(&self, _dir: Ino, _name: &[u8], _node: NewNode) -> Result<Attr> {
        read_only()
    }

    fn symlink(&self, _: Ino, _: &[u8], _: &[u8], _: NewNode) -> Result<Attr> {
        read_only()
    }

    fn link(&self, _ino: Ino, _dir: Ino, _name: &[u8]) -> Result<Attr> {
        read_only()
    }

    fn unlink(&self, _dir: Ino, _name: &[u8]) -> Result<()> {
        read_only()
    }

    fn rmdir(&self, _dir: Ino, _name: &[u8]) -> Result<()> {
        read_only()
    }

    fn rename(&self, _: (Ino, &[u8]), _: (Ino, &[u8]), _: RenameFlags) -> Result<()> {
        read_only()
    }

    fn write(&self, _fh: Fh, _offset: u64, _data: Bytes) -> Result<usize> {
        read_only()
    }

    fn fsync(&self, _fh: Fh, _data_only: bool) -> Result<()> {
        Ok(())
    }

    fn fsyncdir(&self, _dir: Ino) -> Result<()> {
        Ok(())
    }

    fn sync(&self) -> Result<()> {
        Ok(())
    }
}
