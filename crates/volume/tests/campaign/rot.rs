//! Media that return something else than was written, and say nothing.
//!
//! Of one leg at a time, and only where another one that is in use holds the same and a checksum
//! shows: what nobody can know is no fault. A region that is written when the power goes has no
//! checksums after it, and whichever leg stands for it is trusted: so what is still bad when the
//! power goes is undone, as if it had never been.

use steadfast_block::BlockDevice;
use steadfast_block::rng::Rng;
use steadfast_volume::member::read_label;
use steadfast_volume::ondisk::checksums::record_at;
use steadfast_volume::{LegState, LegStatus, Mirror, RegionStatus};

use super::{Disk, REGION};

/// Bytes that go bad at once.
const SECTOR: u64 = 512;

struct Bad {
    leg: String,
    at: u64,
    was: Vec<u8>,
    is: Vec<u8>,
}

pub struct Rot {
    rng: Rng,
    bad: Vec<Bad>,
    /// The leg that goes bad, until the next cut.
    victim: Option<String>,
    /// Its checksums do, not its data: not both.
    records: bool,
    there: bool,
}

impl Rot {
    pub fn new(seed: u64) -> Rot {
        let rng = Rng::new(seed ^ 0x0072_6f74);
        Rot { rng, bad: Vec::new(), victim: None, records: false, there: false }
    }

    /// The mirror is used from now on.
    pub fn begins(&mut self) {
        if self.victim.is_none() {
            self.records = self.rng.percent(25);
        }
    }

    /// Something went bad since the last cut.
    pub fn is_there(&self) -> bool {
        self.there
    }

    /// As if it had never been: what was written since stays.
    pub fn undo(&mut self, disks: &[Disk]) {
        // The last one first: it may lie on an earlier one.
        for bad in self.bad.drain(..).rev() {
            let Some(disk) = disks.iter().find(|disk| disk.medium.name == bad.leg) else {
                continue;
            };
            let ram = disk.medium.ram();
            if ram.read(bad.at, SECTOR).is_ok_and(|bytes| bytes == bad.is) {
                ram.write(bad.at, bad.was.into()).unwrap();
            }
        }
        (self.victim, self.there) = (None, false);
        self.records = self.rng.percent(25);
    }

    /// After the power was off: regions of which checksums are on the legs.
    pub fn while_off(&mut self, mirror: &Mirror, disks: &[Disk]) -> u64 {
        let count = self.rng.below(6);
        (0..count).map(|_| self.one(mirror, disks, |region| region.checked_durably)).sum()
    }

    /// Beside everything else.
    pub fn while_on(&mut self, mirror: &Mirror, disks: &[Disk]) -> u64 {
        match self.rng.percent(30) {
            true => self.one(mirror, disks, |region| region.checked),
            false => 0,
        }
    }

    /// One sector goes bad, if there is one that may; how many did.
    fn one(&mut self, mirror: &Mirror, disks: &[Disk], may: impl Fn(&RegionStatus) -> bool) -> u64 {
        let status = mirror.status();
        let used = |state| matches!(state, LegState::Okay | LegState::Resyncing);
        // Where a partial leg holds a region, only it knows.
        let may_rot = |leg: &&LegStatus| used(leg.state) && leg.held_bytes.is_none();
        let legs: Vec<_> = status.legs.iter().filter(may_rot).collect();
        if legs.is_empty() {
            return 0;
        }
        let any = legs[self.rng.below(legs.len() as u64) as usize].name.clone();
        let name = self.victim.get_or_insert(any).clone();
        let Some(leg) = legs.iter().find(|leg| leg.name == name) else { return 0 };
        let Some(disk) = disks.iter().find(|disk| disk.medium.name == name) else { return 0 };
        // OK to cast: a handful of regions.
        let region = self.rng.below(status.size / REGION) as u32;
        let Some(found) = mirror.region_at(u64::from(region) * REGION) else { return 0 };
        let others = found.legs & !(1 << leg.slot);
        let held = found.legs & (1 << leg.slot) != 0 && others != 0;
        if found.unwritten || !held || !may(&found) {
            return 0;
        }
        let Ok(Some(label)) = read_label(&disk.plugged.device) else { return 0 };
        let at = match self.records {
            true => record_at(label.label.map_blocks, REGION, region).0,
            false => {
                let sector = self.rng.below(REGION / SECTOR) * SECTOR;
                label.label.data_start + u64::from(region) * REGION + sector
            }
        };
        let ram = disk.medium.ram();
        let was = ram.read(at, SECTOR).unwrap().to_vec();
        let mut is = was.clone();
        for _ in 0..1 + self.rng.below(4) {
            is[self.rng.below(SECTOR) as usize] ^= 1 << self.rng.below(8);
        }
        if is == was {
            return 0;
        }
        ram.write(at, is.clone().into()).unwrap();
        self.bad.push(Bad { leg: name, at, was, is });
        self.there = true;
        1
    }
}
