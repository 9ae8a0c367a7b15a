//! Reading on after a read, while the arm has nothing else to do.

use std::ops::Range;

use super::super::mechanics::Transfer;
use super::super::params::LookAheadUntil;
use super::{ArmState, Drive};

/// From the next sector that is not in the cache yet, up to a limit.
#[derive(Debug, Clone, Copy)]
pub(super) struct LookAhead {
    pub next: Transfer,
    until: u64,
    pub segment: u64,
}

impl Drive {
    pub(super) fn look_ahead(&mut self, at: u64, sector: u64, segment: u64) {
        let until = self.look_ahead_limit(sector, segment);
        if self.p.look_ahead && sector < until {
            let start_ns = self.mechanics.reach(at, self.track, sector, false);
            let next = Transfer { start_ns, sector, writes: false };
            self.arm_state = ArmState::LookAhead(LookAhead { next, until, segment });
        }
    }

    /// How far to read ahead of a host that has asked for all up to `asked`: more than a segment
    /// would push what it asks for next out of the segment.
    fn look_ahead_limit(&self, asked: u64, segment: u64) -> u64 {
        let geometry = &self.mechanics.geometry;
        let sectors = self.p.look_ahead_sectors.map_or(self.cache.segment_sectors(), u64::from);
        let until = match self.p.look_ahead_until {
            LookAheadUntil::Sectors => asked + sectors,
            LookAheadUntil::Track => geometry.track_of(asked - 1).1.min(asked + sectors),
            LookAheadUntil::Cylinder => geometry.cylinder_end(asked - 1).min(asked + sectors),
            LookAheadUntil::Tracks => {
                let (first, end) = geometry.track_of(asked);
                let goes_on = self.cache.start(segment).is_some_and(|start| start < first);
                if goes_on { geometry.track_of(end).1 } else { end }
            }
        };
        until.min(self.p.sectors)
    }

    /// The host has been given all up to `asked` from a segment. If it is the one being filled,
    /// the arm may go on for longer; if it had stopped, it has to wait for the platter again.
    pub(super) fn extend_look_ahead(&mut self, at: u64, segment: u64, asked: u64) {
        let limit = self.look_ahead_limit(asked, segment);
        let ArmState::LookAhead(l) = &mut self.arm_state else { return };
        let ended = l.next.sector == l.until;
        if l.segment != segment || limit <= l.until || (ended && !self.p.look_ahead_after_hit) {
            return;
        }
        if ended {
            l.next.start_ns = self.mechanics.reach(at, self.track, l.next.sector, false);
        }
        l.until = limit;
    }

    /// Enters into the cache what the look-ahead has read by now, and returns its next sector.
    pub(super) fn note_look_ahead(&mut self, at: u64) -> Option<u64> {
        let ArmState::LookAhead(l) = &mut self.arm_state else { return None };
        if l.next.sector == l.until {
            return None;
        }
        let mechanics = &self.mechanics;
        let (read, track) = mechanics.progress(l.next, l.until - l.next.sector, at);
        self.track = track;
        if read > 0 {
            let (ended_ns, on) = mechanics.finish(l.next, read);
            l.next.sector += read;
            self.cache.fill(l.segment, l.next.sector);
            if l.next.sector < l.until {
                l.next.start_ns = mechanics.reach(ended_ns, on, l.next.sector, false);
            }
        }
        (l.next.sector < l.until).then_some(l.next.sector)
    }

    /// The cached copies of what is being written are void; a look-ahead over them stops.
    pub(super) fn forget_cached(&mut self, at: u64, written: &Range<u64>) {
        self.note_look_ahead(at);
        let over = |l: &LookAhead| l.next.sector < written.end && written.start < l.until;
        if matches!(&self.arm_state, ArmState::LookAhead(l) if over(l)) {
            self.arm_state = ArmState::Nothing;
        }
        self.cache.forget(written);
    }
}
