//! Who the members are and what the map says of the regions: the state in memory, behind one lock,
//! and its copies on the legs (`publish`, `commit_assembly`). Byte ranges are locked here.

use std::ops::Range;

use steadfast_block::{BlockError, Result};
use steadfast_runtime::{Condvar, Mutex, MutexGuard, Nanos, now};
use uuid::Uuid;

use super::leg::LegFailure;
use super::ranges::Ticket;
use super::state::State;
use crate::planted::Bug;
use steadfast_block::planted::BugSwitch;

/// The state of a mirror, and what writes it down.
pub(crate) struct Metadata {
    pub volume: Uuid,
    pub name: String,
    pub planted: BugSwitch<Bug>,
    pub state: Mutex<State>,
    /// A range was given back, the map or the labels were written, or nothing works any more.
    pub changed: Condvar,
    /// Held while labels are written: one after the other. Taken before `state`.
    pub labels: Mutex<()>,
    /// Held while what the assembly decided is written down. Taken before `labels`.
    pub committing_assembly: Mutex<()>,
}

impl Metadata {
    /// The state, once all changes of the members are in the labels. What the assembly decided is
    /// written down now, if it was not yet.
    pub(super) fn settled(&self) -> Result<MutexGuard<'_, State>> {
        let mut state = self.state.lock();
        loop {
            if let Some(stopped) = state.stopped() {
                return Err(stopped);
            }
            if state.info.read_only {
                return Err(BlockError::ReadOnly { device: self.name.clone() });
            }
            if state.is_settled() {
                return Ok(state);
            }
            if state.pending.is_some() {
                drop(state);
                self.commit_assembly()?;
                state = self.state.lock();
                continue;
            }
            state = self.changed.wait(state);
        }
    }

    /// The same, for what changes the volume.
    pub(super) fn settled_for_writes(&self) -> Result<MutexGuard<'_, State>> {
        let state = self.settled()?;
        state.refuses_writes().map_or(Ok(state), Err)
    }

    /// Waits for the right to write whole regions.
    pub(super) fn take_regions(
        &self,
        mut state: MutexGuard<'_, State>,
        regions: Range<u32>,
    ) -> (Range<u32>, Ticket) {
        let (start, _) = state.regions.bytes_of(regions.start);
        let (last, len) = state.regions.bytes_of(regions.end - 1);
        let (ticket, turn) = state.ranges.queue(start, last + len);
        drop(state);
        drop(turn.wait());
        (regions, ticket)
    }

    /// Gives a range back and wakes those who wait.
    pub(super) fn release(&self, ticket: Ticket) {
        let turns = self.state.lock().ranges.release(ticket);
        turns.wake();
    }

    /// A leg has answered. `begun`: when it was asked, if that is wanted.
    pub(super) fn answered(&self, (slot, epoch): (usize, u64), begun: Option<Nanos>, good: bool) {
        if begun.is_none() && good {
            return;
        }
        let mut state = self.state.lock();
        let leg = state.legs.tallied(slot).filter(|(of, ..)| *of == epoch);
        let Some((_, counters, measured)) = leg else { return };
        if let Some(begun) = begun {
            measured.in_flight = measured.in_flight.saturating_sub(1);
            measured.answered(now() - begun);
        }
        counters.errors += u64::from(!good);
    }

    /// Records the error of a leg that is the only holder and failed.
    pub(super) fn note_error(&self, failed: &LegFailure) {
        let mut state = self.state.lock();
        if let Some(leg) = state.legs[failed.slot].as_mut().filter(|l| l.epoch == failed.epoch) {
            leg.erred = Some(failed.error.to_string());
        }
    }
}
