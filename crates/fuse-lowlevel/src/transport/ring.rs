//! Requests over io_uring (`fs/fuse/dev_uring.c`, Linux 6.14).
//!
//! The kernel has a queue for each processor that there may be. An entry of a queue is memory for
//! one request and its answer. It is registered once; from then on one command answers a request
//! and asks for the next. Each thread has a ring and an entry of its own, so that no request waits
//! in an entry whose thread waits for storage. The queues of processors that do not run have one
//! thread together: they are used only after such a processor was started.

use std::io;
use std::os::fd::{AsFd, AsRawFd};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{Builder, scope};

use io_uring::{IoUring, cqueue, opcode as sqe, squeue, types};
use rustix::fs::FileType;
use rustix::io::Errno;
use rustix::thread::{CpuSet, gettid, sched_setaffinity};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use super::device::Device;
use super::ring_answer::{
    AnswerRoom, LateAnswers, LateMessage, RequestEnd, RingAnswer, SHORT, answered,
};
use super::ring_memory::{EntryMemory, HEADERS, IN_OUT, OPERATION};
use super::{Transport, TransportChoice, processors};
use crate::protocol::{
    Arguments, Capabilities, InHeader, OUT_HEADER, Offer, OutHeader, Wishes, opcode,
};
use crate::session::{Config, Dispatcher, Handler};

/// Where root switches it on.
const SWITCH: &str = "/sys/module/fuse/parameters/enable_uring";
// FUSE_IO_URING_CMD_*.
const REGISTER: u32 = 1;
const COMMIT_AND_FETCH: u32 = 2;
/// Where a submission has the number of elements at its address (`struct io_uring_sqe`).
const SQE_LEN: usize = 24;
/// Submissions that a ring has room for; an entry has one at a time.
const SUBMISSIONS: u32 = 64;
/// Threads of a queue at least: while one waits for storage there is another.
const THREADS_MIN: usize = 2;
/// Entries of a thread that memory is set aside for: one may wait for an answer that comes later.
const ENTRIES: usize = 2;
/// What the threads are to the scheduler (setpriority(2)). A caller that is preempted as soon as
/// its request is there has not gone to sleep, and so is not woken on another processor: creates
/// take less than half the time, if caller and daemon are of one scheduler group.
const NICE: i32 = -5;
/// Marks the completion that says: an answer that comes later has come.
const WAKE: u64 = u64::MAX;

/// `struct fuse_uring_cmd_req`, and zeros up to the command's size.
#[derive(IntoBytes, Immutable)]
#[repr(C)]
struct CommandArguments {
    flags: u64,
    commit_id: u64,
    qid: u16,
    padding: [u8; 6],
    rest: [u64; 7],
}

/// `struct fuse_uring_ent_in_out`.
#[derive(FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
struct InOut {
    flags: u64,
    commit_id: u64,
    payload_sz: u32,
    padding: u32,
    reserved: u64,
}

const _: () = assert!(size_of::<CommandArguments>() == 80);
const _: () = assert!(IN_OUT + size_of::<InOut>() == HEADERS);

/// The rings of a connection, ready to be registered.
pub(crate) struct Rings {
    threads: Vec<RingThread>,
    queues: usize,
    payload: usize,
}

struct Entry {
    /// `None`: who answers later has it.
    memory: Option<EntryMemory>,
    vectors: Box<[libc::iovec; 2]>,
    queue: u16,
    commit_id: u64,
    unique: u64,
}

/// What one thread has. The ring goes before the memory that its commands name.
struct RingThread {
    uring: IoUring<squeue::Entry128, cqueue::Entry>,
    entries: Vec<Entry>,
    /// The processor that it is bound to.
    processor: Option<usize>,
    device: Arc<Device>,
    late: Arc<LateAnswers>,
    /// Entries that the kernel has or will get back.
    live: usize,
    /// Entries whose answer comes later.
    owed: usize,
    payload: usize,
    /// Arguments of the request that is answered; the payload has its answer.
    arguments: Vec<u8>,
}

// SAFETY: the vectors point into memory that the entry owns.
#[expect(unsafe_code, reason = "pointers to memory that is owned")]
unsafe impl Send for Entry {}

impl Rings {
    /// The rings for what is wanted; or why there are none, if they are not demanded.
    pub fn wanted(
        config: &Config,
        offer: &Offer,
        wishes: &Wishes,
        device: &Arc<Device>,
    ) -> Result<Result<Rings, Option<String>>, String> {
        if config.transport == TransportChoice::Device {
            return Ok(Err(None));
        }
        match Rings::new(config, offer, wishes, device) {
            Ok(rings) => Ok(Ok(rings)),
            Err(why) if config.transport == TransportChoice::Ring => Err(why),
            Err(why) => Ok(Err(Some(why))),
        }
    }

