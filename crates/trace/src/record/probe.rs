//! What a trip through the mount costs: from the call to its return, and of the processor.

use std::collections::BTreeMap;
use std::io::Result;
use std::path::Path;
use std::sync::Mutex;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use rustix::fs::{self, Advice, AtFlags, Mode, OFlags};
use rustix::time::{ClockId, clock_gettime};

use crate::format::{CallOp, Trip};

/// So many calls are timed, after some that only warm up.
const CALLS: usize = 300;
const WARM_UP: usize = 30;
/// Before each a pause of up to so many us.
const PAUSE_US: u64 = 200;
/// So often each kind of call is made, in not much more time than this.
const ROUNDS: u64 = 30;
const ROUNDS_TAKE: Duration = Duration::from_millis(300);

/// How long the last call took below, in ns, and how many requests there were that are no calls.
#[derive(Default)]
pub(super) struct LowerTime {
    last: AtomicU64,
    asides: AtomicU64,
    one_at_a_time: Mutex<()>,
}

impl LowerTime {
    /// Times what is done below the mount.
    pub fn time<T>(&self, call: impl FnOnce() -> T) -> T {
        let began = Instant::now();
        let answer = call();
        self.last.store(ns(began.elapsed()), Ordering::Release);
        answer
    }

    /// There was a request that is no call.
    pub fn aside(&self) {
        self.asides.fetch_add(1, Ordering::AcqRel);
    }

    /// Makes calls through the mount at this folder, again and again: what of their time was not
    /// spent below. Files that it makes for that are removed again; where it may not make any, the
    /// figures for each kind of call are left out.
    pub fn probe(&self, folder: &Path) -> Result<Trip> {
        let one = self.one_at_a_time.lock();
        let _one_at_a_time = one.unwrap_or_else(PoisonError::into_inner);
        let (mut trips, mut runs) = (Vec::with_capacity(CALLS), Vec::with_capacity(CALLS));
        for n in 0..WARM_UP + CALLS {
            pause(n as u64);
            let (ran, began) = (own_run(), Instant::now());
            fs::statvfs(folder)?;
            let (took, ran) = (ns(began.elapsed()), own_run().saturating_sub(ran));
            if n >= WARM_UP {
                trips.push(took.saturating_sub(self.last.load(Ordering::Acquire)));
                runs.push(ran);
            }
        }
        trips.sort_unstable();
        // OK to index: there are `CALLS`.
        let (least_ns, most_ns, median_ns) = (trips[0], trips[CALLS - 1], trips[CALLS / 2]);
        let run_ns = median(&mut runs);
        let mut kinds = BTreeMap::new();
        let until = Instant::now() + ROUNDS_TAKE;
        for n in 0..ROUNDS {
            if Instant::now() > until || self.round(folder, (n, run_ns), &mut kinds).is_err() {
                break;
            }
        }
        let run_ns_of = kinds.into_iter().map(|(op, mut runs)| (op, median(&mut runs))).collect();
        Ok(Trip { median_ns, least_ns, most_ns, calls: CALLS as u64, run_ns, run_ns_of })
    }

    /// One call of each kind, in a folder of our own: nobody else can have put anything there.
    fn round(
        &self,
        folder: &Path,
        (n, request): (u64, u64),
        kinds: &mut BTreeMap<CallOp, Vec<u64>>,
    ) -> Result<()> {
        let own = folder.join(format!(".steadfast-probe-{}-{n}", std::process::id()));
        let mut calls = 0;
        let mut cost = |op: CallOp, costs: u64| kinds.entry(op).or_default().push(costs);
        let mut time = || {
            calls += 1;
            pause(n * 7 + calls);
            (own_run(), self.asides.load(Ordering::Acquire))
        };
        let since = |(ran, asides): (u64, u64)| {
            let others = self.asides.load(Ordering::Acquire) - asides;
            own_run().saturating_sub(ran).saturating_sub(others * request)
        };
        macro_rules! timed {
            ($op:ident, $call:expr) => {{
                let began = time();
                let answer = $call;
                cost(CallOp::$op, since(began));
                answer
            }};
        }
        timed!(Mkdir, fs::mkdir(&own, Mode::RWXU))?;
        let whole = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let dir = fs::open(&own, whole, Mode::empty())?;
        let done = (|| {
            let (flags, mode) = (OFlags::RDWR | OFlags::CLOEXEC, Mode::RUSR | Mode::WUSR);
            let no_flags = AtFlags::empty();
            // It is not there, and that is what is timed.
            let _ = timed!(Lookup, fs::statat(&dir, "other", no_flags));
            let made = timed!(Create, fs::openat(&dir, "file", flags | OFlags::CREATE, mode))?;
            timed!(Attributes, fs::fchmod(&made, mode | Mode::RGRP))?;
            timed!(Write, rustix::io::pwrite(&made, &[7; 4096], 0))?;
            timed!(Write, rustix::io::pwrite(&made, &[7; 4096], 4096))?;
            timed!(Fdatasync, fs::fdatasync(&made))?;
            timed!(Fsync, fs::fsync(&made))?;
            timed!(Fsyncdir, fs::fsync(&dir))?;
            fs::fadvise(&made, 0, None, Advice::DontNeed)?;
            timed!(Read, rustix::io::pread(&made, &mut [0_u8; 4096], 0))?;
            timed!(Truncate, fs::ftruncate(&made, 0))?;
            timed!(Close, drop(made));
            let opened = timed!(Open, fs::openat(&dir, "file", flags, mode))?;
            timed!(Link, fs::linkat(&dir, "file", &dir, "link", no_flags))?;
            fs::unlinkat(&dir, "link", no_flags)?;
            timed!(Rename, fs::renameat(&dir, "file", &dir, "other"))?;
            rustix::io::pwrite(&opened, &[7; 8192], 0)?;
            drop(opened);
            timed!(Unlink, fs::unlinkat(&dir, "other", no_flags))
        })();
        if done.is_err() {
            // What of it is there.
            for name in ["file", "link", "other"] {
                let _ = fs::unlinkat(&dir, name, AtFlags::empty());
            }
        }
        timed!(Rmdir, fs::rmdir(&own))?;
        Ok(done?)
    }
}

/// As programs do: something in between, and who answers has gone to sleep.
fn pause(n: u64) {
    let until = Instant::now() + Duration::from_micros((n * 37) % PAUSE_US);
    while Instant::now() < until {
        std::hint::spin_loop();
    }
}

fn median(times: &mut [u64]) -> u64 {
    times.sort_unstable();
    times.get(times.len() / 2).copied().unwrap_or(0)
}

/// What this thread has run, in ns.
fn own_run() -> u64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    // OK to cast: a clock that counts from 0 up.
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

fn ns(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}
