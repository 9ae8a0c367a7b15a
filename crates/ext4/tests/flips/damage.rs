//! What is flipped.

use std::fmt;

use steadfast_block::rng::Rng;
use steadfast_devices::store::Store;

use crate::image::{BLOCK, Population};

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

/// A place in a block. Headers and the first entries decide most: half of the flips go there.
fn within(rng: &mut Rng) -> u64 {
    if rng.percent(50) { rng.below(64) } else { rng.below(BLOCK) }
}

/// A place of some kind, each about as likely as it matters.
fn place(population: &Population, rng: &mut Rng) -> u64 {
    match rng.below(100) {
        // The superblock's first half holds most of its fields.
        0..12 => 1024 + if rng.percent(80) { rng.below(0x180) } else { rng.below(1024) },
        // Two groups' descriptors.
        12..20 => 2048 + rng.below(128),
        20..30 => population.log.0 * BLOCK + rng.below(256),
        30..42 => {
            let (start, end) = population.log;
            let used = (end - start).min(400);
            (start + rng.below(used)) * BLOCK + within(rng)
        }
        _ => {
            let block = population.metadata[rng.below(population.metadata.len() as u64) as usize];
            block * BLOCK + within(rng)
        }
    }
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
            at = if together { at + 1 } else { place(population, rng) };
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
