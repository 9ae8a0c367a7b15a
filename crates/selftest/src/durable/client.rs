//! Durable calls on a file system in this process.

use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use steadfast_vfs::{Fh, FileSystem, Ino, NewNode, OpenFlags, RenameFlags, Result};

use super::{DurableClient, TO_AND_FRO, WRITE, folder, name, whole};

/// A task on a file system in this process.
pub struct OnFileSystem {
    fs: Arc<dyn FileSystem>,
    task: usize,
    dir: Ino,
    /// With O_DSYNC; and the one that grows.
    overwritten: Fh,
    appended: Fh,
    /// Bytes of the file that grows.
    end: u64,
    renames: u64,
    page: Bytes,
}

const FLAGS: OpenFlags = OpenFlags::READ.union(OpenFlags::WRITE);

impl OnFileSystem {
    /// The task of that number, which gives its folder's name.
    pub fn new(fs: Arc<dyn FileSystem>, task: usize) -> OnFileSystem {
        let (dir, none) = (fs.root(), Fh(0));
        let page = Bytes::from(vec![0x5a; WRITE]);
        OnFileSystem { fs, task, dir, overwritten: none, appended: none, end: 0, renames: 0, page }
    }
}

impl DurableClient for OnFileSystem {
    fn overwrite(&mut self, block: u64) -> Result<()> {
        whole(self.fs.write(self.overwritten, block * WRITE as u64, self.page.clone())?)
    }

    fn append(&mut self) -> Result<()> {
        whole(self.fs.write(self.appended, self.end, self.page.clone())?)?;
        self.end += WRITE as u64;
        self.fs.fsync(self.appended, false)
    }

    fn create(&mut self, number: u64, written: bool) -> Result<()> {
        let (_, fh) = self.fs.create(self.dir, &name(number), NewNode::default(), FLAGS)?;
        if written {
            whole(self.fs.write(fh, 0, self.page.clone())?)?;
        }
        self.fs.fsync(fh, false)?;
        self.fs.release(fh)
    }

    fn rename(&mut self) -> Result<()> {
        let [from, to] = match self.renames % 2 {
            0 => TO_AND_FRO,
            _ => [TO_AND_FRO[1], TO_AND_FRO[0]],
        };
        self.fs.rename((self.dir, from), (self.dir, to), RenameFlags::empty())?;
        self.renames += 1;
        self.fs.fsyncdir(self.dir)
    }

    fn prepare(&mut self, blocks: u64) -> Result<()> {
        let fs = &self.fs;
        let node = NewNode { mode: 0o755, ..NewNode::default() };
        self.dir = fs.mkdir(fs.root(), &folder(self.task), node)?.ino;
        let make = |name: &[u8], flags| fs.create(self.dir, name, NewNode::default(), flags);
        let (attr, fh) = make(b"overwritten", FLAGS)?;
        for block in 0..blocks {
            whole(fs.write(fh, block * WRITE as u64, self.page.clone())?)?;
        }
        fs.release(fh)?;
        self.overwritten = fs.open(attr.ino, FLAGS | OpenFlags::DSYNC)?;
        self.appended = make(b"appended", FLAGS)?.1;
        fs.release(make(TO_AND_FRO[0], FLAGS)?.1)?;
        fs.sync()
    }

    fn remove(&mut self, numbers: Range<u64>) -> Result<()> {
        for number in numbers {
            self.fs.unlink(self.dir, &name(number))?;
        }
        self.fs.sync()
    }
}

impl Drop for OnFileSystem {
    fn drop(&mut self) {
        // A run that failed early has not opened them; nobody is left to report to.
        let _ = self.fs.release(self.overwritten);
        let _ = self.fs.release(self.appended);
    }
}
