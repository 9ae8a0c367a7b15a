//! Which requests are parts of one call of the program's.
//!
//! The kernel hands a long write(2) on in pieces, and after a write to a file opened with O_SYNC or
//! O_DSYNC it asks for an fsync by itself. While a request is not answered, the thread that made it
//! is in its system call, and /proc has which call that is, with its arguments: how many bytes
//! are to come is known, whether a sync was asked for by the program, and whether the write must be
//! durable when it returns (the file's flags, RWF_DSYNC): the program's word, not that of who hands
//! its requests on. Where that is not to be seen (asynchronous I/O, a process that must not be
//! looked at, one of another architecture), each request counts as a call, and only what the open
//! file says is known of its promise.

use std::collections::HashMap;
use std::fs::{File, read_to_string};
use std::os::unix::fs::FileExt;
use std::thread::yield_now;
use std::time::{Duration, Instant};

use steadfast_runtime::Requester;
use steadfast_vfs::Fh;

use super::calls::Origin;

/// How long a thread is waited for that has made its request and does not sleep yet.
const PATIENCE: Duration = Duration::from_millis(20);
/// The most that one call writes (the kernel's MAX_RW_COUNT).
const BYTES_MAX: u64 = 0x7fff_f000;
/// The most pieces of memory that a writev takes (UIO_MAXIOV).
const PIECES_MAX: u64 = 1024;
/// Flags of pwritev2 that make the write durable when it returns.
const DURABLE: u64 = (libc::RWF_DSYNC | libc::RWF_SYNC) as u64;

/// A system call that a thread is in.
#[derive(Debug, Clone, PartialEq, Eq)]
struct SystemCall {
    thread: u32,
    number: i64,
    arguments: [u64; 6],
    /// Stack and instruction pointer: two calls from different places are not one.
    place: [u64; 2],
}

impl SystemCall {
    /// The call that the asker waits in.
    fn of(requester: Requester) -> Option<SystemCall> {
        if requester.thread == 0 || requester.write_back {
            return None;
        }
        let path = format!("/proc/{}/syscall", requester.thread);
        let end = Instant::now() + PATIENCE;
        loop {
            let text = read_to_string(&path).ok()?;
            if !text.starts_with("running") {
                return SystemCall::parse(requester.thread, &text);
            }
            if Instant::now() >= end {
                return None;
            }
            yield_now();
        }
    }

    /// From the line in /proc: the number, six arguments, stack and instruction pointer.
    fn parse(thread: u32, line: &str) -> Option<SystemCall> {
        let mut words = line.split_whitespace();
        let number = words.next()?.parse().ok()?;
        let mut hex = || u64::from_str_radix(words.next()?.strip_prefix("0x")?, 16).ok();
        let mut arguments = [0; 6];
        for argument in &mut arguments {
            *argument = hex()?;
        }
        Some(SystemCall { thread, number, arguments, place: [hex()?, hex()?] })
    }

    /// How many bytes it is to write; `None`: it is not a call that writes.
    fn bytes(&self) -> Option<u64> {
        let a = &self.arguments;
        let bytes = match self.number {
            libc::SYS_write | libc::SYS_pwrite64 => a[2],
            libc::SYS_writev | libc::SYS_pwritev | libc::SYS_pwritev2 => {
                lengths(self.thread, a[1], a[2])?
            }
            libc::SYS_sendfile => a[3],
            libc::SYS_splice | libc::SYS_copy_file_range => a[4],
            _ => return None,
        };
        Some(bytes.min(BYTES_MAX))
    }

    /// Whether what it writes is to be durable when it returns.
    fn promises(&self) -> bool {
        let a = &self.arguments;
        let file = match self.number {
            libc::SYS_pwritev2 if a[5] & DURABLE != 0 => return true,
            libc::SYS_splice | libc::SYS_copy_file_range => a[2],
            _ => a[0],
        };
        let flags = read_to_string(format!("/proc/{}/fdinfo/{}", self.thread, file as u32));
        let flags = flags.ok().and_then(|text| {
            let octal = text.lines().find_map(|line| line.strip_prefix("flags:"))?;
            i32::from_str_radix(octal.trim(), 8).ok()
        });
        // O_SYNC has this bit too.
        flags.is_some_and(|flags| flags & libc::O_DSYNC != 0)
    }
}

