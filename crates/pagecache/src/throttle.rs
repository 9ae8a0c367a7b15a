//! Throttling writers so that dirty memory stays bounded.
//!
//! Two mechanisms, after Linux (mm/page-writeback.c, `balance_dirty_pages`). Above the midpoint of
//! the background and the hard limit a writer pauses after each dirtied piece, in proportion to the
//! measured device rate, so that writers slow down to the device's speed. At the hard limit writers
//! queue, first come, first served.

use std::collections::VecDeque;
use std::time::Duration;

use smart_default::SmartDefault;
use steadfast_runtime::{MutexGuard, Nanos, now, sleep};

use crate::PageCache;
use crate::settings::Limits;
use crate::state::State;

/// The device's rate before it has been measured, in bytes a second (as Linux's `INIT_BW`).
const FIRST_RATE: f64 = 100.0 * 1024.0 * 1024.0;
/// How long the rate is measured before the estimate is corrected.
const WINDOW: Duration = Duration::from_millis(200);
/// The longest single pause.
const PAUSE_MAX: Duration = Duration::from_millis(200);

/// The estimated device rate, and the waiting writers.
#[derive(SmartDefault)]
pub(crate) struct Throttle {
    /// Writers at the hard limit, in order.
    queue: VecDeque<u64>,
    next_ticket: u64,
    /// Writers that pause now.
    pausing: u64,
    /// Estimated bytes a second that write-back gets done.
    #[default(FIRST_RATE)]
    rate: f64,
    window_from: Nanos,
    window_bytes: u64,
}

impl Throttle {
    /// Whether a writer waits at the hard limit.
    pub(crate) fn has_waiters(&self) -> bool {
        !self.queue.is_empty()
    }

    /// Queues a writer at the hard limit; its ticket.
    fn enter(&mut self) -> u64 {
        let ticket = self.next_ticket;
        self.next_ticket += 1;
        self.queue.push_back(ticket);
        ticket
    }

    /// Write-back begins after there was none in flight: idle time is not measured.
    pub(crate) fn on_busy(&mut self) {
        (self.window_from, self.window_bytes) = (now(), 0);
    }

    /// So many bytes have been written back.
    pub(crate) fn on_written(&mut self, bytes: u64) {
        self.window_bytes += bytes;
        let elapsed = now().since(self.window_from);
        if elapsed >= WINDOW {
            let measured = self.window_bytes as f64 / elapsed.as_secs_f64();
            // Long windows say more than short ones.
            let weight = (elapsed.as_secs_f64() / 1.6).clamp(0.125, 1.0);
            self.rate += (measured - self.rate) * weight;
            self.on_busy();
        }
    }

    /// How long a writer that has dirtied `bytes` should pause, if at all.
    fn pause(&self, dirty: u64, limits: &Limits, bytes: u64) -> Option<Duration> {
        let free_run = (limits.background + limits.hard) / 2;
        if dirty <= free_run {
            return None;
        }
        let set_point = (free_run + limits.hard) / 2;
        let room = limits.hard.saturating_sub(dirty) as f64;
        // 2 at the start of pausing, 1 at the set point, 0 at the hard limit.
        let position = (room / (limits.hard - set_point).max(1) as f64).min(2.0);
        let share = self.rate * position / (self.pausing + 1) as f64;
        let seconds = bytes as f64 / share.max(1.0);
        let pause = Duration::try_from_secs_f64(seconds).unwrap_or(PAUSE_MAX).min(PAUSE_MAX);
        (pause > Duration::from_micros(10)).then_some(pause)
    }
}

impl PageCache {
    /// The lock, with room for `pages` more dirty pages, also in memory; waits at the hard limit.
    pub(crate) fn admit(&self, pages: u64) -> MutexGuard<'_, State> {
        let mut state = self.state.lock();
        let mut ticket = None;
        let mut since = Nanos::ZERO;
        loop {
            let is_next = state.throttle.queue.front().copied() == ticket;
            let busy = state.dirty_pages + state.writeback_pages;
            if is_next && busy + pages <= state.limits.hard && state.make_room(pages) {
                break;
            }
            if ticket.is_none() {
                since = now();
                ticket = Some(state.throttle.enter());
            }
            state = self.wait_for_room(state);
        }
        if ticket.is_some() {
            state.throttle.queue.pop_front();
            state.stats.throttled_ns += duration_ns(now().since(since));
            // Others may have been waiting for the same moment.
            self.room.notify_all();
        }
        state
    }

    /// The pause of a writer that has just dirtied `bytes`.
    pub(crate) fn balance(&self, bytes: usize) {
        let mut state = self.state.lock();
        let busy = state.dirty_pages + state.writeback_pages;
        if state.dirty_pages > state.limits.background {
            self.control.wake();
        }
        let Some(pause) = state.throttle.pause(busy, &state.limits, bytes as u64) else { return };
        state.throttle.pausing += 1;
        state.stats.throttled_ns += duration_ns(pause);
        drop(state);
        sleep(pause);
        self.state.lock().throttle.pausing -= 1;
    }

    /// Waits for memory that only write-back or a load can free.
    pub(crate) fn wait_for_memory<'a>(
        &'a self,
        mut state: MutexGuard<'a, State>,
    ) -> MutexGuard<'a, State> {
        state.starved += 1;
        let mut state = self.wait_for_room(state);
        state.starved -= 1;
        state
    }

    /// Waits for a change; without a write-back task the caller does the task's work.
    fn wait_for_room<'a>(&'a self, state: MutexGuard<'a, State>) -> MutexGuard<'a, State> {
        if self.control.is_running() {
            self.control.wake();
            return self.room.wait(state);
        }
        drop(state);
        let issued = self.write_pass();
        let state = self.state.lock();
        if issued == 0 && state.writeback_pages + state.loading_pages > 0 {
            return self.room.wait(state);
        }
        state
    }
}

fn duration_ns(d: Duration) -> u64 {
    u64::try_from(d.as_nanos()).unwrap_or(u64::MAX)
}
