//! Devices and volumes as files: `dsk/NAME`, `rdsk/NAME`, and RAM disks as `ramdisk/NAME` too.
//!
//! The files have a fixed size and are not cached: a write is on the device when it returns, and
//! durable after fsync(2), or immediately with O_SYNC. Truncation and O_TRUNC have no effect, as
//! with a block device. Aliases are symbolic links; a link that is made here is stored by the host.
//!
//! A component of a volume can be read here, but not written.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use steadfast_block::{BlockDevice, BlockError, is_zero};
use steadfast_vfs::{
    Attr, Dirent, Fallocate, Fh, FileSystem, FileType, FsError, Ino, NewNode, OpenFlags,
    RenameFlags, Result, SeekTo, SetAttr, StatFs, Timestamp,
};

use crate::endpoint::Endpoint;
use crate::host::Host;
use crate::protocol::RefusalKind;

const ROOT: Ino = Ino(1);
/// The folders: number and name.
const FOLDERS: [(Ino, &str); 3] = [(Ino(2), "dsk"), (Ino(3), "rdsk"), (Ino(4), "ramdisk")];
/// Numbers of files begin here: the endpoint's number times [`PLACES`], and the folder's place.
const FIRST: u64 = 16;
const PLACES: u64 = 4;
/// Bytes that are zeroed at a time.
const PIECE: u64 = 1 << 20;

/// What is in a folder.
enum Node {
    File(Arc<Endpoint>),
    /// A symbolic link to another name in the same folder.
    Alias {
        number: u64,
        target: String,
    },
}

struct Open {
    endpoint: Arc<Endpoint>,
    flags: OpenFlags,
}

/// The tree of a host's devices and volumes.
pub struct Tree {
    host: Arc<Host>,
    open: Mutex<BTreeMap<Fh, Arc<Open>>>,
    handles: AtomicU64,
    /// Folders in which an alias is not shown: it was made in the other one. Only while the host
    /// runs; what it has recorded is in both.
    hidden: Mutex<BTreeSet<(Ino, String)>>,
    owner: (u32, u32),
    since: Timestamp,
}

impl Tree {
    /// Of what this host has, at any time.
    pub fn new(host: Arc<Host>) -> Tree {
        let since = std::time::UNIX_EPOCH.elapsed().unwrap_or_default();
        let (uid, gid) = (rustix::process::geteuid(), rustix::process::getegid());
        Tree {
            host,
            open: Mutex::default(),
            handles: AtomicU64::new(1),
            hidden: Mutex::default(),
            owner: (uid.as_raw(), gid.as_raw()),
            since: Timestamp { secs: since.as_secs() as i64, nanos: since.subsec_nanos() },
        }
    }

