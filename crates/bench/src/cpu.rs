//! Processor time.

use std::time::Duration;

/// Processor time of this process so far, threads that have ended with it.
pub fn cpu_used() -> Option<Duration> {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    Duration::try_from(time).ok().filter(|cpu| !cpu.is_zero())
}

/// Nanoseconds of it since it was `before`.
pub(crate) fn cpu_since(before: Option<Duration>) -> Option<u64> {
    u64::try_from(cpu_used()?.saturating_sub(before?).as_nanos()).ok()
}
