//! How far a copy is.

use std::time::Duration;

use steadfast_volume::Mirror;

use crate::terminal::with_progress;

/// A shorter copy prints no progress.
const SILENT: Duration = Duration::from_secs(1);

/// Does `copy`, and prints meanwhile what the legs of the mirror still lack.
pub fn reported<T>(mirror: &Mirror, copy: impl FnOnce() -> T) -> T {
    let all = lacking(mirror);
    if all == 0 {
        return copy();
    }
    let what = format!("copying to '{}'", mirror.name());
    let progress = || Some((1.0 - lacking(mirror) as f64 / all as f64, what.clone()));
    with_progress(SILENT, progress, copy)
}

/// Bytes that legs in use lack.
fn lacking(mirror: &Mirror) -> u64 {
    use steadfast_volume::LegState::{Okay, Resyncing};
    let legs = mirror.status().legs.into_iter();
    legs.filter(|leg| matches!(leg.state, Okay | Resyncing)).map(|leg| leg.lacking_bytes).sum()
}
