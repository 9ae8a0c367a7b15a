//! The write-back task: by age, and above the background limit.
//!
//! It sleeps without a timer while nothing is dirty, so that a simulation can detect idleness. It
//! holds a reference to the cache only while it works; when the cache is dropped, the task ends.

use std::sync::{Arc, Weak};

use steadfast_runtime::{Condvar, Mutex, Nanos, now, spawn};

use crate::{FileKey, PageCache};

#[derive(Default)]
struct FlusherState {
    woken: bool,
    stop: bool,
    running: bool,
}

/// Wakes and stops the task.
pub(crate) struct FlusherControl {
    state: Mutex<FlusherState>,
    changed: Condvar,
}

impl FlusherControl {
    pub(crate) fn new() -> Self {
        FlusherControl { state: Mutex::new(FlusherState::default()), changed: Condvar::new() }
    }

    /// Wakes the task.
    pub(crate) fn wake(&self) {
        self.state.lock().woken = true;
        self.changed.notify_all();
    }

    /// Stops the task; does not wait for it.
    pub(crate) fn stop(&self) {
        self.state.lock().stop = true;
        self.changed.notify_all();
    }

    /// Whether the task runs.
    pub(crate) fn is_running(&self) -> bool {
        let state = self.state.lock();
        state.running && !state.stop
    }

    fn is_stopped(&self) -> bool {
        self.state.lock().stop
    }

    /// Waits for a wake-up or the deadline; false when the task must end.
    fn wait(&self, deadline: Option<Nanos>) -> bool {
        let mut state = self.state.lock();
        while !state.stop && !state.woken {
            match deadline {
                None => state = self.changed.wait(state),
                Some(at) => {
                    let left = at.since(now());
                    if left.is_zero() {
                        break;
                    }
                    state = self.changed.wait_timeout(state, left).0;
                }
            }
        }
        state.woken = false;
        !state.stop
    }
}

impl PageCache {
    /// Starts the write-back task. Does nothing if it runs.
    pub fn start(&self) {
        let mut task = self.task.lock();
        if task.is_some() {
            return;
        }
        {
            let mut control = self.control.state.lock();
            (control.stop, control.running) = (false, true);
        }
        let (control, cache) = (Arc::clone(&self.control), Weak::clone(&self.me));
        *task = Some(spawn("write-back", move || run(&control, &cache)));
    }

    /// Stops the write-back task and waits for what is in flight. Dirty pages stay: flush first.
    /// Writers go on, doing the task's work themselves where they would wait for it.
    pub fn shutdown(&self) {
        let task = self.task.lock().take();
        self.control.stop();
        // With the lock: a writer that has just found the task alive is waiting by now.
        drop(self.state.lock());
        self.room.notify_all();
        if let Some(task) = task
            && let Err(panicked) = task.join()
        {
            panicked.resume();
        }
        let mut state = self.state.lock();
        // Nobody waits for that time any more.
        state.periodic_at = None;
        while state.writeback_pages > 0 {
            state = self.room.wait(state);
        }
    }

    /// Writes what is due. Returns the next deadline.
    fn write_due(&self) -> Option<Nanos> {
        let interval = self.state.lock().limits.interval;
        if let Some(interval) = interval {
            let due = {
                let mut state = self.state.lock();
                let at = *state.periodic_at.get_or_insert_with(|| now() + interval);
                at <= now()
            };
            if due {
                self.write_aged();
                self.state.lock().periodic_at = Some(now() + interval);
            }
        }
        while !self.control.is_stopped() && self.is_over_background_limit() {
            if self.write_pass() == 0 {
                let state = self.state.lock();
                if state.writeback_pages + state.loading_pages == 0 {
                    break;
                }
                drop(self.room.wait(state));
            }
        }
        let mut state = self.state.lock();
        if state.dirty_pages == 0 {
            state.periodic_at = None;
        }
        state.periodic_at
    }

    fn is_over_background_limit(&self) -> bool {
        let state = self.state.lock();
        state.dirty_pages > 0
            && (state.dirty_pages > state.limits.background
                || state.throttle.has_waiters()
                || state.starved > 0)
    }

    /// Writes all files that have been dirty for long enough.
    fn write_aged(&self) {
        let begun = now();
        let (mut files, cutoff) = {
            let state = self.state.lock();
            let expire = state.limits.expire;
            let aged = state.dirty_files.iter().take_while(|(at, _)| begun.since(*at) >= expire);
            (aged.map(|(_, file)| *file).collect::<Vec<_>>(), state.dirty_seq.get())
        };
        while !files.is_empty() && !self.control.is_stopped() {
            files.retain(|file| {
                let more = self.write_chunk(*file, cutoff) > 0;
                if !more {
                    self.state.lock().restart_age(*file, cutoff, begun);
                }
                more
            });
        }
    }

    /// Writes dirty files in turn, the longest dirty first, until dirty memory is below the limit.
    /// Returns the pages whose write was started.
    pub(crate) fn write_pass(&self) -> u64 {
        let (files, cutoff) = {
            let state = self.state.lock();
            let files: Vec<FileKey> = state.dirty_files.iter().map(|(_, file)| *file).collect();
            (files, state.dirty_seq.get())
        };
        let mut issued = 0;
        for file in files {
            issued += self.write_chunk(file, cutoff);
            if !self.is_over_background_limit() {
                break;
            }
        }
        issued
    }

    /// One file's turn: continues where the last one ended, and wraps at the end.
    fn write_chunk(&self, file: FileKey, cutoff: u64) -> u64 {
        let (chunk, mut from) = {
            let state = self.state.lock();
            (state.limits.chunk, state.files.get(&file).map_or(0, |f| f.writeback_next))
        };
        let mut issued = 0;
        let mut wrapped = from == 0;
        while issued < chunk {
            match self.write_batch(file, from..u64::MAX, cutoff, chunk - issued) {
                Some(batch) => {
                    issued += batch.count;
                    from = batch.last + 1;
                }
                None if wrapped => break,
                None => (from, wrapped) = (0, true),
            }
        }
        if let Some(f) = self.state.lock().files.get_mut(&file) {
            f.writeback_next = from;
        }
        issued
    }
}

/// Marks the task as ended, also after a panic: nothing must wait for it any more.
struct EndOfTask<'a>(&'a FlusherControl, &'a Weak<PageCache>);

impl Drop for EndOfTask<'_> {
    fn drop(&mut self) {
        self.0.state.lock().running = false;
        if let Some(cache) = self.1.upgrade() {
            drop(cache.state.lock());
            cache.room.notify_all();
        }
    }
}

fn run(control: &FlusherControl, cache: &Weak<PageCache>) {
    let _end = EndOfTask(control, cache);
    let mut deadline = None;
    while control.wait(deadline) {
        let Some(cache) = cache.upgrade() else { return };
        deadline = cache.write_due();
    }
}
