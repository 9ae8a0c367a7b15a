use std::collections::BTreeSet;
use std::sync::Arc;

use steadfast_block::{BlockDevice, Request};
use steadfast_devices::filter::record::{Durability, Record, RecordLog};
use steadfast_devices::source::Ram;

use super::*;

const SIZE: u64 = 64 << 10;

fn write(sector: u64, sectors: usize, byte: u8, fua: bool) -> Request {
    Request::Write { offset: sector * 512, data: vec![byte; sectors * 512].into(), fua }
}

/// Records these requests, each to the device of its number.
fn recorded(requests: Vec<(usize, Request)>) -> (Vec<Store>, Recording) {
    let log = RecordLog::new();
    let devices: Vec<Record> = (0..2)
        .map(|n| {
            let ram = Arc::new(Ram::new(format!("ram{n}"), SIZE));
            Record::with_durability(ram, &log, Durability::OnFlush)
        })
        .collect();
    for (device, request) in requests {
        devices[device].submit(request).wait().unwrap();
    }
    (vec![Store::new(SIZE); 2], log.take())
}

fn choice(places: CrashPoints, combinations: u64) -> Choice {
    Choice {
        places,
        bound: StateBound { states: 1000, combinations, drawn: 8, ..StateBound::default() },
        seed: 1,
    }
}

/// First bytes of the given sectors of device 0, and of sector 0 of device 1.
fn look(state: &State, sectors: &[u64]) -> Vec<u8> {
    let of = |device: usize, sector: u64| state.contents[device].read(sector * 512, 1)[0];
    sectors.iter().map(|s| of(0, *s)).chain([of(1, 0)]).collect()
}

#[test]
fn all_combinations_within_the_bound_and_each_once() {
    // Sector 0 is durable; 1, 2 and the other device's 0 are in doubt; 3 changes nothing.
    let (bases, recording) = recorded(vec![
        (0, write(0, 1, 1, false)),
        (0, Request::Flush),
        (0, write(1, 2, 2, false)),
        (0, write(3, 1, 0, false)),
        (1, write(0, 1, 3, false)),
    ]);
    let last = recording.last_crash_point();
    let states: Vec<State> = States::new(&bases, &recording, choice(CrashPoints::Flushes, 16))
        .filter(|state| state.cut.tick == last)
        .collect();
    let seen: BTreeSet<Vec<u8>> = states.iter().map(|s| look(s, &[0, 1, 2, 3])).collect();
    let mut all = BTreeSet::new();
    for bits in 0..8 {
        let bit = |n: u8, value: u8| if bits >> n & 1 == 1 { value } else { 0 };
        all.insert(vec![1, bit(0, 2), bit(1, 2), 0, bit(2, 3)]);
    }
    // The state in which nothing is there was seen at the flush already.
    all.remove(&vec![1, 0, 0, 0, 0]);
    assert_eq!(seen, all);
    assert_eq!(states.len(), 7);
    assert!(states.iter().all(|s| s.in_doubt.len() == 3));
}

#[test]
fn states_are_distinct_numbered_and_the_same_again() {
    let requests = (0..12).map(|n| (n % 2, write(n as u64 * 3, 4, n as u8 + 1, n == 5)));
    let (bases, recording) = recorded(requests.collect());
    let make = || States::new(&bases, &recording, choice(CrashPoints::All, 16));
    let mut digests = BTreeSet::new();
    let states: Vec<State> = make().collect();
    assert!(states.len() > 100, "{}", states.len());
    for (state, number) in states.iter().zip(0..) {
        assert_eq!(state.number, number);
        assert!(digests.insert(state.contents.iter().map(Store::digest).collect::<Vec<_>>()));
        // The description of a state reproduces it.
        let kept: BTreeSet<Unit> =
            state.in_doubt.iter().zip(&state.kept).filter(|(_, k)| **k).map(|(u, _)| *u).collect();
        let doubted: BTreeSet<Unit> = state.in_doubt.iter().copied().collect();
        let again = contents_where(&bases, &recording, state.cut.tick, |unit| {
            kept.contains(&unit) || !doubted.contains(&unit)
        });
        assert_eq!(again, state.contents, "state {number}");
    }
    let again: Vec<Vec<Store>> = make().map(|s| s.contents).collect();
    assert!(states.iter().map(|s| &s.contents).eq(&again));
}

