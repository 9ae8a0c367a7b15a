//! The order of waiting requests.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use smart_default::SmartDefault;
use steadfast_runtime::Nanos;

/// Reads, and all else that has a place: Linux's schedulers distinguish them and nothing more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// Reads: somebody waits for them.
    Read,
    /// Writes and discards.
    Write,
}

/// A waiting request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct PendingRequest {
    /// Its number in the order of arrival.
    pub id: u64,
    /// When it came.
    pub since: Nanos,
    /// What it is.
    pub direction: Direction,
    /// First byte.
    pub offset: u64,
    /// Bytes.
    pub len: u64,
}

/// Keeps waiting requests and says which is next.
pub(super) trait Order: Send {
    /// One more waits.
    fn add(&mut self, waiting: PendingRequest);

    /// Takes the next; `None` if none waits.
    fn take(&mut self, now: Nanos) -> Option<PendingRequest>;

    /// Until when nothing is to be taken, if a read was answered at `read_answered`: another may
    /// follow it, which would come too late if a write were begun now.
    fn anticipates(&self, _read_answered: Nanos) -> Option<Nanos> {
        None
    }
}

/// First come, first served.
#[derive(Default)]
pub(super) struct Fifo(VecDeque<PendingRequest>);

impl Order for Fifo {
    fn add(&mut self, waiting: PendingRequest) {
        self.0.push_back(waiting);
    }

    fn take(&mut self, _: Nanos) -> Option<PendingRequest> {
        self.0.pop_front()
    }
}

/// Settings of mq-deadline (`Documentation/block/deadline-iosched.rst`) and their defaults.
#[derive(Debug, Clone, PartialEq, Eq, SmartDefault)]
pub struct DeadlineSettings {
    /// A read that has waited so long is served before the others of its batch.
    #[default(Duration::from_millis(500))]
    pub read_expire: Duration,
    /// The same of a write.
    #[default(Duration::from_secs(5))]
    pub write_expire: Duration,
    /// Batches of reads that may go before waiting writes.
    #[default(2)]
    pub writes_starved: u64,
    /// Requests of one direction, in ascending order of place, that are served one after the other.
    #[default(16)]
    pub fifo_batch: u64,
    /// How long after a read was answered no write is begun while no read waits: the reader may
    /// ask for the next piece. `writes_starved` bounds this too. mq-deadline has no such thing;
    /// Linux 2.6's anticipatory scheduler had (`antic_expire`, 6 to 7 ms). Zero: it is not done.
    pub anticipation: Duration,
}

/// The requests of one direction: by place, and by age.
#[derive(Default)]
struct DirectionQueue {
    by_place: BTreeMap<(u64, u64), PendingRequest>,
    /// By number; the oldest first.
    by_age: BTreeMap<u64, (u64, u64)>,
    /// Behind the request that was last taken.
    position: u64,
}

impl DirectionQueue {
    fn add(&mut self, waiting: PendingRequest) {
        let key = (waiting.offset, waiting.id);
        self.by_place.insert(key, waiting);
        self.by_age.insert(waiting.id, key);
    }

    fn is_empty(&self) -> bool {
        self.by_place.is_empty()
    }

    fn next_by_place(&self) -> Option<PendingRequest> {
        self.by_place.range((self.position, 0)..).next().map(|(_, waiting)| *waiting)
    }

    fn oldest(&self) -> Option<PendingRequest> {
        let (_, key) = self.by_age.first_key_value()?;
        self.by_place.get(key).copied()
    }

    fn remove(&mut self, waiting: PendingRequest) {
        self.by_place.remove(&(waiting.offset, waiting.id));
        self.by_age.remove(&waiting.id);
        self.position = waiting.offset + waiting.len;
    }
}

/// Linux's mq-deadline (`block/mq-deadline.c`): batches in ascending order of place, reads first
/// but not for ever, the oldest first where it has waited too long. Priorities of processes are
/// not known here; all are as one.
pub(super) struct Deadline {
    settings: DeadlineSettings,
    reads: DirectionQueue,
    writes: DirectionQueue,
    /// The direction of the batch that is being served.
    batch: Direction,
    batched: u64,
    starved: u64,
}

impl Deadline {
    pub fn new(settings: DeadlineSettings) -> Deadline {
        let (reads, writes) = (DirectionQueue::default(), DirectionQueue::default());
        // A batch begins with the first request.
        let batched = u64::MAX;
        Deadline { settings, reads, writes, batch: Direction::Read, batched, starved: 0 }
    }

    fn queue(&mut self, direction: Direction) -> &mut DirectionQueue {
        match direction {
            Direction::Read => &mut self.reads,
            Direction::Write => &mut self.writes,
        }
    }

    /// The direction of the next batch, if anything waits.
    fn choose(&mut self) -> Option<Direction> {
        let (reads, writes) = (!self.reads.is_empty(), !self.writes.is_empty());
        match (reads, writes) {
            (false, false) => None,
            (true, true) if self.starved >= self.settings.writes_starved => {
                self.starved = 0;
                Some(Direction::Write)
            }
            (true, both) => {
                self.starved += u64::from(both);
                Some(Direction::Read)
            }
            (false, true) => {
                self.starved = 0;
                Some(Direction::Write)
            }
        }
    }

