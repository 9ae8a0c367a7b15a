//! Carries an operation out.

use std::time::Duration;

use steadfast_runtime::sleep;
use steadfast_vfs::{
    Fh, FileSystem, FileType, FsError, Ino, NewNode, OpenFlags, RenameFlags, Result, SetAttr,
    SetTime, SetXattr, Timestamp,
};

use super::{Operation, OperationIndex, WriteKind, attribute, fill};

/// The attribute that operations set.
pub const ATTRIBUTE: &[u8] = b"user.x";

/// How long a file is kept open that has lost its name.
const OPEN_WITHOUT_NAME: Duration = Duration::from_millis(3);

const RW: OpenFlags = OpenFlags::READ.union(OpenFlags::WRITE);

impl WriteKind {
    fn flags(self) -> OpenFlags {
        match self {
            WriteKind::Buffered | WriteKind::Mapped => RW,
            WriteKind::Sync => RW | OpenFlags::SYNC,
            WriteKind::DataSync => RW | OpenFlags::DSYNC,
            WriteKind::Direct => RW | OpenFlags::DIRECT,
            WriteKind::Append => RW | OpenFlags::APPEND,
        }
    }
}

struct Folder<'a> {
    fs: &'a dyn FileSystem,
    ino: Ino,
}

impl Folder<'_> {
    /// The folder of a name, and its last part.
    fn at<'n>(&self, name: &'n str) -> Result<(Ino, &'n [u8])> {
        let mut dir = self.ino;
        let (folders, last) = name.rsplit_once('/').unwrap_or(("", name));
        for step in folders.split('/').filter(|s| !s.is_empty()) {
            dir = self.fs.lookup(dir, step.as_bytes())?.ino;
        }
        Ok((dir, last.as_bytes()))
    }

    fn find(&self, name: &str) -> Result<Ino> {
        if name.is_empty() {
            return Ok(self.ino);
        }
        let (dir, last) = self.at(name)?;
        Ok(self.fs.lookup(dir, last)?.ino)
    }

    /// Opens the file, and closes it whatever comes of `then`.
    fn open(&self, name: &str, how: OpenFlags, then: impl FnOnce(Fh) -> Result<()>) -> Result<()> {
        let fh = self.fs.open(self.find(name)?, how)?;
        let done = then(fh);
        self.fs.release(fh)?;
        done
    }

    fn set(&self, name: &str, set: SetAttr) -> Result<()> {
        self.fs.setattr(self.find(name)?, set).map(drop)
    }

    fn rename(&self, from: &str, to: &str, flags: RenameFlags) -> Result<()> {
        self.fs.rename(self.at(from)?, self.at(to)?, flags)
    }
}

impl Operation {
    /// Carries it out in a folder. What it writes are the bytes of operation `index` of `task`.
    ///
    /// # Errors
    /// Those of the file system; it has changed nothing then.
    pub fn apply(
        &self,
        fs: &dyn FileSystem,
        ino: Ino,
        (task, index): (usize, OperationIndex),
    ) -> Result<()> {
        let (folder, file) = (Folder { fs, ino }, NewNode::default());
        match self {
            Operation::Create { name } => {
                let (dir, last) = folder.at(name)?;
                let (_, fh) = fs.create(dir, last, file, RW)?;
                fs.release(fh)
            }
            Operation::Mkdir { name } => {
                let (dir, last) = folder.at(name)?;
                fs.mkdir(dir, last, NewNode { mode: 0o755, ..file }).map(drop)
            }
            Operation::Mkfifo { name } => {
                let (dir, last) = folder.at(name)?;
                fs.mknod(dir, last, (FileType::Fifo, 0), file).map(drop)
            }
            Operation::Symlink { name, target } => {
                let (dir, last) = folder.at(name)?;
                fs.symlink(dir, last, target.as_bytes(), file).map(drop)
            }
            Operation::Link { from, to } => {
                let (ino, (dir, last)) = (folder.find(from)?, folder.at(to)?);
                fs.link(ino, dir, last).map(drop)
            }
            Operation::Unlink { name } => {
                let (dir, last) = folder.at(name)?;
                fs.unlink(dir, last)
            }
            Operation::UnlinkOpen { name } => folder.open(name, RW, |_| {
                let (dir, last) = folder.at(name)?;
                let removed = fs.unlink(dir, last);
                // Others commit meanwhile.
                sleep(OPEN_WITHOUT_NAME);
                removed
            }),
            Operation::Rmdir { name } => {
                let (dir, last) = folder.at(name)?;
                fs.rmdir(dir, last)
            }
            Operation::Rename { from, to } => folder.rename(from, to, RenameFlags::empty()),
            Operation::RenameNew { from, to } => folder.rename(from, to, RenameFlags::NO_REPLACE),
            Operation::Exchange { one, other } => folder.rename(one, other, RenameFlags::EXCHANGE),
            Operation::Write { name, offset, len, how } => {
                let mut data = vec![0; *len as usize];
                fill(task, index, *offset, &mut data);
                folder.open(name, how.flags(), |fh| match *how {
                    WriteKind::Mapped => {
                        let page = OpenFlags::WRITTEN_BACK;
                        whole(fs.write_as(fh, *offset, data.into(), page)?, *len)
                    }
                    _ => whole(fs.write(fh, *offset, data.into())?, *len),
                })
            }
            Operation::Truncate { name, size } => {
                folder.set(name, SetAttr { size: Some(*size), ..SetAttr::default() })
            }
            Operation::Fallocate { name, what, offset, len } => {
                folder.open(name, RW, |fh| fs.fallocate(fh, *what, *offset, *len))
            }
            Operation::SetAttribute { name, len } => {
                fs.setxattr(folder.find(name)?, ATTRIBUTE, &attribute(*len), SetXattr::Any)
            }
            Operation::RemoveAttribute { name } => fs.removexattr(folder.find(name)?, ATTRIBUTE),
            Operation::Chmod { name, mode } => {
                folder.set(name, SetAttr { mode: Some(*mode), ..SetAttr::default() })
            }
            Operation::Chown { name, uid, gid } => {
                folder.set(name, SetAttr { uid: Some(*uid), gid: Some(*gid), ..SetAttr::default() })
            }
            Operation::SetTimes { name, secs } => {
                let time = Some(SetTime::At(Timestamp { secs: *secs, nanos: index as u32 }));
                folder.set(name, SetAttr { atime: time, mtime: time, ..SetAttr::default() })
            }
            Operation::Fsync { name, data_only } => {
                folder.open(name, RW, |fh| fs.fsync(fh, *data_only))
            }
            Operation::FsyncDir { name } => fs.fsyncdir(folder.find(name)?),
            Operation::Sync => fs.sync(),
            Operation::Transact => fs.transact(),
        }
    }
}

fn whole(written: usize, len: u64) -> Result<()> {
    match written as u64 == len {
        true => Ok(()),
        false => Err(FsError::Io { what: format!("{written} of {len} bytes written") }),
    }
}
