//! iostat's counters: what passes through, how long it takes, how long the queue is.
//!
//! The fields follow Linux's `Documentation/admin-guide/iostats.rst`; requests are not merged
//! here, so there is no counter for that. Read two snapshots and subtract them
//! ([`StatCounters::since`]) for the figures of an interval.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use steadfast_block::{BlockDevice, Completion, DeviceInfo, Request, Result};
use steadfast_runtime::{Mutex, Nanos, now};

/// One kind of request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct OpCounters {
    /// Requests that succeeded.
    pub done: u64,
    /// Requests that failed.
    pub failed: u64,
    /// Bytes read, written or discarded by those that succeeded. Linux counts 512-byte sectors.
    pub bytes: u64,
    /// Sum of the times from submission to answer, failed ones included.
    pub time: Duration,
    /// The longest such time since the filter was made.
    pub longest: Duration,
}

impl OpCounters {
    /// Bytes in 512-byte sectors, as Linux counts.
    pub fn sectors(&self) -> u64 {
        self.bytes / 512
    }

    fn since(&self, earlier: &OpCounters) -> OpCounters {
        OpCounters {
            done: self.done - earlier.done,
            failed: self.failed - earlier.failed,
            bytes: self.bytes - earlier.bytes,
            time: self.time - earlier.time,
            longest: self.longest,
        }
    }
}

/// Counters at an instant, or, from [`since`](Self::since), over an interval.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct StatCounters {
    /// When the counters were read.
    pub at: Nanos,
    /// The time they cover.
    pub elapsed: Duration,
    /// Reads.
    pub read: OpCounters,
    /// Writes.
    pub write: OpCounters,
    /// Those of the writes that asked for force unit access and succeeded.
    pub fua_writes: u64,
    /// Flushes.
    pub flush: OpCounters,
    /// Discards.
    pub discard: OpCounters,
    /// Requests that are not answered yet, at `at`.
    pub in_flight: u64,
    /// Most requests in flight at once since the filter was made.
    pub in_flight_max: u64,
    /// Time during which at least one request was in flight (`io_ticks`).
    pub busy: Duration,
    /// Time multiplied by the number of requests in flight (`time_in_queue`).
    pub weighted: Duration,
}

impl StatCounters {
    /// What has happened since `earlier`, a snapshot of the same filter.
    pub fn since(&self, earlier: &StatCounters) -> StatCounters {
        StatCounters {
            at: self.at,
            elapsed: self.at - earlier.at,
            read: self.read.since(&earlier.read),
            write: self.write.since(&earlier.write),
            fua_writes: self.fua_writes - earlier.fua_writes,
            flush: self.flush.since(&earlier.flush),
            discard: self.discard.since(&earlier.discard),
            in_flight: self.in_flight,
            in_flight_max: self.in_flight_max,
            busy: self.busy - earlier.busy,
            weighted: self.weighted - earlier.weighted,
        }
    }

    /// A count per second of the interval; 0 if that has no length.
    pub fn per_second(&self, count: u64) -> f64 {
        let seconds = self.elapsed.as_secs_f64();
        if seconds > 0.0 { count as f64 / seconds } else { 0.0 }
    }

    /// Lets the clock of the counters catch up: the time passed with the same queue.
    fn advance(&mut self, now: Nanos) {
        // Threads take the lock in another order than they read the clock.
        let passed = now.since(self.at);
        if self.in_flight > 0 {
            self.busy += passed;
            self.weighted +=
                passed.saturating_mul(u32::try_from(self.in_flight).unwrap_or(u32::MAX));
        }
        self.elapsed += passed;
        self.at = self.at.max(now);
    }
}

/// Which counters a request goes to, and what it moves.
struct Class {
    op: fn(&mut StatCounters) -> &mut OpCounters,
    bytes: u64,
    fua: bool,
}

impl Class {
    fn of(request: &Request) -> Self {
        let op: fn(&mut StatCounters) -> &mut OpCounters = match request {
            Request::Read { .. } => |c| &mut c.read,
            Request::Write { .. } => |c| &mut c.write,
            Request::Flush => |c| &mut c.flush,
            Request::Discard { .. } => |c| &mut c.discard,
        };
        let bytes = request.range().map_or(0, |(_, len)| len);
        Class { op, bytes, fua: matches!(request, Request::Write { fua: true, .. }) }
    }
}

/// Counts what passes through to the device below.
pub struct Stat {
    next: Arc<dyn BlockDevice>,
    counters: Arc<Mutex<StatCounters>>,
}

