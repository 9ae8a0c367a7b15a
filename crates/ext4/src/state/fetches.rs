//! Reads of metadata that are under way.

use std::collections::BTreeSet;

use steadfast_block::Completion;

/// A read of consecutive blocks that is under way.
pub(crate) struct Fetch {
    pub id: u64,
    pub first: u64,
    pub count: u64,
    pub completion: Completion,
    /// Blocks of which the device has not what is wanted.
    pub changed: BTreeSet<u64>,
}

/// The reads that are under way. Guarded by the metadata lock.
#[derive(Default)]
pub(crate) struct Fetches {
    pub running: Vec<Fetch>,
    pub last_id: u64,
}

impl Fetches {
    /// A block gets other contents, or becomes somebody's data.
    pub fn changed(&mut self, block: u64) {
        for fetch in &mut self.running {
            if (fetch.first..fetch.first + fetch.count).contains(&block) {
                fetch.changed.insert(block);
            }
        }
    }

    /// Whether nothing is under way: then changes need not be noted.
    pub fn is_empty(&self) -> bool {
        self.running.is_empty()
    }
}
