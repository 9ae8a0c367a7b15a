use super::*;
use crate::filter::{CacheSettings, WriteCache};
use crate::model::{Hdd, HddParams};
use crate::source::Ram;
use steadfast_block::{conformance, pattern};
use steadfast_runtime::Sim;

const MS: Duration = Duration::from_millis(1);
const READS: u64 = 6;
const PIECE: u64 = 128 << 10;

fn settings(policy: Policy) -> SchedulerSettings {
    SchedulerSettings { policy, depth: 4, queue_bytes: 1 << 20, throttle: None }
}

fn throttled(target: Duration) -> Option<ThrottleSettings> {
    Some(ThrottleSettings { target, window: 100 * MS, queue_depth: 32 })
}

#[test]
fn conforms() {
    for policy in [Policy::Fifo, Policy::Deadline(DeadlineSettings::default())] {
        for throttle in [None, throttled(2 * MS)] {
            let settings = SchedulerSettings { throttle, ..settings(policy.clone()) };
            let make = move || -> Arc<dyn BlockDevice> {
                let disk = Arc::new(Ram::new("disk", 1 << 20));
                Arc::new(Scheduler::new(disk, settings.clone()))
            };
            conformance::run(&make);
            Sim::new(1).run(move || conformance::run(&make)).unwrap();
        }
    }
}

fn write(offset: u64) -> Request {
    let data = pattern::bytes(1, offset, PIECE as usize).into();
    Request::Write { offset, data, fua: false }
}

/// A disk of 2001 under a storm of writes, and reads that depend on each other: the mean time of
/// a read in milliseconds, and the queue at its end.
fn reads_under_a_storm(settings: SchedulerSettings) -> (u64, QueueState) {
    let storm = move || {
        let params = HddParams { queue_depth: 1, ..HddParams::default() };
        let disk = Arc::new(Hdd::new("sda", &params).unwrap());
        let device = Arc::new(Scheduler::new(disk, settings));
        let (writer, end) = (Arc::clone(&device), Arc::new(Mutex::new(false)));
        let is_over = Arc::clone(&end);
        let storm = spawn("storm", move || {
            let mut at = 1 << 30;
            while !*is_over.lock() {
                // Nobody waits for the answer: the queue's bound is what holds it up.
                drop(writer.submit(write(at)));
                at += PIECE;
            }
        });
        steadfast_runtime::sleep(Duration::from_secs(2));
        let start = now();
        for i in 0..READS {
            device.read((60 << 30) + i * (1 << 20), 4096).unwrap();
        }
        let took = now().since(start) / READS as u32;
        let queue = device.queue();
        *end.lock() = true;
        storm.join().unwrap();
        (took.as_millis() as u64, queue)
    };
    Sim::new(1).run(storm).unwrap()
}

#[test]
fn a_read_waits_behind_a_long_queue_and_not_with_a_deadline_or_a_throttle() {
    let fifo =
        SchedulerSettings { depth: 1, queue_bytes: 30 << 20, ..SchedulerSettings::default() };
    let (slow, queue) = reads_under_a_storm(fifo.clone());
    // 240 writes that wait, each a revolution.
    assert!((500..2000).contains(&slow), "{slow} ms");
    assert!(queue.write_bytes_max <= 30 << 20 && queue.write_bytes_max > 29 << 20, "{queue:?}");
    assert!(queue.read_wait_max >= 150 * MS, "{queue:?}");

    let deadline = Policy::Deadline(DeadlineSettings::default());
    let (with_deadline, _) =
        reads_under_a_storm(SchedulerSettings { policy: deadline, ..fifo.clone() });
    // A batch of sixteen writes that has begun, a revolution each, is ended first.
    assert!(with_deadline < 100, "{with_deadline} ms");

    let throttle = throttled(75 * MS);
    let (with_throttle, queue) = reads_under_a_storm(SchedulerSettings { throttle, ..fifo });
    assert!(with_throttle < 75, "{with_throttle} ms");
    assert!(queue.write_limit.is_some_and(|limit| limit <= 12), "{queue:?}");
    assert!(queue.writes <= 12, "{queue:?}");
}

#[test]
fn a_request_larger_than_the_queue_goes_through() {
    Sim::new(1)
        .run(|| {
            let disk = Arc::new(Ram::new("disk", 8 << 20));
            let settings = SchedulerSettings { queue_bytes: 4096, ..settings(Policy::Fifo) };
            let device = Scheduler::new(disk, settings);
            device.write(0, pattern::bytes(1, 0, 4 << 20).into()).unwrap();
            assert_eq!(device.queue().with_device, 0);
        })
        .unwrap();
}

#[test]
fn what_waits_is_answered_when_the_scheduler_goes() {
    Sim::new(1)
        .run(|| {
            let disk = Arc::new(Hdd::new("sda", &HddParams::default()).unwrap());
            let settings =
                SchedulerSettings { depth: 1, queue_bytes: u64::MAX, ..settings(Policy::Fifo) };
            let device = Scheduler::new(disk, settings);
            let all: Vec<_> = (0..20).map(|i| device.submit(write(i * PIECE))).collect();
            drop(device);
            let gone = all.iter().filter(|c| matches!(c.wait(), Err(BlockError::Gone { .. })));
            assert!(gone.count() >= 18);
        })
        .unwrap();
}

/// Power is cut while requests wait: what a flush covered is there, in every order of service.
#[test]
fn what_was_flushed_survives_a_power_cut() {
    let mut lost = 0;
    for seed in 0..40 {
        let policy = match seed % 2 {
            0 => Policy::Fifo,
            _ => Policy::Deadline(DeadlineSettings { fifo_batch: 3, ..Default::default() }),
        };
        lost += Sim::new(seed)
            .run(move || {
                let disk = Arc::new(Ram::new("disk", 64 << 20));
                let cache = Arc::new(WriteCache::new(disk, CacheSettings::default()));
                let device = Scheduler::new(Arc::clone(&cache) as Arc<_>, settings(policy));
                let mut promised = Vec::new();
                for round in 0..6 {
                    let places: Vec<u64> = (0..8).map(|i| (i * 37 + round * 8) % 300).collect();
                    let written = places.iter().map(|at| device.submit(write(at * PIECE)));
                    let written: Vec<_> = written.collect();
                    if round == 5 {
                        // Some are in the cache, others wait still.
                        written[seed as usize % 8].wait().unwrap();
                        break;
                    }
                    Completion::wait_all(&written).unwrap();
                    device.flush().unwrap();
                    promised.extend(places);
                }
                let lost = cache.power_cut(seed).unwrap().lost;
                cache.power_on();
                for at in promised {
                    let there = cache.read(at * PIECE, PIECE).unwrap();
                    assert_eq!(there, pattern::bytes(1, at * PIECE, PIECE as usize), "{at}");
                }
                lost
            })
            .unwrap();
    }
    assert!(lost > 0, "the cuts take what was not flushed");
}
