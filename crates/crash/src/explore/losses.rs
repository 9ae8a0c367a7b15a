//! What may have become of a whole device when power returns, beyond what it had not yet promised
//! to keep: it is gone, it is of another time, its battery was empty.
//!
//! A set-up has two correct answers. It *refuses* the mount and says why, and then it has written
//! nothing: the right device may still be found. Or it *recovers* to a file system whose structure
//! is whole; what is missing then is counted, as after any cut. Anything else is silent damage.

use std::fmt;

use steadfast_block::rng::Rng;
use steadfast_devices::filter::record::{DeviceId, Moment, Recording};
use steadfast_devices::store::Store;

use super::recorded::Source;
use super::second::left_at;
use super::{Checks, CutSource, OtherJudges, Plan, System};
use crate::figures::StateFigures;

/// What has become of a device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Loss {
    /// Nothing but what any cut may do.
    None,
    /// It is not there.
    Absent,
    /// It holds all that had been written to it before an earlier tick, and nothing since: an older
    /// copy was put back.
    Stale(u64),
    /// Its battery was empty, and it holds zeros.
    Zeros,
    /// Its battery was empty, and it holds bytes that follow from this seed.
    Noise(u64),
}

impl fmt::Display for Loss {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Loss::None => write!(f, "there"),
            Loss::Absent => write!(f, "absent"),
            Loss::Stale(tick) => write!(f, "as it was at tick {tick}"),
            Loss::Zeros => write!(f, "all zeros"),
            Loss::Noise(seed) => write!(f, "random bytes of seed {seed}"),
        }
    }
}

impl Loss {
    /// The moment to which a device went back.
    pub(super) fn back_to(self, recording: &Recording) -> Option<Moment> {
        match self {
            Loss::Stale(then) => Some(Moment { tick: then, at: recording.time_of(then) }),
            _ => None,
        }
    }
}

/// Cuts a run at a tick, does to one device what `loss` says, and switches the machine on. What
/// the cut leaves in doubt, on every device, is drawn from `seed`.
pub fn lose(
    system: &dyn System,
    recorded: &CutSource,
    tick: u64,
    loss: (usize, Loss),
    seed: u64,
) -> StateFigures {
    let CutSource { bases, recording, .. } = recorded;
    let mut choices = Rng::new(seed);
    let keep_percent = [0, 100, choices.below(101)][choices.below(3) as usize];
    let contents = left_at(recording, bases, tick, keep_percent, &mut choices);
    let plan = Plan { loss: Some(loss), ..Plan::EVERYWHERE };
    let moment = Moment { tick, at: recording.time_of(tick) };
    let others = OtherJudges::default();
    let trial = others.trial((system, recorded.source()), &plan, moment, Checks::NOTHING);
    trial.recover(contents, seed)
}

/// Does to a device what its loss says. One that is absent is no longer among the contents.
pub(super) fn befall(
    source: Source<'_>,
    tick: u64,
    (device, loss): (usize, Loss),
    contents: &mut Vec<Store>,
) {
    let base = &source.bases[device];
    match loss {
        Loss::None => {}
        Loss::Absent => drop(contents.remove(device)),
        Loss::Stale(then) => {
            let at = source.recording.at(DeviceId(device as u32), then.min(tick));
            contents[device] = at.contents_where(base, 0, |_, _| true);
        }
        Loss::Zeros => contents[device] = Store::new(base.size()),
        Loss::Noise(seed) => contents[device] = noise(base.size(), seed),
    }
}

/// With a journal from before, a file may be as it was then. Of what has been overwritten since,
/// durably, the judge knows nothing any more and takes it for stale: it is a broken promise if
/// the judge of that moment, to whom it was present, finds nothing wrong with the task's files.
pub(super) fn only_old(cut: &mut StateFigures, then: &StateFigures) {
    let task = |finding: &String| finding.split('/').next().map(str::to_owned);
    let wrong_then: Vec<_> = then.findings.iter().filter_map(task).collect();
    let both = cut.findings.iter().filter_map(task).any(|task| wrong_then.contains(&task));
    if then.stale_bytes == 0 || !both {
        cut.stale_bytes = 0;
        cut.broken_promises += 1;
    }
}

/// What memory holds that has been without power.
fn noise(size: u64, seed: u64) -> Store {
    let mut rng = Rng::new(seed);
    let mut store = Store::new(size);
    let mut at = 0;
    while at < size {
        let len = (size - at).min(1 << 16);
        let words = (0..len.div_ceil(8)).flat_map(|_| rng.bits().to_le_bytes());
        store.write_slice(at, &words.take(len as usize).collect::<Vec<u8>>());
        at += len;
    }
    store
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn noise_follows_from_its_seed() {
        let size = (1 << 16) + 512;
        assert!(noise(size, 1) == noise(size, 1));
        assert!(noise(size, 1) != noise(size, 2));
        assert!(noise(size, 1).read(1 << 16, 512).iter().any(|byte| *byte != 0));
    }
}
