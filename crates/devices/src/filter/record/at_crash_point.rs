//! One device at one crash point: the writes that must survive, and those that may.

use std::ops::Range;
use std::time::Duration;

use steadfast_block::rng::Rng;
use steadfast_runtime::Nanos;

use super::media::{Media, UncertainUnit, UnitAfterCut};
use super::memory::{Lines, WORD};
use super::recording::Track;
use super::{Action, Durability, Event, RecordedDevice};
use crate::store::Store;

/// What a power cut may do to a write or discard that was submitted before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CutEffect {
    /// It is there, unless something later overwrote it.
    Durable,
    /// Each atomic unit of it is there or not. (A discarded unit: zeros, or as before.)
    InDoubt,
}

/// A device at a crash point.
///
/// Whoever applies events in the order given, the durable ones whole and of the others any
/// units, gets contents that a power cut may leave: a write in doubt cannot cover a durable one
/// that was submitted after it, and is covered by it here.
#[derive(Debug, Clone, Copy)]
pub struct AtCrashPoint<'a> {
    /// All events of the recording.
    all: &'a [Event],
    /// Indices of this device's events that were submitted before the crash point.
    indices: &'a [usize],
    device: &'a RecordedDevice,
    cut: u64,
    time: Nanos,
    /// What completed before this tick is durable.
    covered: u64,
    /// What completed from this tick on may be lost by the medium, promised or not.
    at_risk: Option<u64>,
    track: &'a Track,
    lines: &'a Lines,
}

impl<'a> AtCrashPoint<'a> {
    pub(super) fn new(
        all: &'a [Event],
        track: &'a Track,
        device: &'a RecordedDevice,
        cut: u64,
        time: Nanos,
    ) -> Self {
        let submitted = track.events.partition_point(|i| all[*i].submitted.tick < cut);
        let indices = &track.events[..submitted];
        let covered = match device.durability {
            Durability::OnCompletion | Durability::OnStore => cut,
            Durability::OnFlush => track.covered(cut),
            Durability::Lying { cache_bytes, .. } => evicted_before(all, indices, cut, cache_bytes),
        };
        let at_risk_bytes = device.media.at_risk_bytes();
        let at_risk = at_risk_bytes.map(|bytes| evicted_before(all, indices, cut, bytes));
        let lines = &track.lines;
        AtCrashPoint { all, indices, device, cut, time, covered, at_risk, track, lines }
    }

    /// How many requests of the device were submitted before the crash point.
    pub fn len(&self) -> usize {
        self.indices.len()
    }

    /// Whether none was.
    pub fn is_empty(&self) -> bool {
        self.indices.is_empty()
    }

