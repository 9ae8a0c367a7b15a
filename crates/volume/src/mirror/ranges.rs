//! Locks on byte ranges: overlapping writes, and the copy of a region, run one after the other, so
//! that all legs get them in the same order.

use std::collections::VecDeque;

use bytes::Bytes;
use steadfast_block::{Completer, Completion};

/// A lock on a range; released by [`Ranges::release`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ticket(u64);

#[derive(Debug)]
struct RangeLock {
    ticket: Ticket,
    start: u64,
    end: u64,
    /// Legs that an acknowledged write has not reached yet: not to be read here.
    behind: u8,
    /// It may be acknowledged before all legs have it.
    may_be_behind: bool,
}

struct RangeWaiter {
    ticket: Ticket,
    start: u64,
    end: u64,
    turn: Completer,
}

/// The locked ranges, and the waiting ones in the order of their arrival.
#[derive(Default)]
pub struct Ranges {
    next: u64,
    held: Vec<RangeLock>,
    waiting: VecDeque<RangeWaiter>,
    behind: usize,
    may_be_behind: usize,
}

/// The waiters that now have the lock, to be woken without the state lock.
#[must_use = "the waiters must be woken"]
#[derive(Default)]
pub struct Turns(Vec<Completer>);

impl Turns {
    /// Wakes them.
    pub fn wake(self) {
        self.0.into_iter().for_each(|turn| turn.complete(Ok(Bytes::new())));
    }
}

fn overlap(start: u64, end: u64, from: u64, to: u64) -> bool {
    start < to && from < end
}

impl Ranges {
    fn ticket(&mut self) -> Ticket {
        self.next += 1;
        Ticket(self.next)
    }

    fn is_held(&self, start: u64, end: u64) -> bool {
        self.held.iter().any(|h| overlap(h.start, h.end, start, end))
    }

    /// Locks a range if no part of it is locked or waited for.
    pub fn try_take(&mut self, start: u64, end: u64) -> Option<Ticket> {
        let wanted = self.waiting.iter().any(|w| overlap(w.start, w.end, start, end));
        if wanted || self.is_held(start, end) {
            return None;
        }
        let ticket = self.ticket();
        self.held.push(RangeLock { ticket, start, end, behind: 0, may_be_behind: false });
        Some(ticket)
    }

    /// Locks a range, or queues for it; it is locked when the completion is done.
    pub fn queue(&mut self, start: u64, end: u64) -> (Ticket, Completion) {
        if let Some(ticket) = self.try_take(start, end) {
            return (ticket, Completion::ready(Ok(Bytes::new())));
        }
        let (turn, completion) = Completion::pending();
        let ticket = self.ticket();
        self.waiting.push_back(RangeWaiter { ticket, start, end, turn });
        (ticket, completion)
    }

    /// After a range was released: the next waiters.
    fn turns(&mut self, start: u64, end: u64) -> Turns {
        let mut turns = Turns::default();
        let mut earlier: Vec<(u64, u64)> = Vec::new();
        let mut at = 0;
        while let Some(w) = self.waiting.get(at) {
            let (from, to) = (w.start, w.end);
            if !overlap(from, to, start, end) {
                at += 1;
                earlier.push((from, to));
                continue;
            }
            let blocked = earlier.iter().any(|(s, e)| overlap(*s, *e, from, to));
            if blocked || self.is_held(from, to) {
                at += 1;
                earlier.push((from, to));
            } else if let Some(w) = self.waiting.remove(at) {
                let (ticket, behind, may_be_behind) = (w.ticket, 0, false);
                self.held.push(RangeLock { ticket, start: from, end: to, behind, may_be_behind });
                turns.0.push(w.turn);
            }
            // No other waiter can get a part of it.
            if from <= start && end <= to {
                break;
            }
        }
        turns
    }

    /// Says that a write may be acknowledged before all legs have it.
    pub fn plan_behind(&mut self, ticket: Ticket) {
        if let Some(held) = self.held.iter_mut().find(|h| h.ticket == ticket) {
            self.may_be_behind += usize::from(!held.may_be_behind);
            held.may_be_behind = true;
        }
    }

    /// Whether a leg may lack an acknowledged write, now or after a write in flight.
    pub fn any_may_be_behind(&self) -> bool {
        self.may_be_behind > 0
    }

    /// Says that a write is acknowledged while these legs do not have it yet.
    pub fn acknowledged_before(&mut self, ticket: Ticket, legs: u8) {
        if let Some(held) = self.held.iter_mut().find(|h| h.ticket == ticket) {
            self.behind += usize::from(held.behind == 0 && legs != 0);
            held.behind = legs;
        }
    }

    /// Releases a range.
    pub fn release(&mut self, ticket: Ticket) -> Turns {
        let Some(at) = self.held.iter().position(|h| h.ticket == ticket) else {
            return Turns::default();
        };
        let held = self.held.swap_remove(at);
        self.behind -= usize::from(held.behind != 0);
        self.may_be_behind -= usize::from(held.may_be_behind);
        if self.waiting.is_empty() {
            return Turns::default();
        }
        self.turns(held.start, held.end)
    }

    /// Legs that lack an acknowledged write to this range.
    pub fn behind(&self, start: u64, end: u64) -> u8 {
        if self.behind == 0 {
            return 0;
        }
        let here = self.held.iter().filter(|h| overlap(h.start, h.end, start, end));
        here.fold(0, |legs, h| legs | h.behind)
    }

    /// Writes that are acknowledged while a leg does not have them.
    pub fn behind_count(&self) -> usize {
        self.behind
    }

    /// Whether any part of this range is held or waited for.
    pub fn is_busy(&self, start: u64, end: u64) -> bool {
        self.is_held(start, end) || self.waiting.iter().any(|w| overlap(w.start, w.end, start, end))
    }

    /// Whether nothing is held or waited for.
    #[cfg(test)]
    pub fn is_idle(&self) -> bool {
        self.held.is_empty() && self.waiting.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn overlapping_ranges_come_in_the_order_of_arrival() {
        let mut ranges = Ranges::default();
        let a = ranges.try_take(0, 10).unwrap();
        assert!(ranges.try_take(9, 12).is_none());
        let (b, b_turn) = ranges.queue(5, 20);
        let (c, c_turn) = ranges.queue(15, 30);
        let d = ranges.try_take(40, 50).unwrap();
        assert!(!b_turn.is_done() && !c_turn.is_done(), "c waits for b, which waits for a");
        assert!(ranges.try_take(25, 26).is_none(), "somebody waits for it");
        ranges.release(a).wake();
        assert!(b_turn.is_done() && !c_turn.is_done());
        ranges.release(b).wake();
        assert!(c_turn.is_done());
        ranges.acknowledged_before(c, 2);
        assert_eq!((ranges.behind(29, 31), ranges.behind(30, 31)), (2, 0));
        ranges.release(c).wake();
        ranges.release(d).wake();
        assert!(ranges.is_idle() && ranges.behind_count() == 0);
    }

    #[test]
    fn a_small_range_given_back_serves_only_those_whose_way_is_free() {
        let mut ranges = Ranges::default();
        let a = ranges.try_take(0, 10).unwrap();
        let b = ranges.try_take(10, 20).unwrap();
        let (_, wide) = ranges.queue(5, 15);
        let (_, after) = ranges.queue(12, 14);
        ranges.release(b).wake();
        assert!(!wide.is_done() && !after.is_done());
        ranges.release(a).wake();
        assert!(wide.is_done() && !after.is_done());
    }
}
