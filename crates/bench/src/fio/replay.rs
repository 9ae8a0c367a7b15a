//! Where a job is in the log that it replays: which step is next, and when.
//!
//! A step comes so long after the one before as the log says; what took longer than in the log
//! moves all that follows, as in fio. Files are closed where the log closes them, but not before
//! their requests in flight have returned.

use std::sync::Arc;

use super::io_log::{IoLog, LogStep, StepAction};

/// Where a job is in its log. Times are nanoseconds of one clock.
pub(super) struct ReplayCursor {
    log: Arc<IoLog>,
    /// The number of the next step.
    next: usize,
    began: u64,
    /// When the step before was to be made, and when by the log.
    last_at: u64,
    last_due: u64,
    files: Vec<FileUse>,
    /// Files that are to be closed, of which nothing is in flight any more.
    idle: Vec<u16>,
}

/// What is known of a file of the log.
#[derive(Debug, Clone, Copy, Default)]
struct FileUse {
    in_flight: u32,
    /// The log has closed it.
    closes: bool,
}

impl ReplayCursor {
    pub(super) fn new(log: &Arc<IoLog>, now: u64) -> ReplayCursor {
        ReplayCursor {
            log: Arc::clone(log),
            next: 0,
            began: now,
            last_at: now,
            last_due: 0,
            files: vec![FileUse::default(); log.files.len()],
            idle: Vec::new(),
        }
    }

    /// The next step, and when it is made; `None`: there is no other.
    pub(super) fn next(&mut self, now: u64) -> Option<(LogStep, u64)> {
        while let Some(file) = self.idle.pop() {
            let of_file = &mut self.files[usize::from(file)];
            if of_file.in_flight == 0 && std::mem::take(&mut of_file.closes) {
                let (due, action) = (self.last_due, StepAction::Close);
                return Some((LogStep { due, offset: 0, len: 0, file, action }, now));
            }
        }
        loop {
            let step = *self.log.steps.get(self.next)?;
            self.next += 1;
            let at = self.due(&step, now);
            let file = &mut self.files[usize::from(step.file)];
            match step.action {
                StepAction::Close if file.in_flight > 0 => file.closes = true,
                // It has not been closed yet.
                StepAction::Open if file.closes => file.closes = false,
                StepAction::Request(_) | StepAction::Sync { .. } => {
                    file.in_flight += 1;
                    return Some((step, at));
                }
                StepAction::Open | StepAction::Close | StepAction::Wait => return Some((step, at)),
            }
        }
    }

    fn due(&mut self, step: &LogStep, now: u64) -> u64 {
        let by_log = match step.action {
            StepAction::Wait => self.began.saturating_add(step.offset),
            _ => self.last_at.saturating_add(step.due - self.last_due),
        };
        self.last_due = step.due;
        self.issued(by_log.max(now));
        self.last_at
    }

    /// The last step is made at this time, if that is later.
    pub(super) fn issued(&mut self, at: u64) {
        self.last_at = self.last_at.max(at);
    }

    /// A request, or a sync, of a file has returned.
    pub(super) fn returned(&mut self, file: usize) {
        let of_file = &mut self.files[file];
        of_file.in_flight -= 1;
        if of_file.closes && of_file.in_flight == 0 {
            // OK to cast: it came from a step.
            self.idle.push(file as u16);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::io_log;
    use super::super::options::{ReplayOptions, RequestKind};
    use super::*;

    const US: u64 = 1000;

    fn cursor(text: &str) -> ReplayCursor {
        let log = io_log::read(&mut text.as_bytes(), "l", &ReplayOptions::default(), 100);
        ReplayCursor::new(&Arc::new(log.unwrap()), 0)
    }

    #[test]
    fn what_is_late_moves_what_follows() {
        let mut cursor = cursor(
            "fio version 3 iolog\n5 f add\n5 f open\n15 f write 0 512\n25 f write 0 512\n\
             35 f write 0 512\n20 f write 0 512\n30 f write 0 512\n",
        );
        let mut at = |now: u64| cursor.next(now * US).map(|(_, at)| at / US);
        assert_eq!([at(0), at(0), at(10)], [Some(0), Some(10), Some(20)]);
        // The one before took 40 us.
        assert_eq!([at(60), at(60), at(60), at(60)], [Some(60), Some(60), Some(70), None]);
    }

    #[test]
    fn a_file_is_closed_when_nothing_of_it_is_in_flight() {
        let mut cursor = cursor(
            "fio version 2 iolog\nf add\nf open\nf write 0 512\nf sync 0 0\nf close\ng add\n\
             g open\ng write 0 512\n",
        );
        let mut next = |returned: Option<usize>| {
            returned.into_iter().for_each(|file| cursor.returned(file));
            cursor.next(0).map(|(step, _)| (step.file, step.action))
        };
        let write = StepAction::Request(RequestKind::Write);
        assert_eq!(next(None), Some((0, StepAction::Open)));
        assert_eq!(next(None), Some((0, write)));
        assert_eq!(next(None), Some((0, StepAction::Sync { data_only: false })));
        assert_eq!(next(Some(0)), Some((1, StepAction::Open)));
        assert_eq!(next(Some(0)), Some((0, StepAction::Close)));
        assert_eq!(next(None), Some((1, write)));
        assert_eq!(next(None), None);
    }

    #[test]
    fn a_file_that_is_opened_again_stays_open() {
        let mut cursor = cursor(
            "fio version 2 iolog\nf add\nf open\nf write 0 512\nf close\nf open\nf write 0 512\n",
        );
        let actions: Vec<StepAction> =
            std::iter::from_fn(|| cursor.next(0).map(|(step, _)| step.action)).collect();
        let write = StepAction::Request(RequestKind::Write);
        assert_eq!(actions, [StepAction::Open, write, write]);
    }
}