    fn expire(&self, direction: Direction) -> Duration {
        match direction {
            Direction::Read => self.settings.read_expire,
            Direction::Write => self.settings.write_expire,
        }
    }
}

impl Order for Deadline {
    fn add(&mut self, waiting: PendingRequest) {
        self.queue(waiting.direction).add(waiting);
    }

    fn take(&mut self, now: Nanos) -> Option<PendingRequest> {
        if self.batched < self.settings.fifo_batch {
            let batch = self.batch;
            if let Some(next) = self.queue(batch).next_by_place() {
                self.batched += 1;
                self.queue(batch).remove(next);
                return Some(next);
            }
        }
        let direction = self.choose()?;
        let expire = self.expire(direction);
        let queue = self.queue(direction);
        let oldest = queue.oldest()?;
        // Too old, or the end of the disk is reached: from the oldest on.
        let next = match queue.next_by_place() {
            Some(next) if now.since(oldest.since) < expire => next,
            _ => oldest,
        };
        queue.remove(next);
        (self.batch, self.batched) = (direction, 1);
        Some(next)
    }

    fn anticipates(&self, read_answered: Nanos) -> Option<Nanos> {
        let settings = &self.settings;
        let last_was_read = self.batch == Direction::Read && self.batched <= settings.fifo_batch;
        let waits = last_was_read
            && self.reads.is_empty()
            && self.starved < settings.writes_starved
            && !settings.anticipation.is_zero();
        waits.then(|| read_answered + settings.anticipation)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn waiting(id: u64, direction: Direction, offset: u64) -> PendingRequest {
        PendingRequest { id, since: Nanos(id), direction, offset, len: 4096 }
    }

    #[test]
    fn a_read_is_anticipated_for_a_while_and_not_for_ever() {
        let anticipation = Duration::from_millis(6);
        let settings = DeadlineSettings {
            anticipation,
            writes_starved: 2,
            fifo_batch: 1,
            ..DeadlineSettings::default()
        };
        let mut order = Deadline::new(settings);
        assert_eq!(order.anticipates(Nanos(0)), None, "nothing was read");
        let next = |id, order: &mut Deadline| {
            order.add(waiting(id, Direction::Read, id << 20));
            order.take(Nanos(id)).map(|w| w.id)
        };
        order.add(waiting(0, Direction::Write, 9 << 20));
        assert_eq!(next(1, &mut order), Some(1));
        assert_eq!(order.anticipates(Nanos(7)), Some(Nanos(7) + anticipation));
        assert_eq!(next(2, &mut order), Some(2));
        assert_eq!(order.anticipates(Nanos(8)), None, "a write has waited for two batches");
        assert_eq!(next(3, &mut order), Some(0));
        assert_eq!(order.anticipates(Nanos(9)), None, "a write was served");
    }

    fn all(order: &mut dyn Order, now: Nanos) -> Vec<u64> {
        std::iter::from_fn(|| order.take(now)).map(|w| w.id).collect()
    }

    #[test]
    fn fifo_serves_as_they_come() {
        let mut order = Fifo::default();
        for (id, offset) in [(0, 9), (1, 3), (2, 7)] {
            order.add(waiting(id, Direction::Write, offset << 20));
        }
        assert_eq!(all(&mut order, Nanos(9)), [0, 1, 2]);
    }

    #[test]
    fn deadline_goes_up_the_disk_and_wraps_to_the_oldest() {
        let mut order = Deadline::new(DeadlineSettings::default());
        for (id, offset) in [(0, 5), (1, 3), (2, 7), (3, 1)] {
            order.add(waiting(id, Direction::Read, offset << 20));
        }
        // From the beginning of the disk upwards.
        assert_eq!(all(&mut order, Nanos(9)), [3, 1, 0, 2]);
        for (id, offset) in [(4, 2), (5, 1), (6, 8)] {
            order.add(waiting(id, Direction::Read, offset << 20));
        }
        // Nothing but 6 is ahead; then the oldest, and what is behind it.
        assert_eq!(all(&mut order, Nanos(9)), [6, 4, 5]);
    }

    #[test]
    fn reads_go_first_and_writes_are_not_starved() {
        let settings = DeadlineSettings { fifo_batch: 2, ..DeadlineSettings::default() };
        let mut order = Deadline::new(settings);
        for id in 0..4 {
            order.add(waiting(id, Direction::Write, id << 20));
        }
        for id in 4..14 {
            order.add(waiting(id, Direction::Read, id << 20));
        }
        // Two batches of reads, one of writes, and so on.
        let served = all(&mut order, Nanos(20));
        assert_eq!(served, [4, 5, 6, 7, 0, 1, 8, 9, 10, 11, 2, 3, 12, 13]);
    }

    #[test]
    fn what_has_waited_too_long_is_next() {
        let settings = DeadlineSettings { fifo_batch: 1, ..DeadlineSettings::default() };
        let mut order = Deadline::new(settings.clone());
        order.add(waiting(0, Direction::Read, 1 << 20));
        order.add(waiting(1, Direction::Read, 8 << 20));
        assert_eq!(order.take(Nanos(2)).map(|w| w.id), Some(0));
        order.add(waiting(2, Direction::Read, 4 << 20));
        let late = Nanos(1) + settings.read_expire;
        assert_eq!(all(&mut order, late), [1, 2], "the oldest, though 2 is nearer");
    }
}
