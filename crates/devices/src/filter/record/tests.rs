use std::collections::BTreeSet;

use proptest::prelude::*;
use steadfast_block::rng::Rng;
use steadfast_block::{conformance, pattern};
use steadfast_runtime::{Sim, sleep};

use super::*;
use crate::filter::{CacheSettings, Effect, Fault, FaultRule, Ops, WriteCache};
use crate::source::Ram;
use crate::store::Store;

const SIZE: u64 = 64 * 1024;

fn write(tag: u64, block: u64, blocks: u64, fua: bool) -> Request {
    let data = pattern::bytes(tag, block * 512, (blocks * 512) as usize).into();
    Request::Write { offset: block * 512, data, fua }
}

fn recorded(durability: Durability) -> (Record, RecordLog) {
    let log = RecordLog::new();
    (Record::with_durability(Arc::new(Ram::new("disk", SIZE)), &log, durability), log)
}

/// The fates of a device's changes at a power cut: d(urable) or ? in order.
fn fates(recording: &Recording, device: DeviceId, cut: u64) -> String {
    let letter = |(_, fate)| if fate == CutEffect::Durable { 'd' } else { '?' };
    recording.at(device, cut).changes(0).map(letter).collect()
}

#[test]
fn conforms() {
    let make = || -> Arc<dyn BlockDevice> {
        Arc::new(Record::new(Arc::new(Ram::new("disk", SIZE)), &RecordLog::new()))
    };
    conformance::run(&make);
    Sim::new(1).run(move || conformance::run(&make)).unwrap();
}

#[test]
fn a_flush_makes_durable_what_completed_before_it() {
    let (disk, log) = recorded(Durability::OnFlush);
    let mut cuts = vec![];
    let mut step = |request: Request| {
        disk.submit(request).wait().unwrap();
        cuts.push(log.note(0, [0; 3]).tick);
    };
    step(write(1, 0, 1, false));
    step(write(2, 1, 1, true));
    step(Request::Discard { offset: 0, len: 512 });
    step(Request::Flush);
    step(write(3, 2, 1, false));
    let recording = log.take();
    let at = |n: usize| fates(&recording, disk.device(), cuts[n]);
    assert_eq!([at(0), at(1), at(2), at(3), at(4)], ["?", "?d", "?d?", "ddd", "ddd?"]);
    assert_eq!(fates(&recording, disk.device(), recording.first_crash_point()), "");
    let settled = |n: usize| recording.at(disk.device(), cuts[n]).settled(0);
    assert_eq!([settled(0), settled(1), settled(3), settled(4)], [0, 0, 4, 4]);
}

#[test]
fn boundaries_are_where_something_becomes_durable() {
    let run = |durability| {
        let (disk, log) = recorded(durability);
        for request in [write(1, 0, 1, false), write(2, 1, 1, true), Request::Flush] {
            disk.submit(request).wait().unwrap();
        }
        log.take().boundaries()
    };
    // Submitted at ticks 0, 2 and 4, complete at 1, 3 and 5.
    assert_eq!(run(Durability::OnFlush), [4, 5]);
    assert_eq!(run(Durability::OnCompletion), [2, 4, 5]);
}

#[test]
fn who_asks_chooses_each_unit_in_doubt() {
    let (disk, log) = recorded(Durability::OnFlush);
    disk.submit(write(1, 4, 3, false)).wait().unwrap();
    let recording = log.take();
    let at = recording.at(disk.device(), recording.last_crash_point());
    let unit = u64::from(disk.info().atomic_write);
    let last = 7 * 512 - unit;
    let mut asked = Vec::new();
    let left = at.contents_where(&Store::new(SIZE), 0, |event, offset| {
        asked.push((event.submitted.tick, offset));
        offset == last
    });
    let units = (4 * 512..7 * 512).step_by(unit as usize);
    assert_eq!(asked, units.map(|offset| (0, offset)).collect::<Vec<_>>());
    let held = left.read(4 * 512, 3 * 512);
    let kept = (last - 4 * 512) as usize;
    assert!(held[..kept].iter().all(|byte| *byte == 0));
    assert_eq!(held[kept..], pattern::bytes(1, 4 * 512, 3 * 512)[kept..]);
}

#[test]
fn without_a_volatile_cache_completion_is_enough() {
    let (disk, log) = recorded(Durability::OnCompletion);
    disk.submit(write(1, 0, 1, false)).wait().unwrap();
    let recording = log.take();
    // Submitted at tick 0, complete at tick 1.
    let at = |cut| fates(&recording, disk.device(), cut);
    assert_eq!([at(0), at(1), at(2)], ["", "?", "d"]);
    assert_eq!(recording.last_crash_point(), 2);
}

