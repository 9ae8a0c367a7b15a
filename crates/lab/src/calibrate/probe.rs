//! Timed requests: one at a time, several at a time, in a stream. The same code measures a device
//! in real time and a model in virtual time.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use steadfast_block::rng::Rng;
use steadfast_block::{BlockDevice, Completion, Request};
use steadfast_runtime::{Nanos, now, spawn};

use super::error::{CalibrateError, Result};
use crate::Watch;

pub(crate) const KIB: u64 = 1 << 10;
pub(crate) const MIB: u64 = 1 << 20;

/// The longest request.
pub(crate) const REQUEST_MAX: u64 = MIB;
/// Direct I/O needs its memory aligned: to a page at most.
const ALIGN: usize = 4096;
/// A stream has so many requests of so many bytes at the device.
const STREAM: (usize, u64) = (8, 256 * KIB);
/// At a disk: less than a track, or it takes them in another order.
const STREAM_OF_DISK: (usize, u64) = (2, 64 * KIB);

/// How often, and for how many seconds at most, something is repeated.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Times(pub usize, pub f64);

impl Times {
    /// With more or less time than usual.
    fn at(self, pace: f64) -> Times {
        Times((self.0 as f64 * pace.max(1.0)) as usize, self.1 * pace)
    }
}

/// What a request does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Op {
    Read,
    Write,
    /// A write that is durable when it returns.
    Durable,
}

/// Where requests go, and what they write: bytes that nothing can compress.
#[derive(Clone)]
pub(crate) struct Requests {
    pub device: Arc<dyn BlockDevice>,
    pub data: Bytes,
}

impl Requests {
    pub fn of(&self, op: Op, offset: u64, len: u64) -> Request {
        match op {
            Op::Read => Request::Read { offset, len },
            Op::Write | Op::Durable => {
                let data = self.data.slice(..len as usize).into();
                Request::Write { offset, data, fua: op == Op::Durable }
            }
        }
    }

    pub fn timed(&self, request: Request) -> Result<f64> {
        let begun = now();
        self.device.execute(request)?;
        Ok(us_since(begun))
    }
}

/// A device, and how it is asked.
pub(crate) struct Prober<'w> {
    requests: Requests,
    /// Bytes of it, in whole blocks.
    pub size: u64,
    /// The least request.
    pub block: u64,
    pub rng: Rng,
    /// Whether it has a head that seeks.
    pub seeks: bool,
    /// What the times of all that is repeated are multiplied by.
    pub pace: f64,
    watch: &'w Watch<'w>,
}

pub(super) fn us_since(begun: Nanos) -> f64 {
    (now() - begun).as_secs_f64() * 1e6
}

/// A random multiple of `len` in a range.
pub(crate) fn place(rng: &mut Rng, within: &Range<u64>, len: u64) -> u64 {
    let first = within.start.div_ceil(len);
    (first + rng.below((within.end / len).saturating_sub(first).max(1))) * len
}

impl<'w> Prober<'w> {
    pub fn new(device: Arc<dyn BlockDevice>, seed: u64, watch: &'w Watch<'w>) -> Self {
        let info = device.info();
        let mut rng = Rng::new(seed);
        let mut data: Vec<u8> = Vec::with_capacity(REQUEST_MAX as usize + ALIGN);
        while data.len() < REQUEST_MAX as usize + ALIGN {
            data.extend(rng.bits().to_le_bytes());
        }
        let start = data.as_ptr().align_offset(ALIGN).min(ALIGN);
        let data = Bytes::from(data).slice(start..start + REQUEST_MAX as usize);
        let block = u64::from(info.logical_block);
        let requests = Requests { device, data };
        Prober { requests, size: info.size / MIB * MIB, block, rng, seeks: false, pace: 1.0, watch }
    }

    /// Says what goes on.
    pub fn tell(&self, share: f64, what: &str) {
        (self.watch.progress)(share, what);
    }

    /// Whether nobody wants it to stop.
    pub fn go_on(&self) -> Result<()> {
        match self.watch.stop.load(Ordering::Relaxed) {
            true => Err(CalibrateError::Interrupted),
            false => Ok(()),
        }
    }

    /// A random multiple of `len` in a range.
    pub fn place(&mut self, within: &Range<u64>, len: u64) -> u64 {
        place(&mut self.rng, within, len)
    }

    /// Does one request; microseconds.
    pub fn one(&self, op: Op, offset: u64, len: u64) -> Result<f64> {
        self.requests.timed(self.requests.of(op, offset, len))
    }

    /// Flushes; microseconds.
    pub fn flush(&self) -> Result<f64> {
        self.requests.timed(Request::Flush)
    }

    /// Repeats something that is timed.
    pub fn repeat(
        &mut self,
        times: Times,
        mut once: impl FnMut(&mut Self) -> Result<f64>,
    ) -> Result<Vec<f64>> {
        let (begun, Times(n, seconds)) = (now(), times.at(self.pace));
        let mut all = Vec::new();
        while all.len() < n && us_since(begun) < seconds * 1e6 {
            self.go_on()?;
            all.push(once(self)?);
        }
        Ok(all)
    }

