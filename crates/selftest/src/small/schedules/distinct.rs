//! Recordings that need not be cut, because what was cut already shows as much.
//!
//! Two runs that ask the devices for the same, in the same order and with the same answers in
//! between, leave the same at each cut. What differs is how far the tasks are, as the judge sees
//! it. Times do not count. Of a run of which the devices saw the same as of another one, with the
//! same acknowledgements in between, and whose operations started no later, nothing is required
//! that is not required of the other one: an operation that has started, and is not acknowledged,
//! may or may not be there. It is not cut.
//!
//! Where each task is judged by itself, nothing depends on the order of acknowledgements of
//! different tasks between two events at the devices.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};

use steadfast_devices::filter::record::Recording;

/// What happened, in order.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum ScheduleEvent {
    Submitted(usize),
    Completed(usize),
    /// Operation of a task: task, index.
    Acknowledged(u64, u64),
    Started(u64, u64),
}

/// A recording, without times: what must be equal, and how late operations started, by task and
/// index.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct RunKey {
    key: u64,
    started: Vec<u32>,
}

impl RunKey {
    /// `joint`: the tasks are judged together.
    pub fn of(recording: &Recording, joint: bool) -> RunKey {
        let mut hasher = DefaultHasher::new();
        for event in recording.events() {
            (event.device.0, event.failed, &event.action).hash(&mut hasher);
        }
        let mut started = Vec::new();
        let mut length = 0;
        let mut acknowledged = Vec::new();
        let flush = |acknowledged: &mut Vec<ScheduleEvent>, hasher: &mut DefaultHasher| {
            acknowledged.sort_unstable();
            acknowledged.drain(..).for_each(|a| a.hash(hasher));
        };
        for event in events_of(recording) {
            match event {
                ScheduleEvent::Started(task, index) => started.push((task, index, length)),
                ScheduleEvent::Acknowledged(..) if !joint => acknowledged.push(event),
                _ => {
                    flush(&mut acknowledged, &mut hasher);
                    event.hash(&mut hasher);
                    length += 1;
                }
            }
        }
        flush(&mut acknowledged, &mut hasher);
        started.sort_unstable();
        let started = started.into_iter().map(|(_, _, at)| at).collect();
        RunKey { key: hasher.finish(), started }
    }
}

fn events_of(recording: &Recording) -> Vec<ScheduleEvent> {
    let mut found = Vec::new();
    for (number, event) in recording.events().iter().enumerate() {
        found.push((event.submitted.tick, ScheduleEvent::Submitted(number)));
        let completed = event.completed.map(|c| (c.tick, ScheduleEvent::Completed(number)));
        found.extend(completed);
    }
    for note in recording.notes() {
        let [task, index, end] = note.detail;
        let event = match end {
            0 => ScheduleEvent::Started(task, index),
            _ => ScheduleEvent::Acknowledged(task, index),
        };
        found.push((note.moment.tick, event));
    }
    found.sort_unstable();
    found.into_iter().map(|(_, event)| event).collect()
}

/// The recordings of one list of tasks that were cut.
#[derive(Debug, Default)]
pub(super) struct Distinct {
    started: HashMap<u64, Vec<Vec<u32>>>,
}

impl Distinct {
    /// Whether a recording that was cut stands for this one.
    pub fn covers(&self, seen: &RunKey) -> bool {
        let later = |cut: &Vec<u32>| {
            cut.len() == seen.started.len() && cut.iter().zip(&seen.started).all(|(c, s)| c >= s)
        };
        self.started.get(&seen.key).is_some_and(|cut| cut.iter().any(later))
    }

    /// Takes one in; false if another one stands for it.
    pub fn insert(&mut self, seen: RunKey) -> bool {
        let is_new = !self.covers(&seen);
        if is_new {
            self.started.entry(seen.key).or_default().push(seen.started);
        }
        is_new
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_recording_stands_for_those_whose_operations_started_earlier() {
        let seen = |key, started: &[u32]| RunKey { key, started: started.to_vec() };
        let mut distinct = Distinct::default();
        assert!(distinct.insert(seen(1, &[0, 4, 9])));
        assert!(!distinct.insert(seen(1, &[0, 4, 9])), "the same");
        assert!(!distinct.insert(seen(1, &[0, 3, 9])), "started earlier");
        assert!(distinct.insert(seen(1, &[1, 3, 9])), "one later, one earlier");
        assert!(distinct.insert(seen(1, &[1, 4, 9])), "later than both");
        assert!(distinct.insert(seen(2, &[0, 0, 0])), "the devices saw something else");
        assert!(distinct.insert(seen(1, &[0])), "other tasks");
    }
}
