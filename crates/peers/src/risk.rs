//! The kernel's file systems under a workload of ours, recorded.

use std::sync::Arc;

use steadfast_crash::{CrashError, Result};
use steadfast_devices::filter::record::{RecordLog, Recording};
use steadfast_devices::store::Store;
use steadfast_vfs::{FileSystem, HostFs};

use crate::{Peer, PeerError};

/// What a run left: the devices' contents when recording began, the recording, and what the work
/// brought.
pub type PeerRecording<T> = (Vec<Store>, Recording, T);

/// Begins the recording.
pub type Begin<'b> = &'b mut dyn FnMut() -> Result<()>;

impl Peer {
    /// Makes and mounts it on a disk that held something before, and does some work there with the
    /// devices recorded. The work gets the mounted file system, the record that the moments of its
    /// calls are taken from, and what it calls when it is ready: from there on it is recorded.
    /// Whether all could be taken away afterwards is beside what it brought.
    ///
    /// # Errors
    /// What could not be built, mounted or run.
    pub fn record<T>(
        &self,
        before: Store,
        work: impl FnOnce(&Arc<dyn FileSystem>, &RecordLog, Begin<'_>) -> Result<T>,
    ) -> Result<(PeerRecording<T>, std::result::Result<(), PeerError>)> {
        let running = self.start(Some(vec![before])).map_err(CrashError::host)?;
        let mut bases = Vec::new();
        let brought = {
            let fs: Arc<dyn FileSystem> =
                Arc::new(HostFs::open(running.path()).map_err(CrashError::host)?);
            let mut begin = || {
                bases = running.begin().map_err(CrashError::host)?;
                Ok(())
            };
            work(&fs, running.log(), &mut begin)?
        };
        let (recording, taken_away) = running.end();
        Ok(((bases, recording, brought), taken_away))
    }
}
