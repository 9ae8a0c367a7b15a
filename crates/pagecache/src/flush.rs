//! Writing out on request, and waiting for it.

use std::ops::Range;

use steadfast_vfs::Result;

use crate::{ErrorCursor, FileKey, PAGE_U64, PageCache};

/// Pages of a file to be on the device before a flush returns.
struct Goal {
    file: FileKey,
    pages: Range<u64>,
    /// Only what was dirty when the flush began: later writes could keep it busy for ever.
    cutoff: u64,
    errors_before: u64,
}

impl PageCache {
    /// Writes out what is dirty in the file now, again what could not be written before, and waits
    /// until that and what was already in flight is on the device. The device's own cache is not
    /// flushed.
    ///
    /// # Errors
    /// When a write-back of the file has failed since the call began. Earlier errors, and this
    /// one again, come from [`error_since`](Self::error_since).
    pub fn flush(&self, file: FileKey) -> Result<()> {
        self.flush_range(file, 0..u64::MAX)
    }

    /// The same for the pages that a range of bytes touches.
    ///
    /// # Errors
    /// As [`flush`](Self::flush).
    pub fn flush_range(&self, file: FileKey, bytes: Range<u64>) -> Result<()> {
        let Some(goal) = self.goal(file, pages_of(&bytes)) else { return Ok(()) };
        self.start_goal(&goal);
        self.reach_goal(&goal)
    }

    /// The same for all files, in the order of their numbers.
    ///
    /// # Errors
    /// The first error as by [`flush`](Self::flush); all files are written even so.
    pub fn flush_all(&self) -> Result<()> {
        let files: Vec<FileKey> = self.state.lock().files.keys().copied().collect();
        let goals: Vec<Goal> =
            files.into_iter().filter_map(|f| self.goal(f, 0..u64::MAX)).collect();
        for goal in &goals {
            self.start_goal(goal);
        }
        let mut outcome = Ok(());
        for goal in &goals {
            let r = self.reach_goal(goal);
            outcome = outcome.and(r);
        }
        outcome
    }

    /// [`flush`](Self::flush) for a handle: reports each write-back error of the file once to
    /// each handle, whether it came before or during this call.
    ///
    /// # Errors
    /// That error.
    pub fn fsync(&self, file: FileKey, cursor: &mut ErrorCursor) -> Result<()> {
        let flushed = self.flush(file);
        // The cursor first: it moves on past the error that the flush has seen.
        self.error_since(file, cursor).and(flushed)?;
        self.check_lost(file, &(0..u64::MAX))
    }

    /// `None` if nothing there is dirty or in flight.
    fn goal(&self, file: FileKey, pages: Range<u64>) -> Option<Goal> {
        let mut state = self.state.lock();
        state.redirty_failed(file, pages.clone());
        let f = state.files.get(&file)?;
        if pages.is_empty() || (f.dirty.is_empty() && f.writeback.is_empty()) {
            return None;
        }
        let errors_before = f.errors.count();
        Some(Goal { file, pages, cutoff: state.dirty_seq.get(), errors_before })
    }

    /// Starts to write whatever can be written.
    fn start_goal(&self, goal: &Goal) {
        let mut rest = goal.pages.clone();
        while let Some(issued) = self.write_batch(goal.file, rest.clone(), goal.cutoff, u64::MAX) {
            rest.start = issued.last + 1;
        }
    }

    fn reach_goal(&self, goal: &Goal) -> Result<()> {
        loop {
            let state = self.state.lock();
            let Some(f) = state.files.get(&goal.file) else { return Ok(()) };
            let in_flight = |(_, w): (u64, &crate::state::InFlight)| w.dirtied <= goal.cutoff;
            let is_dirty = f
                .dirty
                .range(goal.pages.clone())
                .any(|(_, dirty_page)| dirty_page.seq() <= goal.cutoff);
            if f.writeback.range(goal.pages.clone()).any(in_flight) {
                // Some of them may be dirty again, and can be written only afterwards.
                drop(self.room.wait(state));
            } else if is_dirty {
                drop(state);
                self.start_goal(goal);
            } else {
                return Self::error_after(&state, goal.file, goal.errors_before);
            }
        }
    }
}

/// The pages that a range of bytes touches.
pub(crate) fn pages_of(bytes: &Range<u64>) -> Range<u64> {
    if bytes.is_empty() {
        return 0..0;
    }
    bytes.start / PAGE_U64..bytes.end.div_ceil(PAGE_U64)
}