/// The lengths of `struct iovec`s in the memory of a thread, added up.
fn lengths(thread: u32, at: u64, count: u64) -> Option<u64> {
    const WORD: usize = size_of::<usize>();
    let mut pieces = vec![0; usize::try_from(count.min(PIECES_MAX)).ok()? * 2 * WORD];
    let memory = File::open(format!("/proc/{thread}/mem")).ok()?;
    memory.read_exact_at(&mut pieces, at).ok()?;
    let mut sum = 0u64;
    for piece in pieces.chunks_exact(2 * WORD) {
        let length = usize::from_ne_bytes(piece[WORD..].try_into().ok()?);
        sum = sum.saturating_add(length as u64);
    }
    Some(sum)
}

/// A writing call whose first request has come.
struct Writing {
    call: SystemCall,
    fh: Fh,
    /// The place of its first request in the list of calls.
    first: usize,
    /// Where the next piece begins, and how many bytes may come.
    end: u64,
    left: u64,
    promises: bool,
}

/// The calls that threads are writing in.
#[derive(Default)]
pub(super) struct OngoingWrites {
    /// The last one of each thread.
    writing: HashMap<u32, Writing>,
}

/// A request to write or sync, and the system call that it was seen in.
pub(super) struct Request {
    requester: Option<Requester>,
    call: Option<SystemCall>,
}

impl Request {
    /// The one that this thread works for. It may take a moment: to be asked without locks.
    pub fn current() -> Request {
        let requester = steadfast_runtime::requester();
        Request { requester, call: requester.and_then(SystemCall::of) }
    }

    /// Its thread is not seen to wait for it in a call that writes, as with asynchronous I/O.
    pub fn is_apart(&self) -> bool {
        self.call.as_ref().is_none_or(|call| call.bytes().is_none())
    }

    /// The kernel writes back: no thread of the program's waits for this.
    pub fn is_write_back(&self) -> bool {
        self.requester.is_some_and(|requester| requester.write_back)
    }
}

impl OngoingWrites {
    /// A request to write: whose it is, and whether its asker is to find it durable. `place` will
    /// be its own place in the list of calls.
    pub fn write(
        &mut self,
        request: &Request,
        fh: Fh,
        (offset, len): (u64, u64),
        place: usize,
    ) -> (Origin, bool) {
        if request.is_write_back() {
            return (Origin::Kernel, false);
        }
        let Some(call) = &request.call else { return (Origin::Program, false) };
        let Some(bytes) = call.bytes() else { return (Origin::Program, false) };
        if let Some(open) = self.writing.get_mut(&call.thread)
            && open.call == *call
            && (open.fh, open.end) == (fh, offset)
            && open.left >= len.max(1)
        {
            open.end += len;
            open.left -= len;
            return (Origin::PartOf(open.first), open.promises);
        }
        let promises = call.promises();
        let (end, left) = (offset.saturating_add(len), bytes.saturating_sub(len));
        let writing = Writing { call: call.clone(), fh, first: place, end, left, promises };
        self.writing.insert(call.thread, writing);
        (Origin::Program, promises)
    }

    /// The request has failed, or not all was written: the call ends with that.
    pub fn cut_short(&mut self, request: &Request) {
        if let Some(writing) = request.call.as_ref().and_then(|c| self.writing.get_mut(&c.thread)) {
            writing.left = 0;
        }
    }

