//! A recorded run, and the same run on devices that are not as they should be.

use std::sync::Arc;
use std::time::Duration;

use steadfast_devices::filter::record::{DeviceId, Durability, Media, RecordedDevice, Recording};
use steadfast_devices::store::Store;

use crate::judge::Judge;

/// A recorded run, ready to be cut.
pub struct CutSource {
    /// Contents of each device when recording began, in the machine's order.
    pub bases: Vec<Store>,
    /// What the devices were asked.
    pub recording: Recording,
    /// Knows what the workload did and was promised.
    pub judge: Arc<dyn Judge>,
}

impl CutSource {
    fn with(&self, recording: Recording) -> CutSource {
        CutSource { bases: self.bases.clone(), recording, judge: self.judge.clone() }
    }

    /// The same run on a device of another medium.
    #[must_use]
    pub fn on_media(&self, device: u32, media: Media) -> CutSource {
        self.with(self.recording.clone().with_media(DeviceId(device), media))
    }

    /// The same run, the same answers to it, and volatile caches that had promised nothing by them:
    /// a write is safe once writes of `cache_bytes` have followed it, or after `drains_within`.
    /// Devices that keep what they acknowledge stay as they are.
    #[must_use]
    pub fn on_lying_devices(&self, cache_bytes: u64, drains_within: Duration) -> CutSource {
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
        self.with(recording)
    }

    /// The same run by a file system that forgets to flush: no flush, no FUA. Where no device has a
    /// volatile cache it promises the same.
    #[must_use]
    pub fn without_flushes(&self) -> CutSource {
        self.with(self.recording.clone().without_flushes())
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
