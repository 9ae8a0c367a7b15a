//! Processor time.

use std::time::Duration;

/// Processor time of this process so far, threads that have ended with it.
pub fn cpu_used() -> Option<Duration> {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    Duration::try_from(time).ok().filter(|cpu| !cpu.is_zero())
}