    fn new(
        config: &Config,
        offer: &Offer,
        wishes: &Wishes,
        device: &Arc<Device>,
    ) -> Result<Rings, String> {
        let stat = rustix::fs::fstat(device.as_fd()).map_err(|e| e.to_string())?;
        if FileType::from_raw_mode(stat.st_mode) != FileType::CharacterDevice {
            return Err("the connection is none of the kernel's".to_owned());
        }
        if !offer.capabilities.contains(Capabilities::OVER_IO_URING) {
            return Err(match std::fs::exists(SWITCH) {
                Ok(true) => format!("the kernel's switch is off; as root: echo Y > {SWITCH}"),
                _ => "the kernel has none for FUSE (Linux 6.14 has)".to_owned(),
            });
        }
        let payload = (wishes.max_write as usize).next_multiple_of(4096).max(8192);
        let (queues, online) = (processors::possible(), processors::online());
        if online.last().is_some_and(|last| *last >= queues) {
            return Err("the numbers of the processors have gaps".to_owned());
        }
        let wanted = config.threads.div_ceil(online.len().max(1)).max(THREADS_MIN);
        let may = (config.buffers / (ENTRIES * payload) as u64) as usize;
        let offline = queues - online.len();
        // Memory for processors that do not run is not touched, and so costs nothing.
        let per_queue = wanted.min(may / online.len().max(1));
        if per_queue == 0 {
            let (least, processors) = ((online.len() * ENTRIES * payload) >> 20, online.len());
            return Err(format!("its buffers need {least} MiB for {processors} processors"));
        }
        // Once the kernel has been told, a queue without its thread would block all.
        let threads = per_queue * online.len() + usize::from(offline > 0);
        can_start(threads).map_err(|e| format!("it needs {threads} threads: {e}"))?;
        let mut rings = Rings { threads: Vec::new(), queues, payload };
        let failed = |e: io::Error| format!("it cannot be had: {e}");
        for processor in &online {
            for _ in 0..per_queue {
                rings.add(device, Some(*processor), &[*processor]).map_err(failed)?;
            }
        }
        let others: Vec<usize> = (0..queues).filter(|queue| !online.contains(queue)).collect();
        if !others.is_empty() {
            rings.add(device, None, &others).map_err(failed)?;
        }
        Ok(rings)
    }

    fn add(
        &mut self,
        device: &Arc<Device>,
        processor: Option<usize>,
        queues: &[usize],
    ) -> io::Result<()> {
        // Disabled until the thread that is to have it has begun: it alone may use it.
        let uring = IoUring::<squeue::Entry128>::builder()
            .setup_r_disabled()
            .setup_single_issuer()
            .setup_defer_taskrun()
            .build(SUBMISSIONS.max(queues.len() as u32 + 2))?;
        let entry = |queue: &usize| Entry::new(*queue, self.payload);
        let entries = queues.iter().map(entry).collect::<io::Result<Vec<Entry>>>()?;
        let late = LateAnswers::new()?;
        self.threads.push(RingThread {
            uring,
            entries,
            processor,
            device: Arc::clone(device),
            late,
            live: 0,
            owed: 0,
            payload: self.payload,
            arguments: Vec::new(),
        });
        Ok(())
    }

    /// What they are.
    pub fn transport(&self) -> Transport {
        let bound = self.threads.iter().filter(|thread| thread.processor.is_some());
        let entries: usize = bound.map(|thread| thread.entries.len()).sum();
        let buffers = (entries * ENTRIES * self.payload) as u64;
        Transport::Ring { queues: self.queues, entries, buffers }
    }
}

/// Serves a connection by its rings, and what does not come over them by `rest`, until its end.
///
/// # Errors
/// The connection broke; a thread could not be had.
pub(crate) fn serve<H: Handler>(
    rings: Rings,
    to: &Dispatcher<'_, H>,
    rest: impl FnOnce() -> io::Result<()>,
) -> io::Result<()> {
    scope(|scope| {
        let mut workers = Vec::with_capacity(rings.threads.len());
        for (number, mut thread) in rings.threads.into_iter().enumerate() {
            let work = move || {
                let outcome = thread.serve(to);
                if let Err(e) = &outcome {
                    tracing::error!("requests of a processor are answered no more: {e}");
                    // The kernel may still write to their memory.
                    std::mem::take(&mut thread.entries).into_iter().for_each(std::mem::forget);
                }
                outcome
            };
            workers.push(
                Builder::new().name(format!("fuse ring {number}")).spawn_scoped(scope, work)?,
            );
        }
        let outcome = rest();
        let joined = workers.into_iter().map(|worker| {
            worker.join().unwrap_or_else(|_| Err(io::Error::other("a thread that serves is gone")))
        });
        let joined: Vec<io::Result<()>> = joined.collect();
        outcome?;
        joined.into_iter().collect()
    })
}

