//! What is flipped.

use std::fmt;

use steadfast_block::rng::Rng;
use steadfast_devices::store::Store;

use crate::image::{BLOCK, Population};

/// Bytes of an inode.
const INODE: u64 = 256;

/// Flips that were made.
pub struct Damage {
    /// Offset on the disk, byte before, byte after.
    flips: Vec<(u64, u8, u8)>,
    /// Whether one of them is in the log.
    pub in_the_log: bool,
}

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, old, new) in &self.flips {
            write!(f, "[block {} byte {}: {old:#x}->{new:#x}]", at / BLOCK, at % BLOCK)?;
        }
        Ok(())
    }
}

/// A place in a block: in its header, in the first half of an inode, or anywhere.
fn within(rng: &mut Rng) -> u64 {
    match rng.below(10) {
        0..3 => rng.below(64),
        3..7 => rng.below(BLOCK / INODE) * INODE + rng.below(INODE / 2),
        _ => rng.below(BLOCK),
    }
}

/// A place of some kind, each about as likely as it matters.
fn place(population: &Population, rng: &mut Rng) -> u64 {
    let (log, log_end) = population.log;
    let kind = match rng.below(100) {
        // The superblock's first half holds most of its fields.
        0..10 => return 1024 + if rng.percent(80) { rng.below(0x180) } else { rng.below(1024) },
        // Two groups' descriptors.
        10..17 => return 2048 + rng.below(128),
        17..23 => return log * BLOCK + rng.below(256),
        23..38 => {
            let used = (log_end - log).min(300);
            return (log + rng.below(used)) * BLOCK + within(rng);
        }
        38..45 => 0,
        45..65 => 1,
        65..80 => 2,
        _ => 3,
    };
    let blocks = &population.metadata[kind];
    blocks[rng.below(blocks.len() as u64) as usize] * BLOCK + within(rng)
}

fn flipped(old: u8, rng: &mut Rng) -> u8 {
    match rng.below(6) {
        0 => 0,
        1 => 0xff,
        2 => rng.bits() as u8,
        _ => old ^ 1 << rng.below(8),
    }
}

/// A copy of the image with one to eight bits or bytes flipped, together or apart.
pub fn inflict(population: &Population, rng: &mut Rng) -> (Store, Damage) {
    let mut store = population.store.clone();
    let mut damage = Damage { flips: Vec::new(), in_the_log: false };
    let count = if rng.percent(50) { 1 } else { 1 + rng.below(8) };
    let together = rng.percent(50);
    let mut at = place(population, rng);
    for n in 0..count {
        if n > 0 {
            let next = at + 1;
            // Not beyond the block: the next may be data, which nothing protects.
            let stays = together && !next.is_multiple_of(BLOCK);
            at = if stays { next } else { place(population, rng) };
        }
        let old = store.read(at, 1)[0];
        let new = flipped(old, rng);
        store.write_slice(at, &[new]);
        damage.flips.push((at, old, new));
        let (start, end) = population.log;
        damage.in_the_log |= (start..end).contains(&(at / BLOCK));
    }
    (store, damage)
}
