//! How far a copy is.

use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;

use steadfast_volume::Mirror;

use crate::terminal::Progress;

/// A shorter copy prints no progress.
const SILENT: Duration = Duration::from_secs(1);
/// How often it is looked at.
const EVERY: Duration = Duration::from_millis(250);

/// Does `copy`, and prints meanwhile what the legs of the mirror still lack.
pub fn reported<T>(mirror: &Mirror, copy: impl FnOnce() -> T) -> T {
    let all = lacking(mirror);
    if all == 0 {
        return copy();
    }
    let (done, end) = mpsc::channel::<()>();
    std::thread::scope(|scope| {
        scope.spawn(move || {
            if end.recv_timeout(SILENT) != Err(RecvTimeoutError::Timeout) {
                return;
            }
            let progress = Progress::start();
            let what = format!("copying to '{}'", mirror.name());
            loop {
                let share = 1.0 - lacking(mirror) as f64 / all as f64;
                progress.set(share, &what);
                if end.recv_timeout(EVERY) != Err(RecvTimeoutError::Timeout) {
                    break;
                }
            }
            progress.finish();
        });
        let copied = copy();
        drop(done);
        copied
    })
}

/// Bytes that legs in use lack.
fn lacking(mirror: &Mirror) -> u64 {
    use steadfast_volume::LegState::{Okay, Resyncing};
    let legs = mirror.status().legs.into_iter();
    legs.filter(|leg| matches!(leg.state, Okay | Resyncing)).map(|leg| leg.lacking_bytes).sum()
}