    /// Requests at random places, one at a time.
    pub fn random(
        &mut self,
        op: Op,
        within: &Range<u64>,
        len: u64,
        times: Times,
    ) -> Result<Vec<f64>> {
        self.repeat(times, |p| {
            let at = p.place(within, len);
            p.one(op, at, len)
        })
    }

    /// Requests at random places, so many at a time: requests a second, and how many there were.
    pub fn at_once(
        &mut self,
        depth: u64,
        op: Op,
        (within, len): (&Range<u64>, u64),
        times: Times,
    ) -> Result<(f64, usize)> {
        let within = within.clone();
        self.several(depth, times, move |requests, rng, _| {
            requests.timed(requests.of(op, place(rng, &within, len), len)).map(drop)
        })
    }

    /// What is done again and again by so many at a time, each time with its number: times a second
    /// over the later half, when buffers are as full as they get, and how many there were.
    pub fn several(
        &mut self,
        depth: u64,
        times: Times,
        once: impl Fn(&Requests, &mut Rng, usize) -> Result<()> + Send + Sync + 'static,
    ) -> Result<(f64, usize)> {
        let (begun, issued, once) = (now(), Arc::new(AtomicUsize::new(0)), Arc::new(once));
        let Times(n, seconds) = times.at(self.pace);
        let task = |_| {
            let (requests, issued) = (self.requests.clone(), Arc::clone(&issued));
            let (mut rng, once) = (Rng::new(self.rng.bits()), Arc::clone(&once));
            spawn("probe", move || {
                let mut ends = Vec::new();
                while us_since(begun) < seconds * 1e6 {
                    let number = issued.fetch_add(1, Ordering::Relaxed);
                    if number >= n {
                        break;
                    }
                    once(&requests, &mut rng, number)?;
                    ends.push(us_since(begun));
                }
                Ok::<_, CalibrateError>(ends)
            })
        };
        let tasks: Vec<_> = (0..depth).map(task).collect();
        let joined =
            tasks.into_iter().map(|t| t.join().unwrap_or_else(|panicked| panicked.resume()));
        let mut ends = joined.collect::<Result<Vec<_>>>()?.concat();
        self.go_on()?;
        // Without the last ones: a thread that was late would be all of the later half.
        ends.sort_by(f64::total_cmp);
        let counted = ends.len() - ends.len() / 20;
        let half = ends.get(counted.saturating_sub(1)).copied().unwrap_or(0.0) / 2.0;
        let later = counted - ends.partition_point(|at| *at <= half).min(counted);
        Ok((later as f64 / half.max(1e-3) * 1e6, ends.len()))
    }

    /// Requests at a moment: how long each takes.
    pub fn burst(&self, op: Op, places: &[u64], len: u64) -> Result<Vec<f64>> {
        let start = |at: &u64| {
            let (requests, at) = (self.requests.clone(), *at);
            spawn("probe", move || requests.timed(requests.of(op, at, len)))
        };
        let tasks: Vec<_> = places.iter().map(start).collect();
        tasks.into_iter().map(|t| t.join().unwrap_or_else(|panicked| panicked.resume())).collect()
    }

    /// Writes the first bytes once, as far as there is time for; so many have been.
    pub fn fill(&self, bytes: u64, seconds: f64) -> Result<u64> {
        let (begun, mut at) = (now(), 0);
        while at + REQUEST_MAX <= bytes && us_since(begun) < seconds * 1e6 {
            self.go_on()?;
            self.one(Op::Write, at, REQUEST_MAX)?;
            at += REQUEST_MAX;
        }
        self.flush()?;
        Ok(at)
    }

    /// Reads or writes a range in order, several requests at the device: MB/s over the later half
    /// of what there was time for.
    pub fn stream(&self, op: Op, range: Range<u64>, seconds: f64) -> Result<f64> {
        let begun = now();
        let mut under_way: VecDeque<Completion> = VecDeque::new();
        let mut ends = Vec::new();
        let (window, len) = if self.seeks { STREAM_OF_DISK } else { STREAM };
        let mut at = range.start;
        loop {
            let more = at + len <= range.end && us_since(begun) < seconds * self.pace * 1e6;
            if more {
                under_way.push_back(self.requests.device.submit(self.requests.of(op, at, len)));
                at += len;
            }
            if under_way.len() >= window || !more {
                self.go_on()?;
                let Some(first) = under_way.pop_front() else { break };
                first.wait()?;
                ends.push(us_since(begun));
            }
        }
        let (Some(last), half) = (ends.last(), ends.len() / 2) else { return Ok(0.0) };
        let took = last - ends[half.min(ends.len() - 1)];
        Ok(((ends.len() - 1).saturating_sub(half) as u64 * len) as f64 / took.max(1e-3))
    }
}
