//! Writing the decisions of an assembly to the legs, before the first change that depends on them.

use std::sync::Arc;

use bytes::Bytes;
use steadfast_block::{BlockDevice, Result};

use super::leg::{LegFailure, slots};
use super::legs::clear_blocks;
use super::metadata::Metadata;
use super::state::AssemblyChanges;
use crate::ondisk::second_label_at;

impl Metadata {
    /// Makes the decisions of the assembly durable: the map first, then the labels. Once.
    pub(super) fn commit_assembly(&self) -> Result<()> {
        let _one = self.committing_assembly.lock();
        let Some(work) = self.state.lock().pending.clone() else { return Ok(()) };
        self.prepare_legs(&work);
        self.commit()?;
        self.publish()?;
        let mut state = self.state.lock();
        state.pending = None;
        drop(state);
        self.changed.notify_all();
        Ok(())
    }

    /// A leg that fails here is dropped.
    fn prepare_legs(&self, work: &AssemblyChanges) {
        for (slot, label) in &work.moved {
            // The new end gets a label before a label refers to it.
            let at = second_label_at(label.device_bytes);
            self.with_leg(*slot, |device| device.write_fua(at, Bytes::from(label.encode()).into()));
        }
        for slot in slots(work.clear) {
            let blocks = self.state.lock().legs[slot].as_ref().map_or(0, |leg| leg.map_blocks);
            self.with_leg(slot, |device| clear_blocks(device, blocks));
        }
        if work.clear != 0 {
            self.state.lock().regions.rewrite_all();
        }
    }

    fn with_leg(&self, slot: usize, work: impl FnOnce(&Arc<dyn BlockDevice>) -> Result<()>) {
        let (device, epoch) = {
            let state = self.state.lock();
            let Some((leg, device)) = state.legs.leg(slot) else { return };
            (Arc::clone(device), leg.epoch)
        };
        if let Err(error) = work(&device) {
            let failed = [LegFailure { slot, epoch, error }];
            self.drop_all(&mut self.state.lock(), &failed);
        }
    }
}
