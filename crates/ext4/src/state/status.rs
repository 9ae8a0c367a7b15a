//! Whether the volume may be written to, and why not.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use steadfast_ext4_format::{Ext4Error, Result};
use steadfast_vfs::FsError;

use super::trouble::{Listener, WriteError};

/// Why a volume is read-only that was shut down.
const SHUT_DOWN: &str = "shut down";

/// Read-write or read-only, with the first reason; the reason stays.
#[derive(Default)]
pub struct Status {
    read_only: OnceLock<String>,
    listener: OnceLock<Listener>,
    notified_read_only: AtomicBool,
    unmounted: AtomicBool,
    down: AtomicBool,
}

impl Status {
    /// Why the volume is read-only; `None` if it is not.
    pub fn read_only_because(&self) -> Option<String> {
        self.read_only.get().cloned()
    }

    /// Makes the volume read-only for good. The first reason is kept, and reported.
    pub fn set_read_only(&self, why: impl Into<String>) {
        let why = why.into();
        self.refuse_writes(&why);
        self.notify_read_only(&why);
    }

    fn refuse_writes(&self, why: &str) {
        // The first reason is kept.
        self.read_only.get_or_init(|| why.into());
    }

    /// Reports what goes wrong to `listener`; the first one stays.
    pub(crate) fn listen(&self, listener: Listener) {
        // OK to ignore: there is one.
        let _ = self.listener.set(listener);
    }

    /// Calls the listener.
    pub(crate) fn notify(&self, trouble: &WriteError<'_>) {
        if let Some(listener) = self.listener.get() {
            listener(trouble);
        }
    }

    /// Notifies the listener, once, that nothing can be written any more.
    pub(crate) fn notify_read_only(&self, why: &str) {
        if !self.notified_read_only.swap(true, Ordering::AcqRel) {
            self.notify(&WriteError::ReadOnly { why });
        }
    }

    /// The volume has been unmounted.
    pub(crate) fn set_unmounted(&self) {
        self.unmounted.store(true, Ordering::Relaxed);
        self.refuse_writes("unmounted");
    }

    /// Whether the volume has been unmounted.
    pub(crate) fn is_unmounted(&self) -> bool {
        self.unmounted.load(Ordering::Relaxed)
    }

    /// The volume has gone down: nothing works any more.
    pub(crate) fn set_down(&self) {
        self.down.store(true, Ordering::Release);
        self.refuse_writes(SHUT_DOWN);
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

steadfast_runtime::debug_fields!(Status: read_only);
