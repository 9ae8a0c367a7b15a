//! A device as far as no later crash point can doubt it.

use steadfast_devices::filter::record::{AtCrashPoint, Event};
use steadfast_devices::store::Store;

/// A device's contents as far as no later crash point can doubt them.
#[derive(Clone)]
pub(super) struct SettledContents {
    pub base: Store,
    /// How many of its requests that is.
    pub settled: usize,
}

impl SettledContents {
    pub fn new(base: &Store) -> SettledContents {
        SettledContents { base: base.clone(), settled: 0 }
    }

    /// Goes on to a crash point; the requests that this settles.
    pub fn follow<'r>(
        &mut self,
        at: &AtCrashPoint<'r>,
    ) -> impl Iterator<Item = &'r Event> + use<'r> {
        let (from, to) = (self.settled, at.settled(self.settled));
        at.advance(&mut self.base, from, to);
        self.settled = to;
        at.requests(from, to)
    }
}
