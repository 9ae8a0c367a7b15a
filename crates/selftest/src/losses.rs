//! What may have become of a whole device when power returns, beyond what it had not yet promised
//! to keep: it is gone, it is of another time, its battery was empty.
//!
//! A set-up has two correct answers. It *refuses* the mount and says why, and then it has written
//! nothing: the right device may still be found. Or it *recovers* to a file system whose structure
//! is whole; what is missing then is counted, as after any cut. Anything else is silent damage.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use steadfast_block::rng::Rng;
use steadfast_crash::explore::{
    BootedMachine, Checks, CutSource, OtherJudges, Plan, RebootTarget, recover_all, structure,
};
use steadfast_crash::figures::StateFigures;
use steadfast_crash::judge::Judge;
use steadfast_devices::filter::record::{DeviceId, Moment, RecordLog};
use steadfast_devices::store::Store;
use steadfast_vfs::FileSystem;

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

/// A machine that loses a device with the power.
pub struct LosingMachine {
    machine: Arc<dyn RebootTarget>,
    /// What boots where the device is absent.
    without: Arc<dyn RebootTarget>,
    device: usize,
    loss: Loss,
    /// What the device holds when power returns, if that is not what the cut has left.
    held: Option<Store>,
    /// Requests that would have changed a device before a mount was refused.
    changes: AtomicUsize,
}

impl LosingMachine {
    /// Of a recorded run of `machine` that is cut at `tick` the earliest; `without` boots from the
    /// other devices.
    pub fn new(
        (machine, without): (&Arc<dyn RebootTarget>, &Arc<dyn RebootTarget>),
        recorded: &CutSource,
        tick: u64,
        (device, loss): (usize, Loss),
    ) -> Arc<LosingMachine> {
        let CutSource { bases, recording, .. } = recorded;
        let base = &bases[device];
        let held = match loss {
            Loss::None | Loss::Absent => None,
            Loss::Stale(then) => {
                let at = recording.at(DeviceId(device as u32), then.min(tick));
                Some(at.contents_where(base, 0, |_, _| true))
            }
            Loss::Zeros => Some(Store::new(base.size())),
            Loss::Noise(seed) => Some(noise(base.size(), seed)),
        };
        let (machine, without) = (Arc::clone(machine), Arc::clone(without));
        let changes = AtomicUsize::new(0);
        Arc::new(LosingMachine { machine, without, device, loss, held, changes })
    }

    /// How many requests would have changed a device before a mount was refused. Must be none: the
    /// device may still be found.
    pub fn changes(&self) -> usize {
        self.changes.load(Ordering::Relaxed)
    }
}

impl RebootTarget for LosingMachine {
    fn power_on(
        &self,
        mut contents: Vec<Store>,
        log: Option<&RecordLog>,
    ) -> steadfast_crash::Result<BootedMachine> {
        let own = RecordLog::new();
        let log = log.unwrap_or(&own);
        if let Some(held) = &self.held {
            contents[self.device] = held.snapshot();
        }
        let booted = if self.loss == Loss::Absent {
            contents.remove(self.device);
            self.without.power_on(contents, Some(log))
        } else {
            self.machine.power_on(contents, Some(log))
        };
        if booted.is_err() {
            self.changes.fetch_add(log.len(), Ordering::Relaxed);
        }
        booted
    }

    fn disk(&self) -> usize {
        self.machine.disk()
    }

    fn journal(&self) -> Option<usize> {
        self.machine.journal()
    }
}

/// Cuts a run at a tick, does to one device what its loss says, and switches the machine on. What
/// the cut leaves in doubt, on every device, is drawn from `seed`. True: neither a refusal that
/// changed nothing nor a whole file system.
pub fn lose(
    machines: (&Arc<dyn RebootTarget>, &Arc<dyn RebootTarget>),
    recorded: &CutSource,
    tick: u64,
    loss: (usize, Loss),
    seed: u64,
) -> (StateFigures, bool) {
    let CutSource { bases, recording, judge } = recorded;
    let mut choices = Rng::new(seed);
    let keep_percent = [0, 100, choices.below(101)][choices.below(3) as usize];
    let left = |(base, device): (&Store, u32)| {
        recording.at(DeviceId(device), tick).contents(base, 0, keep_percent, &mut choices)
    };
    let contents: Vec<Store> = bases.iter().zip(0..).map(left).collect();
    let mut judge = Arc::clone(judge);
    if let Loss::Stale(then) = loss.1 {
        let back_to = Moment { tick: then, at: recording.time_of(then) };
        judge = Arc::new(OlderJudge { judge, back_to });
    }
    let losing = LosingMachine::new(machines, recorded, tick, loss);
    let system = Arc::clone(&losing) as Arc<dyn RebootTarget>;
    let (others, moment) = (OtherJudges::default(), Moment { tick, at: recording.time_of(tick) });
    let trial = others.trial((&system, &judge), &Plan::EVERYWHERE, moment, Checks::NOTHING);
    let mut found = recover_all(&system, vec![(trial, contents)], seed, &mut structure);
    // OK to expect: one for each state.
    let cut = found.pop().expect("one state, one verdict");
    let is_silent = match cut.refused {
        Some(_) => losing.changes() > 0,
        None => !cut.damage.is_empty() || cut.stale_bytes > 0,
    };
    (cut, is_silent)
}

/// The judge of a run one of whose devices went back to an earlier moment.
struct OlderJudge {
    judge: Arc<dyn Judge>,
    back_to: Moment,
}

impl Judge for OlderJudge {
    fn judge(&self, fs: &dyn FileSystem, at: Moment, cut: &mut StateFigures) {
        self.judge.judge(fs, at, cut);
        if cut.stale_bytes > 0 {
            let mut then = StateFigures::default();
            self.judge.judge(fs, self.back_to, &mut then);
            only_old(cut, &then);
        }
    }

    fn judge_refused(&self, at: Moment, cut: &mut StateFigures) {
        self.judge.judge_refused(at, cut);
    }
}

/// With a journal from before, a file may be as it was then. Of what has been overwritten since,
/// durably, the judge knows nothing any more and takes it for stale: it is a broken promise if
/// the judge of that moment, to whom it was present, finds nothing wrong with the task's files.
fn only_old(cut: &mut StateFigures, then: &StateFigures) {
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
