//! A run on a variant's stack, recorded to be cut.

use std::sync::Arc;

use steadfast_crash::CrashError;
use steadfast_crash::explore::RebootTarget;
use steadfast_devices::filter::record::RecordLog;
use steadfast_devices::store::Store;
use steadfast_ext4_mkfs::Contents;
use steadfast_peers::{Begin, PeerRecording};
use steadfast_setup::Volumes;
use steadfast_vfs::FileSystem;

use super::setting::Subject;
use crate::{Result, VariantError};

/// Runs something in a simulation on a variant's file system, new on devices that held something
/// before, with every device recorded: from the mount on, or from where the work says. The machine,
/// and what the work brought.
pub(super) fn recorded<T: Send + 'static>(
    of: Subject<'_>,
    (memory_bytes, from_mount): (u64, bool),
    work: impl FnOnce(&Arc<dyn FileSystem>, &RecordLog, Begin<'_>) -> Result<T> + Send + 'static,
) -> Result<(Arc<dyn RebootTarget>, PeerRecording<T>)> {
    let machine = Arc::new(of.setting.scenario.stack_machine(of.variant, memory_bytes));
    let inner = Arc::clone(&machine);
    let sim = machine.setup.simulation(of.setting.options.seed);
    let ran = sim.run(move || -> Result<PeerRecording<T>> {
        let devices = inner.used_devices()?;
        let log = RecordLog::new();
        log.pause(true);
        let blocks = inner.recorded(&devices, Volumes::NewOnUsed, &log)?;
        blocks.make(&inner.setup, Contents::UnknownZeroTables, (0, 0))?;
        let mut bases: Vec<Store> = Vec::new();
        let mut begin = || {
            blocks.flush().map_err(CrashError::host)?;
            bases = devices.all().map(|d| d.contents()).collect();
            // Nothing that happened before can be cut.
            log.clear();
            log.pause(false);
            Ok(())
        };
        if from_mount {
            begin()?;
        }
        let fs = inner.mount(&blocks)?;
        let shared: Arc<dyn FileSystem> = Arc::clone(&fs) as Arc<dyn FileSystem>;
        let brought = work(&shared, &log, &mut begin)?;
        let recording = log.take();
        drop(shared);
        fs.unmount().map_err(VariantError::Unmount)?;
        blocks.close()?;
        Ok((bases, recording, brought))
    });
    Ok((machine, ran??))
}
