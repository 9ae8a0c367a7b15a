//! A file system that answers at once: what any file system behind the transport is at best. It
//! keeps names and sizes, and no contents.
//!
//! `empty MOUNT [device|ring] [THREADS]`, as root; it ends when it is unmounted.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a program for people")]

use std::collections::{BTreeMap, HashMap};
use std::os::fd::AsRawFd;
use std::process::ExitCode;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use rustix::mount::{MountFlags, mount};
use steadfast_fuse_lowlevel::{
    Access, Capabilities, Config, EntryOut, FileAttr, ForgetCount, Handler, InHeader, Listing,
    OpenReply, Operation, Reply, Session, StatfsOut, TransportChoice, Wishes,
};

/// How long the kernel keeps what it is told.
const LONG: Duration = Duration::from_secs(3600);
const MAX_WRITE: u32 = 1 << 20;
const ROOT: u64 = 1;
const FOLDER: u32 = 0o040_777;

/// What is known of a file: its attributes, and where a symbolic link leads.
#[derive(Clone)]
struct Node {
    attr: FileAttr,
    target: Vec<u8>,
}

struct Empty {
    next: AtomicU64,
    nodes: Mutex<HashMap<u64, Node>>,
    /// By folder and name.
    names: Mutex<BTreeMap<(u64, Vec<u8>), u64>>,
    zeros: Vec<u8>,
}

fn lock<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

fn entry(attr: FileAttr) -> EntryOut {
    EntryOut::new((attr.ino, 0), attr, LONG, LONG)
}

impl Empty {
    fn new() -> Empty {
        let attr =
            FileAttr { ino: ROOT, mode: FOLDER, nlink: 2, blksize: 4096, ..FileAttr::default() };
        Empty {
            next: AtomicU64::new(ROOT + 1),
            nodes: Mutex::new(HashMap::from([(ROOT, Node { attr, target: Vec::new() })])),
            names: Mutex::default(),
            zeros: vec![0; MAX_WRITE as usize],
        }
    }

    fn find(&self, dir: u64, name: &[u8]) -> Option<FileAttr> {
        let ino = *lock(&self.names).get(&(dir, name.to_vec()))?;
        self.attr(ino)
    }

    fn attr(&self, ino: u64) -> Option<FileAttr> {
        lock(&self.nodes).get(&ino).map(|node| node.attr)
    }

    fn make(&self, dir: u64, name: &[u8], mode: u32, target: &[u8]) -> FileAttr {
        let ino = self.next.fetch_add(1, Ordering::Relaxed);
        let attr = FileAttr { ino, mode, nlink: 1, blksize: 4096, ..FileAttr::default() };
        lock(&self.nodes).insert(ino, Node { attr, target: target.to_vec() });
        lock(&self.names).insert((dir, name.to_vec()), ino);
        attr
    }

    fn change(&self, ino: u64, change: impl FnOnce(&mut FileAttr)) -> Option<FileAttr> {
        let mut nodes = lock(&self.nodes);
        let node = nodes.get_mut(&ino)?;
        change(&mut node.attr);
        Some(node.attr)
    }

    fn remove(&self, dir: u64, name: &[u8]) {
        if let Some(ino) = lock(&self.names).remove(&(dir, name.to_vec())) {
            lock(&self.nodes).remove(&ino);
        }
    }

    /// The names of a folder from a place on, with attributes or without.
    fn list(&self, dir: u64, from: u64, mut listing: Listing, plus: bool) -> Listing {
        let names = lock(&self.names);
        let own = names.range((dir, Vec::new())..(dir + 1, Vec::new()));
        for (next, ((_, name), ino)) in (1..).zip(own).skip(from as usize) {
            let Some(attr) = self.attr(*ino) else { continue };
            let fits = match plus {
                true => listing.add_entry(&entry(attr), next, name),
                false => listing.add(*ino, next, attr.mode, name),
            };
            if !fits {
                break;
            }
        }
        listing
    }
}