#[test]
fn without_flushes_everything_stays_in_doubt_where_there_is_a_cache() {
    let run = |durability| {
        let (disk, log) = recorded(durability);
        let discard = Request::Discard { offset: 0, len: 512 };
        for request in [write(1, 0, 1, false), write(2, 1, 1, true), discard, Request::Flush] {
            disk.submit(request).wait().unwrap();
        }
        let whole = log.take();
        let without = whole.clone().without_flushes();
        assert_eq!(
            (whole.first_crash_point(), whole.last_crash_point()),
            (without.first_crash_point(), without.last_crash_point())
        );
        [whole, without].map(|r| fates(&r, disk.device(), r.last_crash_point()))
    };
    assert_eq!(run(Durability::OnFlush), ["ddd", "???"]);
    assert_eq!(run(Durability::OnCompletion), ["ddd", "ddd"]);
}

#[test]
fn what_is_in_flight_when_the_flush_comes_is_not_covered() {
    let order = Sim::new(1).run(|| {
        let fault = Fault::new(Arc::new(Ram::new("disk", SIZE)));
        let slow = Effect::Delay(Duration::from_millis(5));
        fault.faults().add(FaultRule::new(Ops::WRITE, slow).nth(1));
        let log = RecordLog::new();
        let disk = Record::with_durability(Arc::new(fault), &log, Durability::OnFlush);
        let late = disk.submit(write(1, 0, 1, false));
        disk.flush().unwrap();
        late.wait().unwrap();
        let one = log.note(1, [7, 8, 9]);
        disk.flush().unwrap();
        let recording = log.take();
        let fates = |cut| fates(&recording, disk.device(), cut);
        assert_eq!(recording.notes(), [Note { moment: one, label: 1, detail: [7, 8, 9] }]);
        assert!(recording.notes_before(one.tick).is_empty());
        assert_eq!(recording.notes_before(one.tick + 1).len(), 1);
        (
            fates(one.tick),
            fates(recording.last_crash_point()),
            one.at,
            recording.crash_point_at(one.at),
        )
    });
    // At the instant of the completion nothing of that instant has happened yet.
    assert_eq!(order, Ok(("?".into(), "d".into(), Nanos(5_000_000), 3)));
}

#[test]
fn failures_promise_nothing() {
    let fault = Fault::new(Arc::new(Ram::new("disk", SIZE)));
    let faults = fault.faults();
    let log = RecordLog::new();
    let disk = Record::with_durability(Arc::new(fault), &log, Durability::OnFlush);
    faults.add(FaultRule::new(Ops::WRITE, Effect::Fail("x".into())).nth(1));
    faults.add(FaultRule::new(Ops::FLUSH, Effect::Fail("x".into())).nth(1));
    assert!(disk.submit(write(1, 0, 1, true)).wait().is_err());
    disk.submit(write(2, 1, 1, false)).wait().unwrap();
    assert!(disk.flush().is_err());
    // Refused: not an event at all.
    assert!(disk.submit(write(2, 128, 1, false)).wait().is_err());
    let before = log.note(0, [0; 3]).tick;
    disk.flush().unwrap();
    let recording = log.take();
    assert_eq!(fates(&recording, disk.device(), before), "??");
    assert_eq!(fates(&recording, disk.device(), recording.last_crash_point()), "?d");
}

#[test]
fn a_lying_cache_promises_nothing_until_it_has_drained() {
    let ms = Duration::from_millis;
    let durability = Durability::Lying { cache_bytes: 1024, drains_within: ms(100) };
    let run = move || {
        let (disk, log) = recorded(durability);
        disk.submit(write(1, 0, 1, true)).wait().unwrap();
        disk.flush().unwrap();
        sleep(ms(99));
        let a = log.note(0, [0; 3]).tick;
        sleep(ms(1));
        disk.submit(write(2, 1, 1, true)).wait().unwrap();
        disk.submit(write(3, 2, 1, true)).wait().unwrap();
        let b = log.note(0, [0; 3]).tick;
        disk.submit(write(4, 3, 1, false)).wait().unwrap();
        disk.submit(write(5, 4, 1, false)).wait().unwrap();
        let recording = log.take();
        let at = |cut| fates(&recording, disk.device(), cut);
        [at(a + 1), at(b), at(recording.last_crash_point())]
    };
    assert_eq!(Sim::new(1).run(run).unwrap(), ["?", "d??", "ddd??"].map(String::from));
}