#[test]
fn an_age_keeps_equal_contents_apart() {
    let (bases, recording) = recorded(vec![(0, write(0, 1, 1, false)), (0, Request::Flush)]);
    let count = |ages: Box<dyn Fn(u64) -> u64 + Send>| {
        States::new(&bases, &recording, choice(CrashPoints::All, 16)).with_age(ages).count()
    };
    // Nothing, then the write; with an age for each tick: 1 + 2 + 2 + 2 + 1.
    assert_eq!(count(Box::new(|_| 0)), 2);
    assert_eq!(count(Box::new(|tick| tick)), 8);
}

#[test]
fn beyond_the_bound_rules_and_draws_share_the_states() {
    let requests = (0..40).map(|n| (0, write(n * 2, 2, n as u8 + 1, false)));
    let (bases, recording) = recorded(requests.collect());
    let bound = StateBound { states: 30, combinations: 16, drawn: 10, ..StateBound::default() };
    let choice = Choice { places: CrashPoints::Flushes, bound, seed: 3 };
    let states: Vec<State> = States::new(&bases, &recording, choice).collect();
    assert_eq!(states.len(), 30);
    assert_eq!((states[0].kept(), states[1].kept()), (0, 80));
    let single = |s: &State| matches!(s.kept(), 1 | 2 | 78 | 79);
    let by_rule = |s: &State| s.kept.is_sorted_by(|a, b| a >= b) || single(s);
    let drawn: Vec<bool> = states.iter().map(|s| !by_rule(s)).collect();
    assert_eq!(drawn, [vec![false; 20], vec![true; 10]].concat());
    assert!(states.iter().any(single));
}

#[test]
fn places_are_read_and_counted() {
    let (_, recording) =
        recorded(vec![(0, write(0, 1, 1, true)), (0, write(1, 1, 1, false)), (0, Request::Flush)]);
    let ticks = |text: &str| text.parse::<CrashPoints>().unwrap().ticks(&recording, &[], 5);
    assert_eq!(ticks("none"), Vec::<u64>::new());
    assert_eq!(ticks("flushes"), [2, 4, 5, 6]);
    assert_eq!(ticks("all"), [0, 1, 2, 3, 4, 5, 6]);
    assert_eq!(ticks("50"), ticks("50"));
    assert!(ticks("50").len() > 3);
    assert!("some".parse::<CrashPoints>().is_err());
    let spread = [CrashPoints::Spread(3), CrashPoints::Boundaries(4)];
    let counted = [CrashPoints::Unsynced(5), CrashPoints::WithPauses(6)];
    let all = [CrashPoints::None, CrashPoints::Sampled(7), CrashPoints::Flushes, CrashPoints::All];
    for places in all.into_iter().chain(spread).chain(counted) {
        assert_eq!(places.to_string().parse(), Ok(places));
    }
}

/// A discard of a whole device is expanded by neither rule: this would take terabytes.
#[test]
fn a_discard_of_everything_costs_what_is_there() {
    const LARGE: u64 = 1 << 42;
    let log = RecordLog::new();
    let ram = Arc::new(Ram::new("ram", LARGE));
    let disk = Record::with_durability(ram, &log, Durability::OnFlush);
    let discard = Request::Discard { offset: 0, len: LARGE };
    for request in [write(0, 1, 1, false), Request::Flush, discard.clone(), discard] {
        disk.submit(request).wait().unwrap();
    }
    let mut base = Store::new(LARGE);
    base.write_slice(LARGE - 512, &[7; 512]);
    let (bases, recording) = (vec![base], log.take());
    let last = recording.last_crash_point();
    let rules = [(Rule::Writes, 2), (Rule::Versions { single_units: true }, 4)];
    for (rule, expected) in rules {
        let bound = StateBound { rule, states: 4, combinations: 4, drawn: 0 };
        let states =
            States::new(&bases, &recording, Choice { places: CrashPoints::All, bound, seed: 1 });
        let look =
            |state: &State| [0, LARGE - 512].map(|offset| state.contents[0].read(offset, 1)[0]);
        let found: BTreeSet<_> =
            states.filter(|state| state.cut.tick == last).map(|state| look(&state)).collect();
        assert!(found.len() <= expected, "{rule:?}: {found:?}");
        let seen =
            States::new(&bases, &recording, Choice { places: CrashPoints::All, bound, seed: 1 });
        let seen: BTreeSet<_> = seen.map(|state| look(&state)).collect();
        assert!(seen.contains(&[1, 7]) && seen.contains(&[0, 0]), "{rule:?}: {seen:?}");
    }
}
