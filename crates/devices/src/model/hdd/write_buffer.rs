//! Completed writes that are not on the medium yet.

use std::ops::Range;

use super::access::Arrival;

/// One run of sectors to be written out.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Dirty {
    /// The earliest completion it stands for: a flush of everything up to here waits for it.
    pub sequence: u64,
    pub sectors: Range<u64>,
    pub since_ns: u64,
    /// Of its last sectors; those before them are there by then.
    pub data: Arrival,
}

impl Dirty {
    fn len(&self) -> u64 {
        self.sectors.end - self.sectors.start
    }
}

/// The longest run that adjoining writes are gathered into, in sectors: longer ones would keep
/// the arm from reads for more than a revolution.
const MOST_GATHERED: u64 = 1024;

/// The buffer of a write cache. Space is taken when a transfer from the host begins and given
/// back when the run is on the medium.
#[derive(Debug)]
pub(super) struct WriteBuffer {
    capacity: u64,
    most_runs: Option<u32>,
    taken: u64,
    sequence: u64,
    dirty: Vec<Dirty>,
    /// The run the arm is writing now.
    leaving: Option<Dirty>,
}

impl WriteBuffer {
    pub(super) fn new(capacity: u64, most_runs: Option<u32>) -> Self {
        WriteBuffer { capacity, most_runs, taken: 0, sequence: 0, dirty: Vec::new(), leaving: None }
    }

    /// Whether a write could ever fit.
    pub(super) fn can_hold(&self, sectors: u64) -> bool {
        sectors <= self.capacity
    }

    /// Takes space for a write, if there is.
    pub(super) fn take(&mut self, sectors: &Range<u64>) -> bool {
        let len = sectors.end - sectors.start;
        let runs = || self.dirty.iter().chain(&self.leaving);
        let goes_on = || runs().any(|run| run.sectors.end == sectors.start);
        let fits = self.taken + len <= self.capacity
            && self.most_runs.is_none_or(|most| runs().count() < most as usize || goes_on());
        if fits {
            self.taken += len;
        }
        fits
    }

    /// A write whose space was taken comes into the buffer. It counts as complete from now on,
    /// which is a little early: a flush that is asked for meanwhile waits for it too.
    pub(super) fn accept(&mut self, sectors: Range<u64>, at_ns: u64, data: Arrival) {
        self.sequence += 1;
        let mut new = Dirty { sequence: self.sequence, sectors, since_ns: at_ns, data };
        let mut freed = 0;
        self.dirty.retain(|old| {
            let covered =
                new.sectors.start <= old.sectors.start && old.sectors.end <= new.sectors.end;
            if covered {
                new.sequence = new.sequence.min(old.sequence);
                new.since_ns = new.since_ns.min(old.since_ns);
                freed += old.len();
            }
            !covered
        });
        self.taken -= freed;
        let gathers = |old: &&mut Dirty| {
            old.sectors.end == new.sectors.start && old.len() + new.len() <= MOST_GATHERED
        };
        match self.dirty.iter_mut().find(gathers) {
            Some(old) => {
                old.sectors.end = new.sectors.end;
                old.data = Arrival { sectors: old.len(), ..new.data };
                old.sequence = old.sequence.min(new.sequence);
            }
            None => self.dirty.push(new),
        }
    }

    /// The runs that wait, oldest first.
    pub(super) fn waiting(&self) -> &[Dirty] {
        &self.dirty
    }

    /// Whether so much waits that writing out should not yield to reads any more.
    pub(super) fn is_crowded(&self) -> bool {
        self.taken * 2 > self.capacity
    }

    /// The arm begins to write run `i` of [`waiting`](Self::waiting).
    pub(super) fn begin(&mut self, i: usize) -> (Range<u64>, Arrival) {
        let run = self.dirty.remove(i);
        let begun = (run.sectors.clone(), run.data);
        self.leaving = Some(run);
        begun
    }

    /// The arm has written the run it began.
    pub(super) fn finish(&mut self) {
        if let Some(run) = self.leaving.take() {
            self.taken -= run.len();
        }
    }

    /// Whether one run holds all of `wanted`, and they have come by `at_ns`.
    pub(super) fn holds(&self, wanted: &Range<u64>, at_ns: u64) -> bool {
        self.dirty.iter().chain(&self.leaving).any(|d| {
            let around = d.sectors.start <= wanted.start && wanted.end <= d.sectors.end;
            around && d.data.of(wanted.end - d.sectors.start) <= at_ns
        })
    }

    /// The number of the last write completed: what a flush now has to cover.
    pub(super) fn completed(&self) -> u64 {
        self.sequence
    }

    /// Whether everything completed up to `sequence` is on the medium.
    pub(super) fn is_durable(&self, sequence: u64) -> bool {
        self.dirty.iter().chain(&self.leaving).all(|d| d.sequence > sequence)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn data() -> Arrival {
        Arrival { last_ns: 0, sectors: 10, sector_ns: 1.0 }
    }

    #[test]
    fn with_one_run_only_what_continues_it_is_taken() {
        let mut b = WriteBuffer::new(100, Some(1));
        assert!(b.take(&(0..10)));
        b.accept(0..10, 1, data());
        assert!(!b.take(&(50..60)));
        assert!(b.take(&(10..20)));
        b.accept(10..20, 1, data());
        assert_eq!(b.begin(0).0, 0..20);
        assert!(!b.take(&(50..60)), "still being written");
        b.finish();
        assert!(b.take(&(50..60)));
    }

    #[test]
    fn a_flush_waits_for_what_completed_before_it() {
        let mut b = WriteBuffer::new(100, None);
        assert!(b.take(&(0..10)));
        b.accept(0..10, 1, data());
        let flush = b.completed();
        assert!(b.take(&(50..60)));
        b.accept(50..60, 2, data());
        assert!(!b.is_durable(flush));
        assert_eq!(b.begin(0).0, 0..10);
        assert!(!b.is_durable(flush), "still being written");
        b.finish();
        assert!(b.is_durable(flush));
        assert!(!b.is_durable(b.completed()));
    }

    #[test]
    fn an_overwrite_inherits_the_promise_and_gives_back_space() {
        let mut b = WriteBuffer::new(20, None);
        assert!(b.take(&(0..10)));
        b.accept(0..10, 1, data());
        let flush = b.completed();
        assert!(b.take(&(50..60)));
        assert!(!b.take(&(70..71)));
        b.accept(0..10, 2, data());
        assert!(b.take(&(50..60)));
        assert!(!b.is_durable(flush));
    }

    #[test]
    fn adjoining_writes_are_gathered() {
        let mut b = WriteBuffer::new(100, None);
        assert!(b.take(&(0..20)));
        b.accept(0..10, 1, data());
        b.accept(10..20, 1, data());
        assert_eq!(b.waiting().len(), 1);
        assert!(b.holds(&(5..15), 0));
        assert!(!b.holds(&(15..25), 0));
    }
}