impl Handler for Empty {
    fn handle(&self, asked: &InHeader, operation: Operation<'_>, reply: Reply<'_>) {
        let node = asked.nodeid;
        let how = OpenReply::KEEP_CACHE | OpenReply::NOFLUSH;
        match operation {
            Operation::Lookup { name } => match self.find(node, name) {
                Some(attr) => reply.entry(&entry(attr)),
                None => reply.entry(&EntryOut::new((0, 0), FileAttr::default(), LONG, LONG)),
            },
            Operation::Getattr { .. } => match self.attr(node) {
                Some(attr) => reply.attr(&attr, LONG),
                None => reply.error(Errno::NOENT),
            },
            Operation::Setattr(set) => {
                let change = |attr: &mut FileAttr| attr.size = set.size.unwrap_or(attr.size);
                match self.change(node, change) {
                    Some(attr) => reply.attr(&attr, LONG),
                    None => reply.error(Errno::NOENT),
                }
            }
            Operation::Readlink => {
                let target = lock(&self.nodes).get(&node).map(|node| node.target.clone());
                reply.data(&target.unwrap_or_default());
            }
            Operation::Symlink { name, target } => {
                reply.entry(&entry(self.make(node, name, 0o120_777, target)));
            }
            Operation::Create { name, .. } => {
                reply.created(&entry(self.make(node, name, 0o100_666, &[])), 1, how);
            }
            Operation::Mkdir { name, .. } => {
                reply.entry(&entry(self.make(node, name, FOLDER, &[])));
            }
            Operation::Mknod { name, mode, .. } => {
                reply.entry(&entry(self.make(node, name, mode, &[])));
            }
            Operation::Link { from, name } => {
                lock(&self.names).insert((node, name.to_vec()), from);
                match self.attr(from) {
                    Some(attr) => reply.entry(&entry(attr)),
                    None => reply.error(Errno::NOENT),
                }
            }
            Operation::Unlink { name } | Operation::Rmdir { name } => {
                self.remove(node, name);
                reply.done();
            }
            Operation::Rename { name, to_dir, to_name, .. } => {
                let moved = lock(&self.names).remove(&(node, name.to_vec()));
                if let Some(ino) = moved {
                    lock(&self.names).insert((to_dir, to_name.to_vec()), ino);
                }
                reply.done();
            }
            Operation::Open { .. } => reply.opened(1, how),
            // To a size that nobody has looked up it is as long as is asked for.
            Operation::Read { size, .. } => reply.data(&self.zeros[..size as usize]),
            Operation::Write { offset, data, .. } => {
                let end = offset + data.len() as u64;
                self.change(node, |attr| attr.size = attr.size.max(end));
                reply.written(data.len() as u32);
            }
            Operation::Readdir { offset, size } => {
                reply.listing(&self.list(node, offset, Listing::new(size), false));
            }
            Operation::Readdirplus { offset, size } => {
                reply.listing(&self.list(node, offset, Listing::new(size), true));
            }
            Operation::Statfs => reply.statfs(&StatfsOut::default()),
            Operation::Fsync { .. } | Operation::Fsyncdir | Operation::Release { .. } => {
                reply.done();
            }
            _ => reply.error(Errno::NOSYS),
        }
    }

    fn forget(&self, _forgotten: ForgetCount) {}
}

fn serve() -> std::io::Result<()> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [at, options @ ..] = &words[..] else {
        return Err(std::io::Error::other("empty MOUNT [device|ring] [THREADS]"));
    };
    let transport = match options.first().map(String::as_str) {
        Some("device") => TransportChoice::Device,
        Some("ring") => TransportChoice::Ring,
        _ => TransportChoice::Best,
    };
    let threads = options.get(1).and_then(|n| n.parse().ok()).unwrap_or(16);
    let device = rustix::fs::open("/dev/fuse", OFlags::RDWR | OFlags::CLOEXEC, Mode::empty())?;
    let data = format!(
        "fd={},rootmode=40000,user_id=0,group_id=0,allow_other,default_permissions\0",
        device.as_raw_fd()
    );
    let data = std::ffi::CStr::from_bytes_with_nul(data.as_bytes()).ok();
    mount("empty", at.as_str(), "fuse.empty", MountFlags::empty(), data)?;
    let config =
        Config { access: Access::All, threads, clone_device: true, transport, buffers: 256 << 20 };
    let session = Session::connect(device, config, |_offer| {
        let capabilities = Capabilities::ASYNC_READ
            | Capabilities::ATOMIC_O_TRUNC
            | Capabilities::PARALLEL_DIROPS
            | Capabilities::NO_OPENDIR_SUPPORT
            | Capabilities::DO_READDIRPLUS
            | Capabilities::READDIRPLUS_AUTO;
        let wishes = Wishes {
            capabilities,
            max_write: MAX_WRITE,
            max_background: 64,
            max_readahead: u32::MAX,
        };
        (wishes, Empty::new())
    })?;
    println!("{:?}", session.transport());
    session.serve().map(drop)
}

fn main() -> ExitCode {
    match serve() {
        Ok(()) => ExitCode::SUCCESS,
        Err(e) => {
            eprintln!("empty: {e}");
            ExitCode::FAILURE
        }
    }
}
