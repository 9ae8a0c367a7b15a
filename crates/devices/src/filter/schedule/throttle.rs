//! Writeback throttling: fewer writes are admitted while reads are slow.
//!
//! The rules are those of Linux's `block/blk-wbt.c` and `block/blk-rq-qos.c`. A request does not
//! say here whether a task waits for it, so every write counts as write-back; direct writes, which
//! the kernel does not throttle, are throttled too.

use std::time::Duration;

use steadfast_runtime::Nanos;

/// Settings of writeback throttling.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ThrottleSettings {
    /// The time in which reads are to be answered (`queue/wbt_lat_usec`): 2 ms, and 75 ms where
    /// seeks cost time.
    pub target: Duration,
    /// How long is looked before the limit is changed.
    pub window: Duration,
    /// Requests that the device takes at once.
    pub queue_depth: u64,
}

/// Depth from which scaling starts (`RWB_DEF_DEPTH`).
const DEPTH: u64 = 16;
/// Windows without reads after which the limit goes back to where it was (`RWB_UNKNOWN_BUMP`).
const UNKNOWN_MAX: u32 = 5;

/// The limit, and what it goes by.
#[derive(Debug)]
pub(super) struct DepthLimit {
    settings: ThrottleSettings,
    /// Positive: throttled; negative: more than usual; each step doubles or halves.
    step: i32,
    /// Depth now.
    depth: u64,
    /// No more than this can be had.
    is_most: bool,
    window_ends: Option<Nanos>,
    fastest_read: Option<Duration>,
    wrote: bool,
    unknown: u32,
}

impl DepthLimit {
    pub fn new(settings: ThrottleSettings) -> DepthLimit {
        let mut throttle = DepthLimit {
            settings,
            step: 0,
            depth: 0,
            is_most: false,
            window_ends: None,
            fastest_read: None,
            wrote: false,
            unknown: 0,
        };
        throttle.scale(0);
        throttle
    }

    /// Writes that may be in flight at once.
    pub fn limit(&self) -> u64 {
        if self.depth <= 2 { self.depth } else { self.depth.div_ceil(2) }
    }

    /// A read has been answered.
    pub fn read_took(&mut self, time: Duration) {
        self.fastest_read = Some(self.fastest_read.map_or(time, |fastest| fastest.min(time)));
    }

    /// A write has been answered.
    pub fn write_done(&mut self) {
        self.wrote = true;
    }

    /// Looks at the window if it has ended. `oldest_read`: since when the oldest read waits;
    /// `writes`: whether any is in flight.
    pub fn look(&mut self, now: Nanos, oldest_read: Option<Nanos>, writes: bool) {
        let busy = writes || oldest_read.is_some();
        match self.window_ends {
            Some(end) if now < end => return,
            None => return self.begin_window(now, busy),
            Some(_) => {}
        }
        let waits = oldest_read.map(|since| now.since(since));
        let target = self.settings.target;
        let stuck = waits.is_some_and(|time| {
            time > self.window() || (time > target && self.fastest_read.is_none())
        });
        let exceeded = stuck || self.fastest_read.is_some_and(|fastest| fastest > target);
        if exceeded {
            self.down(true);
        } else if self.fastest_read.is_some() || self.wrote || writes {
            self.up();
        } else {
            self.nothing_known();
        }
        if exceeded || self.fastest_read.is_some() || self.wrote || writes {
            self.unknown = 0;
        }
        (self.fastest_read, self.wrote) = (None, false);
        self.begin_window(now, busy);
    }

    /// When [`look`](Self::look) has something to say.
    pub fn window_ends(&self) -> Option<Nanos> {
        self.window_ends
    }

    fn begin_window(&mut self, now: Nanos, busy: bool) {
        // With nothing to look at and nothing to go back to, the next request begins one.
        let goes_on = busy || self.step != 0;
        self.window_ends = goes_on.then(|| now + self.window());
    }

