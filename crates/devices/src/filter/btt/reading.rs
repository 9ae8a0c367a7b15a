//! Which blocks are being read (kernel: the read tracking table, `rtt`).
//!
//! A block that a write has freed may still be read by a reader that used the old map entry. A
//! reader enters the block here while it holds the map's lock; a writer to a free block waits until
//! the block is not here.

use steadfast_runtime::{Condvar, Mutex};

#[derive(Default)]
struct Shard {
    /// A block is here once for each reader.
    blocks: Mutex<Vec<u32>>,
    left: Condvar,
}

/// The blocks that are being read.
pub(super) struct Reading(Box<[Shard]>);

/// A reader; the block may be written again when it is dropped.
pub(super) struct Reader<'a> {
    shard: &'a Shard,
    block: u32,
}

impl Reading {
    /// In so many parts that do not wait for each other.
    pub fn new(parts: usize) -> Reading {
        Reading((0..parts.clamp(1, 256)).map(|_| Shard::default()).collect())
    }

    fn shard(&self, block: u32) -> &Shard {
        &self.0[block as usize % self.0.len()]
    }

    /// Notes that a block is read. The lock of the map entry that names it is held.
    pub fn enter(&self, block: u32) -> Reader<'_> {
        let shard = self.shard(block);
        shard.blocks.lock().push(block);
        Reader { shard, block }
    }

    /// Waits until nobody reads a free block. Nobody can begin to: no map entry names it.
    pub fn wait_until_left(&self, block: u32) {
        let shard = self.shard(block);
        let blocks = shard.blocks.lock();
        drop(shard.left.wait_while(blocks, |blocks| blocks.contains(&block)));
    }
}

impl Drop for Reader<'_> {
    fn drop(&mut self) {
        let mut blocks = self.shard.blocks.lock();
        if let Some(place) = blocks.iter().position(|block| *block == self.block) {
            blocks.swap_remove(place);
        }
        self.shard.left.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use std::time::Duration;
    use steadfast_runtime::{Sim, now, sleep, spawn};

    #[test]
    fn a_free_block_is_waited_for() {
        let waited = || {
            let reading = Arc::new(Reading::new(4));
            let (first, second) = (reading.enter(5), reading.enter(5));
            let waits = {
                let reading = Arc::clone(&reading);
                spawn("writer", move || {
                    reading.wait_until_left(1);
                    reading.wait_until_left(5);
                    now()
                })
            };
            let begun = now();
            sleep(Duration::from_millis(1));
            drop(first);
            sleep(Duration::from_millis(1));
            drop(second);
            waits.join().unwrap().since(begun)
        };
        assert_eq!(Sim::new(1).run(waited).unwrap(), Duration::from_millis(2));
    }
}
