//! A mutual-exclusion lock that may be held across a wait.
//!
//! The value sits in a std mutex in both worlds. In the simulation all tasks share one thread, so
//! a lock that is taken is held by a suspended task: the caller queues up and yields instead of
//! blocking the thread. A task that panics while it holds the lock does not poison it: the
//! panic itself ends the run or the operation.

use std::collections::VecDeque;
use std::fmt;
use std::ops::{Deref, DerefMut};
use std::panic::Location;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{self, PoisonError, TryLockError};

use crate::sim::{self, Wait, Waiter};

/// First-come queue of simulated tasks.
#[derive(Default)]
pub(crate) struct WaiterQueue {
    waiters: sync::Mutex<VecDeque<Waiter>>,
    /// How many there are. All who change it are tasks of one thread.
    len: AtomicUsize,
}

impl WaiterQueue {
    pub(crate) const fn new() -> Self {
        WaiterQueue { waiters: sync::Mutex::new(VecDeque::new()), len: AtomicUsize::new(0) }
    }

    fn change<T>(&self, change: impl FnOnce(&mut VecDeque<Waiter>) -> T) -> T {
        let mut waiters = self.waiters.lock().unwrap_or_else(PoisonError::into_inner);
        let changed = change(&mut waiters);
        self.len.store(waiters.len(), Ordering::Relaxed);
        changed
    }

    pub(crate) fn push(&self, w: Waiter) {
        self.change(|waiters| waiters.push_back(w));
    }

    /// Queues a task that was woken but found the lock taken again: it keeps its place.
    pub(crate) fn requeue(&self, w: Waiter, woken_before: bool) {
        if woken_before {
            self.change(|waiters| waiters.push_front(w));
        } else {
            self.push(w);
        }
    }

    fn pop(&self) -> Option<Waiter> {
        self.change(VecDeque::pop_front)
    }

    /// Wakes the first task that still waits; false if there is none. Real tasks never wait here.
    #[inline]
    pub(crate) fn wake_one(&self) -> bool {
        // Mostly nobody waits: asked where it is called, for locks taken a million times a second.
        self.len.load(Ordering::Relaxed) != 0 && self.wake_next()
    }

    #[cold]
    fn wake_next(&self) -> bool {
        while let Some(w) = self.pop() {
            if sim::wake(w) {
                return true;
            }
        }
        false
    }

    /// Wakes every task that waits now.
    pub(crate) fn wake_all(&self) {
        while self.wake_one() {}
    }
}

/// Mutual exclusion; see the module's text.
pub struct Mutex<T: ?Sized> {
    queue: WaiterQueue,
    made_at: &'static Location<'static>,
    value: sync::Mutex<T>,
}

/// Access to the value of a [`Mutex`]; unlocks when dropped.
pub struct MutexGuard<'a, T: ?Sized> {
    pub(crate) lock: &'a Mutex<T>,
    /// `None` only while a condition variable has it.
    pub(crate) inner: Option<sync::MutexGuard<'a, T>>,
}

impl<T> Mutex<T> {
    /// A new, free lock around `value`.
    #[track_caller]
    pub const fn new(value: T) -> Self {
        Mutex {
            queue: WaiterQueue::new(),
            made_at: Location::caller(),
            value: sync::Mutex::new(value),
        }
    }

    /// Takes the value out.
    pub fn into_inner(self) -> T {
        self.value.into_inner().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T: ?Sized> Mutex<T> {
    /// Waits for the lock and takes it.
    #[track_caller]
    #[inline]
    pub fn lock(&self) -> MutexGuard<'_, T> {
        if !sim::is_simulated() {
            let inner = self.value.lock().unwrap_or_else(PoisonError::into_inner);
            return MutexGuard { lock: self, inner: Some(inner) };
        }
        self.lock_fifo()
    }

    /// [`lock`](Self::lock) in a simulation.
    #[track_caller]
    #[cold]
    fn lock_fifo(&self) -> MutexGuard<'_, T> {
        let called_at = Location::caller();
        let mut woken = false;
        sim::pass_point(true);
        loop {
            if let Some(guard) = self.try_lock() {
                return guard;
            }
            let wait = Wait { what: "a mutex", made_at: self.made_at, called_at };
            sim::block(wait, None, |w| self.queue.requeue(w, woken));
            woken = true;
        }
    }

    /// Takes the lock if it is free.
    pub fn try_lock(&self) -> Option<MutexGuard<'_, T>> {
        let inner = match self.value.try_lock() {
            Ok(inner) => inner,
            Err(TryLockError::Poisoned(p)) => p.into_inner(),
            Err(TryLockError::WouldBlock) => return None,
        };
        Some(MutexGuard { lock: self, inner: Some(inner) })
    }

    /// The value, without locking: the exclusive borrow proves that nobody else has it.
    pub fn get_mut(&mut self) -> &mut T {
        self.value.get_mut().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<'a, T: ?Sized> MutexGuard<'a, T> {
    /// Unlocks and returns the lock: the first half of waiting on a condition variable.
    pub(crate) fn release(mut self) -> &'a Mutex<T> {
        let lock = self.lock;
        self.unlock();
        lock
    }

    fn unlock(&mut self) {
        if self.inner.take().is_some() {
            self.lock.queue.wake_one();
        }
    }
}

impl<T: ?Sized> Drop for MutexGuard<'_, T> {
    fn drop(&mut self) {
        self.unlock();
    }
}

impl<T: ?Sized> Deref for MutexGuard<'_, T> {
    type Target = T;
    fn deref(&self) -> &T {
        // OK to unwrap: a guard in a caller's hands is always locked.
        self.inner.as_ref().unwrap()
    }
}

impl<T: ?Sized> DerefMut for MutexGuard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        // OK to unwrap: a guard in a caller's hands is always locked.
        self.inner.as_mut().unwrap()
    }
}

impl<T: ?Sized + fmt::Debug> fmt::Debug for MutexGuard<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&**self, f)
    }
}

impl<T: Default> Default for Mutex<T> {
    fn default() -> Self {
        Mutex::new(T::default())
    }
}

impl<T: ?Sized + fmt::Debug> fmt::Debug for Mutex<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.try_lock() {
            Some(guard) => f.debug_tuple("Mutex").field(&&*guard).finish(),
            None => f.write_str("Mutex(<locked>)"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use std::time::Duration;

    #[test]
    fn excludes_across_a_wait_in_both_worlds() {
        fn body() -> u64 {
            let m = Arc::new(Mutex::new(0u64));
            let tasks: Vec<_> = (0..8)
                .map(|i| {
                    let m = Arc::clone(&m);
                    crate::spawn(format!("t{i}"), move || {
                        for _ in 0..10 {
                            let mut v = m.lock();
                            let before = *v;
                            crate::sleep(Duration::from_micros(10));
                            *v = before + 1;
                        }
                    })
                })
                .collect();
            for t in tasks {
                t.join().unwrap();
            }
            *m.lock()
        }
        assert_eq!(body(), 80);
        assert_eq!(crate::Sim::new(3).run(body), Ok(80));
    }
}
