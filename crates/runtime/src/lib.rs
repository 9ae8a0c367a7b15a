//! Time, tasks and locks: the machine's own, or simulated and deterministic.
//!
//! Everything above this crate is ordinary blocking Rust. It calls [`now`], [`sleep`] and
//! [`spawn`], takes a [`Mutex`] and waits on a [`Condvar`], and does not know in which of two
//! worlds it runs:
//!
//! * **real**: tasks are threads, time is the machine's monotonic clock;
//! * **simulated**: [`Sim::run`] runs one task at a time on the calling thread, the earliest
//!   first, and time is a counter of virtual nanoseconds that jumps when nothing is runnable.
//!
//! # Invariants
//!
//! 1. In a simulation nothing depends on the wall clock, on addresses or on hash order: the same
//!    seed and the same program give the same trace, byte for byte.
//! 2. Locks are fair in the simulation: waiters are woken in the order in which they came.
//! 3. A simulation in which nothing can run any more ends with [`SimError::Deadlock`], which
//!    names every task and what it waits for.
//! 4. Objects made in one simulation are used only in that simulation (or, once it has ended,
//!    by plain code that no longer waits on them).
//!
//! A minute that takes no time:
//!
//! ```
//! use std::time::Duration;
//! use steadfast_runtime::{Sim, now, sleep, spawn};
//!
//! let waited = Sim::new(1).run(|| {
//!     let start = now();
//!     let task = spawn("sleeper", || sleep(Duration::from_secs(60)));
//!     task.join().unwrap();
//!     now() - start
//! });
//! assert_eq!(waited.unwrap(), Duration::from_secs(60));
//! ```
//!
//! The world is a thread-local and not a parameter: a parameter would be in every signature from
//! the disk model to the benchmark and never vary.

#[macro_use]
mod debug;

mod call;
mod channel;
mod condvar;
mod mutex;
mod preempt;
mod requester;
pub mod rng;
mod rwlock;
mod sim;
mod task;
mod time;

pub use call::{InCall, current_call, in_call};
pub use channel::{Receiver, Sender, channel};
pub use condvar::Condvar;
pub use mutex::{Mutex, MutexGuard};
pub use preempt::{PREEMPTION_TIME, Preemption, PreemptionPoint, preemption_point};
pub use requester::{OnBehalfOf, Requester, on_behalf_of, request_number, requester};
pub use rwlock::{RwLock, RwLockReadGuard, RwLockWriteGuard};
pub use sim::{BlockedTask, Sim, SimError, SimStats, is_simulated, trace};
pub use task::{JoinHandle, TaskPanic, spawn, yield_now};
pub use time::{Nanos, cpu, date, now, sleep, sleep_until, unix_ns};

/// A 64-bit random number: from the simulation's seed, or from the system in real time.
pub fn random_u64() -> u64 {
    sim::with_current(|core| core.random_u64()).unwrap_or_else(|| {
        use std::hash::{BuildHasher, Hasher};
        std::collections::hash_map::RandomState::new().build_hasher().finish()
    })
}

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
