//! The simulation's own rules: order, time, processors, what is reported.

use super::*;
use crate::{now, random_u64, sleep, spawn};

#[test]
fn virtual_time_jumps() {
    let end = Sim::new(1).run(|| {
        sleep(Duration::from_secs(3600));
        now()
    });
    assert_eq!(end, Ok(Nanos(3_600_000_000_000)));
}

#[test]
fn the_earliest_timer_first_and_ties_in_order() {
    let order = Sim::new(1).run(|| {
        let (tx, rx) = crate::channel();
        for (name, ms) in [("c", 3), ("a", 1), ("b1", 2), ("b2", 2)] {
            let tx = tx.clone();
            spawn(name, move || {
                sleep(Duration::from_millis(ms));
                tx.send(name);
            });
        }
        drop(tx);
        std::iter::from_fn(|| rx.recv()).collect::<Vec<_>>()
    });
    assert_eq!(order, Ok(vec!["a", "b1", "b2", "c"]));
}

#[test]
fn processors_are_shared() {
    let sim = Sim::new(1).cpus(2);
    let (end, stats, _) = sim
        .run_full(|| {
            let tasks: Vec<_> = (0..4)
                .map(|i| spawn(format!("t{i}"), || crate::cpu(Duration::from_millis(10))))
                .collect();
            for t in tasks {
                t.join().unwrap();
            }
            now()
        })
        .unwrap();
    assert_eq!(end, Nanos(20_000_000));
    assert_eq!(stats.cpu_busy, Duration::from_millis(40));
}

#[test]
fn a_deadlock_names_the_tasks() {
    let err = Sim::new(1)
        .run(|| {
            let a = std::sync::Arc::new(crate::Mutex::new(0));
            let b = std::sync::Arc::new(crate::Mutex::new(0));
            let (a2, b2) = (a.clone(), b.clone());
            let other = spawn("other", move || {
                let _b = b2.lock();
                sleep(Duration::from_millis(2));
                let _a = a2.lock();
            });
            let _a = a.lock();
            sleep(Duration::from_millis(1));
            let _b = b.lock();
            other.join().unwrap();
        })
        .unwrap_err();
    let SimError::Deadlock { at, tasks } = &err else { panic!("{err}") };
    assert_eq!(*at, Nanos(2_000_000));
    assert_eq!(tasks.len(), 2);
    assert!(tasks.iter().all(|t| t.waits_for.contains("mutex")), "{err}");
    assert!(err.to_string().contains("task 'other' waits for a mutex"), "{err}");
}

#[test]
fn a_livelock_is_reported() {
    let err = Sim::new(1)
        .run(|| {
            loop {
                crate::yield_now()
            }
        })
        .unwrap_err();
    assert!(matches!(&err, SimError::Livelock { running, .. } if running == "main"), "{err}");
}

#[test]
fn a_panic_reaches_the_joiner() {
    let r = Sim::new(1).run(|| spawn("bad", || panic!("boom")).join().is_err());
    assert_eq!(r, Ok(true));
}

#[test]
#[should_panic(expected = "boom")]
fn an_unjoined_panic_reaches_the_caller() {
    let _ = Sim::new(1).run(|| {
        spawn("bad", || panic!("boom"));
        sleep(Duration::from_millis(1));
    });
}

#[test]
fn tasks_alive_at_the_end_are_unwound() {
    let flag = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(false));
    struct Set(std::sync::Arc<std::sync::atomic::AtomicBool>);
    impl Drop for Set {
        fn drop(&mut self) {
            self.0.store(true, std::sync::atomic::Ordering::SeqCst);
        }
    }
    let inner = flag.clone();
    Sim::new(1)
        .run(move || {
            spawn("daemon", move || {
                let _set = Set(inner);
                loop {
                    sleep(Duration::from_secs(1));
                }
            });
            sleep(Duration::from_secs(5));
        })
        .unwrap();
    assert!(flag.load(std::sync::atomic::Ordering::SeqCst));
}

#[test]
fn seeds_differ() {
    let a = Sim::new(1).run(random_u64).unwrap();
    let b = Sim::new(2).run(random_u64).unwrap();
    assert_ne!(a, b);
}