impl Stat {
    /// Counts from now on.
    pub fn new(next: Arc<dyn BlockDevice>) -> Self {
        let counters = StatCounters { at: now(), ..StatCounters::default() };
        Stat { next, counters: Arc::new(Mutex::new(counters)) }
    }

    /// The counters as of now, over the time since the filter was made.
    pub fn counters(&self) -> StatCounters {
        let mut counters = self.counters.lock();
        counters.advance(now());
        *counters
    }
}

impl Stat {
    /// A request begins; when.
    fn begin(&self) -> Nanos {
        let submitted = now();
        let mut counters = self.counters.lock();
        counters.advance(submitted);
        counters.in_flight += 1;
        counters.in_flight_max = counters.in_flight_max.max(counters.in_flight);
        submitted
    }
}

impl BlockDevice for Stat {
    fn info(&self) -> DeviceInfo {
        self.next.info()
    }

    fn submit(&self, request: Request) -> Completion {
        let class = Class::of(&request);
        let submitted = self.begin();
        let completion = self.next.submit(request);
        let counters = Arc::clone(&self.counters);
        completion
            .on_done(move |answer| count(&mut counters.lock(), &class, submitted, answer.is_ok()));
        completion
    }

    // The device below may answer a waiting caller faster than by a hand-over.

    fn execute(&self, request: Request) -> Result<Bytes> {
        let class = Class::of(&request);
        let submitted = self.begin();
        let answer = self.next.execute(request);
        count(&mut self.counters.lock(), &class, submitted, answer.is_ok());
        answer
    }
}

fn count(counters: &mut StatCounters, class: &Class, submitted: Nanos, succeeded: bool) {
    let done = now();
    counters.advance(done);
    counters.in_flight -= 1;
    if class.fua && succeeded {
        counters.fua_writes += 1;
    }
    let op = (class.op)(counters);
    let took = done.since(submitted);
    op.time += took;
    op.longest = op.longest.max(took);
    if succeeded {
        op.done += 1;
        op.bytes += class.bytes;
    } else {
        op.failed += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::filter::{Effect, Fault, FaultRule, Ops};
    use crate::source::Ram;
    use steadfast_block::{conformance, pattern};
    use steadfast_runtime::{Sim, sleep};

    fn make() -> Arc<dyn BlockDevice> {
        Arc::new(Stat::new(Arc::new(Ram::new("ram0", 8 << 20))))
    }

    #[test]
    fn conforms() {
        conformance::run(&make);
        Sim::new(1).run(|| conformance::run(&make)).unwrap();
    }

    #[test]
    fn counts_as_iostat_does() {
        let ms = Duration::from_millis;
        let run = move || {
            let fault = Fault::new(Arc::new(Ram::new("ram0", 1 << 20)));
            let faults = fault.faults();
            faults.add(FaultRule::new(Ops::WRITE, Effect::Delay(ms(4))));
            faults.add(FaultRule::new(Ops::READ, Effect::Delay(ms(2))));
            let stat = Stat::new(Arc::new(fault));
            sleep(ms(10));
            let before = stat.counters();
            let data = pattern::bytes(1, 0, 1024);
            let a = stat.submit(Request::Write { offset: 0, data: data.into(), fua: true });
            let b = stat.submit(Request::Read { offset: 0, len: 512 });
            assert_eq!(stat.counters().in_flight, 2);
            Completion::wait_all([&a, &b]).unwrap();
            stat.flush().unwrap();
            assert!(stat.read(1, 1).is_err());
            sleep(ms(4));
            (before, stat.counters())
        };
        let (before, after) = Sim::new(1).run(run).unwrap();
        assert_eq!((before.elapsed, before.busy), (ms(10), ms(0)));
        let d = after.since(&before);
        assert_eq!((d.elapsed, d.busy, d.weighted), (ms(8), ms(4), ms(6)));
        assert_eq!((d.in_flight, d.in_flight_max, d.fua_writes), (0, 2, 1));
        assert_eq!((d.write.done, d.write.bytes, d.write.time), (1, 1024, ms(4)));
        assert_eq!((d.read.done, d.read.failed, d.read.sectors()), (1, 1, 1));
        assert_eq!((d.read.longest, d.read.time), (ms(2), ms(2)));
        assert_eq!((d.flush.done, d.flush.bytes), (1, 0));
        assert_eq!(d.per_second(d.write.done), 125.0);
    }
}
