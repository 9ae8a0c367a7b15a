//! Read-ahead: which pages to read in advance.
//!
//! On-demand read-ahead after Linux (mm/readahead.c): a sequential reader has a *window* of pages
//! that were read for it, and a *marker* in it. Reaching the marker starts the next window while
//! the reader still works on this one; windows grow up to a maximum. Where Linux keeps one window
//! an open file, this keeps a few a file, so that several readers of one file do not disturb each
//! other.

use std::ops::Range;

use crate::settings::Limits;

/// Readers of a file that are distinguished.
const STREAMS_MAX: usize = 8;

/// A reader and its window.
#[derive(Debug, Clone, Default)]
struct Stream {
    /// Last page it read.
    last: u64,
    /// First page of the window.
    start: u64,
    /// Pages in the window; 0 = it has none, having read once.
    size: u64,
    /// Pages at the window's end from whose first on the next window is due.
    ahead: u64,
    /// When it last read, for finding the least recent.
    used: u64,
}

/// The readers of one file.
#[derive(Debug, Default)]
pub(crate) struct Streams {
    streams: Vec<Stream>,
    reads: u64,
}

/// Pages to read beside those asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ReadAheadWindow {
    pub pages: Range<u64>,
    /// They belong to the same read as those asked for; else nobody waits for them.
    pub with_demand: bool,
}

impl Streams {
    /// Notes a read of `pages` (not empty) and says what to read for it. `is_missing`: neither
    /// there nor being read.
    pub(crate) fn on_read(
        &mut self,
        pages: &Range<u64>,
        limits: &Limits,
        is_missing: impl Fn(u64) -> bool,
    ) -> Option<ReadAheadWindow> {
        if limits.read_ahead_max == 0 {
            return None;
        }
        self.reads += 1;
        let first_missing = pages.clone().find(|p| is_missing(*p));
        let found = self.find(pages);
        let is_sequential = found.is_some() || pages.start == 0;
        let i = found.unwrap_or_else(|| self.replace());
        let stream = &mut self.streams[i];
        (stream.last, stream.used) = (pages.end - 1, self.reads);
        stream.on_read(pages, first_missing, is_sequential, limits)
    }

    /// The stream that this read continues.
    fn find(&self, pages: &Range<u64>) -> Option<usize> {
        let continues = |s: &Stream| pages.start == s.last || pages.start == s.last + 1;
        let best = self.streams.iter().enumerate().filter(|(_, s)| continues(s));
        best.max_by_key(|(_, s)| (s.size, s.used)).map(|(i, _)| i)
    }

    /// A place for a new stream: the least recently used one's if there are enough.
    fn replace(&mut self) -> usize {
        if self.streams.len() < STREAMS_MAX {
            self.streams.push(Stream::default());
            return self.streams.len() - 1;
        }
        let oldest = self.streams.iter().enumerate().min_by_key(|(_, s)| s.used);
        let i = oldest.map_or(0, |(i, _)| i);
        self.streams[i] = Stream::default();
        i
    }
}

impl Stream {
    fn on_read(
        &mut self,
        pages: &Range<u64>,
        first_missing: Option<u64>,
        is_sequential: bool,
        limits: &Limits,
    ) -> Option<ReadAheadWindow> {
        let end = self.start + self.size;
        let marker = end - self.ahead;
        let Some(missing) = first_missing else {
            if self.size > 0 && pages.contains(&marker) {
                return Some(self.advance(pages, limits));
            }
            return None;
        };
        let demand = pages.end - missing;
        if demand >= limits.read_ahead_max {
            // The request is a window by itself; the next one follows it.
            self.start = pages.end;
            self.size = limits.read_ahead_max;
            self.ahead = self.size;
            return Some(ReadAheadWindow { pages: self.window(), with_demand: false });
        }
        if !is_sequential {
            self.size = 0;
            self.ahead = 0;
            return None;
        }
        if self.size > 0 && missing == end {
            return Some(self.advance(pages, limits));
        }
        self.start = missing;
        self.size = first_window(demand, limits);
        self.ahead = if self.size > demand { self.size - demand } else { self.size };
        Some(ReadAheadWindow { pages: self.window(), with_demand: true })
    }

    /// The next window after this one.
    fn advance(&mut self, pages: &Range<u64>, limits: &Limits) -> ReadAheadWindow {
        self.start += self.size;
        self.size = next_window(self.size, limits.read_ahead_max);
        self.ahead = self.size;
        let overtaken = pages.end > self.start;
        if overtaken {
            // The reader is already in it: read what it wants, and a window's worth beyond.
            let used = pages.end - self.start;
            self.size = (used + self.size).min(limits.read_ahead_max.max(used + 1));
            self.ahead = self.size - used;
        }
        ReadAheadWindow { pages: self.window(), with_demand: overtaken }
    }

    fn window(&self) -> Range<u64> {
        self.start..self.start.saturating_add(self.size)
    }
}

/// A sequential reader's first window when it asks for `demand` pages: twice the request rounded
/// up to a power of two, within the limits.
fn first_window(demand: u64, limits: &Limits) -> u64 {
    let twice = demand.next_power_of_two().saturating_mul(2);
    twice.max(limits.read_ahead_initial).min(limits.read_ahead_max)
}

/// Small windows grow fourfold, larger ones double.
fn next_window(size: u64, max: u64) -> u64 {
    if size < max / 16 { size * 4 } else { (size * 2).min(max) }
}
