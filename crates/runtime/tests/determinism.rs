//! The same seed gives the same trace, byte for byte; whatever else the machine is doing.

use std::sync::Arc;
use std::time::Duration;

use proptest::prelude::*;
use steadfast_runtime::{
    Condvar, Mutex, RwLock, Sim, channel, cpu, now, random_u64, sleep, spawn, trace, yield_now,
};

/// A program of many tasks that use everything the runtime offers, steered by `plan` and by the
/// simulation's own random numbers.
fn program(plan: &[u8]) {
    let shared = Arc::new((Mutex::new(0u64), Condvar::new(), RwLock::new(0u64)));
    let (tx, rx) = channel();
    let tasks: Vec<_> = plan
        .chunks(4)
        .enumerate()
        .map(|(i, steps)| {
            let (shared, tx, steps) = (Arc::clone(&shared), tx.clone(), steps.to_vec());
            spawn(format!("task {i}"), move || {
                for step in steps {
                    match step % 8 {
                        0 => sleep(Duration::from_nanos(random_u64() % 1000)),
                        1 => *shared.0.lock() += 1,
                        2 => {
                            let _held = shared.0.lock();
                            sleep(Duration::from_nanos(u64::from(step)));
                        }
                        3 => cpu(Duration::from_nanos(random_u64() % 500)),
                        4 => {
                            let wait = Duration::from_nanos(random_u64() % 300);
                            drop(shared.1.wait_timeout(shared.0.lock(), wait));
                        }
                        5 => shared.1.notify_all(),
                        6 => {
                            *shared.2.write() += 1;
                            yield_now();
                        }
                        _ => {
                            let v = *shared.2.read();
                            trace(|| format!("task {i} read {v}"));
                        }
                    }
                }
                tx.send((i, now()));
            })
        })
        .collect();
    drop(tx);
    while let Some((i, at)) = rx.recv() {
        trace(|| format!("task {i} done at {at:?}"));
    }
    tasks.into_iter().for_each(|t| t.join().unwrap());
}

fn trace_of(seed: u64, plan: Vec<u8>) -> Vec<String> {
    let ((), stats, mut lines) =
        Sim::new(seed).cpus(2).traced().run_full(move || program(&plan)).unwrap();
    lines.push(format!("{stats:?}"));
    lines
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 64,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn same_seed_same_trace(seed: u64, plan in prop::collection::vec(any::<u8>(), 1..200)) {
        let first = trace_of(seed, plan.clone());
        // On another thread, beside one that keeps the processor busy.
        let beside = {
            let plan = plan.clone();
            std::thread::spawn(move || trace_of(seed, plan))
        };
        let again = trace_of(seed, plan);
        prop_assert_eq!(&first, &again);
        prop_assert_eq!(&first, &beside.join().unwrap());
    }
}
