//! Cuts a peer's run, and the same run on a device whose cache lies.

use std::time::Duration;

use steadfast_block::pattern;
use steadfast_devices::filter::record::{DeviceId, Durability, RecordedDevice};
use steadfast_devices::store::Store;

use super::peer::Peer;
use crate::explore::{Plan, Recorded, each_state};
use crate::figures::{Cut, Figures};

/// Tag of what was on the device before the file system was made.
const OLD: u64 = 0xdead;
/// The device is filled in pieces of so many bytes.
const FILLED: u64 = 64 << 10;

/// What a device of `bytes` bytes held before: stamped data that belongs to no file, so that a
/// block that nobody wrote is seen when a file shows it.
pub fn old_contents(bytes: u64) -> Store {
    let mut old = Store::new(bytes);
    for at in (0..bytes).step_by(FILLED as usize) {
        let len = FILLED.min(bytes - at);
        old.write_slice(at, &pattern::bytes(OLD, at, len as usize));
    }
    old
}

impl Recorded {
    /// The same run, the same answers to it, and volatile caches that had promised nothing by them:
    /// a write is safe once writes of `cache_bytes` have followed it, or after `drains_within`.
    /// Devices that keep what they acknowledge stay as they are.
    #[must_use]
    pub fn on_lying_devices(&self, cache_bytes: u64, drains_within: Duration) -> Recorded {
        let lying = Durability::Lying { cache_bytes, drains_within };
        let devices = 0..self.recording.devices().len() as u32;
        let recording = devices.fold(self.recording.clone(), |recording, device| {
            match recording.devices()[device as usize].durability {
                Durability::OnFlush => recording.with_durability(DeviceId(device), lying),
                Durability::OnCompletion | Durability::OnStore | Durability::Lying { .. } => {
                    recording
                }
            }
        });
        Recorded { bases: self.bases.clone(), recording, judge: self.judge.clone() }
    }

    /// The same run by a file system that forgets to flush: no flush, no FUA. Where no device has a
    /// volatile cache it promises the same.
    #[must_use]
    pub fn without_flushes(&self) -> Recorded {
        let recording = self.recording.clone().without_flushes();
        Recorded { bases: self.bases.clone(), recording, judge: self.judge.clone() }
    }

    /// Whether a device of the run keeps what it has acknowledged only once it is flushed.
    pub fn needs_flushes(&self) -> bool {
        let waits = |device: &RecordedDevice| device.durability == Durability::OnFlush;
        self.recording.devices().iter().any(waits)
    }

    /// Whether every device of the run keeps its word.
    pub fn is_honest(&self) -> bool {
        let lies = |device: &RecordedDevice| matches!(device.durability, Durability::Lying { .. });
        !self.recording.devices().iter().any(lies)
    }
}

/// Makes the plan's cuts in the order of time, lets the peer recover from each, and counts what
/// they took. The plan's second cuts and its other judges are not for peers. `progress` is told
/// after each cut how many are done.
pub fn explore_peer(
    peer: &dyn Peer,
    recorded: &Recorded,
    plan: &Plan,
    progress: &dyn Fn(u64),
) -> Figures {
    let mut figures = Figures::default();
    each_state(recorded, plan, &mut |state| {
        let (number, at, place) = (state.number, state.moment, state.place);
        let cut = peer.recover(state.contents, &*recorded.judge, at);
        figures.add(Cut { number, place, tick: at.tick, at: at.at, ..cut });
        progress(number + 1);
        true
    });
    figures
}