#[test]
fn a_recording_can_be_marked_as_of_a_lying_cache() {
    let (disk, log) = recorded(Durability::OnFlush);
    disk.submit(write(1, 0, 1, false)).wait().unwrap();
    disk.submit(Request::Flush).wait().unwrap();
    let honest = log.take();
    let lying = Durability::Lying { cache_bytes: 1024, drains_within: Duration::from_secs(1000) };
    let lied = honest.clone().with_durability(disk.device(), lying);
    let of = |recording: &Recording| fates(recording, disk.device(), recording.last_crash_point());
    assert_eq!([of(&honest), of(&lied)], ["d", "?"]);
}

#[test]
fn two_devices_are_in_one_order_and_the_log_can_be_emptied() {
    let log = RecordLog::new();
    let make = || Record::new(Arc::new(Ram::new("disk", SIZE)), &log);
    let (a, b) = (make(), make());
    assert_eq!((a.device(), b.device()), (DeviceId(0), DeviceId(1)));
    a.submit(write(1, 0, 1, false)).wait().unwrap();
    log.clear();
    assert!(log.is_empty());
    b.submit(write(2, 0, 1, false)).wait().unwrap();
    a.submit(write(3, 0, 1, false)).wait().unwrap();
    log.pause(true);
    a.submit(write(4, 0, 1, false)).wait().unwrap();
    log.pause(false);
    b.flush().unwrap();
    assert_eq!(log.len(), 3);
    let recording = log.take();
    let order: Vec<(u32, u64)> =
        recording.events().iter().map(|e| (e.device.0, e.submitted.tick)).collect();
    assert_eq!(order, [(1, 2), (0, 4), (1, 6)]);
    assert_eq!((recording.first_crash_point(), recording.last_crash_point()), (2, 8));
    assert_eq!(recording.devices()[1].durability, Durability::OnCompletion);
}

#[test]
fn a_completion_after_the_log_was_taken_is_forgotten() {
    let end = Sim::new(1).run(|| {
        let fault = Fault::new(Arc::new(Ram::new("disk", SIZE)));
        fault.faults().add(FaultRule::new(Ops::WRITE, Effect::Delay(Duration::from_millis(1))));
        let log = RecordLog::new();
        let disk = Record::new(Arc::new(fault), &log);
        let late = disk.submit(write(1, 0, 1, false));
        let recording = log.take();
        late.wait().unwrap();
        disk.submit(write(2, 1, 1, false)).wait().unwrap();
        let second = log.take();
        let done = |r: &Recording| r.events().iter().filter(|e| e.completed.is_some()).count();
        (done(&recording), done(&second), second.events().len())
    });
    assert_eq!(end, Ok((0, 1, 1)));
}

#[derive(Debug, Clone)]
enum Op {
    Write { block: u64, blocks: u64, fua: bool },
    Flush,
}

fn ops() -> impl Strategy<Value = Vec<Op>> {
    let write = (0..24u64, 1..8u64, prop::bool::weighted(0.1))
        .prop_map(|(block, blocks, fua)| Op::Write { block, blocks, fua });
    prop::collection::vec(prop_oneof![6 => write, 1 => Just(Op::Flush)], 1..50)
}

/// Submits the operations, waiting now and then, over a cache over a disk.
fn perform(disk: &Record, ops: &[Op], seed: u64) {
    let mut rng = Rng::new(seed);
    let mut in_flight = Vec::new();
    for (tag, op) in (1..).zip(ops) {
        in_flight.push(disk.submit(match op {
            Op::Write { block, blocks, fua } => write(tag, *block, *blocks, *fua),
            Op::Flush => Request::Flush,
        }));
        if rng.percent(40) {
            Completion::wait_all(&in_flight).unwrap();
            in_flight.clear();
        }
    }
    Completion::wait_all(&in_flight).unwrap();
}

fn tag_of(store: &Store, block: u64) -> u64 {
    let got = store.read(block * 512, 512);
    pattern::stamp_of(&got).map_or(0, |stamp| stamp.tag)
}