    fn handles(&self) -> MutexGuard<'_, BTreeMap<Fh, Arc<Open>>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn hidden(&self) -> MutexGuard<'_, BTreeSet<(Ino, String)>> {
        self.hidden.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn handle(&self, fh: Fh) -> Result<Arc<Open>> {
        self.handles().get(&fh).cloned().ok_or(FsError::BadHandle)
    }

    fn attr(&self, ino: Ino, kind: FileType, size: u64) -> Attr {
        let (uid, gid) = self.owner;
        Attr {
            ino,
            kind,
            mode: match kind {
                FileType::Directory => 0o755,
                FileType::Symlink => 0o777,
                _ => 0o600,
            },
            nlink: 1,
            uid,
            gid,
            size,
            blocks_512: size / 512,
            block_size: 1 << 20,
            rdev: 0,
            atime: self.since,
            mtime: self.since,
            ctime: self.since,
            crtime: self.since,
            generation: 0,
        }
    }

    fn attr_of(&self, place: u64, node: &Node) -> Attr {
        match node {
            Node::File(endpoint) => {
                let ino = number(endpoint.number(), place);
                self.attr(ino, FileType::Regular, endpoint.info().size)
            }
            Node::Alias { number: n, target } => {
                self.attr(number(*n, place), FileType::Symlink, target.len() as u64)
            }
        }
    }

    /// What is in a folder, by name.
    fn nodes(&self, dir: Ino) -> BTreeMap<String, Node> {
        let inner = self.host.registry.lock();
        let mut nodes = BTreeMap::new();
        let only_ram = dir == FOLDERS[2].0;
        for endpoint in inner.endpoints() {
            let name = endpoint.name().to_owned();
            if !only_ram || inner.records.ramdisks.contains_key(&name) {
                nodes.insert(name, Node::File(endpoint));
            }
        }
        let hidden = self.hidden();
        let shown = |name: &&String| !only_ram && !hidden.contains(&(dir, (*name).clone()));
        for (name, target) in inner.records.aliases.iter().filter(|(name, _)| shown(name)) {
            let number = inner.aliases.get(name).copied().unwrap_or(0);
            nodes.insert(name.clone(), Node::Alias { number, target: target.clone() });
        }
        nodes
    }

    /// What has a number.
    fn node(&self, ino: Ino) -> Result<(u64, Node)> {
        let place = (ino.0.wrapping_sub(FIRST)) % PLACES;
        let Some((dir, _)) = FOLDERS.get(place as usize) else { return Err(FsError::Stale) };
        let found = self.nodes(*dir).into_values().find(|node| match node {
            Node::File(endpoint) => number(endpoint.number(), place) == ino,
            Node::Alias { number: n, .. } => number(*n, place) == ino,
        });
        found.map(|node| (place, node)).ok_or(FsError::Stale)
    }
}

fn number(of: u64, place: u64) -> Ino {
    Ino(FIRST + of * PLACES + place)
}

fn is_folder(ino: Ino) -> bool {
    ino == ROOT || FOLDERS.iter().any(|(folder, _)| *folder == ino)
}

fn place_of(dir: Ino) -> Result<u64> {
    let at = FOLDERS.iter().position(|(folder, _)| *folder == dir);
    at.map(|at| at as u64).ok_or(FsError::NotDirectory)
}

/// `rdsk` of `dsk`, and the other way round.
fn other_folder(dir: Ino) -> Option<Ino> {
    let [dsk, rdsk, _] = FOLDERS.map(|(folder, _)| folder);
    match dir {
        _ if dir == dsk => Some(rdsk),
        _ if dir == rdsk => Some(dsk),
        _ => None,
    }
}

fn io(error: BlockError) -> FsError {
    match error {
        BlockError::ReadOnly { device } => {
            FsError::ReadOnly { why: format!("{device} is read-only") }
        }
        error => FsError::Io { what: error.to_string() },
    }
}

fn not_here<T>() -> Result<T> {
    let what = "files here are devices and volumes: make them by steadfast volume create, or svm";
    Err(FsError::NotPermitted { what })
}

impl Open {
    fn size(&self) -> u64 {
        self.endpoint.info().size
    }

    fn read(&self, offset: u64, len: usize) -> Result<Bytes> {
        let info = self.endpoint.info();
        let end = offset.saturating_add(len as u64).min(info.size);
        if offset >= end {
            return Ok(Bytes::new());
        }
        let block = u64::from(info.logical_block);
        let (from, to) = (offset - offset % block, end.next_multiple_of(block).min(info.size));
        let bytes = self.endpoint.read(from, to - from).map_err(io)?;
        Ok(bytes.slice((offset - from) as usize..(end - from) as usize))
    }

    fn write(&self, offset: u64, data: Bytes, durable: bool) -> Result<usize> {
        let info = self.endpoint.info();
        if offset >= info.size && !data.is_empty() {
            return Err(FsError::NoSpace { what: "the device ends here" });
        }
        let len = (data.len() as u64).min(info.size.saturating_sub(offset));
        if len == 0 {
            return Ok(0);
        }
        let data = data.slice(..len as usize);
        let block = u64::from(info.logical_block);
        if offset.is_multiple_of(block) && len.is_multiple_of(block) {
            let _shared = self.endpoint.edges.read();
            self.put(offset, data, durable)?;
        } else {
            let _alone = self.endpoint.edges.write();
            let (from, end) = (offset - offset % block, offset + len);
            let to = end.next_multiple_of(block).min(info.size);
            let mut whole = self.endpoint.read(from, to - from).map_err(io)?.to_vec();
            let at = (offset - from) as usize;
            whole[at..at + len as usize].copy_from_slice(&data);
            self.put(from, whole.into(), durable)?;
        }
        Ok(len as usize)
    }

    fn put(&self, offset: u64, data: Bytes, durable: bool) -> Result<()> {
        let written = match durable {
            true => self.endpoint.write_fua(offset, data.into()),
            false => self.endpoint.write(offset, data.into()),
        };
        written.map_err(io)
    }

    /// Makes a range read as zeros: by a discard, as far as that does it, and by writing them.
    fn zero(&self, offset: u64, len: u64) -> Result<()> {
        let info = self.endpoint.info();
        let end = offset.saturating_add(len).min(info.size);
        let block = u64::from(info.logical_block);
        let (from, to) = (offset.next_multiple_of(block), end - end % block);
        if from < to {
            // OK to ignore: it is looked at, and what is no zero is written.
            let _ = self.endpoint.discard(from, to - from);
        }
        let mut at = offset;
        while at < end {
            let piece = PIECE.min(end - at);
            if !is_zero(&self.read(at, piece as usize)?) {
                self.write(at, vec![0; piece as usize].into(), false)?;
            }
            at += piece;
        }
        Ok(())
    }
}

impl FileSystem for Tree {
    fn root(&self) -> Ino {
        ROOT
    }

