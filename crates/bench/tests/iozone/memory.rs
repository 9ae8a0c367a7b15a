//! A file system in memory for the engine's tests: one directory, configurable delays and
//! failures, and a log of how files were opened.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use steadfast_runtime::{Mutex, now, sleep};
use steadfast_vfs::{
    Attr, Dirent, Fh, FileSystem, FileType, FsError, Ino, NewNode, OpenFlags, RenameFlags, Result,
    SetAttr, StatFs, Timestamp,
};

/// How the file system behaves.
#[derive(Debug, Clone, Default)]
pub struct Behaviour {
    pub read: Duration,
    pub write: Duration,
    pub fsync: Duration,
    /// Operations on files whose names end like this take three times as long.
    pub slow: Option<&'static str>,
    /// Bytes that fit in each file.
    pub capacity: Option<u64>,
    /// Reads give the bytes at this offset changed.
    pub corrupt_at: Option<u64>,
    /// Calls on files go there, as they begin: us, what, name, offset and length.
    pub calls: Option<Arc<std::sync::Mutex<Vec<String>>>>,
}

struct File {
    name: String,
    data: Vec<u8>,
}

#[derive(Default)]
struct State {
    next: u64,
    names: BTreeMap<String, u64>,
    files: BTreeMap<u64, File>,
    open: BTreeMap<u64, (u64, OpenFlags)>,
    opened: Vec<(String, OpenFlags)>,
}

pub struct MemoryFs {
    behaviour: Behaviour,
    state: Mutex<State>,
}

const ROOT: Ino = Ino(1);

impl MemoryFs {
    pub fn new(behaviour: Behaviour) -> Arc<MemoryFs> {
        let state = State { next: 2, ..State::default() };
        Arc::new(MemoryFs { behaviour, state: Mutex::new(state) })
    }

    /// Names and flags of everything opened so far.
    pub fn opened(&self) -> Vec<(String, OpenFlags)> {
        self.state.lock().opened.clone()
    }

    /// Names of the files.
    pub fn names(&self) -> Vec<String> {
        self.state.lock().names.keys().cloned().collect()
    }

    fn note(&self, fh: Fh, what: &str, place: &str) {
        let Some(calls) = &self.behaviour.calls else { return };
        let state = self.state.lock();
        let name = &state.files[&state.open[&fh.0].0].name;
        calls.lock().unwrap().push(format!("{} {what} {name}{place}", now().0 / 1000));
    }

    fn wait(&self, fh: Fh, time: Duration) -> Result<u64> {
        let (ino, slow) = {
            let state = self.state.lock();
            let ino = state.open.get(&fh.0).ok_or(FsError::BadHandle)?.0;
            let slow = self.behaviour.slow.is_some_and(|s| state.files[&ino].name.ends_with(s));
            (ino, slow)
        };
        sleep(if slow { 3 * time } else { time });
        Ok(ino)
    }
}

fn attr(ino: u64, kind: FileType, size: u64) -> Attr {
    let none = Timestamp::default();
    Attr {
        ino: Ino(ino),
        kind,
        mode: 0o640,
        nlink: 1,
        uid: 0,
        gid: 0,
        size,
        blocks_512: size / 512,
        block_size: 4096,
        rdev: 0,
        atime: none,
        mtime: none,
        ctime: none,
        crtime: none,
        generation: 0,
    }
}

fn no<T>() -> Result<T> {
    Err(FsError::Unsupported { what: "by the test's file system".into() })
}

impl FileSystem for MemoryFs {
    fn root(&self) -> Ino {
        ROOT
    }

    fn lookup(&self, _: Ino, name: &[u8]) -> Result<Attr> {
        let state = self.state.lock();
        let name = String::from_utf8_lossy(name);
        let ino = *state.names.get(&*name).ok_or(FsError::NotFound)?;
        Ok(attr(ino, FileType::Regular, state.files[&ino].data.len() as u64))
    }

    fn getattr(&self, ino: Ino) -> Result<Attr> {
        if ino == ROOT {
            return Ok(attr(1, FileType::Directory, 0));
        }
        let state = self.state.lock();
        let file = state.files.get(&ino.0).ok_or(FsError::NotFound)?;
        Ok(attr(ino.0, FileType::Regular, file.data.len() as u64))
    }

    fn setattr(&self, _: Ino, _: SetAttr) -> Result<Attr> {
        no()
    }

