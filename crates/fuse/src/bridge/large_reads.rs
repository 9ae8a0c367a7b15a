//! Long reads that the kernel makes ahead of a reader, over io_uring.
//!
//! They come to the queue of the reader's own processor, whose threads are bound to it: daemon and
//! reader would take turns there, and no other processor would have anything to do. Other threads
//! answer them meanwhile, on whatever processor is idle.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{Builder, available_parallelism};

/// Bytes from which waking another thread costs little beside the read itself.
pub(super) const LARGE: u32 = 128 << 10;
/// Threads at most: a sequential reader has two or three such requests under way.
const THREADS_MAX: usize = 4;

type Job = Box<dyn FnOnce() + Send>;

/// Threads that answer long reads. They end with it.
pub(super) struct ReadThreads {
    jobs: Mutex<Sender<Job>>,
}

impl ReadThreads {
    /// `None`: there is one processor, or no thread to be had.
    pub fn start() -> Option<ReadThreads> {
        let processors = available_parallelism().map_or(1, usize::from);
        let (jobs, todo) = channel();
        let todo = Arc::new(Mutex::new(todo));
        let threads = if processors > 1 { processors.min(THREADS_MAX) } else { 0 };
        let started = (0..threads).map(|number| {
            let todo = Arc::clone(&todo);
            Builder::new().name(format!("fuse read {number}")).spawn(move || work(&todo))
        });
        // Fewer of them do it, too.
        let started = started.filter_map(Result::ok).count();
        (started > 0).then(|| ReadThreads { jobs: Mutex::new(jobs) })
    }

    /// Has a read answered.
    pub fn run(&self, job: Job) {
        // OK to ignore: the threads live as long as this, and a job that is dropped answers EIO.
        let _ = self.jobs.lock().unwrap_or_else(PoisonError::into_inner).send(job);
    }
}

fn work(todo: &Mutex<Receiver<Job>>) {
    loop {
        let next = todo.lock().unwrap_or_else(PoisonError::into_inner).recv();
        match next {
            Ok(job) => job(),
            Err(_) => return,
        }
    }
}
