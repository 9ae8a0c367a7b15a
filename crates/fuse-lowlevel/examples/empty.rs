//! A file system that answers at once: what any file system behind the transport is at best.
//!
//! `empty MOUNT [device|ring] [THREADS]`, as root; it ends when it is unmounted. Names that begin
//! with `n` are not there, with `d` they are folders; all others are files of 64 MiB.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a program for people")]

use std::os::fd::AsRawFd;
use std::process::ExitCode;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use rustix::mount::{MountFlags, mount};
use steadfast_fuse_lowlevel::{
    Access, Capabilities, Config, EntryOut, FileAttr, Forgotten, Handler, InHeader, Listing,
    OpenReply, Operation, Reply, Session, StatfsOut, TransportChoice, Wishes,
};

/// How long the kernel keeps what it is told.
const LONG: Duration = Duration::from_secs(3600);
const MAX_WRITE: u32 = 1 << 20;
/// The root, and the one folder.
const FOLDERS: [u64; 2] = [1, 2];

struct Empty {
    next: AtomicU64,
    zeros: Vec<u8>,
}

fn attr(ino: u64) -> FileAttr {
    let is_folder = FOLDERS.contains(&ino);
    let (mode, nlink, size) =
        if is_folder { (0o040_777, 2, 0) } else { (0o100_666, 1, 64 << 20) };
    FileAttr { ino, mode, nlink, size, blksize: 4096, ..FileAttr::default() }
}

impl Empty {
    fn entry(&self, ino: u64) -> EntryOut {
        EntryOut::new((ino, 0), attr(ino), LONG, LONG)
    }

    fn another(&self) -> u64 {
        self.next.fetch_add(1, Ordering::Relaxed)
    }
}

impl Handler for Empty {
    fn handle(&self, asked: &InHeader, operation: Operation<'_>, reply: Reply<'_>) {
        match operation {
            Operation::Lookup { name } if name.starts_with(b"n") => reply.error(Errno::NOENT),
            Operation::Lookup { name } if name.starts_with(b"d") => reply.entry(&self.entry(2)),
            Operation::Lookup { .. } => reply.entry(&self.entry(self.another())),
            Operation::Getattr { .. } | Operation::Setattr(_) => {
                reply.attr(&attr(asked.nodeid), LONG);
            }
            Operation::Create { .. } => {
                let how = OpenReply::KEEP_CACHE | OpenReply::NOFLUSH;
                reply.created(&self.entry(self.another()), 1, how);
            }
            Operation::Mkdir { .. } => reply.entry(&self.entry(self.another())),
            Operation::Open { .. } => reply.opened(1, OpenReply::NOFLUSH),
            Operation::Opendir => reply.opened(1, OpenReply::empty()),
            Operation::Read { size, .. } => reply.data(&self.zeros[..size as usize]),
            Operation::Write { data, .. } => reply.written(data.len() as u32),
            Operation::Readdir { .. } | Operation::Readdirplus { .. } => {
                reply.listing(&Listing::new(0));
            }
            Operation::Statfs => reply.statfs(&StatfsOut::default()),
            Operation::Unlink { .. }
            | Operation::Rmdir { .. }
            | Operation::Rename { .. }
            | Operation::Fsync { .. }
            | Operation::Fsyncdir
            | Operation::Release { .. }
            | Operation::Releasedir => reply.done(),
            _ => reply.error(Errno::NOSYS),
        }
    }

    fn forget(&self, _forgotten: Forgotten) {}
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
    let config = Config {
        access: Access::All,
        threads,
        clone_device: true,
        transport,
        buffers: 256 << 20,
    };
    let session = Session::connect(device, config, |_offer| {
        let capabilities = Capabilities::ASYNC_READ
            | Capabilities::ATOMIC_O_TRUNC
            | Capabilities::PARALLEL_DIROPS
            | Capabilities::DO_READDIRPLUS
            | Capabilities::READDIRPLUS_AUTO;
        let wishes = Wishes {
            capabilities,
            max_write: MAX_WRITE,
            max_background: 64,
            max_readahead: u32::MAX,
        };
        let next = AtomicU64::new(10);
        (wishes, Empty { next, zeros: vec![0; MAX_WRITE as usize] })
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
