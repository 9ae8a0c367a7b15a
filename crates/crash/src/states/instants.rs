//! Crash points that are drawn: over the time without its pauses, and over what happened.

use std::time::Duration;

use steadfast_block::rng::Rng;
use steadfast_devices::filter::record::{Moment, Recording};
use steadfast_runtime::Nanos;

/// A longer time between two things that happened, without a request in progress, is a pause. No
/// request of a drive that works takes as long, and programs that work pause for less.
const PAUSE: Duration = Duration::from_millis(50);

/// The time of a recorded run without its pauses.
///
/// A benchmark that waits for seconds between its tests does nothing to its devices then: wherever
/// a cut falls in a pause, it leaves the same states. So a pause counts as one place among others:
/// as the mean time between two things that happened outside of pauses.
#[derive(Debug, Clone)]
pub struct ActiveTime {
    first: u64,
    /// Of each tick of the recording, ascending: nanoseconds from the first one on.
    times: Vec<u64>,
}

impl ActiveTime {
    /// Of a run.
    pub fn of(recording: &Recording) -> ActiveTime {
        let (first, times) = recording.times();
        let pauses = pauses(recording);
        let gap = |i: usize| times[i].0 - times[i - 1].0;
        let paused: u64 = pauses.iter().map(|i| gap(*i)).sum();
        let all = times.last().map_or(0, |last| last.0 - times[0].0);
        let others = times.len().saturating_sub(1 + pauses.len()) as u64;
        let mean = (all - paused).checked_div(others).unwrap_or(0).max(1);
        let (mut at, mut pauses) = (0, pauses.into_iter().peekable());
        let warped = (0..times.len()).map(|i| {
            let pause = pauses.next_if_eq(&i).is_some();
            at += match i {
                0 => 0,
                _ if pause => mean,
                _ => gap(i),
            };
            at
        });
        ActiveTime { first, times: warped.collect() }
    }

    /// The active time before a cut: until the last happening before it.
    pub fn before(&self, cut: u64) -> Duration {
        Duration::from_nanos(self.until(cut))
    }

    fn until(&self, cut: u64) -> u64 {
        let before = usize::try_from(cut.saturating_sub(self.first)).unwrap_or(usize::MAX);
        let last = before.min(self.times.len()).saturating_sub(1);
        self.times.get(last).copied().unwrap_or_default()
    }

    /// The cut at an instant: what happened before it has happened, what happened at it has not.
    fn crash_point_at(&self, at: u64) -> u64 {
        self.first + self.times.partition_point(|time| *time < at) as u64
    }
}

/// The ticks, by their places, before which there was a pause; ascending.
fn pauses(recording: &Recording) -> Vec<usize> {
    let (first, times) = recording.times();
    // At each tick, by how much the number of requests in progress changes.
    let mut change = vec![0i32; times.len()];
    let place = |tick: u64| tick.checked_sub(first).and_then(|n| usize::try_from(n).ok());
    for event in recording.events() {
        for (moment, by) in [(Some(event.submitted), 1), (event.completed, -1)] {
            let slot = moment.and_then(|m| place(m.tick)).and_then(|i| change.get_mut(i));
            if let Some(slot) = slot {
                *slot += by;
            }
        }
    }
    let mut in_progress = 0;
    let mut pauses = Vec::new();
    for i in 1..times.len() {
        in_progress += change[i - 1];
        if in_progress == 0 && times[i].since(times[i - 1]) > PAUSE {
            pauses.push(i);
        }
    }
    pauses
}

/// As [`CrashPoints::Spread`](super::CrashPoints::Spread).
pub(super) fn spread(recording: &Recording, count: u64, seed: u64) -> Vec<u64> {
    let (first, last) = (recording.first_crash_point(), recording.last_crash_point());
    let whole = [(first, last.max(first + 1))];
    drawn_from(&ActiveTime::of(recording), &whole, count, &mut Rng::new(seed))
}

/// As [`CrashPoints::WithPauses`](super::CrashPoints::WithPauses). Each half is drawn from as many
/// equal parts of the whole as it has cuts, one of each, so that no long pause is left out.
pub(super) fn with_pauses(recording: &Recording, count: u64, seed: u64) -> Vec<Moment> {
    let (first, times) = recording.times();
    let (Some(from), Some(to)) = (times.first(), times.last()) else {
        let start = Moment { tick: first, at: Nanos(0) };
        return (0..count).map(|_| start).collect();
    };
    let mut rng = Rng::new(seed);
    let mut moments = Vec::new();
    let by_time = count / 2;
    for part in 0..by_time {
        let at = Nanos(from.0 + drawn_in_part(to.0 - from.0, (part, by_time), &mut rng));
        moments.push(Moment { tick: recording.crash_point_at(at), at });
    }
    let by_event = (count - by_time).saturating_sub(1);
    for part in 0..by_event {
        let place = drawn_in_part(times.len() as u64, (part, by_event), &mut rng);
        // OK to index: it is less than their number.
        moments.push(Moment { tick: first + place, at: times[place as usize] });
    }
    moments.extend((count > 0).then_some(Moment { tick: recording.last_crash_point(), at: *to }));
    moments.sort_unstable_by_key(|moment| (moment.tick, moment.at));
    moments
}

