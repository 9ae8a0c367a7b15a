//! The kernel's side of FUSE, played: requests are written to a socket as they come out of
//! `/dev/fuse`, and the answers are looked at byte by byte.
//!
//! Layouts and numbers are those of the kernel's `include/uapi/linux/fuse.h`, written down anew and
//! not taken from the library that answers.

use std::collections::HashMap;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair, sockopt};
use steadfast_fuse_lowlevel::{Access, Config, TransportChoice};
use steadfast_vfs::FileSystem;

use crate::bridge::{Bridge, serve, session};
use crate::options::Options;

/// Requests that are sent here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
pub enum Op {
    Lookup = 1,
    Forget = 2,
    Getattr = 3,
    Setattr = 4,
    Readlink = 5,
    Symlink = 6,
    Mknod = 8,
    Mkdir = 9,
    Unlink = 10,
    Rmdir = 11,
    Rename = 12,
    Link = 13,
    Open = 14,
    Read = 15,
    Write = 16,
    Statfs = 17,
    Release = 18,
    Fsync = 20,
    Setxattr = 21,
    Getxattr = 22,
    Listxattr = 23,
    Removexattr = 24,
    Flush = 25,
    Init = 26,
    Opendir = 27,
    Readdir = 28,
    Releasedir = 29,
    Fsyncdir = 30,
    Access = 34,
    Create = 35,
    Interrupt = 36,
    Bmap = 37,
    Destroy = 38,
    Ioctl = 39,
    Poll = 40,
    BatchForget = 42,
    Fallocate = 43,
    Readdirplus = 44,
    Rename2 = 45,
    Lseek = 46,
    CopyFileRange = 47,
}

/// `struct fuse_in_header`.
const HEAD: usize = 40;
/// `struct fuse_out_header`.
const OUT_HEAD: usize = 16;
/// Longest answer that is read.
const ANSWER_MAX: usize = 1 << 20;
/// How long an answer is waited for.
const PATIENCE: Duration = Duration::from_secs(60);

/// The number of the root.
pub const ROOT: u64 = 1;

/// The answer to a request: its bytes, or an error number.
pub type Answer = Result<Vec<u8>, i32>;

/// A connection, with somebody who answers on it.
pub struct Kernel {
    socket: OwnedFd,
    next: AtomicU64,
    /// Answers that came while another one was waited for.
    early: Mutex<HashMap<u64, Answer>>,
    /// Notifications that came, by code.
    notices: Mutex<Vec<(i32, Vec<u8>)>>,
    server: Option<JoinHandle<std::io::Result<()>>>,
    threads: usize,
    /// Who asks.
    pub uid: u32,
    pub gid: u32,
    /// Its thread; 0 for one that we do not see.
    pub pid: u32,
}

/// Numbers in the order of the kernel's structures.
#[derive(Default, Clone)]
pub struct Body(pub Vec<u8>);

impl Body {
    pub fn u32(mut self, value: u32) -> Body {
        self.0.extend(value.to_ne_bytes());
        self
    }

    pub fn u64(mut self, value: u64) -> Body {
        self.0.extend(value.to_ne_bytes());
        self
    }

    pub fn bytes(mut self, bytes: &[u8]) -> Body {
        self.0.extend(bytes);
        self
    }

    /// With the NUL at its end.
    pub fn name(self, name: &[u8]) -> Body {
        self.bytes(name).bytes(&[0])
    }
}

/// No arguments yet.
pub fn body() -> Body {
    Body::default()
}

pub fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_ne_bytes(bytes[at..at + 4].try_into().unwrap())
}

pub fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_ne_bytes(bytes[at..at + 8].try_into().unwrap())
}

impl Kernel {
    /// Connects to a file system that is served with one thread, so that answers come in order.
    pub fn over(fs: Arc<dyn FileSystem>) -> Kernel {
        Kernel::with(fs, Options { threads: 1, ..Options::default() })
    }

    /// Connects, and does the handshake as Linux 6.12 does (protocol 7.41).
    pub fn with(fs: Arc<dyn FileSystem>, options: Options) -> Kernel {
        let kernel = Kernel::unconnected(fs, options);
        let agreed = kernel.ask(Op::Init, 0, init(7, 41)).unwrap();
        assert_eq!((agreed.len(), u32_at(&agreed, 0)), (64, 7));
        kernel
    }

