//! Labels of devices, for the status: read without counting, and without waiting for a device that
//! does not answer.

use std::collections::BTreeMap;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use steadfast_volume::member::read_label;

use crate::endpoint::Endpoint;

/// A status waits this long for devices; a slower one is shown as not answering.
const TIMEOUT: Duration = Duration::from_secs(1);

/// Where the data of a member begins, and the blocks of its map, where it has one.
pub(super) type Layout = (Option<u64>, Option<u32>);

/// What is known of one device or volume.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct LabelReading {
    pub layout: Layout,
    /// It was asked then, and has not answered yet.
    asked: Option<Instant>,
}

impl LabelReading {
    /// For how long it has not answered.
    pub fn silent(&self) -> Option<Duration> {
        self.asked.map(|asked| asked.elapsed())
    }
}

/// What was read last, by the endpoints' numbers.
#[derive(Default)]
pub(super) struct Labels {
    known: Mutex<BTreeMap<u64, LabelReading>>,
    answered: Condvar,
}

impl Labels {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<u64, LabelReading>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reads the labels of all at once; of one that does not answer in time, what it said last.
    pub fn read(self: &Arc<Self>, endpoints: &[Arc<Endpoint>]) -> BTreeMap<u64, LabelReading> {
        let mut known = self.lock();
        // A device that is silent is asked by one thread at a time.
        for endpoint in endpoints {
            let entry = known.entry(endpoint.number()).or_default();
            if entry.asked.is_none() {
                entry.asked = Some(Instant::now());
                let (labels, of) = (Arc::clone(self), Arc::clone(endpoint));
                let thread = std::thread::Builder::new().name("label".into());
                if thread.spawn(move || labels.ask(&of)).is_err() {
                    // Without a thread nobody is asked; the next status does.
                    entry.asked = None;
                }
            }
        }
        let waits = |known: &mut BTreeMap<u64, LabelReading>| {
            let asked =
                |e: &Arc<Endpoint>| known.get(&e.number()).is_some_and(|k| k.asked.is_some());
            endpoints.iter().any(asked)
        };
        let waited = self.answered.wait_timeout_while(known, TIMEOUT, waits);
        let (mut known, _) = waited.unwrap_or_else(PoisonError::into_inner);
        // What is not there any more is forgotten.
        let is_there = |number: &u64| endpoints.iter().any(|e| e.number() == *number);
        known.retain(|number, known| known.asked.is_some() || is_there(number));
        known.clone()
    }

    fn ask(&self, endpoint: &Endpoint) {
        let layout = match read_label(&endpoint.inner_device()) {
            Ok(Some(found)) => {
                let blocks = found.label.map_blocks;
                (Some(found.label.data_start), (blocks > 0).then_some(blocks))
            }
            _ => (None, None),
        };
        self.lock().insert(endpoint.number(), LabelReading { layout, asked: None });
        self.answered.notify_all();
    }
}
