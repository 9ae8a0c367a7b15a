//! The threads that read requests from /dev/fuse and answer them.
//!
//! Each thread that waits for a request is woken in turn by the kernel, on whatever processor it
//! last ran, so many waiting threads are slower than few (measured: 16 take twice as long as 2).
//! No more wait than there are processors. Who answers one request for longer than a tick waits for
//! storage, presumably, and does not count: another thread is let in for it.

use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{Builder, ScopedJoinHandle, Thread, ThreadId, park, scope};
use std::time::Duration;

use rustix::io::Errno;

use super::device::{Device, DeviceAnswer, receive};
use super::processors;
use crate::protocol::opcode;
use crate::session::{Config, Dispatcher, Handler};

/// How often is looked for threads that wait for storage, while there may be any.
const TICK: Duration = Duration::from_micros(500);
/// So many ticks without any, and nobody looks until all are busy again.
const QUIET_TICKS: u32 = 100;
/// Threads that wait for requests at least: one that answers shall not be alone.
const READERS_MIN: usize = 2;

/// Serves a connection until its end.
///
/// # Errors
/// The connection broke; a thread could not be had.
pub(crate) fn serve<H: Handler>(
    device: &Arc<Device>,
    to: &Dispatcher<'_, H>,
    max_write: u32,
    config: &Config,
) -> io::Result<()> {
    let threads = config.threads.max(1);
    let devices: Vec<Arc<Device>> = (0..threads)
        .map(|i| if i > 0 && config.clone_device { device.cloned() } else { Ok(device.clone()) })
        .collect::<io::Result<_>>()?;
    let pool = Pool::new(threads);
    scope(|scope| {
        let mut workers = Vec::with_capacity(threads);
        for (number, device) in devices.iter().enumerate() {
            let pool = &pool;
            let work = move || {
                let outcome = pool.work(number, device, to, max_write);
                pool.end();
                outcome
            };
            match Builder::new().name(format!("fuse {number}")).spawn_scoped(scope, work) {
                Ok(worker) => {
                    pool.started(worker.thread());
                    workers.push(worker);
                }
                // Fewer of them answer, too.
                Err(e) if number > 0 => {
                    tracing::warn!("{number} threads instead of {threads}: {e}");
                    pool.active.fetch_sub(threads - number, Ordering::AcqRel);
                    break;
                }
                Err(e) => return Err(e),
            }
        }
        if threads > READERS_MIN {
            pool.watch();
        }
        // A panic of a thread is one of the handler's, which lets none through.
        let join = |worker: ScopedJoinHandle<'_, io::Result<()>>| {
            worker.join().unwrap_or_else(|_| Err(io::Error::other("a thread that serves is gone")))
        };
        // All of them are waited for; the first error counts.
        let outcomes: Vec<io::Result<()>> = workers.into_iter().map(join).collect();
        outcomes.into_iter().collect()
    })
}

/// The threads of a connection.
struct Pool {
    /// Threads that answer or wait for a request, and how many may.
    active: AtomicUsize,
    limit: AtomicUsize,
    readers: usize,
    /// Of the active ones: those that wait for a request.
    waiting: AtomicUsize,
    /// Of each thread: odd while it answers; changes with each request.
    progress: Vec<AtomicU64>,
    threads: Mutex<Threads>,
    /// Who looks for threads that wait for storage, and whether it does just now.
    watcher: Thread,
    watches: AtomicBool,
    ended: AtomicBool,
}

#[derive(Default)]
struct Threads {
    all: Vec<Thread>,
    /// Those that are not active.
    parked: Vec<ThreadId>,
    /// What they read into before: few threads are active at a time, and only those need memory.
    buffers: Vec<Vec<u8>>,
}

