//! The kernel's file systems in the crash pipeline: a crash state recovers as the kernel mounts it,
//! and the file system's own check says what is damaged.
//!
//! For ext2 the check repairs before the mount, as at a boot without a journal. What is drawn at a
//! boot in virtual time (the seed) has no meaning here; the time is real.

use std::cell::RefCell;
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

impl System for Peer {
    fn recover(&self, boot: Boot, _: u64) -> steadfast_crash::Result<BootRecovery> {
        let Boot { contents, look, then } = boot;
        let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
        let failed = RefCell::new(None);
        // What keeps it from showing a mounted folder is kept.
        let show = |mounted: &Path, look: &Look| match HostFs::open(mounted) {
            Ok(fs) => look(&fs, None),
            Err(e) => *failed.borrow_mut() = Some(host(format!("the mounted folder: {e}"))),
        };
        let mut first = |mounted: &Path| show(mounted, &look);
        let mut second = then.as_ref().map(|then| |mounted: &Path| show(mounted, then));
        let second = second.as_mut().map(|second| second as &mut dyn FnMut(&Path));
        let recovery = Peer::recover(self, contents, &mut first, second).map_err(host)?;
        failed.into_inner().map_or(Ok(recovery), Err)
    }
}
