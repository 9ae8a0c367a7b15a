//! A leg of a mirror, and sets of legs: bits, by the legs' places.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use steadfast_block::{BlockDevice, BlockError, Request};
use uuid::Uuid;

use super::partial::PartialFrames;
use super::policy::LegLatency;
use crate::ondisk::label::{DepartureRange, LEGS_MAX, MemberState};

/// What a leg has been asked for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counters {
    /// Reads.
    pub reads: u64,
    /// Bytes read.
    pub read_bytes: u64,
    /// Writes.
    pub writes: u64,
    /// Bytes written.
    pub written_bytes: u64,
    /// Errors.
    pub errors: u64,
    /// Blocks that were not what their checksum says, and damaged records of checksums.
    #[serde(default)]
    pub checksum_errors: u64,
}

/// A leg's place in the mirror.
#[derive(Default)]
pub(crate) struct Leg {
    pub uuid: Uuid,
    /// `None`: it was not there when the mirror was assembled.
    pub device: Option<Arc<dyn BlockDevice>>,
    pub name: String,
    pub room: u64,
    pub data_start: u64,
    pub map_blocks: u32,
    pub device_bytes: u64,
    pub volatile: bool,
    /// It is smaller than the volume, and holds what there is room for.
    pub partial: bool,
    /// Of a partial leg that is there: `device` are these.
    pub frames: Option<Arc<PartialFrames>>,
    pub state: MemberState,
    /// When it left, if it has. Forgotten when a label that has it in use again is on all legs.
    pub left: Option<DepartureRange>,
    /// Changes whenever the leg leaves, comes back or is another one: what was begun before does
    /// not count for it any more.
    pub epoch: u64,
    /// The map does not say yet what it lacks: no label names it.
    pub joining: bool,
    /// The last error of a leg that failed, or that cannot be done without.
    pub erred: Option<String>,
    pub measured: LegLatency,
    pub counters: Counters,
}

impl Leg {
    pub fn is_active(&self) -> bool {
        self.state == MemberState::Active && self.device.is_some()
    }

    /// The device itself, as it was given.
    pub fn own_device(&self) -> Option<&Arc<dyn BlockDevice>> {
        self.frames.as_ref().map(|frames| frames.device()).or(self.device.as_ref())
    }
}

/// A leg that failed a request.
#[derive(Debug, Clone)]
pub(crate) struct LegFailure {
    pub slot: usize,
    /// The leg's epoch when it was asked.
    pub epoch: u64,
    pub error: BlockError,
}

/// A request to a leg.
pub(crate) struct LegRequest {
    pub slot: usize,
    /// The leg's epoch.
    pub epoch: u64,
    pub device: Arc<dyn BlockDevice>,
    pub request: Request,
}

/// Sends all of them, then waits; which failed, and how. Not with the lock of the state: a leg
/// whose queue is full goes on when it has answered, and who takes the answer takes the lock.
pub(crate) fn send_all(requests: Vec<LegRequest>) -> Vec<LegFailure> {
    let send = |r: LegRequest| (r.slot, r.epoch, r.device.submit(r.request));
    let sent: Vec<_> = requests.into_iter().map(send).collect();
    let failed = sent.into_iter().filter_map(|(slot, epoch, completion)| {
        Some(LegFailure { slot, epoch, error: completion.wait().err()? })
    });
    failed.collect()
}

/// The slots of legs that failed.
pub(crate) fn mask_of(failed: &[LegFailure]) -> u8 {
    failed.iter().fold(0, |mask, failed| mask | bit(failed.slot))
}

/// A device that waits to take a failed leg's place.
pub(crate) struct Spare {
    pub uuid: Uuid,
    pub device: Option<Arc<dyn BlockDevice>>,
    pub name: String,
    pub bytes: u64,
}

/// The set of one leg.
pub(crate) fn bit(slot: usize) -> u8 {
    1 << slot
}

/// The slots of a mask, in order.
pub(crate) fn slots(mask: u8) -> impl Iterator<Item = usize> {
    (0..LEGS_MAX).filter(move |slot| mask & bit(*slot) != 0)
}
