//! A file system that follows a script: it answers, fails, waits or panics.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex};

use bytes::Bytes;
use steadfast_vfs::{
    Attr, Dirent, Fh, FileSystem, FileType, FsError, Ino, NewNode, OpenFlags, RenameFlags, Result,
    SetAttr, Shutdown, StatFs, Timestamp,
};

/// What the next calls do.
#[derive(Debug, Clone, Default)]
pub enum Script {
    /// What is right.
    #[default]
    Answer,
    /// This error.
    Fail(FsError),
    /// A fault in the code.
    Panic,
    /// Nothing before [`Scripted::go`].
    Wait,
}

/// One folder (the root) and one file (number 3), which reads as `x` everywhere.
#[derive(Default)]
pub struct Scripted {
    script: Mutex<Script>,
    waiting: Mutex<u32>,
    gone: Condvar,
    /// Calls that were begun.
    pub calls: AtomicU64,
    /// Files that were made durable.
    pub synced: AtomicU64,
    /// Entries that are held, and not let go of.
    pub held: AtomicU64,
    /// How it was shut down.
    pub shut_down: Mutex<Option<Shutdown>>,
}

/// The number of the file.
pub const FILE: u64 = 3;

impl Scripted {
    pub fn new() -> Arc<Scripted> {
        Arc::default()
    }

    /// From now on.
    pub fn set(&self, script: Script) {
        *self.script.lock().unwrap() = script;
    }

    /// Lets all that wait go on, and nobody wait any more.
    pub fn go(&self) {
        self.set(Script::Answer);
        *self.waiting.lock().unwrap() = 0;
        self.gone.notify_all();
    }

    /// Until so many calls wait.
    pub fn until_waiting(&self, count: u32) {
        let waiting = self.waiting.lock().unwrap();
        drop(self.gone.wait_while(waiting, |now| *now < count).unwrap());
    }

    fn step(&self) -> Result<()> {
        self.calls.fetch_add(1, Ordering::Relaxed);
        let script = self.script.lock().unwrap().clone();
        match script {
            Script::Answer => Ok(()),
            Script::Fail(e) => Err(e),
            Script::Panic => panic!("as the script says"),
            Script::Wait => {
                let mut waiting = self.waiting.lock().unwrap();
                *waiting += 1;
                self.gone.notify_all();
                drop(self.gone.wait_while(waiting, |now| *now > 0).unwrap());
                Ok(())
            }
        }
    }

    fn attr(ino: Ino) -> Result<Attr> {
        let kind = match ino.0 {
            2 => FileType::Directory,
            FILE => FileType::Regular,
            _ => return Err(FsError::NotFound),
        };
        let time = Timestamp { secs: 1, nanos: 0 };
        Ok(Attr {
            ino,
            kind,
            mode: 0o777,
            nlink: 1,
            uid: 0,
            gid: 0,
            size: 1 << 20,
            blocks_512: 2048,
            block_size: 4096,
            rdev: 0,
            atime: time,
            mtime: time,
            ctime: time,
            crtime: time,
            generation: 7,
        })
    }
}

impl FileSystem for Scripted {
    fn root(&self) -> Ino {
        Ino(2)
    }

    fn lookup(&self, _dir: Ino, name: &[u8]) -> Result<Attr> {
        self.step()?;
        if name == b"file" { Self::attr(Ino(FILE)) } else { Err(FsError::NotFound) }
    }

    fn getattr(&self, ino: Ino) -> Result<Attr> {
        self.step()?;
        Self::attr(ino)
    }

    fn hold(&self, ino: Ino) -> Result<Attr> {
        let attr = Self::attr(ino)?;
        self.held.fetch_add(1, Ordering::Relaxed);
        Ok(attr)
    }

    fn hold_number(&self, _ino: Ino) {
        self.held.fetch_add(1, Ordering::Relaxed);
    }

    fn let_go(&self, _ino: Ino, holds: u64) -> bool {
        self.held.fetch_sub(holds, Ordering::Relaxed) == holds
    }

    fn setattr(&self, ino: Ino, _set: SetAttr) -> Result<Attr> {
        self.step()?;
        Self::attr(ino)
    }

    fn create(&self, _: Ino, _: &[u8], _: NewNode, _: OpenFlags) -> Result<(Attr, Fh)> {
        self.step()?;
        Ok((Self::attr(Ino(FILE))?, Fh(1)))
    }

    fn mkdir(&self, _dir: Ino, _name: &[u8], _node: NewNode) -> Result<Attr> {
        self.step()?;
        Self::attr(Ino(2))
    }

    fn mknod(&self, _: Ino, _: &[u8], _: (FileType, u64), _: NewNode) -> Result<Attr> {
        self.step()?;
        Self::attr(Ino(FILE))
    }

    fn symlink(&self, _: Ino, _: &[u8], _: &[u8], _: NewNode) -> Result<Attr> {
        self.step()?;
        Self::attr(Ino(FILE))
    }

    fn readlink(&self, _ino: Ino) -> Result<Vec<u8>> {
        self.step()?;
        Ok(b"file".to_vec())
    }

    fn link(&self, _ino: Ino, _dir: Ino, _name: &[u8]) -> Result<Attr> {
        self.step()?;
        Self::attr(Ino(FILE))
    }

    fn unlink(&self, _dir: Ino, _name: &[u8]) -> Result<()> {
        self.step()
    }

    fn rmdir(&self, _dir: Ino, _name: &[u8]) -> Result<()> {
        self.step()
    }

    fn rename(&self, _: (Ino, &[u8]), _: (Ino, &[u8]), _: RenameFlags) -> Result<()> {
        self.step()
    }

    fn open(&self, _ino: Ino, _flags: OpenFlags) -> Result<Fh> {
        self.step()?;
        Ok(Fh(1))
    }

    fn release(&self, _fh: Fh) -> Result<()> {
        self.step()
    }

    fn read(&self, _fh: Fh, _offset: u64, len: usize) -> Result<Bytes> {
        self.step()?;
        Ok(vec![b'x'; len].into())
    }

    fn write(&self, _fh: Fh, _offset: u64, data: Bytes) -> Result<usize> {
        self.step()?;
        Ok(data.len())
    }

    fn flush(&self, _fh: Fh) -> Result<()> {
        self.step()
    }

    fn fsync(&self, _fh: Fh, _data_only: bool) -> Result<()> {
        self.step()?;
        self.synced.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }

    fn readdir(&self, _dir: Ino, from: u64) -> Result<Vec<Dirent>> {
        self.step()?;
        let names = [&b"one"[..], b"../two", b"th\0ree", b"", b"four"];
        let entries = (1..).zip(names).skip(from as usize);
        // The inode of the last cannot be read.
        let entry = |(next, name): (u64, &[u8])| Dirent {
            ino: Ino(if name == b"four" { FILE + 1 } else { FILE }),
            kind: FileType::Regular,
            name: name.to_vec(),
            next,
        };
        Ok(entries.map(entry).collect())
    }

    fn fsyncdir(&self, _dir: Ino) -> Result<()> {
        self.step()
    }

    /// Always answered: tests find out by it that nothing else is.
    fn statfs(&self) -> Result<StatFs> {
        Ok(StatFs {
            block_size: 4096,
            blocks: 1,
            blocks_free: 0,
            blocks_available: 0,
            inodes: 1,
            inodes_free: 0,
            name_max: 255,
        })
    }

    fn sync(&self) -> Result<()> {
        self.step()
    }

    fn shutdown(&self, how: Shutdown) -> Result<()> {
        *self.shut_down.lock().unwrap() = Some(how);
        Ok(())
    }
}