    /// Connects; the handshake is still to come.
    pub fn unconnected(fs: Arc<dyn FileSystem>, options: Options) -> Kernel {
        let (ours, theirs) =
            socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)
                .unwrap();
        sockopt::set_socket_timeout(&ours, sockopt::Timeout::Recv, Some(PATIENCE)).unwrap();
        let threads = options.threads;
        let owner = Access::Owner(rustix::process::geteuid().as_raw());
        let config = Config {
            access: if options.allow_other { Access::All } else { owner },
            threads,
            clone_device: false,
            transport: TransportChoice::Best,
            buffers: options.buffers,
        };
        let bridge = Bridge::new(fs, options);
        let serve = move || serve(session(bridge, theirs, config)?);
        Kernel {
            socket: ours,
            next: AtomicU64::new(2),
            early: Mutex::default(),
            notices: Mutex::default(),
            server: Some(std::thread::spawn(serve)),
            threads,
            uid: rustix::process::geteuid().as_raw(),
            gid: rustix::process::getegid().as_raw(),
            pid: std::process::id(),
        }
    }

    /// Sends a request; its number.
    pub fn send(&self, op: Op, node: u64, body: Body) -> u64 {
        self.send_raw(op as u32, node, body, None)
    }

    /// Sends a request that need not be one; `len`: what its head claims.
    pub fn send_raw(&self, opcode: u32, node: u64, body: Body, len: Option<u32>) -> u64 {
        // The kernel counts in steps of two: the odd numbers are those of interrupts.
        let unique = self.next.fetch_add(2, Ordering::Relaxed);
        let length = u32::try_from(HEAD + body.0.len()).unwrap();
        let head = Body::default()
            .u32(len.unwrap_or(length))
            .u32(opcode)
            .u64(unique)
            .u64(node)
            .u32(self.uid)
            .u32(self.gid)
            .u32(self.pid)
            .u32(0);
        self.write(&head.bytes(&body.0).0);
        unique
    }

    /// Writes a message as it is.
    pub fn write(&self, message: &[u8]) {
        assert_eq!(rustix::io::write(&self.socket, message).unwrap(), message.len());
    }

    /// Reads one message: whose answer it is, or a notification (number 0).
    fn receive(&self) -> (u64, i32, Vec<u8>) {
        let mut message = vec![0; ANSWER_MAX];
        let len = rustix::io::read(&self.socket, &mut message[..]).expect("no answer came");
        message.truncate(len);
        assert!(len >= OUT_HEAD, "an answer of {len} bytes");
        assert_eq!(u32_at(&message, 0) as usize, len, "the head has another length");
        let error = u32_at(&message, 4).cast_signed();
        (u64_at(&message, 8), error, message.split_off(OUT_HEAD))
    }

    /// Waits for the answer to a request.
    pub fn answer(&self, unique: u64) -> Answer {
        loop {
            if let Some(answer) = self.early.lock().unwrap().remove(&unique) {
                return answer;
            }
            let (of, error, rest) = self.receive();
            if of == 0 {
                self.notices.lock().unwrap().push((error, rest));
                continue;
            }
            let answer = if error == 0 { Ok(rest) } else { Err(-error) };
            if let Err(errno) = &answer {
                // What the kernel takes for an error number (fuse_dev_do_write).
                assert!((1..512).contains(errno), "error {errno}");
            }
            let before = self.early.lock().unwrap().insert(of, answer);
            assert!(before.is_none(), "request {of} is answered twice");
        }
    }

    /// A request, and its answer.
    pub fn ask(&self, op: Op, node: u64, body: Body) -> Answer {
        self.answer(self.send(op, node, body))
    }

    /// Whether an answer has come already, without waiting.
    pub fn has_answer(&self) -> bool {
        use rustix::event::{PollFd, PollFlags, Timespec, poll};
        let mut fds = [PollFd::new(&self.socket, PollFlags::IN)];
        let now = Timespec { tv_sec: 0, tv_nsec: 0 };
        poll(&mut fds, Some(&now)).unwrap() > 0
    }

    /// With one thread: nothing that was asked before is still answered.
    pub fn assert_quiet(&self) {
        self.ask(Op::Statfs, ROOT, body()).unwrap();
        assert!(self.early.lock().unwrap().is_empty(), "an answer that nobody waits for");
        assert!(!self.has_answer(), "one answer too many");
    }

    /// The notifications so far.
    pub fn notices(&self) -> Vec<(i32, Vec<u8>)> {
        std::mem::take(&mut *self.notices.lock().unwrap())
    }

    /// Unmounts: how serving ended.
    pub fn end(mut self) -> std::io::Result<()> {
        self.destroy();
        self.server.take().unwrap().join().expect("a panic while serving")
    }

    fn destroy(&self) {
        // Each thread leaves with one; whoever was refused has left already.
        let head = body().u32(40).u32(Op::Destroy as u32).u64(1).bytes(&[0; 24]);
        for _ in 0..self.threads {
            let _ = rustix::io::write(&self.socket, &head.0);
        }
    }
}

impl Drop for Kernel {
    fn drop(&mut self) {
        if let Some(server) = self.server.take()
            && !std::thread::panicking()
        {
            self.destroy();
            server.join().expect("a panic while serving").expect("serving failed");
        }
    }
}

/// `struct fuse_init_in`, with all that a kernel may offer.
pub fn init(major: u32, minor: u32) -> Body {
    body().u32(major).u32(minor).u32(128 << 10).u32(u32::MAX).u32(u32::MAX).bytes(&[0; 44])
}
