//! The kernel's file systems in the crash pipeline: a crash state recovers as the kernel mounts it,
//! and the file system's own check says what is damaged.
//!
//! For ext2 the check repairs before the mount, as at a boot without a journal. What is drawn at a
//! boot in virtual time (the seed) has no meaning here; the time is real.

use std::path::Path;
use std::sync::{Mutex, PoisonError};

use steadfast_crash::CrashError;
use steadfast_crash::explore::{Boot, BootRecovery, Look, System};
use steadfast_vfs::HostFs;

use crate::Peer;

/// Held while a state is mounted: XFS and btrfs refuse two mounts of one identity.
static ALONE: Mutex<()> = Mutex::new(());

fn host(why: impl std::fmt::Display) -> CrashError {
    CrashError::Host(format!("the host could not recover this state: {why}"))
}

/// Shows a mounted folder; what kept it from that is kept.
fn show(mounted: &Path, look: &Look, failed: &mut Option<CrashError>) {
    match HostFs::open(mounted) {
        Ok(fs) => look(&fs),
        Err(e) => *failed = Some(host(format!("the mounted folder: {e}"))),
    }
}

impl System for Peer {
    fn recover(&self, boot: Boot, _: u64) -> steadfast_crash::Result<BootRecovery> {
        let Boot { contents, missing, look, then, .. } = boot;
        if missing.is_some() {
            return Err(host("a lost device is not modelled for the kernel"));
        }
        let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
        let (mut failed, mut failed_then) = (None, None);
        let mut first = |mounted: &Path| show(mounted, &look, &mut failed);
        let mut second = |mounted: &Path| {
            if let Some(then) = &then {
                show(mounted, then, &mut failed_then);
            }
        };
        let second = then.is_some().then_some(&mut second as &mut dyn FnMut(&Path));
        let recovery = self.recover_and_use(contents, &mut first, second).map_err(host)?;
        if let Some(why) = failed.or(failed_then) {
            return Err(why);
        }
        Ok(recovery)
    }
}
