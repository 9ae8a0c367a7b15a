//! A finished recording: the source of crash states.

use steadfast_runtime::Nanos;

use super::memory::Lines;
use super::{
    Action, AtCrashPoint, DeviceId, Durability, Event, Media, Moment, Note, RecordedDevice,
};
use crate::store::PackedBytes;

/// A flush that succeeded.
#[derive(Debug, Clone, Copy)]
struct Flush {
    completed: u64,
    /// Highest submission tick of this flush and those that completed before it: what completed
    /// before that tick is covered by them.
    covers: u64,
}

/// What one device did.
#[derive(Debug, Clone, Default)]
pub(super) struct Track {
    /// Indices of its events in the recording, in the order of submission.
    pub events: Vec<usize>,
    /// In the order of completion.
    flushes: Vec<Flush>,
    /// When the flushes that succeeded were submitted, ascending.
    flushed_at: Vec<u64>,
    /// Of each request, when it was submitted and how many bytes had been written before.
    written: Vec<(u64, u64)>,
    written_in_all: u64,
    /// Of a device that is memory.
    pub lines: Lines,
}

impl Track {
    /// The tick before which a write must have completed to be covered by a flush that had
    /// completed before `cut`; 0 if there was none.
    pub fn covered(&self, cut: u64) -> u64 {
        let earlier = self.flushes.partition_point(|flush| flush.completed < cut);
        earlier.checked_sub(1).map_or(0, |last| self.flushes[last].covers)
    }

    /// When the flushes were submitted.
    pub fn flushed_at(&self) -> &[u64] {
        &self.flushed_at
    }

    /// Bytes that were written before what was submitted at a tick.
    pub fn written_before(&self, tick: u64) -> u64 {
        let place = self.written.partition_point(|(submitted, _)| *submitted < tick);
        self.written.get(place).map_or(0, |(_, before)| *before)
    }
}

/// Why the parts of a recording do not fit together.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RebuildError {
    /// A device whose atomic write is no size that there is.
    #[error("{name}: an atomic write of {unit} bytes")]
    AtomicWrite {
        /// The device's name.
        name: String,
        /// The size.
        unit: u32,
    },
    /// More ticks than can be counted.
    #[error("ticks that begin at {0}")]
    Ticks(u64),
    /// A tick that is earlier than the one before it.
    #[error("time goes back after tick {0}")]
    Time(u64),
    /// A request that cannot have been.
    #[error("request {number}: {what}")]
    Request {
        /// Which.
        number: usize,
        /// Why.
        what: &'static str,
    },
    /// A note out of order, or at no moment of the recording.
    #[error("a note at tick {0}")]
    Note(u64),
}

fn check_devices(devices: &[RecordedDevice]) -> Result<(), RebuildError> {
    for device in devices {
        let info = &device.info;
        let unit = info.atomic_write;
        if !unit.is_power_of_two() || !(8..=1 << 20).contains(&unit) {
            return Err(RebuildError::AtomicWrite { name: info.name.clone(), unit });
        }
    }
    Ok(())
}

/// Everything that a log's devices were asked, in order.
#[derive(Debug, Clone)]
pub struct Recording {
    devices: Vec<RecordedDevice>,
    events: Vec<Event>,
    notes: Vec<Note>,
    times: Vec<Nanos>,
    first_tick: u64,
    tracks: Vec<Track>,
}

impl Recording {
    pub(super) fn new(
        devices: Vec<RecordedDevice>,
        events: Vec<Event>,
        notes: Vec<Note>,
        times: Vec<Nanos>,
        first_tick: u64,
    ) -> Self {
        let mut tracks = vec![Track::default(); devices.len()];
        for (index, event) in events.iter().enumerate() {
            let track = &mut tracks[event.device.0 as usize];
            track.events.push(index);
            let written = track.written_in_all;
            track.written.push((event.submitted.tick, written));
            if let Action::Write { data, .. } = &event.action {
                track.written_in_all += data.len() as u64;
            }
            if let (Action::Flush, Some(completed), false) =
                (&event.action, event.completed, event.failed)
            {
                let flush = Flush { completed: completed.tick, covers: event.submitted.tick };
                track.flushes.push(flush);
                track.flushed_at.push(event.submitted.tick);
            }
        }
        for track in &mut tracks {
            track.lines = Lines::of(track.events.iter().map(|index| &events[*index]));
            track.flushes.sort_by_key(|flush| flush.completed);
            let mut covers = 0;
            for flush in &mut track.flushes {
                covers = flush.covers.max(covers);
                flush.covers = covers;
            }
        }
        Recording { devices, events, notes, times, first_tick, tracks }
    }

