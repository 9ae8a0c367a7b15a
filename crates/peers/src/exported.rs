//! A device of ours at a path, and under a loop device.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::JoinHandle;

use steadfast_block::BlockDevice;
use steadfast_fuse::{Mounted, Options, Unmounter};
use steadfast_host::LoopDevice;

use crate::PeerError;
use crate::device_file::{DeviceFile, NAME};

/// Requests that the device is asked at a time.
const THREADS: usize = 8;

/// A block device as `/dev/loopN`: what the kernel writes there is written to the device, what it
/// flushes is flushed. Needs root and FUSE. Taken away when dropped.
#[derive(Debug)]
pub struct Exported {
    // Let go of in this order.
    loop_device: Option<LoopDevice>,
    served: Served,
}

impl Exported {
    /// Serves `device` until the value is dropped.
    ///
    /// # Errors
    /// No rights, no FUSE, no loop devices: in the words of whoever refused.
    pub fn new(device: Arc<dyn BlockDevice>) -> Result<Exported, PeerError> {
        let served = Served::new(device)?;
        let loop_device = LoopDevice::attach_direct(&served.file())?;
        Ok(Exported { loop_device: Some(loop_device), served })
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
    pub fn take_away(mut self) -> Result<(), PeerError> {
        let detached = self.loop_device.take().map_or(Ok(()), LoopDevice::detach);
        let unmounted = self.served.end();
        detached?;
        unmounted
    }
}

/// The device's file in its mounted folder.
#[derive(Debug)]
struct Served {
    unmounter: Unmounter,
    thread: Option<JoinHandle<()>>,
    folder: PathBuf,
    // Removed last, when nothing is mounted on it.
    _folder: tempfile::TempDir,
}

impl Served {
    fn new(device: Arc<dyn BlockDevice>) -> Result<Served, PeerError> {
        let folder = tempfile::tempdir().map_err(|e| PeerError::Folder { why: e.to_string() })?;
        let options = Options {
            source: "steadfast-device".into(),
            threads: THREADS,
            // The loop device is alone with it, and goes past the page cache.
            async_direct_io: true,
            // A file of one process for another: no set-id, no device nodes, nobody else.
            ..Options::default()
        };
        let fs = Arc::new(DeviceFile::new(device));
        let mounted = Mounted::new(fs, folder.path(), &options)?;
        let unmounter = mounted.unmounter();
        let path = mounted.mountpoint().to_path_buf();
        let serving = std::thread::Builder::new().name("device for the kernel".into());
        // OK to ignore how serving ends: whoever uses the device sees its errors.
        let spawned = serving.spawn(move || drop(mounted.serve()));
        let thread = match spawned {
            Ok(thread) => thread,
            Err(e) => {
                // It would wait for an answer for ever.
                let _ = unmounter.unmount_lazily();
                return Err(PeerError::Folder { why: format!("no thread: {e}") });
            }
        };
        Ok(Served { unmounter, thread: Some(thread), folder: path, _folder: folder })
    }

    fn file(&self) -> PathBuf {
        self.folder.join(NAME)
    }

    fn end(&mut self) -> Result<(), PeerError> {
        let Some(thread) = self.thread.take() else { return Ok(()) };
        // A tool that has just ended may still hold the folder for a moment.
        let patient = (0..50).any(|_| {
            let gone = self.unmounter.unmount().is_ok();
            if !gone {
                std::thread::sleep(std::time::Duration::from_millis(20));
            }
            gone
        });
        if !patient {
            self.unmounter.unmount_lazily()?;
        }
        // OK to ignore: a panic there was the server's, and is reported there.
        let _ = thread.join();
        Ok(())
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        // Nobody is left to be told.
        let _ = self.end();
    }
}

impl Drop for Exported {
    fn drop(&mut self) {
        // Before the file under it goes.
        drop(self.loop_device.take());
    }
}