    fn lookup(&self, dir: Ino, name: &[u8]) -> Result<Attr> {
        match name {
            b"." => return self.getattr(dir),
            b".." => return self.getattr(ROOT),
            _ => {}
        }
        if dir == ROOT {
            let found = FOLDERS.iter().find(|(_, folder)| folder.as_bytes() == name);
            return found.map_or(Err(FsError::NotFound), |(ino, _)| self.getattr(*ino));
        }
        let place = place_of(dir)?;
        let name = std::str::from_utf8(name).map_err(|_| FsError::NotFound)?;
        let nodes = self.nodes(dir);
        nodes.get(name).map(|node| self.attr_of(place, node)).ok_or(FsError::NotFound)
    }

    fn getattr(&self, ino: Ino) -> Result<Attr> {
        if is_folder(ino) {
            return Ok(self.attr(ino, FileType::Directory, 0));
        }
        let (place, node) = self.node(ino)?;
        Ok(self.attr_of(place, &node))
    }

    fn setattr(&self, ino: Ino, set: SetAttr) -> Result<Attr> {
        let only_size_and_times = set.mode.is_none() && set.uid.is_none() && set.gid.is_none();
        if !only_size_and_times {
            let what = "owner and mode are those of the host process";
            return Err(FsError::NotPermitted { what });
        }
        self.getattr(ino)
    }

    fn create(&self, _: Ino, _: &[u8], _: NewNode, _: OpenFlags) -> Result<(Attr, Fh)> {
        not_here()
    }

    fn mkdir(&self, _: Ino, _: &[u8], _: NewNode) -> Result<Attr> {
        not_here()
    }

    fn symlink(&self, dir: Ino, name: &[u8], target: &[u8], _: NewNode) -> Result<Attr> {
        place_of(dir)?;
        let text = |bytes| std::str::from_utf8(bytes).map_err(|_| FsError::NotFound);
        let target = text(target)?.rsplit('/').next().unwrap_or_default();
        let alias = text(name)?;
        let is_new = !self.host.registry.lock().records.aliases.contains_key(alias);
        self.host.devices.add_alias(alias, target).map_err(|e| match e.kind {
            RefusalKind::NotFound => FsError::NotFound,
            RefusalKind::Busy => FsError::Exists,
            RefusalKind::UsedWrongly => FsError::Invalid { what: "no name for a device" },
            _ => FsError::Io { what: e.error },
        })?;
        let mut hidden = self.hidden();
        hidden.remove(&(dir, alias.to_owned()));
        // Scripts make one link in each of the two.
        if let (true, Some(other)) = (is_new, other_folder(dir)) {
            hidden.insert((other, alias.to_owned()));
        }
        drop(hidden);
        self.lookup(dir, name)
    }

    fn readlink(&self, ino: Ino) -> Result<Vec<u8>> {
        match self.node(ino)? {
            (_, Node::Alias { target, .. }) => Ok(target.into_bytes()),
            _ => Err(FsError::Invalid { what: "no symbolic link" }),
        }
    }

    fn link(&self, _: Ino, _: Ino, _: &[u8]) -> Result<Attr> {
        not_here()
    }

    fn unlink(&self, dir: Ino, name: &[u8]) -> Result<()> {
        place_of(dir)?;
        let name = std::str::from_utf8(name).map_err(|_| FsError::NotFound)?;
        if !matches!(self.nodes(dir).get(name), Some(Node::Alias { .. })) {
            return not_here();
        }
        if let Some(other) = other_folder(dir)
            && self.nodes(other).contains_key(name)
        {
            self.hidden().insert((dir, name.to_owned()));
            return Ok(());
        }
        self.hidden().retain(|(_, hidden)| hidden != name);
        self.host.devices.remove_alias(name).map(drop).map_err(|e| FsError::Io { what: e.error })
    }

    fn rmdir(&self, _: Ino, _: &[u8]) -> Result<()> {
        not_here()
    }

    fn rename(&self, _: (Ino, &[u8]), _: (Ino, &[u8]), _: RenameFlags) -> Result<()> {
        not_here()
    }

