//! Load for models under test, in simulated time.

use std::sync::Arc;

use steadfast_block::pattern;
pub(super) use steadfast_block::{BlockDevice, Completion, Persistence, Request};
use steadfast_runtime::{Nanos, Sim, now, random_u64, spawn};

pub(super) use super::{FlushBehaviour, Model};
pub(super) use crate::store::Store;

/// Runs in a simulation.
pub(super) fn simulate<T: 'static>(body: impl FnOnce() -> T + 'static) -> T {
    Sim::new(7).run(body).unwrap()
}

/// Nanoseconds that a request takes.
pub(super) fn time(device: &dyn BlockDevice, request: Request) -> u64 {
    let start = now();
    device.submit(request).wait().unwrap();
    nanos_since(start)
}

pub(super) fn nanos_since(start: Nanos) -> u64 {
    u64::try_from((now() - start).as_nanos()).unwrap()
}

pub(super) fn read(offset: u64, len: u64) -> Request {
    Request::Read { offset, len }
}

pub(super) fn write(offset: u64, len: u64) -> Request {
    let data = pattern::bytes(1, offset, len as usize).into();
    Request::Write { offset, data, fua: false }
}

/// `tasks` at a time, each doing one request after the other, `each` of them; `next(task, i)`
/// gives them. Returns MB/s over all.
pub(super) fn throughput<D: BlockDevice + 'static>(
    device: &Arc<D>,
    tasks: u64,
    each: u64,
    next: impl Fn(u64, u64) -> Request + Send + Sync + 'static,
) -> f64 {
    let next = Arc::new(next);
    let start = now();
    let running: Vec<_> = (0..tasks)
        .map(|t| {
            let (device, next) = (Arc::clone(device), Arc::clone(&next));
            spawn(format!("load {t}"), move || {
                let mut bytes = 0;
                for i in 0..each {
                    let request = next(t, i);
                    bytes += request.range().map_or(0, |(_, len)| len);
                    device.submit(request).wait().unwrap();
                }
                bytes
            })
        })
        .collect();
    let bytes: u64 = running.into_iter().map(|t| t.join().unwrap()).sum();
    bytes as f64 * 1e3 / nanos_since(start) as f64
}

/// A random multiple of `unit` below `span`.
pub(super) fn anywhere(span: u64, unit: u64) -> u64 {
    random_u64() % (span / unit) * unit
}