    /// Puts a recording together again from its parts, which need not be trusted: `times` are
    /// those of the ticks from `first_tick` on, and a [`Moment`] must be one of them.
    ///
    /// # Errors
    /// What does not fit together, in words.
    pub fn rebuild(
        devices: Vec<RecordedDevice>,
        events: Vec<Event>,
        notes: Vec<Note>,
        times: Vec<Nanos>,
        first_tick: u64,
    ) -> Result<Recording, RebuildError> {
        check_devices(&devices)?;
        if first_tick.checked_add(times.len() as u64).is_none_or(|end| end == u64::MAX) {
            return Err(RebuildError::Ticks(first_tick));
        }
        if let Some(late) = times.windows(2).position(|two| two[0] > two[1]) {
            return Err(RebuildError::Time(first_tick + late as u64));
        }
        let known = |moment: &Moment| {
            let place = moment.tick.checked_sub(first_tick)?;
            let time = times.get(usize::try_from(place).ok()?)?;
            (*time == moment.at).then_some(())
        };
        let mut last = None;
        for (number, event) in events.iter().enumerate() {
            let wrong = |what| Err(RebuildError::Request { number, what });
            let Some(device) = devices.get(event.device.0 as usize) else {
                return wrong("of no device");
            };
            let moments = [Some(&event.submitted), event.completed.as_ref()];
            if moments.into_iter().flatten().any(|m| known(m).is_none()) {
                return wrong("at no moment of the recording");
            }
            if last >= Some(event.submitted.tick) {
                return wrong("not in the order of submission");
            }
            if event.completed.is_some_and(|c| c.tick <= event.submitted.tick) {
                return wrong("answered before it was submitted");
            }
            last = Some(event.submitted.tick);
            let (offset, len, _) = event.action.range();
            if offset.checked_add(len).is_none_or(|end| end > device.info.size) {
                return wrong("beyond the end of its device");
            }
        }
        let mut last = None;
        for note in &notes {
            if known(&note.moment).is_none() || last >= Some(note.moment.tick) {
                return Err(RebuildError::Note(note.moment.tick));
            }
            last = Some(note.moment.tick);
        }
        Ok(Recording::new(devices, events, notes, times, first_tick))
    }

    /// The first tick's number and the time of each.
    pub fn times(&self) -> (u64, &[Nanos]) {
        (self.first_tick, &self.times)
    }

    /// The devices; a [`DeviceId`] is an index.
    pub fn devices(&self) -> &[RecordedDevice] {
        &self.devices
    }

    /// All requests, in the order of submission.
    pub fn events(&self) -> &[Event] {
        &self.events
    }

    /// All notes, in order.
    pub fn notes(&self) -> &[Note] {
        &self.notes
    }

    /// The notes made before a crash point.
    pub fn notes_before(&self, cut: u64) -> &[Note] {
        &self.notes[..self.notes.partition_point(|note| note.moment.tick < cut)]
    }

    /// The first crash point: nothing recorded has happened.
    pub fn first_crash_point(&self) -> u64 {
        self.first_tick
    }

    /// The last crash point: everything recorded has happened.
    pub fn last_crash_point(&self) -> u64 {
        self.first_tick + self.times.len() as u64
    }

    /// The crash point at an instant: earlier events have happened, those at the instant have not.
    pub fn crash_point_at(&self, at: Nanos) -> u64 {
        self.first_tick + self.times.partition_point(|time| *time < at) as u64
    }