/// Whether so many threads can be had at the same time: they are tried.
fn can_start(threads: usize) -> io::Result<()> {
    let (go, wait) = std::sync::mpsc::channel::<()>();
    let wait = Mutex::new(wait);
    scope(|scope| {
        let idle = || {
            // Until all have been tried.
            let _ = wait.lock().unwrap_or_else(PoisonError::into_inner).recv();
        };
        let start = || Builder::new().name("fuse ring".into()).spawn_scoped(scope, idle).map(drop);
        let started = (0..threads).try_for_each(|_| start());
        drop(go);
        started
    })
}

impl Entry {
    fn new(queue: usize, payload: usize) -> io::Result<Entry> {
        let memory = EntryMemory::new(payload)?;
        let vectors = Box::new(memory.io_vectors());
        // The command has 16 bits for it.
        let queue = u16::try_from(queue).map_err(|_| io::ErrorKind::Unsupported)?;
        Ok(Entry { memory: Some(memory), vectors, queue, commit_id: 0, unique: 0 })
    }
}

impl RingThread {
    fn serve<H: Handler>(&mut self, to: &Dispatcher<'_, H>) -> io::Result<()> {
        self.bind();
        self.uring.submitter().register_enable_rings()?;
        self.wait_for_late()?;
        for index in 0..self.entries.len() {
            self.register(index)?;
        }
        let mut done: Vec<(u64, i32)> = Vec::new();
        while self.live > 0 {
            match self.uring.submit_and_wait(1) {
                Ok(_) => {}
                Err(e) if matches!(Errno::from_io_error(&e), Some(Errno::INTR | Errno::AGAIN)) => {}
                Err(e) => return Err(e),
            }
            done.extend(self.uring.completion().map(|c| (c.user_data(), c.result())));
            for (which, result) in done.drain(..) {
                match which {
                    WAKE => self.answer_late()?,
                    _ if result < 0 => self.ended(result)?,
                    // OK to cast: it is the index that was given.
                    index => self.request(index as usize, to)?,
                }
            }
        }
        Ok(())
    }

    /// Runs where the callers of its queue run. Where that is not allowed it runs anywhere.
    fn bind(&self) {
        let Some(processor) = self.processor.filter(|p| *p < CpuSet::MAX_CPU) else { return };
        let mut set = CpuSet::new();
        set.set(processor);
        if let Err(e) = sched_setaffinity(None, &set) {
            tracing::debug!("a thread is not bound to processor {processor}: {e}");
        }
        // OK to ignore: only root may.
        let _ = rustix::process::setpriority_process(Some(gettid()), NICE);
    }

    /// An entry is the kernel's no more.
    fn ended(&mut self, result: i32) -> io::Result<()> {
        self.live -= 1;
        match Errno::from_raw_os_error(-result) {
            // It is unmounted, or aborted.
            Errno::NOTCONN | Errno::CONNABORTED | Errno::CANCELED | Errno::NODEV => Ok(()),
            e => Err(e.into()),
        }
    }

    /// A request has come in an entry.
    fn request<H: Handler>(&mut self, index: usize, to: &Dispatcher<'_, H>) -> io::Result<()> {
        let has_spare = self.owed + 1 < self.entries.len().max(ENTRIES);
        let Some(entry) = self.entries.get_mut(index) else { return Ok(()) };
        let Some(mut memory) = entry.memory.take() else { return Ok(()) };
        let (headers, payload) = memory.parts();
        // OK to unwrap: the headers are longer.
        let (asked, _) = InHeader::read_from_prefix(&headers[..]).unwrap();
        let (in_out, _) = InOut::read_from_prefix(&headers[IN_OUT..]).unwrap();
        (entry.commit_id, entry.unique) = (in_out.commit_id, asked.unique);
        let len = (in_out.payload_sz as usize).min(payload.len());
        let mut operation = [0; IN_OUT - OPERATION];
        operation.copy_from_slice(&headers[OPERATION..IN_OUT]);
        let mut short = [0; SHORT];
        let late = (&self.late, has_spare);
        let mut own;
        let outcome = if asked.opcode == opcode::WRITE {
            let arguments = Arguments::of_ring(&operation, &payload[..len]);
            let room = AnswerRoom::Short(&mut short);
            let outcome = answered(to, &asked, arguments, RingAnswer::new(late, index, room));
            payload[..SHORT].copy_from_slice(&short);
            own = Some(memory);
            outcome
        } else {
            self.arguments.clear();
            self.arguments.extend_from_slice(&payload[..len]);
            own = Some(memory);
            let arguments = Arguments::of_ring(&operation, &self.arguments);
            let room = AnswerRoom::Payload(&mut own);
            answered(to, &asked, arguments, RingAnswer::new(late, index, room))
        };
        // OK to index: it was just there.
        self.entries[index].memory = own;
        match outcome {
            Some(RequestEnd::Sent { error, len }) => self.commit(index, error, len),
            Some(RequestEnd::Later) => self.owe(index),
            // Of these nothing is waited for, and none comes over a ring.
            None => self.commit(index, -Errno::IO.raw_os_error(), 0),
        }
    }