    /// A request to sync: whose it is.
    pub fn sync(&self, request: &Request, fh: Fh) -> Origin {
        let Some(call) = &request.call else { return Origin::Program };
        match self.writing.get(&call.thread) {
            Some(open) if open.call == *call && open.fh == fh => Origin::PartOf(open.first),
            _ => Origin::Program,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsRawFd;
    use std::os::unix::fs::OpenOptionsExt;

    use super::*;

    fn request(line: &str) -> Request {
        let call = SystemCall::parse(7, line);
        assert!(call.is_some(), "{line}");
        Request { requester: Some(Requester { thread: 7, write_back: false }), call }
    }

    /// A write of so many bytes, as /proc shows it on this architecture.
    fn write(bytes: u64) -> Request {
        request(&format!("{} 0x3 0x7f00 {bytes:#x} 0x0 0x0 0x0 0x7ffd 0x7f70\n", libc::SYS_write))
    }

    fn sync() -> Request {
        request(&format!("{} 0x3 0x0 0x0 0x0 0x0 0x0 0x7ffd 0x7f90\n", libc::SYS_fdatasync))
    }

    #[test]
    fn pieces_of_a_long_write_are_one_call() {
        let mut asked = OngoingWrites::default();
        let (long, fh) = (write(3000), Fh(1));
        let pieces = [(0, 1024), (1024, 1024), (2048, 952)];
        let origins = pieces.map(|piece| asked.write(&long, fh, piece, 0).0);
        assert_eq!(origins, [Origin::Program, Origin::PartOf(0), Origin::PartOf(0)]);
        // The kernel's own sync, for a file opened with O_DSYNC.
        assert_eq!(asked.sync(&long, fh), Origin::PartOf(0));
        assert_eq!(asked.sync(&sync(), fh), Origin::Program);
        // The same call again, further on: nothing was left to come.
        assert_eq!(asked.write(&long, fh, (3000, 1024), 5).0, Origin::Program);
        assert_eq!(asked.write(&long, Fh(2), (4024, 1024), 6).0, Origin::Program);
    }

    #[test]
    fn equal_writes_that_follow_each_other_are_several() {
        let mut asked = OngoingWrites::default();
        let whole = write(1 << 20);
        for n in 0..3 {
            let origin = asked.write(&whole, Fh(1), (n << 20, 1 << 20), n as usize).0;
            assert_eq!(origin, Origin::Program);
        }
    }

    #[test]
    fn a_call_that_was_cut_short_has_ended() {
        let mut asked = OngoingWrites::default();
        let long = write(3000);
        assert_eq!(asked.write(&long, Fh(1), (0, 1024), 0).0, Origin::Program);
        asked.cut_short(&long);
        assert_eq!(asked.write(&long, Fh(1), (1024, 1024), 1).0, Origin::Program);
    }

    #[test]
    fn who_is_not_known_makes_calls_of_its_own() {
        let mut asked = OngoingWrites::default();
        let unknown = Request { requester: None, call: None };
        assert_eq!(asked.write(&unknown, Fh(1), (0, 10), 0).0, Origin::Program);
        assert_eq!(asked.write(&unknown, Fh(1), (10, 10), 1).0, Origin::Program);
        let kernel = Requester { thread: 0, write_back: true };
        assert_eq!(SystemCall::of(kernel), None);
        let kernel = Request { requester: Some(kernel), call: None };
        assert_eq!(asked.write(&kernel, Fh(1), (20, 10), 2).0, Origin::Kernel);
    }

    #[test]
    fn proc_has_the_call_of_a_thread() {
        let thread = rustix::thread::gettid().as_raw_nonzero().get() as u32;
        // This very thread reads the file: that is its call.
        let call = SystemCall::of(Requester { thread, write_back: false });
        assert_eq!(call.map(|call| call.number), Some(libc::SYS_read));
        let pieces = [std::io::IoSlice::new(b"abc"), std::io::IoSlice::new(b"defgh")];
        assert_eq!(lengths(thread, pieces.as_ptr() as u64, 2), Some(8));
        assert_eq!(lengths(thread, 8, 2), None);
        let folder = tempfile::tempdir().unwrap();
        for (flags, durable) in [(0, false), (libc::O_DSYNC, true), (libc::O_SYNC, true)] {
            let mut options = File::options();
            options.write(true).create(true).custom_flags(flags);
            let file = options.open(folder.path().join("f")).unwrap();
            let number = libc::SYS_pwritev2;
            let mut arguments = [file.as_raw_fd() as u64, 0, 0, 0, 0, 0];
            let call = SystemCall { thread, number, arguments, place: [0; 2] };
            assert_eq!(call.promises(), durable, "{flags:o}");
            arguments[5] = libc::RWF_DSYNC as u64;
            assert!(SystemCall { arguments, ..call }.promises());
        }
    }
}