    fn create(&self, _: Ino, name: &[u8], _: NewNode, flags: OpenFlags) -> Result<(Attr, Fh)> {
        let ino = {
            let mut state = self.state.lock();
            let name = String::from_utf8_lossy(name).into_owned();
            if state.names.contains_key(&name) {
                return Err(FsError::Exists);
            }
            let ino = state.next;
            state.next += 1;
            state.names.insert(name.clone(), ino);
            state.files.insert(ino, File { name, data: Vec::new() });
            ino
        };
        Ok((attr(ino, FileType::Regular, 0), self.open(Ino(ino), flags)?))
    }

    fn mkdir(&self, _: Ino, _: &[u8], _: NewNode) -> Result<Attr> {
        no()
    }

    fn symlink(&self, _: Ino, _: &[u8], _: &[u8], _: NewNode) -> Result<Attr> {
        no()
    }

    fn readlink(&self, _: Ino) -> Result<Vec<u8>> {
        no()
    }

    fn link(&self, _: Ino, _: Ino, _: &[u8]) -> Result<Attr> {
        no()
    }

    fn unlink(&self, _: Ino, name: &[u8]) -> Result<()> {
        let mut state = self.state.lock();
        let name = String::from_utf8_lossy(name);
        let ino = state.names.remove(&*name).ok_or(FsError::NotFound)?;
        state.files.remove(&ino);
        Ok(())
    }

    fn rmdir(&self, _: Ino, _: &[u8]) -> Result<()> {
        no()
    }

    fn rename(&self, _: (Ino, &[u8]), _: (Ino, &[u8]), _: RenameFlags) -> Result<()> {
        no()
    }

    fn open(&self, ino: Ino, flags: OpenFlags) -> Result<Fh> {
        let mut state = self.state.lock();
        let file = state.files.get_mut(&ino.0).ok_or(FsError::NotFound)?;
        if flags.contains(OpenFlags::TRUNCATE) {
            file.data.clear();
        }
        let name = file.name.clone();
        state.opened.push((name, flags));
        let fh = state.next;
        state.next += 1;
        state.open.insert(fh, (ino.0, flags));
        drop(state);
        self.note(Fh(fh), "open", "");
        Ok(Fh(fh))
    }

    fn release(&self, fh: Fh) -> Result<()> {
        self.note(fh, "close", "");
        self.state.lock().open.remove(&fh.0).map(|_| ()).ok_or(FsError::BadHandle)
    }

    fn read(&self, fh: Fh, offset: u64, len: usize) -> Result<Bytes> {
        self.note(fh, "read", &format!(" {offset}+{len}"));
        let ino = self.wait(fh, self.behaviour.read)?;
        let state = self.state.lock();
        let data = &state.files[&ino].data;
        let start = data.len().min(offset as usize);
        let end = data.len().min(start + len);
        let mut part = data[start..end].to_vec();
        let corrupt = self.behaviour.corrupt_at.and_then(|at| at.checked_sub(offset));
        if let Some(byte) = corrupt.and_then(|at| part.get_mut(at as usize)) {
            *byte ^= 1;
        }
        Ok(part.into())
    }

    fn write(&self, fh: Fh, offset: u64, new: Bytes) -> Result<usize> {
        self.note(fh, "write", &format!(" {offset}+{}", new.len()));
        let ino = self.wait(fh, self.behaviour.write)?;
        let room = self.behaviour.capacity.unwrap_or(u64::MAX).saturating_sub(offset);
        let len = new.len().min(room as usize);
        if len == 0 {
            return Err(FsError::NoSpace { what: "blocks" });
        }
        let mut state = self.state.lock();
        // OK to unwrap: an open file is not removed in these tests.
        let data = &mut state.files.get_mut(&ino).unwrap().data;
        let end = offset as usize + len;
        data.resize(data.len().max(end), 0);
        data[offset as usize..end].copy_from_slice(&new[..len]);
        Ok(len)
    }

    fn fsync(&self, fh: Fh, data_only: bool) -> Result<()> {
        self.note(fh, if data_only { "datasync" } else { "sync" }, "");
        self.wait(fh, self.behaviour.fsync).map(|_| ())
    }

    fn readdir(&self, _: Ino, _: u64) -> Result<Vec<Dirent>> {
        no()
    }

    fn fsyncdir(&self, _: Ino) -> Result<()> {
        no()
    }

    fn statfs(&self) -> Result<StatFs> {
        Ok(StatFs { block_size: 4096, blocks_available: 1 << 40, ..StatFs::default() })
    }

    fn sync(&self) -> Result<()> {
        Ok(())
    }
}