    fn open(&self, ino: Ino, flags: OpenFlags) -> Result<Fh> {
        let (_, node) = self.node(ino)?;
        let Node::File(endpoint) = node else { return Err(FsError::Loop) };
        {
            // Under the lock of who takes volumes apart.
            let inner = self.host.registry.lock();
            let now = inner.endpoint(endpoint.name()).map_err(|_| FsError::Stale)?;
            if !Arc::ptr_eq(&now, &endpoint) {
                return Err(FsError::Stale);
            }
            if inner.stopping {
                return Err(FsError::Busy { what: "the host is about to end" });
            }
            let writes = flags.contains(OpenFlags::WRITE);
            if writes && self.host.registry.claim.has(endpoint.name()) {
                let what = "it is becoming a component of a volume, or was one until now";
                return Err(FsError::Busy { what });
            }
            if writes && inner.records.user_of(endpoint.name()).is_some() {
                let what = "a component of a volume is written to by the volume";
                return Err(FsError::Busy { what });
            }
            if writes && inner.check_unmounted(endpoint.name()).is_err() {
                let what = "what is mounted is written to by its file system";
                return Err(FsError::Busy { what });
            }
            endpoint.opened(writes);
        }
        let fh = Fh(self.handles.fetch_add(1, Ordering::Relaxed));
        self.handles().insert(fh, Arc::new(Open { endpoint, flags }));
        Ok(fh)
    }

    fn release(&self, fh: Fh) -> Result<()> {
        let open = self.handles().remove(&fh).ok_or(FsError::BadHandle)?;
        open.endpoint.closed();
        Ok(())
    }

    fn read(&self, fh: Fh, offset: u64, len: usize) -> Result<Bytes> {
        self.handle(fh)?.read(offset, len)
    }

    fn write(&self, fh: Fh, offset: u64, data: Bytes) -> Result<usize> {
        let open = self.handle(fh)?;
        self.write_as(fh, offset, data, open.flags)
    }

    fn write_as(&self, fh: Fh, offset: u64, data: Bytes, how: OpenFlags) -> Result<usize> {
        let open = self.handle(fh)?;
        let offset = if open.flags.contains(OpenFlags::APPEND) { open.size() } else { offset };
        open.write(offset, data, how.intersects(OpenFlags::SYNC | OpenFlags::DSYNC))
    }

    fn fsync(&self, fh: Fh, _: bool) -> Result<()> {
        self.handle(fh)?.endpoint.flush().map_err(io)
    }

    fn readdir(&self, dir: Ino, from: u64) -> Result<Vec<Dirent>> {
        let mut all: Vec<(Ino, FileType, Vec<u8>)> = vec![
            (dir, FileType::Directory, b".".to_vec()),
            (ROOT, FileType::Directory, b"..".to_vec()),
        ];
        if dir == ROOT {
            let folders = FOLDERS.iter();
            all.extend(folders.map(|(i, n)| (*i, FileType::Directory, n.as_bytes().to_vec())));
        } else {
            let place = place_of(dir)?;
            for (name, node) in self.nodes(dir) {
                let attr = self.attr_of(place, &node);
                all.push((attr.ino, attr.kind, name.into_bytes()));
            }
        }
        let numbered = all.into_iter().zip(1..);
        let entry = |((ino, kind, name), next)| Dirent { ino, kind, name, next };
        Ok(numbered.skip(from as usize).map(entry).collect())
    }

    fn fsyncdir(&self, _: Ino) -> Result<()> {
        Ok(())
    }

    fn statfs(&self) -> Result<StatFs> {
        Ok(StatFs { block_size: 4096, name_max: 31, ..StatFs::default() })
    }

    fn sync(&self) -> Result<()> {
        self.host.sync().map_err(|e| FsError::Io { what: e.error })
    }

    fn fallocate(&self, fh: Fh, what: Fallocate, offset: u64, len: u64) -> Result<()> {
        let open = self.handle(fh)?;
        let beyond = offset.saturating_add(len) > open.size();
        match what {
            Fallocate::Allocate { .. } if beyond => {
                Err(FsError::NoSpace { what: "the device ends before that" })
            }
            Fallocate::Allocate { .. } => Ok(()),
            Fallocate::PunchHole | Fallocate::ZeroRange { .. } => open.zero(offset, len),
            Fallocate::CollapseRange | Fallocate::InsertRange => {
                Err(FsError::Unsupported { what: "moving a device's contents".to_owned() })
            }
        }
    }

    fn seek(&self, fh: Fh, offset: u64, to: SeekTo) -> Result<u64> {
        let size = self.handle(fh)?.size();
        match to {
            _ if offset >= size => Err(FsError::NoAddress),
            SeekTo::Data => Ok(offset),
            SeekTo::Hole => Ok(size),
        }
    }
}
