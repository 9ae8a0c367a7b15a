//! A device of ours at a path, and under a loop device.

use std::path::Path;
use std::sync::Arc;

use steadfast_block::BlockDevice;
use steadfast_fuse::Options;
use steadfast_host::LoopDevice;

use crate::Result;
use crate::device_file::{DeviceFile, NAME};
use crate::served::FolderMount;

/// Requests that the device is asked at a time.
const THREADS: usize = 8;

/// A block device as `/dev/loopN`: what the kernel writes there is written to the device, what it
/// flushes is flushed. Needs root and FUSE. Taken away when dropped.
#[derive(Debug)]
pub struct LoopExport {
    // Let go of in this order.
    loop_device: Option<LoopDevice>,
    served: FolderMount,
}

impl LoopExport {
    /// Serves `device` until the value is dropped.
    ///
    /// # Errors
    /// No rights, no FUSE, no loop devices: with the message of what refused.
    pub fn new(device: Arc<dyn BlockDevice>) -> Result<LoopExport> {
        let options = Options {
            source: "steadfast-device".into(),
            threads: THREADS,
            // The loop device is alone with it, and goes past the page cache.
            async_direct_io: true,
            // A file of one process for another: no set-id, no device nodes, nobody else.
            ..Options::default()
        };
        let served = FolderMount::with_options(Arc::new(DeviceFile::new(device)), &options)?;
        let loop_device = LoopDevice::attach_direct(&served.path().join(NAME))?;
        Ok(LoopExport { loop_device: Some(loop_device), served })
    }

    /// `/dev/loopN`.
    pub fn path(&self) -> &Path {
        // OK to expect: only `take_away` takes it.
        self.loop_device.as_ref().expect("it is attached").path()
    }

    /// Takes it away now, so that a failure is seen. Nothing may have it open.
    ///
    /// # Errors
    /// It is in use.
    pub fn take_away(mut self) -> Result<()> {
        let detached = self.loop_device.take().map_or(Ok(()), |device| device.detach());
        let unmounted = self.served.end();
        detached?;
        unmounted
    }

    /// Lets go of it while somebody has it open: it goes when he closes it, or this process ends.
    pub(crate) fn leave(mut self) {
        if let Some(device) = self.loop_device.take() {
            // OK to ignore: dropping it tries again.
            let _ = device.set_autoclear();
        }
        self.served.leave();
    }
}

impl Drop for LoopExport {
    fn drop(&mut self) {
        // Before the file under it goes.
        drop(self.loop_device.take());
    }
}

#[cfg(test)]
mod tests;