    /// An answer comes later. The thread goes on with another entry.
    fn owe(&mut self, index: usize) -> io::Result<()> {
        self.owed += 1;
        if self.owed < self.entries.len() {
            return Ok(());
        }
        // OK to index: it is the entry that was just asked. The thread may have several queues.
        let queue = self.entries[index].queue.into();
        self.entries.push(Entry::new(queue, self.payload)?);
        self.register(self.entries.len() - 1)
    }

    fn answer_late(&mut self) -> io::Result<()> {
        for LateMessage { index, error, len, memory, short } in self.late.take() {
            self.owed -= 1;
            let Some(entry) = self.entries.get_mut(index) else { continue };
            entry.memory = memory.or(entry.memory.take());
            if let (Some(memory), false) = (&mut entry.memory, short.is_empty()) {
                memory.parts().1[..short.len()].copy_from_slice(&short);
            }
            self.commit(index, error, len)?;
        }
        self.wait_for_late()
    }

    fn wait_for_late(&mut self) -> io::Result<()> {
        let fd = types::Fd(self.late.wake().as_raw_fd());
        // POLLIN
        let poll: squeue::Entry128 = sqe::PollAdd::new(fd, 1).build().user_data(WAKE).into();
        self.push(&poll)
    }

    /// Gives the kernel an entry.
    #[expect(unsafe_code, reason = "a field that the crate has no way to set")]
    fn register(&mut self, index: usize) -> io::Result<()> {
        let entry = &self.entries[index];
        let vectors: *const [libc::iovec; 2] = &raw const *entry.vectors;
        let at = vectors.expose_provenance() as u64;
        let mut command = self.command(REGISTER, entry.queue, 0, index, Some(at));
        // SAFETY: the crate's entry is the kernel's structure of 128 bytes (`repr(C)`); the field
        // is within it and aligned.
        unsafe { (&raw mut command).cast::<u8>().add(SQE_LEN).cast::<u32>().write(2) };
        self.live += 1;
        self.push(&command)
    }

    /// Gives the kernel an answer, whose data is in the payload, and the entry back.
    fn commit(&mut self, index: usize, error: i32, len: usize) -> io::Result<()> {
        let entry = &mut self.entries[index];
        let Some(memory) = &mut entry.memory else {
            return Err(io::Error::other("an answer without its memory"));
        };
        let (headers, _) = memory.parts();
        // OK to cast: it has fitted into the payload.
        let len = len as u32;
        let header = OutHeader { len: OUT_HEADER as u32 + len, error, unique: entry.unique };
        headers[..OUT_HEADER].copy_from_slice(header.as_bytes());
        let commit_id = entry.commit_id;
        let in_out = InOut { flags: 0, commit_id, payload_sz: len, padding: 0, reserved: 0 };
        headers[IN_OUT..].copy_from_slice(in_out.as_bytes());
        let command =
            self.command(COMMIT_AND_FETCH, self.entries[index].queue, commit_id, index, None);
        self.push(&command)
    }

    fn command(
        &self,
        number: u32,
        qid: u16,
        commit_id: u64,
        index: usize,
        addr: Option<u64>,
    ) -> squeue::Entry128 {
        let arguments =
            CommandArguments { flags: 0, commit_id, qid, padding: [0; 6], rest: [0; 7] };
        let fd = types::Fd(self.device.as_fd().as_raw_fd());
        let command = sqe::UringCmd80::new(fd, number).cmd(zerocopy::transmute!(arguments));
        command.addr(addr).build().user_data(index as u64)
    }

    #[expect(unsafe_code, reason = "a command that names memory")]
    fn push(&mut self, command: &squeue::Entry128) -> io::Result<()> {
        loop {
            // SAFETY: what a command names is the entry's memory, which lives as long as the ring;
            // nobody looks at it until the command has completed.
            if unsafe { self.uring.submission().push(command) }.is_ok() {
                return Ok(());
            }
            self.uring.submit()?;
        }
    }
}
