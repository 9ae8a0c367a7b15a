//! The disk of the mixed workload as a mirror: two disks, which a cut hits at the same time, and
//! perhaps memory, which is blank after it. One of the disks may be lost with the power.

use std::sync::Arc;
use std::time::Duration;

use steadfast_block::BlockDevice;
use steadfast_devices::source::Ram;
use steadfast_devices::store::Store;
use steadfast_runtime::sleep;
use steadfast_volume::{
    AssembleOptions, LegState, Mirror, MirrorOptions, NewLeg, Policies, ReadPolicy, ResyncThrottle,
    WritePolicy, assemble, create_mirror,
};

/// Disks of the mirror.
pub(super) const LEGS: usize = 2;
/// The place of the leg in memory.
const MEMORY: usize = LEGS;
/// Bytes of a region.
const REGION: u32 = 64 << 10;
/// Room for labels and map.
const EXTRA: u64 = 1 << 20;
/// How often the mirror looks after itself. Regions become clean while the workload runs.
const TICK: Duration = Duration::from_millis(40);
/// How often it is asked whether it is whole.
const RESYNCS: u32 = 100;

/// What the mirror has beside its disks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Memory {
    /// Nothing.
    None,
    /// A RAM disk that is asked first, written behind.
    Whole,
    /// One with room for a quarter of the regions.
    Partial,
}

/// A disk that is a mirror.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MirrorDisk {
    /// A leg in memory.
    pub memory: Memory,
    /// The disk that is gone after every cut.
    pub lost: Option<usize>,
}

impl MirrorDisk {
    /// Bytes of each disk of a mirror of so many.
    pub(super) fn leg_bytes(size: u64) -> u64 {
        size + EXTRA
    }

    fn memory_leg(&self, size: u64) -> Option<NewLeg> {
        let bytes = match self.memory {
            Memory::None => return None,
            Memory::Whole => size + EXTRA,
            Memory::Partial => size / 4 + EXTRA,
        };
        let partial = self.memory == Memory::Partial;
        Some(NewLeg { partial, ..NewLeg::new(Arc::new(Ram::new("memory", bytes))) })
    }

    /// A new mirror of these disks.
    pub(super) fn create(
        &self,
        disks: &[Arc<dyn BlockDevice>],
        size: u64,
    ) -> steadfast_crash::Result<Mirror> {
        let (read, write) = match self.memory {
            Memory::None => (ReadPolicy::RoundRobin, WritePolicy::Parallel),
            _ => (ReadPolicy::Preferred(MEMORY), WritePolicy::WriteBehind),
        };
        let disks = disks.iter().map(|disk| NewLeg::new(Arc::clone(disk)));
        let legs: Vec<NewLeg> = disks.chain(self.memory_leg(size)).collect();
        let options = MirrorOptions {
            size: Some(size),
            region_bytes: Some(REGION),
            policies: Policies { read, write, ..Policies::default() },
            ..MirrorOptions::default()
        };
        let mirror = create_mirror("disk", &legs, &options).map_err(|e| e.to_string())?;
        mirror.keep(TICK, ResyncThrottle::default());
        Ok(mirror)
    }

    /// The mirror after a cut: without the disk that is lost, its memory blank.
    pub(super) fn assemble(
        &self,
        disks: &[Arc<dyn BlockDevice>],
        size: u64,
    ) -> steadfast_crash::Result<Mirror> {
        let there = disks.iter().enumerate().filter(|(n, _)| Some(*n) != self.lost);
        let there: Vec<_> = there.map(|(_, disk)| Arc::clone(disk)).collect();
        let degraded = self.lost.is_some();
        let options = AssembleOptions { degraded, ..AssembleOptions::default() };
        let mut found = assemble(&there, &options);
        let Some(mirror) = found.volumes.pop().and_then(|volume| volume.mirror) else {
            let why = found.problems.first().map(|(_, error)| error.to_string());
            return Err(format!("no mirror: {}", why.unwrap_or_default()).into());
        };
        if let Some(leg) = self.memory_leg(size) {
            mirror.replace(MEMORY, Some(&leg)).map_err(|e| format!("memory: {e}"))?;
        }
        mirror.keep(TICK, ResyncThrottle::default());
        Ok(mirror)
    }

    /// What the mirror holds, after it was made whole; its disks must hold the same then.
    pub(super) fn shut_down(&self, mirror: &Mirror, size: u64) -> steadfast_crash::Result<Store> {
        let said = |e: steadfast_volume::VolumeError| e.to_string();
        // Another one may be under way: its own.
        for _ in 0..RESYNCS {
            if mirror.resync(ResyncThrottle::default()).map_err(said)?.complete {
                break;
            }
            sleep(TICK);
        }
        let scrubbed = mirror.scrub(false, ResyncThrottle::default()).map_err(said)?;
        if !scrubbed.clean || !scrubbed.complete {
            return Err(format!("legs differ after the resync: {scrubbed:?}").into());
        }
        let status = mirror.status();
        let sound = |slot: usize| match Some(slot) == self.lost {
            true => LegState::Unavailable,
            false => LegState::Okay,
        };
        if let Some(leg) = status.legs.iter().find(|leg| leg.state != sound(leg.slot)) {
            return Err(format!("leg {} is {}", leg.slot, leg.state.name()).into());
        }
        let mut held = Store::new(size);
        for at in (0..size).step_by(REGION as usize) {
            let bytes = mirror.read(at, u64::from(REGION)).map_err(|e| e.to_string())?;
            held.write_slice(at, &bytes);
        }
        mirror.close().map_err(said)?;
        Ok(held)
    }
}
