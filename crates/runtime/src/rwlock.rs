//! A readers-writer lock that may be held across a wait; built like [`Mutex`](crate::Mutex).
//!
//! In the simulation writers are not starved by construction: waiters are woken in the order in
//! which they came, and a reader that arrives while a writer waits queues up behind it.

use std::fmt;
use std::ops::{Deref, DerefMut};
use std::panic::Location;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{self, PoisonError, TryLockError};

use crate::mutex::WaiterQueue;
use crate::sim::{self, Wait};

/// Many readers or one writer.
pub struct RwLock<T: ?Sized> {
    queue: WaiterQueue,
    /// Simulated writers that wait; readers let them pass.
    writers_waiting: AtomicUsize,
    made_at: &'static Location<'static>,
    value: sync::RwLock<T>,
}

/// Shared access; unlocks when dropped.
pub struct RwLockReadGuard<'a, T: ?Sized> {
    lock: &'a RwLock<T>,
    inner: Option<sync::RwLockReadGuard<'a, T>>,
}

/// Exclusive access; unlocks when dropped.
pub struct RwLockWriteGuard<'a, T: ?Sized> {
    lock: &'a RwLock<T>,
    inner: Option<sync::RwLockWriteGuard<'a, T>>,
}

impl<T> RwLock<T> {
    /// A new, free lock around `value`.
    #[track_caller]
    pub const fn new(value: T) -> Self {
        RwLock {
            queue: WaiterQueue::new(),
            writers_waiting: AtomicUsize::new(0),
            made_at: Location::caller(),
            value: sync::RwLock::new(value),
        }
    }
}

impl<T: ?Sized> RwLock<T> {
    /// Waits until no writer has the lock.
    #[track_caller]
    pub fn read(&self) -> RwLockReadGuard<'_, T> {
        if !sim::is_simulated() {
            let inner = self.value.read().unwrap_or_else(PoisonError::into_inner);
            return RwLockReadGuard { lock: self, inner: Some(inner) };
        }
        let wait = self.wait("a readers-writer lock (to read)", Location::caller());
        sim::pass_point(true);
        let mut queued = false;
        loop {
            if queued || self.writers_waiting.load(Ordering::Relaxed) == 0 {
                let inner = match self.value.try_read() {
                    Ok(inner) => Some(inner),
                    Err(TryLockError::Poisoned(p)) => Some(p.into_inner()),
                    Err(TryLockError::WouldBlock) => None,
                };
                if inner.is_some() {
                    if queued {
                        // Others may have been waiting for the same moment.
                        self.queue.wake_one();
                    }
                    return RwLockReadGuard { lock: self, inner };
                }
            }
            sim::block(wait, None, |w| self.queue.requeue(w, queued));
            queued = true;
        }
    }

    /// Waits until nobody has the lock.
    #[track_caller]
    pub fn write(&self) -> RwLockWriteGuard<'_, T> {
        if !sim::is_simulated() {
            let inner = self.value.write().unwrap_or_else(PoisonError::into_inner);
            return RwLockWriteGuard { lock: self, inner: Some(inner) };
        }
        let wait = self.wait("a readers-writer lock (to write)", Location::caller());
        sim::pass_point(true);
        let mut woken = false;
        loop {
            match self.value.try_write() {
                Ok(inner) => return RwLockWriteGuard { lock: self, inner: Some(inner) },
                Err(TryLockError::Poisoned(p)) => {
                    return RwLockWriteGuard { lock: self, inner: Some(p.into_inner()) };
                }
                Err(TryLockError::WouldBlock) => {}
            }
            let waiting = WriterCount::new(&self.writers_waiting);
            sim::block(wait, None, |w| self.queue.requeue(w, woken));
            drop(waiting);
            woken = true;
        }
    }

    fn wait(&self, what: &'static str, called_at: &'static Location<'static>) -> Wait {
        Wait { what, made_at: self.made_at, called_at }
    }
}

/// Counts a waiting writer, also if its task is unwound while it waits.
struct WriterCount<'a>(&'a AtomicUsize);

impl<'a> WriterCount<'a> {
    fn new(count: &'a AtomicUsize) -> Self {
        count.fetch_add(1, Ordering::Relaxed);
        WriterCount(count)
    }
}

impl Drop for WriterCount<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl<T: ?Sized> Drop for RwLockReadGuard<'_, T> {
    fn drop(&mut self) {
        self.inner = None;
        self.lock.queue.wake_one();
    }
}

impl<T: ?Sized> Drop for RwLockWriteGuard<'_, T> {
    fn drop(&mut self) {
        self.inner = None;
        self.lock.queue.wake_one();
    }
}

impl<T: ?Sized> Deref for RwLockReadGuard<'_, T> {
    type Target = T;
    fn deref(&self) -> &T {
        // OK to unwrap: emptied only by drop.
        self.inner.as_ref().unwrap()
    }
}

impl<T: ?Sized> Deref for RwLockWriteGuard<'_, T> {
    type Target = T;
    fn deref(&self) -> &T {
        // OK to unwrap: emptied only by drop.
        self.inner.as_ref().unwrap()
    }
}

impl<T: ?Sized> DerefMut for RwLockWriteGuard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        // OK to unwrap: emptied only by drop.
        self.inner.as_mut().unwrap()
    }
}

impl<T: Default> Default for RwLock<T> {
    fn default() -> Self {
        RwLock::new(T::default())
    }
}

impl<T: ?Sized> fmt::Debug for RwLock<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RwLock(made at {})", self.made_at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Nanos, Sim, now, sleep, spawn};
    use std::sync::Arc;
    use std::time::Duration;

    #[test]
    fn readers_share_and_a_waiting_writer_goes_before_later_readers() {
        let log = Sim::new(0).run(|| {
            let lock = Arc::new(RwLock::new(()));
            let (tx, rx) = crate::channel();
            for (name, start_ms, write) in
                [("r1", 0, false), ("r2", 0, false), ("w", 1, true), ("r3", 2, false)]
            {
                let (lock, tx) = (lock.clone(), tx.clone());
                spawn(name, move || {
                    sleep(Duration::from_millis(start_ms));
                    if write {
                        let _g = lock.write();
                        sleep(Duration::from_millis(10));
                    } else {
                        let _g = lock.read();
                        sleep(Duration::from_millis(10));
                    }
                    tx.send((name, now()));
                });
            }
            drop(tx);
            std::iter::from_fn(|| rx.recv()).collect::<Vec<_>>()
        });
        let ms = |n: u64| Nanos(n * 1_000_000);
        assert_eq!(log, Ok(vec![("r1", ms(10)), ("r2", ms(10)), ("w", ms(20)), ("r3", ms(30))]));
    }
}
