//! How many judges work at the same time: as many as keep the processors busy. A judge that starts
//! a server waits most of the time.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeValLike;

/// How many more there may be than processors: each has a tree in memory.
const MORE: usize = 6;
/// It is not looked more often.
const LOOKED_EVERY: Duration = Duration::from_millis(250);
/// With less of the processors' time used there are more.
const BUSY_MIN: f64 = 0.75;
/// With more there is one less.
const BUSY_MAX: f64 = 0.95;
/// Longest step, as a share of those that there are: what was measured may have been a pause.
const STEP_MAX: f64 = 2.0;

/// Lets judges begin.
pub struct JudgesAtOnce {
    processors: usize,
    most: usize,
    now: Mutex<Now>,
    ended: Condvar,
}

struct Now {
    running: usize,
    allowed: usize,
    /// When it was last looked.
    looked: Instant,
    /// The processors' time that this process had used then.
    used: Duration,
    /// And that of the judges that have ended since, and how many they were.
    judges: (Duration, usize),
}

impl JudgesAtOnce {
    /// As many as keep the processors busy.
    pub fn measured(processors: usize) -> JudgesAtOnce {
        JudgesAtOnce::up_to(processors, processors + MORE)
    }

    /// So many.
    pub fn fixed(judges: usize) -> JudgesAtOnce {
        JudgesAtOnce::up_to(judges, judges)
    }

    fn up_to(processors: usize, most: usize) -> JudgesAtOnce {
        let now = Now {
            running: 0,
            allowed: processors.max(1),
            looked: Instant::now(),
            used: time_used(),
            judges: (Duration::ZERO, 0),
        };
        JudgesAtOnce { processors, most, now: Mutex::new(now), ended: Condvar::new() }
    }

    /// So many threads find something to do: neighbours often wait for the same answer.
    pub fn threads(&self) -> usize {
        if self.most > self.processors { self.most + self.most / 2 } else { self.most }
    }

    /// Waits until one more may begin; it ends with what is returned.
    pub(super) fn turn(&self) -> Turn<'_> {
        let now = self.lock();
        let mut now = self
            .ended
            .wait_while(now, |now| now.running >= now.allowed)
            .unwrap_or_else(PoisonError::into_inner);
        now.running += 1;
        Turn { of: self, used: Duration::ZERO }
    }

    fn lock(&self) -> MutexGuard<'_, Now> {
        self.now.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Now {
    /// Looks whether more or fewer keep the processors busy.
    fn look(&mut self, processors: usize, most: usize) {
        let passed = self.looked.elapsed();
        if passed < LOOKED_EVERY || self.judges.1 < self.allowed {
            return;
        }
        let used = time_used();
        let ours = used.saturating_sub(self.used) + self.judges.0;
        let busy = ours.as_secs_f64() / (passed.as_secs_f64() * processors.max(1) as f64);
        if busy < BUSY_MIN {
            let wanted = self.allowed as f64 * (1.0 / busy.max(0.01)).min(STEP_MAX);
            self.allowed = (wanted.ceil() as usize).min(most);
        } else if busy > BUSY_MAX {
            self.allowed = (self.allowed - 1).max(processors.max(1));
        }
        (self.looked, self.used, self.judges) = (Instant::now(), used, (Duration::ZERO, 0));
    }
}

/// A judge that may work.
pub(super) struct Turn<'a> {
    of: &'a JudgesAtOnce,
    /// The processors' time that it has used.
    pub used: Duration,
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        let JudgesAtOnce { processors, most, .. } = *self.of;
        let mut now = self.of.lock();
        now.running -= 1;
        now.judges = (now.judges.0 + self.used, now.judges.1 + 1);
        if most > processors {
            now.look(processors, most);
        }
        drop(now);
        self.of.ended.notify_all();
    }
}

/// The processors' time that this process has used.
fn time_used() -> Duration {
    // It fails for who is nobody only.
    let usage = getrusage(UsageWho::RUSAGE_SELF).ok();
    let times = usage.map(|usage| usage.user_time() + usage.system_time());
    Duration::from_micros(times.map_or(0, |time| time.num_microseconds().unsigned_abs()))
}