/// A number less than `whole` (0 if that is 0), out of one of so many equal parts of it.
fn drawn_in_part(whole: u64, (part, parts): (u64, u64), rng: &mut Rng) -> u64 {
    let edge = |n: u64| (u128::from(whole) * u128::from(n) / u128::from(parts)) as u64;
    let (from, to) = (edge(part), edge(part + 1));
    if to > from { from + rng.below(to - from) } else { from.min(whole.saturating_sub(1)) }
}

/// As [`CrashPoints::Boundaries`](super::CrashPoints::Boundaries); without any, as `Spread`.
pub(super) fn boundaries(recording: &Recording, count: u64, seed: u64) -> Vec<u64> {
    let boundaries = recording.boundaries();
    if boundaries.is_empty() {
        return spread(recording, count, seed);
    }
    let mut rng = Rng::new(seed);
    let mut any = || boundaries[rng.below(boundaries.len() as u64) as usize];
    let mut ticks: Vec<u64> = (0..count).map(|_| any()).collect();
    ticks.sort_unstable();
    ticks
}

/// As [`CrashPoints::Unsynced`](super::CrashPoints::Unsynced), within these ranges of ticks.
pub(super) fn within(
    recording: &Recording,
    ranges: &[(u64, u64)],
    count: u64,
    seed: u64,
) -> Vec<u64> {
    let (first, last) = (recording.first_crash_point(), recording.last_crash_point());
    let ranges = ranges.iter().map(|(from, to)| ((*from).max(first), (*to).min(last)));
    let ranges: Vec<_> = ranges.filter(|(from, to)| from < to).collect();
    drawn_from(&ActiveTime::of(recording), &ranges, count, &mut Rng::new(seed))
}

/// So many cuts within ranges of ticks; none if there are no ranges.
fn drawn_from(time: &ActiveTime, ticks: &[(u64, u64)], cuts: u64, rng: &mut Rng) -> Vec<u64> {
    let times: Vec<(u64, u64)> =
        ticks.iter().map(|(from, to)| (time.until(*from), time.until(*to))).collect();
    let mut cuts: Vec<u64> = (0..cuts)
        .filter_map(|i| {
            let (ranges, by_time) = if i % 2 == 0 { (&times[..], true) } else { (ticks, false) };
            let (number, at) = drawn(ranges, rng)?;
            let tick = if by_time { time.crash_point_at(at) } else { at };
            let (from, to) = ticks[number];
            Some(tick.clamp(from, to))
        })
        .collect();
    cuts.sort_unstable();
    cuts
}