    /// The device's writes and discards that were submitted before the crash point, from its
    /// `from`th request on, in the order of submission, with what the power cut may do to them.
    pub fn changes(&self, from: usize) -> impl Iterator<Item = (&'a Event, CutEffect)> + use<'a> {
        let this = *self;
        this.indices[from.min(this.indices.len())..].iter().filter_map(move |i| {
            let event = &this.all[*i];
            this.fate(event).map(|fate| (event, fate))
        })
    }

    /// The device's requests `[from, to)` that were submitted before the crash point, flushes too.
    pub fn requests(&self, from: usize, to: usize) -> impl Iterator<Item = &'a Event> + use<'a> {
        let (all, to) = (self.all, to.min(self.indices.len()));
        self.indices.get(from..to).unwrap_or_default().iter().map(|i| &all[*i])
    }

    /// What the cut may do to an event of this device; `None` for what changes nothing (a flush, a
    /// fence), and for what was not yet submitted.
    pub fn fate(&self, event: &Event) -> Option<CutEffect> {
        let fate = self.promised(event)?;
        let safe = self.at_risk.is_none_or(|from| event.completed.is_some_and(|c| c.tick < from));
        let is_memory = matches!(event.action, Action::Store { .. });
        Some(if safe || is_memory { fate } else { CutEffect::InDoubt })
    }

    /// What an honest medium does to it.
    fn promised(&self, event: &Event) -> Option<CutEffect> {
        if event.submitted.tick >= self.cut {
            return None;
        }
        let fua = match &event.action {
            Action::Flush | Action::Persist { .. } | Action::Fence => return None,
            Action::Write { fua, .. } => *fua,
            Action::Discard { .. } => false,
            Action::Store { offset, data } => {
                let stored = event.completed.filter(|_| event.done_before(self.cut));
                let durable = stored.is_some_and(|stored| match self.device.durability {
                    Durability::OnStore => true,
                    Durability::Lying { drains_within, .. } => {
                        drained(stored.at, drains_within, self.time)
                    }
                    Durability::OnCompletion | Durability::OnFlush => {
                        let len = data.len() as u64;
                        self.lines.all_durable(*offset, len, stored.tick, self.cut)
                    }
                });
                return Some(if durable { CutEffect::Durable } else { CutEffect::InDoubt });
            }
        };
        let done = match event.completed {
            Some(done) if event.done_before(self.cut) => done,
            _ => return Some(CutEffect::InDoubt),
        };
        let durable = done.tick < self.covered
            || match self.device.durability {
                Durability::OnCompletion | Durability::OnStore => true,
                Durability::OnFlush => fua,
                Durability::Lying { drains_within, .. } => {
                    drained(done.at, drains_within, self.time)
                }
            };
        Some(if durable { CutEffect::Durable } else { CutEffect::InDoubt })
    }

    /// The device's first request, not before its `from`th, that is in doubt; [`len`](Self::len)
    /// if there is none. What comes before it is the same for this crash point and later ones: it
    /// can be applied once, to a base that many crash points share.
    pub fn settled(&self, from: usize) -> usize {
        let from = from.min(self.indices.len());
        let in_doubt = |i: &usize| self.fate(&self.all[*i]) == Some(CutEffect::InDoubt);
        self.indices[from..].iter().position(in_doubt).map_or(self.indices.len(), |n| from + n)
    }

    /// Contents that the cut may leave. `base` holds the device's requests before its `from`th,
    /// which must be [settled](Self::settled). An atomic unit in doubt is there in
    /// `keep_percent` of 100 cases, as `choices` decide.
    pub fn contents(
        &self,
        base: &Store,
        from: usize,
        keep_percent: u64,
        choices: &mut Rng,
    ) -> Store {
        self.contents_where(base, from, |_, _| choices.percent(keep_percent))
    }

    /// As [`contents`](Self::contents); which units in doubt are there `keep` decides, asked for
    /// each in order with the request and the unit's offset on the device. What becomes of them
    /// then the [medium](super::Media) says.
    pub fn contents_where(
        &self,
        base: &Store,
        from: usize,
        mut keep: impl FnMut(&Event, u64) -> bool,
    ) -> Store {
        if self.device.media.is_plain() {
            return self.chosen(base, from, keep);
        }
        let mut units: Vec<UncertainUnit> = Vec::new();
        let mut ranges: Vec<(u64, u64)> = Vec::new();
        // The contents are thrown away: this asks.
        self.chosen(base, from, |event, offset| {
            let chosen = keep(event, offset);
            units.push(self.doubted(event, chosen));
            ranges.push((offset, self.unit_len(event, offset)));
            chosen
        });
        let left = self.device.media.settle(&units, self.track.flushed_at());
        let mut next = left.iter().map(|left| *left == UnitAfterCut::New);
        let mut store = self.chosen(base, from, |_, _| next.next().unwrap_or(false));
        if let Some(spoiled) = left.iter().position(|left| *left == UnitAfterCut::Garbage) {
            let (offset, len) = ranges[spoiled];
            // What was written there later is not undone.
            let later = |n: usize| ranges[n].0 == offset && left[n] == UnitAfterCut::New;
            let submitted = units[spoiled].submitted;
            let over = |event: &Event| match &event.action {
                Action::Write { offset: at, data, .. } => {
                    event.submitted.tick > submitted
                        && (*at..at + data.len() as u64).contains(&offset)
                }
                _ => false,
            };
            let durable = |(event, fate)| fate == CutEffect::Durable && over(event);
            let covered = (spoiled + 1..left.len()).any(later) || self.changes(from).any(durable);
            if !covered {
                self.spoil(&mut store, offset, len);
            }
        }
        store
    }

    /// As [`contents_where`](Self::contents_where) of a medium that leaves what is chosen.
    pub fn chosen(
        &self,
        base: &Store,
        from: usize,
        mut keep: impl FnMut(&Event, u64) -> bool,
    ) -> Store {
        let mut store = base.clone();
        // Fences of it mean nothing.
        let lies = matches!(self.device.durability, Durability::Lying { .. });
        for (event, fate) in self.changes(from) {
            match fate {
                CutEffect::Durable => apply(&mut store, &event.action),
                CutEffect::InDoubt => {
                    let (unit, stored) = match &event.action {
                        Action::Store { .. } => {
                            (WORD, event.completed.filter(|_| !lies).map(|done| done.tick))
                        }
                        _ => (self.device.unit(), None),
                    };
                    apply_some(&mut store, &event.action, unit, |at| {
                        // Of one store some lines may have been persisted and others not.
                        stored.is_some_and(|tick| self.lines.durable(at, tick, self.cut))
                            || keep(event, at)
                    });
                }
            }
        }
        store
    }

    fn doubted(&self, event: &Event, chosen: bool) -> UncertainUnit {
        let fua = matches!(event.action, Action::Write { fua: true, .. });
        UncertainUnit {
            submitted: event.submitted.tick,
            completed: event.completed.filter(|_| event.done_before(self.cut)).map(|c| c.tick),
            fua,
            written_before: self.track.written_before(event.submitted.tick),
            promised: self.promised(event) == Some(CutEffect::Durable),
            chosen,
        }
    }

    fn unit_len(&self, event: &Event, offset: u64) -> u64 {
        let unit = u64::from(self.device.unit());
        match &event.action {
            Action::Write { offset: start, data, .. } => {
                (start + data.len() as u64 - offset).min(unit)
            }
            // A discard writes nothing: nothing is spoiled.
            _ => 0,
        }
    }

    /// Random bytes where something was being written; the same for the same cut.
    fn spoil(&self, store: &mut Store, offset: u64, len: u64) {
        if len == 0 {
            return;
        }
        let (from, len) = self.device.media.spoiled(offset, len);
        let len = len.min(store.size() - from);
        let mut rng = Rng::new(from ^ 0x9e37_79b9_7f4a_7c15);
        let bytes: Vec<u8> = (0..len).map(|_| rng.bits() as u8).collect();
        store.write_slice(from, &bytes);
        if self.device.media == Media::Unreadable {
            store.make_unreadable(from, len);
        }
    }

    /// Applies the device's requests `[from, to)` whole: how a shared base moves on to what
    /// [`settled`](Self::settled) says.
    pub fn advance(&self, base: &mut Store, from: usize, to: usize) {
        self.requests(from, to).for_each(|event| apply(base, &event.action));
    }
}

/// Whether something complete since `done` has been drained at `time`.
fn drained(done: Nanos, within: Duration, time: Nanos) -> bool {
    time.since(done) >= within
}

/// The tick before which completed writes have been pushed out of a cache of `cache_bytes` by
/// later ones.
fn evicted_before(all: &[Event], indices: &[usize], cut: u64, cache_bytes: u64) -> u64 {
    let mut held = 0;
    for event in indices.iter().rev().map(|i| &all[*i]) {
        if let Action::Write { data, .. } = &event.action
            && event.done_before(cut)
            && let Some(done) = event.completed
        {
            held += data.len() as u64;
            if held > cache_bytes {
                return done.tick + 1;
            }
        }
    }
    0
}

fn apply(store: &mut Store, action: &Action) {
    match action {
        Action::Write { offset, data, .. } | Action::Store { offset, data } => {
            store.write_packed(*offset, data);
        }
        Action::Discard { offset, len } => store.discard(*offset, *len),
        Action::Flush | Action::Persist { .. } | Action::Fence => {}
    }
}

/// Applies those units that `keep` says; neighbours that are kept go together.
fn apply_some(store: &mut Store, action: &Action, unit: u32, mut keep: impl FnMut(u64) -> bool) {
    let (offset, len, data) = action.range();
    let unit = u64::from(unit.max(1));
    // A discard may be of the whole device: in coarser pieces then.
    let unit = if data.is_some() { unit } else { unit.max((len >> 12).next_multiple_of(unit)) };
    let mut at = 0;
    let mut unit_after = move || {
        let start = at;
        // A store may begin in the middle of a word.
        at = (at + unit - (offset + at) % unit).min(len);
        (start < len).then_some(start..at)
    };
    let runs = std::iter::from_fn(|| {
        let mut run: Option<Range<u64>> = None;
        while let Some(next) = unit_after() {
            match (keep(offset + next.start), &mut run) {
                (true, Some(run)) => run.end = next.end,
                (true, None) => run = Some(next),
                (false, Some(_)) => break,
                (false, None) => {}
            }
        }
        run
    });
    match data {
        Some(data) => {
            let parts = runs.map(|run| run.start as usize..run.end as usize);
            store.write_packed_parts(offset, data, parts);
        }
        None => runs.for_each(|run| store.discard(offset + run.start, run.end - run.start)),
    }
}
