//! How far the resync of a mirror is.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use steadfast_volume::{LegState, MirrorStatus};

use crate::protocol::Progress;

/// A mirror's resync.
#[derive(Debug, Default)]
pub(crate) struct Work {
    pub(super) running: AtomicBool,
    /// A stop is requested, and it must not start by itself.
    pub(super) stop_requested: AtomicBool,
    /// What was lacking when it began, in bytes.
    pub(super) total: AtomicU64,
    /// Bytes copied since then.
    pub(super) copied: AtomicU64,
}

impl Work {
    /// How far it is, if it runs.
    pub fn progress(&self, status: &MirrorStatus) -> Option<Progress> {
        if !self.running.load(Ordering::Acquire) {
            return None;
        }
        let total_bytes = self.total.load(Ordering::Acquire);
        let done_bytes = total_bytes.saturating_sub(lacking(status));
        Some(Progress { done_bytes, total_bytes })
    }
}

/// Bytes that legs in use lack.
pub(super) fn lacking(status: &MirrorStatus) -> u64 {
    let legs = status.legs.iter();
    let active = legs.filter(|l| matches!(l.state, LegState::Resyncing | LegState::LastErred));
    active.map(|l| l.lacking_bytes).sum()
}
