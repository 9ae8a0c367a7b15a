//! Condition variables over [`Mutex`](crate::Mutex).

use std::panic::Location;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{self, PoisonError};
use std::time::Duration;

use crate::mutex::WaiterQueue;
use crate::sim::{self, Wait};
use crate::{MutexGuard, Nanos, now};

/// Lets tasks wait until another says that something has changed.
///
/// The notifier has changed the condition under the waiters' lock, as condition variables require.
/// So the waiters have been counted, and notifying without waiters costs no system call.
pub struct Condvar {
    queue: WaiterQueue,
    /// Real tasks that wait. Counted under their lock, so that lock orders this too.
    waiting: AtomicUsize,
    made_at: &'static Location<'static>,
    real: sync::Condvar,
}

impl Condvar {
    /// A condition variable on which nobody waits.
    #[track_caller]
    pub const fn new() -> Self {
        Condvar {
            queue: WaiterQueue::new(),
            waiting: AtomicUsize::new(0),
            made_at: Location::caller(),
            real: sync::Condvar::new(),
        }
    }

    /// Unlocks, waits for a notification, locks again. May return without one: re-check.
    #[track_caller]
    pub fn wait<'a, T>(&self, mut guard: MutexGuard<'a, T>) -> MutexGuard<'a, T> {
        if !sim::is_simulated() {
            let lock = guard.lock;
            // OK to unwrap: a guard in a caller's hands is always locked.
            let inner = guard.inner.take().unwrap();
            self.waiting.fetch_add(1, Ordering::Relaxed);
            let inner = self.real.wait(inner).unwrap_or_else(PoisonError::into_inner);
            self.waiting.fetch_sub(1, Ordering::Relaxed);
            return MutexGuard { lock, inner: Some(inner) };
        }
        self.wait_simulated(guard, None, Location::caller())
    }

    /// Like [`wait`](Self::wait), for at most `limit`. The flag says that the time is up.
    #[track_caller]
    pub fn wait_timeout<'a, T>(
        &self,
        mut guard: MutexGuard<'a, T>,
        limit: Duration,
    ) -> (MutexGuard<'a, T>, bool) {
        if !sim::is_simulated() {
            let lock = guard.lock;
            // OK to unwrap: a guard in a caller's hands is always locked.
            let inner = guard.inner.take().unwrap();
            self.waiting.fetch_add(1, Ordering::Relaxed);
            let (inner, timeout) =
                self.real.wait_timeout(inner, limit).unwrap_or_else(PoisonError::into_inner);
            self.waiting.fetch_sub(1, Ordering::Relaxed);
            return (MutexGuard { lock, inner: Some(inner) }, timeout.timed_out());
        }
        let deadline = now() + limit;
        let guard = self.wait_simulated(guard, Some(deadline), Location::caller());
        (guard, now() >= deadline)
    }

    /// Waits while `condition` holds.
    #[track_caller]
    pub fn wait_while<'a, T>(
        &self,
        mut guard: MutexGuard<'a, T>,
        mut condition: impl FnMut(&mut T) -> bool,
    ) -> MutexGuard<'a, T> {
        while condition(&mut guard) {
            guard = self.wait(guard);
        }
        guard
    }

    fn wait_simulated<'a, T>(
        &self,
        guard: MutexGuard<'a, T>,
        deadline: Option<Nanos>,
        called_at: &'static Location<'static>,
    ) -> MutexGuard<'a, T> {
        let wait = Wait { what: "a condition variable", made_at: self.made_at, called_at };
        let lock = guard.lock;
        sim::block(wait, deadline, |w| {
            self.queue.push(w);
            // One thread: nobody can notify between the unlock and the suspension.
            guard.release();
        });
        lock.lock()
    }

    /// Wakes one waiting task.
    pub fn notify_one(&self) {
        if !self.queue.wake_one() && self.waiting.load(Ordering::Relaxed) > 0 {
            self.real.notify_one();
        }
    }

    /// Wakes all waiting tasks.
    pub fn notify_all(&self) {
        self.queue.wake_all();
        if self.waiting.load(Ordering::Relaxed) > 0 {
            self.real.notify_all();
        }
    }
}

impl Default for Condvar {
    fn default() -> Self {
        Condvar::new()
    }
}

crate::debug_fields!(Condvar);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Mutex, Sim};
    use std::sync::Arc;

    #[test]
    fn a_timeout_is_exact_in_virtual_time() {
        let end = Sim::new(0).run(|| {
            let (m, c) = (Mutex::new(()), Condvar::new());
            let (_guard, timed_out) = c.wait_timeout(m.lock(), Duration::from_millis(7));
            (now(), timed_out)
        });
        assert_eq!(end, Ok((Nanos(7_000_000), true)));
    }

    #[test]
    fn a_notification_beats_the_timeout() {
        let r = Sim::new(0).run(|| {
            let pair = Arc::new((Mutex::new(false), Condvar::new()));
            let p2 = Arc::clone(&pair);
            crate::spawn("setter", move || {
                crate::sleep(Duration::from_millis(1));
                *p2.0.lock() = true;
                p2.1.notify_all();
            });
            let (guard, timed_out) = pair.1.wait_timeout(pair.0.lock(), Duration::from_secs(1));
            (*guard, timed_out, now())
        });
        assert_eq!(r, Ok((true, false, Nanos(1_000_000))));
    }
}
