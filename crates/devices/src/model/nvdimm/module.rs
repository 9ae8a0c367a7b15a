//! The module's memory and what is in flight there: what a load, a store and a fence cost the
//! processor that makes them.

use std::collections::VecDeque;

use super::params::{LINE, NvdimmParams, PowerFailDomain};
use crate::model::units::us;

/// The open rows, and the controller's queue.
#[derive(Debug)]
pub(super) struct Module {
    p: NvdimmParams,
    /// A line on the channel, with its share of the refreshes.
    burst_ns: f64,
    /// Of each bank the row that is open.
    open_rows: Vec<Option<u64>>,
    /// When the memory will have taken each line that the controller holds, ascending.
    queue: VecDeque<u64>,
    /// Lines have left a processor since the last fence.
    on_their_way: bool,
}

impl Module {
    pub fn new(p: NvdimmParams) -> Module {
        let transfers = LINE.div_ceil(u64::from(p.channel_bits / 8));
        let burst_ns = transfers as f64 * 1e3 / f64::from(p.data_rate_mt_per_s);
        Module {
            burst_ns: burst_ns / (1.0 - p.refresh_ns / us(p.refresh_interval_us) as f64),
            open_rows: vec![None; p.banks as usize],
            queue: VecDeque::new(),
            on_their_way: false,
            p,
        }
    }

    /// Opens the row of a line; what that takes, none if it is open.
    fn open(&mut self, line: u64) -> f64 {
        // Rows that follow each other are in banks that follow each other.
        let row = line * LINE / u64::from(self.p.row_bytes);
        let bank = (row % u64::from(self.p.banks)) as usize;
        match self.open_rows[bank].replace(row) {
            Some(open) if open == row => 0.0,
            _ => self.p.precharge_ns + self.p.row_ns,
        }
    }

    /// Time of a processor for fetching the lines of a range: of a load the first is waited for,
    /// further ones come as many at a time as there are fill buffers.
    pub fn fetch(&mut self, offset: u64, len: u64, waits: bool) -> u64 {
        let mut ns = 0.0;
        for (n, line) in lines(offset, len).enumerate() {
            let miss = self.open(line);
            let latency = self.p.controller_ns + miss + self.p.column_ns + self.burst_ns;
            ns += match n == 0 && waits {
                true => latency,
                false => self.burst_ns.max(latency / f64::from(self.p.fill_buffers)),
            };
        }
        ns.round() as u64
    }

    /// Time of a processor for sending the lines of a range to the controller, each of which
    /// takes at least `each_ns`. It waits where the controller's queue is full.
    fn send(&mut self, now_ns: u64, offset: u64, len: u64, each_ns: f64) -> u64 {
        let mut at = now_ns as f64;
        for line in lines(offset, len) {
            at += each_ns;
            while self.queue.front().is_some_and(|taken| *taken as f64 <= at) {
                self.queue.pop_front();
            }
            if self.queue.len() >= self.p.write_queue_lines as usize
                && let Some(taken) = self.queue.pop_front()
            {
                at = at.max(taken as f64);
            }
            let miss = self.open(line);
            let free = self.queue.back().map_or(at, |last| at.max(*last as f64));
            self.queue.push_back((free + miss + self.burst_ns).ceil() as u64);
            self.on_their_way = true;
        }
        (at - now_ns as f64).round() as u64
    }

    /// Non-temporal stores.
    pub fn stream(&mut self, now_ns: u64, offset: u64, len: u64) -> u64 {
        let each = self.burst_ns.max(self.p.controller_ns / f64::from(self.p.fill_buffers));
        self.send(now_ns, offset, len, each)
    }

    /// Writing lines back from the caches. Where these are saved, nobody does.
    pub fn write_back(&mut self, now_ns: u64, offset: u64, len: u64) -> u64 {
        match self.p.power_fail_domain {
            PowerFailDomain::Eadr => 0,
            PowerFailDomain::Adr => self.send(now_ns, offset, len, self.p.write_back_ns),
        }
    }

    /// Waiting until the controller has accepted what is in flight.
    pub fn fence(&mut self) -> u64 {
        match std::mem::take(&mut self.on_their_way) {
            true => self.p.controller_ns.round() as u64,
            false => 0,
        }
    }
}

/// The cache lines of a range.
fn lines(offset: u64, len: u64) -> std::ops::Range<u64> {
    offset / LINE..(offset + len).div_ceil(LINE).max(offset / LINE)
}