    /// The longer it is throttled, the more often it is looked at.
    fn window(&self) -> Duration {
        match u32::try_from(self.step) {
            Ok(step) if step > 0 => self.settings.window.div_f64(f64::from(step + 1).sqrt()),
            _ => self.settings.window,
        }
    }

    fn nothing_known(&mut self) {
        self.unknown += 1;
        if self.unknown >= UNKNOWN_MAX {
            match self.step {
                1.. => self.up(),
                ..=-1 => self.down(false),
                0 => {}
            }
        }
    }

    fn up(&mut self) {
        if !self.is_most {
            self.scale(self.step - 1);
        }
    }

    fn down(&mut self, at_once: bool) {
        if self.depth == 1 {
            return;
        }
        // From more than usual back to what is usual.
        self.scale(if self.step < 0 && at_once { 0 } else { self.step + 1 });
    }

    fn scale(&mut self, step: i32) {
        self.step = step;
        let usual = DEPTH.min(self.settings.queue_depth).max(1);
        let steps = step.unsigned_abs().min(31);
        (self.depth, self.is_most) = if self.settings.queue_depth <= 1 {
            (if step > 0 { 1 } else { 2 }, step <= 0)
        } else if step > 0 {
            (1 + ((usual - 1) >> steps), false)
        } else {
            let most = (3 * self.settings.queue_depth / 4).max(1);
            let asked = 1 + ((usual - 1) << steps);
            if step < 0 && asked > most { (most, true) } else { (asked, false) }
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    fn throttle() -> DepthLimit {
        let (target, window) = (75 * MS, 100 * MS);
        DepthLimit::new(ThrottleSettings { target, window, queue_depth: 32 })
    }

    /// Windows, one after the other, in each of which one read took this long; the limits.
    fn limits(throttle: &mut DepthLimit, reads: &[Option<Duration>]) -> Vec<u64> {
        throttle.look(Nanos(0), None, true);
        let each = |read: &Option<Duration>| {
            if let Some(time) = read {
                throttle.read_took(*time);
            }
            throttle.write_done();
            throttle.look(throttle.window_ends().unwrap(), None, true);
            throttle.limit()
        };
        reads.iter().map(each).collect()
    }

    #[test]
    fn slow_reads_halve_the_depth_and_fast_ones_double_it() {
        let mut throttle = throttle();
        assert_eq!(throttle.limit(), 8);
        let slow = [Some(200 * MS); 5];
        assert_eq!(limits(&mut throttle, &slow), [4, 2, 2, 1, 1]);
        let fast = [Some(5 * MS); 5];
        assert_eq!(limits(&mut throttle, &fast), [2, 2, 4, 8, 12]);
        assert_eq!(limits(&mut throttle, &[Some(5 * MS)]), [12], "three quarters of 32, halved");
    }

    #[test]
    fn a_read_that_is_stuck_counts() {
        let mut throttle = throttle();
        throttle.look(Nanos(0), None, true);
        let end = throttle.window_ends().unwrap();
        throttle.look(end, Some(Nanos(0)), true);
        assert_eq!(throttle.limit(), 4);
    }

    #[test]
    fn without_anything_to_go_by_it_becomes_as_it_was() {
        let mut throttle = throttle();
        assert_eq!(limits(&mut throttle, &[Some(200 * MS); 2]), [4, 2]);
        for _ in 0..6 {
            throttle.look(throttle.window_ends().unwrap(), None, false);
        }
        assert_eq!(throttle.limit(), 8);
        assert_eq!(throttle.window_ends(), None, "there is nothing to wait for");
    }

    #[test]
    fn a_device_without_a_queue_has_one_or_two() {
        let (target, window) = (2 * MS, 100 * MS);
        let mut throttle = DepthLimit::new(ThrottleSettings { target, window, queue_depth: 1 });
        assert_eq!(throttle.limit(), 2);
        assert_eq!(limits(&mut throttle, &[Some(9 * MS); 3]), [1, 1, 1]);
        assert_eq!(limits(&mut throttle, &[Some(MS); 2]), [2, 2]);
    }
}