/// By the words of the promise alone: the tags that a block may hold after a power cut.
fn legal(recording: &Recording, block: u64, cut: u64) -> BTreeSet<u64> {
    let here = |event: &&Event| match &event.action {
        Action::Write { offset, data, .. } => {
            (*offset..offset + data.len() as u64).contains(&(block * 512))
                && event.submitted.tick < cut
        }
        _ => false,
    };
    let durable = |event: &Event| {
        let done = event.completed.map_or(u64::MAX, |c| c.tick);
        matches!(event.action, Action::Write { fua: true, .. }) && done < cut
            || recording
                .events()
                .iter()
                .any(|f| f.action == Action::Flush && f.submitted.tick > done && f.done_before(cut))
    };
    let tag = |event: &Event| match &event.action {
        Action::Write { offset, data, .. } => {
            let at = (block * 512 - offset) as usize;
            pattern::stamp_of(&data.unpack()[at..at + 512]).unwrap().tag
        }
        _ => 0,
    };
    let writes: Vec<&Event> = recording.events().iter().filter(here).collect();
    let mut tags = BTreeSet::new();
    if !writes.iter().any(|w| durable(w)) {
        tags.insert(0);
    }
    for write in &writes {
        let done = write.completed.map_or(u64::MAX, |c| c.tick);
        let covered = writes.iter().any(|w| w.submitted.tick > done && durable(w));
        if !covered {
            tags.insert(tag(write));
        }
    }
    tags
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn cuts_leave_what_is_legal(ops in ops(), seed: u64, percent in 0..=100u64) {
        let recording = Sim::new(seed).run(move || {
            let settings = CacheSettings { capacity: 4096, lying: false };
            let fault = Fault::new(Arc::new(Ram::new("disk", SIZE)));
            fault.faults().add(FaultRule::new(Ops::WRITE, Effect::Delay(Duration::from_millis(1))));
            let cache = WriteCache::new(Arc::new(fault), settings);
            let log = RecordLog::new();
            let disk = Record::new(Arc::new(cache), &log);
            perform(&disk, &ops, seed);
            log.take()
        }).unwrap();
        let mut rng = Rng::new(seed);
        let (mut base, mut settled) = (Store::new(SIZE), 0);
        for cut in recording.first_crash_point()..=recording.last_crash_point() {
            let at = recording.at(DeviceId(0), cut);
            let whole = at.contents(&Store::new(SIZE), 0, percent, &mut rng.clone());
            let next = at.settled(settled);
            at.advance(&mut base, settled, next);
            settled = next;
            let shared = at.contents(&base, settled, percent, &mut rng);
            prop_assert!(whole == shared);
            for block in 0..32 {
                let (tag, legal) = (tag_of(&shared, block), legal(&recording, block, cut));
                prop_assert!(legal.contains(&tag), "cut {cut}, block {block}: {tag} of {legal:?}");
            }
        }
    }
}

#[test]
fn cuts_leave_every_combination() {
    let (disk, log) = recorded(Durability::OnFlush);
    disk.submit(write(1, 0, 3, true)).wait().unwrap();
    disk.submit(write(2, 1, 2, false)).wait().unwrap();
    disk.submit(write(3, 2, 1, false)).wait().unwrap();
    let recording = log.take();
    let at = recording.at(disk.device(), recording.last_crash_point());
    let mut rng = Rng::new(1);
    let seen: BTreeSet<[u64; 3]> = (0..500)
        .map(|_| at.contents(&Store::new(SIZE), 0, 50, &mut rng))
        .map(|store| [0, 1, 2].map(|block| tag_of(&store, block)))
        .collect();
    let want: BTreeSet<[u64; 3]> =
        [1, 2].into_iter().flat_map(|b| [1, 2, 3].map(|c| [1, b, c])).collect();
    assert_eq!(seen, want);
}

#[test]
fn a_recording_begins_anew_only_when_nothing_is_in_flight() {
    Sim::new(1)
        .run(|| {
            let log = RecordLog::new();
            let ram: Arc<dyn BlockDevice> = Arc::new(Ram::new("disk", SIZE));
            let slow = Fault::new(ram);
            let later = Effect::Delay(std::time::Duration::from_millis(1));
            slow.faults().add(FaultRule::new(Ops::WRITE, later));
            let disk = Record::new(Arc::new(slow), &log);
            let pending = disk.submit(write(1, 0, 1, false));
            assert_eq!(log.begin_anew(|| ()), None);
            assert_eq!(log.len(), 1);
            pending.wait().unwrap();
            assert_eq!(log.begin_anew(|| 7), Some(7));
            assert!(log.is_empty());
        })
        .unwrap();
}

/// A recorded RAM disk that is memory, and what the cuts may leave of its first words.
struct Memory {
    log: RecordLog,
    record: Record,
}

impl Memory {
    fn new() -> Memory {
        let (record, log) = recorded(Durability::OnCompletion);
        Memory { log, record }
    }

    fn memory(&self) -> &dyn DirectMemory {
        self.record.direct_memory().unwrap()
    }