    /// The time of a crash point: of the last event before it; of the first one if there is
    /// none.
    pub fn time_of(&self, cut: u64) -> Nanos {
        let before = usize::try_from(cut.saturating_sub(self.first_tick)).unwrap_or(usize::MAX);
        let last = before.min(self.times.len()).saturating_sub(1);
        self.times.get(last).copied().unwrap_or_default()
    }

    /// The same requests and answers, on a device whose promises are others: what a power cut would
    /// have left if, for example, the cache had lied.
    ///
    /// # Panics
    /// If the device is not one of this recording.
    #[must_use]
    pub fn with_durability(mut self, device: DeviceId, durability: Durability) -> Recording {
        self.devices[device.0 as usize].durability = durability;
        self
    }

    /// The same requests and answers, on a medium that loses otherwise.
    ///
    /// # Panics
    /// If the device is not one of this recording.
    #[must_use]
    pub fn with_media(mut self, device: DeviceId, media: Media) -> Recording {
        self.devices[device.0 as usize].media = media;
        self
    }

    /// The same run, had nobody asked for anything to be durable: without its flushes and fences,
    /// and no write with FUA. On a device with a volatile cache everything stays in doubt; one that
    /// keeps what it has acknowledged shows no difference. The times and their ticks stay.
    #[must_use]
    pub fn without_flushes(self) -> Recording {
        let Recording { devices, events, notes, times, first_tick, .. } = self;
        let left = events.into_iter().filter_map(|mut event| {
            match &mut event.action {
                Action::Flush | Action::Persist { .. } | Action::Fence => return None,
                Action::Write { fua, .. } => *fua = false,
                Action::Discard { .. } | Action::Store { .. } => {}
            }
            Some(event)
        });
        Recording::new(devices, left.collect(), notes, times, first_tick)
    }

    /// Cuts around what makes something durable, ascending: when a flush is begun and when it is
    /// about to end; when a write that is durable by itself has just ended. On a device that keeps
    /// all it has acknowledged every write is one.
    pub fn boundaries(&self) -> Vec<u64> {
        let mut cuts = Vec::new();
        for event in self.events.iter().filter(|event| !event.failed) {
            let durability = self.devices[event.device.0 as usize].durability;
            let kept = matches!(durability, Durability::OnCompletion | Durability::OnStore);
            let durable = match &event.action {
                Action::Write { fua, .. } => *fua || kept,
                Action::Discard { .. } => kept,
                Action::Store { .. } => durability == Durability::OnStore,
                Action::Persist { .. } => false,
                Action::Flush | Action::Fence => {
                    cuts.push(event.submitted.tick);
                    cuts.extend(event.completed.map(|done| done.tick));
                    false
                }
            };
            cuts.extend(event.completed.filter(|_| durable).map(|done| done.tick + 1));
        }
        cuts.sort_unstable();
        cuts.dedup();
        cuts
    }

    /// What a device must and may hold at a crash point.
    ///
    /// # Panics
    /// If the device is not one of this recording.
    pub fn at(&self, device: DeviceId, cut: u64) -> AtCrashPoint<'_> {
        self.at_moment(device, Moment { tick: cut, at: self.time_of(cut) })
    }

    /// The same where the power goes later than what happened last before it: a cache that drains
    /// by itself has done so until then.
    ///
    /// # Panics
    /// If the device is not one of this recording.
    pub fn at_moment(&self, device: DeviceId, cut: Moment) -> AtCrashPoint<'_> {
        let index = device.0 as usize;
        let (track, recorded) = (&self.tracks[index], &self.devices[index]);
        AtCrashPoint::new(&self.events, track, recorded, cut.tick, cut.at)
    }

    /// About how many bytes of memory the recording takes.
    pub fn footprint(&self) -> u64 {
        let data = self.events.iter().filter_map(|event| event.action.range().2);
        let data: u64 = data.map(PackedBytes::footprint).sum();
        let fixed = size_of_val(&self.events[..]) + size_of_val(&self.notes[..]);
        data + (fixed + size_of_val(&self.times[..])) as u64
    }
}