/// A value out of ranges, evenly, and the range that it is from. Of ranges without length the
/// first.
fn drawn(ranges: &[(u64, u64)], rng: &mut Rng) -> Option<(usize, u64)> {
    let all: u64 = ranges.iter().map(|(from, to)| to - from).sum();
    if all == 0 {
        return ranges.first().map(|(from, _)| (0, *from));
    }
    let mut rest = rng.below(all);
    ranges.iter().enumerate().find_map(|(number, (from, to))| {
        if rest < to - from {
            return Some((number, from + rest));
        }
        rest -= to - from;
        None
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::sync::Arc;

    use steadfast_block::{BlockDevice, Request};
    use steadfast_devices::filter::record::{Durability, Moment, Record, RecordLog};
    use steadfast_devices::source::Ram;
    use steadfast_devices::store::Store;
    use steadfast_runtime::{Sim, sleep};
    use steadfast_vfs::FileSystem;

    use super::*;
    use crate::explore::CutSource;
    use crate::figures::StateFigures;
    use crate::judge::Judge;
    use crate::states::{Choice, CrashPoints, State, StateBound, States};

    const SIZE: u64 = 64 << 10;
    const WRITES: u64 = 40;

    /// The ticks between which something is unsynced; sees nothing.
    struct Blind(Vec<(u64, u64)>);

    impl Judge for Blind {
        fn judge(&self, _: &dyn FileSystem, _: Moment, _: &mut StateFigures) {}

        fn unsynced(&self) -> Vec<(u64, u64)> {
            self.0.clone()
        }
    }

    /// Three times forty writes, 1 ms after one another and each 1 ms long, and after them a pause.
    fn recorded(pause: Duration) -> CutSource {
        let body = move || {
            let log = RecordLog::new();
            let ram = Arc::new(Ram::new("ram", SIZE));
            let device = Record::with_durability(ram, &log, Durability::OnCompletion);
            for n in 0..3 * WRITES {
                let data = vec![1; 512].into();
                device.submit(Request::Write { offset: n * 512, data, fua: false }).wait().unwrap();
                sleep(Duration::from_millis(1));
                if n % WRITES == WRITES - 1 {
                    sleep(pause);
                }
            }
            device.flush().unwrap();
            log.take()
        };
        let recording = Sim::new(1).run(body).unwrap();
        CutSource { bases: vec![Store::new(SIZE)], recording, judge: Arc::new(Blind(Vec::new())) }
    }

    fn trials(recorded: &CutSource, places: CrashPoints) -> Vec<State> {
        States::of(recorded, Choice { places, bound: StateBound::TRIAL, seed: 7 }).collect()
    }

    /// At how many different places the trials are.
    fn places(states: &[State]) -> usize {
        states.iter().map(|state| state.place).collect::<BTreeSet<_>>().len()
    }

    #[test]
    fn cuts_do_not_heap_up_in_pauses() {
        let (steady, paused) = (recorded(Duration::ZERO), recorded(Duration::from_secs(2)));
        let spread = |recorded: &CutSource| trials(recorded, CrashPoints::Spread(120));
        // Long pauses change nothing but their own few places.
        let (without, with) = (places(&spread(&steady)), places(&spread(&paused)));
        assert!(with.abs_diff(without) <= 5, "{without} places, {with} with pauses");
        assert!(with > 60, "{with}");
        let time = ActiveTime::of(&paused.recording);
        let all = time.before(paused.recording.last_crash_point());
        assert!((117..=121).contains(&all.as_millis()), "{all:?}");
        assert_eq!(spread(&paused).len(), 120);
    }

    #[test]
    fn unsynced_time_leaves_pauses_out_too() {
        let mut paused = recorded(Duration::from_secs(2));
        let (first, last) =
            (paused.recording.first_crash_point(), paused.recording.last_crash_point());
        // From the middle of the first writes to the middle of the second.
        let (from, to) = (first + WRITES, first + 3 * WRITES);
        assert!(to < last);
        paused.judge = Arc::new(Blind(vec![(from, to)]));
        let unsynced = |recorded: &CutSource| trials(recorded, CrashPoints::Unsynced(80));
        let states = unsynced(&paused);
        assert!(states.iter().all(|state| (from..=to).contains(&state.cut.tick)));
        assert!(places(&states) > 25);
        // Nothing to cut.
        paused.judge = Arc::new(Blind(Vec::new()));
        assert_eq!(unsynced(&paused).len(), 0);
        // No time, but something happened.
        paused.judge = Arc::new(Blind(vec![(from, from + 1)]));
        assert_eq!(unsynced(&paused).len(), 80);
    }

    /// A pause has its share of the cuts, each at an instant of its own; the end has one.
    #[test]
    fn cuts_fall_into_pauses_too() {
        let recorded = recorded(Duration::from_secs(2));
        let recording = &recorded.recording;
        let states = trials(&recorded, CrashPoints::WithPauses(80));
        assert_eq!(states.len(), 80);
        let (first, times) = recording.times();
        // How long after what happened last.
        let waited = |state: &State| state.cut.at.since(recording.time_of(state.cut.tick));
        let in_pause = states.iter().filter(|s| waited(s) > Duration::from_millis(50)).count();
        assert!((36..=44).contains(&in_pause), "{in_pause}");
        assert!(states.iter().any(|state| waited(state) > Duration::from_millis(1800)));
        for State { cut, .. } in &states {
            let next = times.get((cut.tick - first) as usize);
            assert!(next.is_none_or(|next| cut.at <= *next), "{cut:?}");
        }
        let end = states.last().map(|state| (state.cut.tick, state.cut.at));
        assert_eq!(end, Some((recording.last_crash_point(), times[times.len() - 1])));
        // Few cuts fall into each part, too.
        let few = trials(&recorded, CrashPoints::WithPauses(9));
        assert!(few.iter().filter(|s| waited(s) > Duration::from_millis(50)).count() >= 3);
        assert_eq!(trials(&recorded, CrashPoints::WithPauses(1)).len(), 1);
    }

    #[test]
    fn a_place_is_what_may_be_there() {
        let recorded = recorded(Duration::ZERO);
        let mut last = None;
        let mut compared = 0;
        for state in trials(&recorded, CrashPoints::Spread(200)) {
            // With nothing in doubt there is one state, and each write changes it.
            let now = state.in_doubt.is_empty().then(|| state.contents[0].read(0, SIZE));
            if let (Some((place, before)), Some(now)) = (last.take(), now.clone()) {
                assert_eq!(place == state.place, before == now, "state {}", state.number);
                compared += 1;
            }
            last = now.map(|now| (state.place, now));
        }
        assert!(compared > 50, "{compared}");
    }
}