    /// Every combination of the first byte of these words that many draws bring.
    fn left(&self, cut: u64, recording: &Recording, words: &[u64]) -> BTreeSet<Vec<u8>> {
        let at = recording.at(self.record.device(), cut);
        let mut rng = Rng::new(3);
        let store = |_| at.contents(&Store::new(SIZE), 0, 50, &mut rng);
        let stores: Vec<Store> = (0..400).map(store).collect();
        let bytes = |s: &Store| words.iter().map(|w| s.read(w * 8, 1)[0]).collect();
        stores.iter().map(bytes).collect()
    }
}

#[test]
fn stores_tear_by_words_until_they_are_persisted_and_fenced() {
    let m = Memory::new();
    m.memory().store(0, &[1; 16]).unwrap();
    let stored = m.log.note(0, [0; 3]).tick;
    m.memory().persist(0, 16).unwrap();
    let persisted = m.log.note(0, [0; 3]).tick;
    m.memory().fence().unwrap();
    let fenced = m.log.note(0, [0; 3]).tick;
    // Stored after the persist: not covered by it.
    m.memory().store(8, &[2; 8]).unwrap();
    m.memory().fence().unwrap();
    let recording = m.log.take();
    let any: BTreeSet<Vec<u8>> =
        [[0, 0], [0, 1], [1, 0], [1, 1]].into_iter().map(|p| p.to_vec()).collect();
    assert_eq!(m.left(stored, &recording, &[0, 1]), any);
    assert_eq!(m.left(persisted, &recording, &[0, 1]), any);
    assert_eq!(m.left(fenced, &recording, &[0, 1]), [vec![1, 1]].into());
    let last = m.left(recording.last_crash_point(), &recording, &[0, 1]);
    assert_eq!(last, [vec![1, 1], vec![1, 2]].into());
}

#[test]
fn a_store_through_is_a_store_and_a_persist() {
    let m = Memory::new();
    m.memory().store_through(0, &[1; 16]).unwrap();
    let stored = m.log.note(0, [0; 3]).tick;
    m.memory().fence().unwrap();
    let recording = m.log.take();
    assert_eq!(m.left(stored, &recording, &[0, 1]).len(), 4);
    assert_eq!(m.left(recording.last_crash_point(), &recording, &[0, 1]), [vec![1, 1]].into());
    // Where fences are ignored, they are in doubt until the cache has written them.
    let drains_within = Duration::from_secs(3600);
    let lying = Durability::Lying { cache_bytes: 1 << 20, drains_within };
    let ignored = recording.with_durability(m.record.device(), lying);
    assert_eq!(m.left(ignored.last_crash_point(), &ignored, &[0, 1]).len(), 4);
}

#[test]
fn where_the_caches_are_saved_a_store_is_durable() {
    let (record, log) = recorded(Durability::OnStore);
    let m = Memory { log, record };
    m.memory().store(0, &[1; 16]).unwrap();
    let recording = m.log.take();
    assert_eq!(m.left(recording.last_crash_point(), &recording, &[0, 1]), [vec![1, 1]].into());
    // Not while it is being made.
    let during = recording.events()[0].submitted.tick + 1;
    assert_eq!(m.left(during, &recording, &[0, 1]).len(), 4);
    let without = recording.without_flushes();
    assert_eq!(m.left(without.last_crash_point(), &without, &[0, 1]), [vec![1, 1]].into());
}

#[test]
fn of_one_store_only_the_lines_that_were_persisted_are_sure() {
    let m = Memory::new();
    // From the middle of a word to the middle of another, over two lines.
    m.memory().store(60, &[7; 80]).unwrap();
    m.memory().persist(64, 1).unwrap();
    m.memory().fence().unwrap();
    let recording = m.log.take();
    // Words of the line at 64 are there; the one at 56 (its end), and those from 128, may be.
    let left = m.left(recording.last_crash_point(), &recording, &[8, 15, 16]);
    assert_eq!(left, [vec![7, 7, 0], vec![7, 7, 7]].into());
}

#[test]
fn memory_that_is_refused_is_not_recorded() {
    let m = Memory::new();
    assert!(m.memory().store(SIZE, &[1]).is_err());
    assert!(m.memory().store(u64::MAX, &[1]).is_err());
    assert!(m.memory().persist(SIZE - 1, 2).is_err());
    assert!(m.log.is_empty());
}

#[test]
fn a_request_names_the_call_that_it_was_made_for() {
    let (disk, log) = recorded(Durability::OnFlush);
    let call = steadfast_runtime::in_call(5);
    disk.submit(write(1, 0, 1, false)).wait().unwrap();
    drop(call);
    disk.submit(Request::Flush).wait().unwrap();
    let calls: Vec<u64> = log.take().events().iter().map(|event| event.call).collect();
    assert_eq!(calls, [5, 0]);
}
