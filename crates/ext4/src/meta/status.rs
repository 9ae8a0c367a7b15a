//! Whether the volume may be written to, and why not.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use steadfast_vfs::FsError;

use crate::error::{Ext4Error, Result};

/// Why a volume is read-only that was shut down.
const SHUT_DOWN: &str = "shut down";

/// Read-write or read-only, with the first reason; the reason stays.
#[derive(Debug, Default)]
pub struct Status {
    read_only: Mutex<Option<String>>,
    unmounted: AtomicBool,
    down: AtomicBool,
}

impl Status {
    /// Why the volume is read-only; `None` if it is not.
    pub fn read_only_because(&self) -> Option<String> {
        self.read_only.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Makes the volume read-only for good. The first reason is kept.
    pub fn set_read_only(&self, why: impl Into<String>) {
        let mut slot = self.read_only.lock().unwrap_or_else(PoisonError::into_inner);
        slot.get_or_insert_with(|| why.into());
    }

    /// The volume has been unmounted.
    pub(crate) fn set_unmounted(&self) {
        self.unmounted.store(true, Ordering::Relaxed);
        self.set_read_only("unmounted");
    }

    /// Whether the volume has been unmounted.
    pub(crate) fn is_unmounted(&self) -> bool {
        self.unmounted.load(Ordering::Relaxed)
    }

    /// The volume has gone down: nothing works any more.
    pub(crate) fn set_down(&self) {
        self.down.store(true, Ordering::Release);
        self.set_read_only(SHUT_DOWN);
    }

    /// Whether the volume has gone down, and that is the first reason to be read-only.
    pub(crate) fn was_shut_down(&self) -> bool {
        self.is_down() && self.read_only_because().as_deref() == Some(SHUT_DOWN)
    }

    /// Whether the volume has gone down.
    pub(crate) fn is_down(&self) -> bool {
        self.down.load(Ordering::Acquire)
    }

    /// Refuses when the volume has gone down.
    pub(crate) fn check_up(&self) -> Result<()> {
        if self.is_down() {
            let what = "the file system was shut down: unmount it".into();
            return Err(Ext4Error::Fs(FsError::Io { what }));
        }
        Ok(())
    }

    /// Refuses when the volume is read-only.
    pub fn check_writable(&self) -> Result<()> {
        match self.read_only_because() {
            None => Ok(()),
            Some(why) => Err(Ext4Error::Fs(FsError::ReadOnly { why })),
        }
    }
}