impl Pool {
    /// To be watched by the thread that calls this.
    fn new(threads: usize) -> Pool {
        let readers = processors::online().len().max(READERS_MIN);
        Pool {
            active: AtomicUsize::new(threads),
            limit: AtomicUsize::new(readers),
            readers,
            waiting: AtomicUsize::new(0),
            progress: (0..threads).map(|_| AtomicU64::new(0)).collect(),
            threads: Mutex::default(),
            watcher: std::thread::current(),
            watches: AtomicBool::new(true),
            ended: AtomicBool::new(false),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Threads> {
        self.threads.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn started(&self, thread: &Thread) {
        self.lock().all.push(thread.clone());
    }

    fn work<H: Handler>(
        &self,
        number: usize,
        device: &Arc<Device>,
        to: &Dispatcher<'_, H>,
        max_write: u32,
    ) -> io::Result<()> {
        let mut buffer = Vec::new();
        while self.enter(&mut buffer) {
            if buffer.is_empty() {
                buffer = Device::buffer(max_write);
            }
            let read = device.read(&mut buffer);
            self.leave();
            let message = match read {
                Ok(message) => message,
                Err(Errno::NODEV) => return Ok(()),
                Err(e) => return Err(e.into()),
            };
            let (asked, arguments) = receive(message)?;
            // OK to index: there is one for each thread.
            let progress = &self.progress[number];
            progress.fetch_add(1, Ordering::Relaxed);
            let answer = &mut DeviceAnswer { device: Arc::clone(device), unique: asked.unique };
            to.dispatch(&asked, arguments, answer);
            progress.fetch_add(1, Ordering::Relaxed);
            if asked.opcode == opcode::DESTROY {
                return Ok(());
            }
        }
        Ok(())
    }

    /// Before a thread waits for a request: if too many are active, it waits to be one of them
    /// again, without its buffer. False: it is over.
    fn enter(&self, buffer: &mut Vec<u8>) -> bool {
        let too_many = |active| (active > self.limit.load(Ordering::Acquire)).then(|| active - 1);
        let rests = self.active.fetch_update(Ordering::AcqRel, Ordering::Acquire, too_many).is_ok();
        if rests {
            let me = std::thread::current().id();
            let before = std::mem::take(buffer);
            let mut threads = self.lock();
            threads.parked.push(me);
            threads.buffers.extend((!before.is_empty()).then_some(before));
            drop(threads);
            while !self.ended.load(Ordering::Acquire) && self.lock().parked.contains(&me) {
                park();
            }
            *buffer = self.lock().buffers.pop().unwrap_or_default();
        }
        self.waiting.fetch_add(1, Ordering::AcqRel);
        !self.ended.load(Ordering::Acquire)
    }

    /// A request has come.
    fn leave(&self) {
        let was_last = self.waiting.fetch_sub(1, Ordering::AcqRel) == 1;
        if was_last && !self.watches.swap(true, Ordering::AcqRel) {
            self.watcher.unpark();
        }
    }

    /// One has ended: all do. Who waits for a request learns it from the kernel.
    fn end(&self) {
        self.ended.store(true, Ordering::Release);
        self.lock().all.iter().for_each(Thread::unpark);
        self.watcher.unpark();
    }

    /// As many more are active as may be.
    fn admit(&self) {
        let mut threads = self.lock();
        while self.active.load(Ordering::Acquire) < self.limit.load(Ordering::Acquire)
            && let Some(next) = threads.parked.pop()
        {
            self.active.fetch_add(1, Ordering::AcqRel);
            threads.all.iter().filter(|thread| thread.id() == next).for_each(Thread::unpark);
        }
    }

    /// Lets further threads in for those that wait for storage, until the end.
    fn watch(&self) {
        let mut before: Vec<u64> = vec![0; self.progress.len()];
        let mut quiet = 0;
        while !self.ended.load(Ordering::Acquire) {
            std::thread::sleep(TICK);
            let mut stuck = 0;
            for (progress, before) in self.progress.iter().zip(&mut before) {
                let now = progress.load(Ordering::Relaxed);
                stuck += usize::from(now % 2 == 1 && now == *before);
                *before = now;
            }
            self.limit.store(self.readers + stuck, Ordering::Release);
            self.admit();
            let is_quiet = stuck == 0 && self.waiting.load(Ordering::Acquire) > 0;
            quiet = if is_quiet { quiet + 1 } else { 0 };
            if quiet >= QUIET_TICKS {
                quiet = 0;
                self.rest();
            }
        }
    }

    /// Waits until all are busy, or it is over.
    fn rest(&self) {
        self.watches.store(false, Ordering::Release);
        while !self.watches.load(Ordering::Acquire) && !self.ended.load(Ordering::Acquire) {
            // Some may have become busy before it was said that nobody looks.
            if self.waiting.load(Ordering::Acquire) == 0 {
                self.watches.store(true, Ordering::Release);
                return;
            }
            park();
        }
    }
}
