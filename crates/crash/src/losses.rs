//! What may have become of a whole device when power returns, beyond what it had not yet promised
//! to keep: it is gone, it is of another time, its battery was empty.
//!
//! A set-up has two honest answers. It *refuses* the mount and says why, and then it has written
//! nothing: the right device may still be found. Or it *recovers* to a file system whose structure
//! is whole; what is missing then is counted, as after any cut. Anything else is silent damage.

use std::fmt;
use std::sync::Arc;

use steadfast_block::rng::Rng;
use steadfast_devices::filter::record::{DeviceId, Moment, RecordLog};
use steadfast_devices::store::Store;
use steadfast_runtime::Sim;

use crate::explore::{Booted, Machine, Recorded, structure};
use crate::figures::Cut;
use crate::judge::Judge;

/// A machine that can be switched on with a device missing.
pub trait Losable: Machine {
    /// As [`Machine::power_on`]; `contents` are those of the devices that are there.
    ///
    /// # Errors
    /// The mount was refused, in words.
    fn power_on_without(
        &self,
        missing: usize,
        contents: Vec<Store>,
        log: Option<&RecordLog>,
    ) -> Result<Booted, String>;
}

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

/// How the machine came up.
#[derive(Debug, Clone)]
pub enum Verdict {
    /// It refused the mount.
    Refused {
        /// In words.
        why: String,
        /// Requests that would have changed a device meanwhile. Must be none.
        changes: usize,
    },
    /// It recovered; `damage` is what the structure check and the judge found.
    Recovered(Box<Cut>),
}

/// One cut with one loss.
#[derive(Debug, Clone)]
pub struct Outcome {
    /// When the power was cut.
    pub moment: Moment,
    /// What became of the device.
    pub loss: Loss,
    /// How the machine came up.
    pub verdict: Verdict,
}

impl Outcome {
    /// Neither a refusal that changed nothing nor a whole file system.
    pub fn is_silent_damage(&self) -> bool {
        match &self.verdict {
            Verdict::Refused { changes, .. } => *changes > 0,
            Verdict::Recovered(cut) => !cut.damage.is_empty() || cut.stale_bytes > 0,
        }
    }

    /// Why the mount was refused, if it was.
    pub fn refusal(&self) -> Option<&str> {
        match &self.verdict {
            Verdict::Refused { why, .. } => Some(why),
            Verdict::Recovered(_) => None,
        }
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cut at tick {}, device {}: ", self.moment.tick, self.loss)?;
        match &self.verdict {
            Verdict::Refused { why, changes } => write!(f, "refused, {changes} changes: {why}"),
            Verdict::Recovered(cut) => write!(
                f,
                "recovered, {} broken promises, {} stale bytes, damage {:?}, {:?}",
                cut.broken_promises, cut.stale_bytes, cut.damage, cut.findings
            ),
        }
    }
}

/// Cuts a run at a tick, does to one device what `loss` says, and switches the machine on. What
/// the cut leaves in doubt, on every device, is drawn from `seed`.
pub fn lose(
    machine: &Arc<dyn Losable>,
    recorded: &Recorded,
    tick: u64,
    (device, loss): (usize, Loss),
    seed: u64,
) -> Outcome {
    let Recorded { bases, recording, judge } = recorded;
    let mut choices = Rng::new(seed);
    let keep_percent = [0, 100, choices.below(101)][choices.below(3) as usize];
    let mut contents: Vec<Store> = bases
        .iter()
        .zip(0..)
        .map(|(base, number)| {
            recording.at(DeviceId(number), tick).contents(base, 0, keep_percent, &mut choices)
        })
        .collect();
    let base = &bases[device];
    match loss {
        Loss::None => {}
        Loss::Absent => drop(contents.remove(device)),
        Loss::Stale(then) => {
            let at = recording.at(DeviceId(device as u32), then.min(tick));
            contents[device] = at.contents_where(base, 0, |_, _| true);
        }
        Loss::Zeros => contents[device] = Store::new(base.size()),
        Loss::Noise(seed) => contents[device] = noise(base.size(), seed),
    }
    let missing = (loss == Loss::Absent).then_some(device);
    let moment = Moment { tick, at: recording.time_of(tick) };
    let (inner, judge) = (Arc::clone(machine), Arc::clone(judge));
    let back_to = match loss {
        Loss::Stale(then) => Some(Moment { tick: then, at: recording.time_of(then) }),
        _ => None,
    };
    let when = (moment, back_to);
    let ran = Sim::new(seed).run(move || switch_on(&*inner, missing, contents, &*judge, when));
    let verdict = ran.unwrap_or_else(|stuck| {
        let cut = Cut::unmountable(moment.at, format!("recovery stopped: {stuck}"));
        Verdict::Recovered(Box::new(cut))
    });
    Outcome { moment, loss, verdict }
}

fn switch_on(
    machine: &dyn Losable,
    missing: Option<usize>,
    contents: Vec<Store>,
    judge: &dyn Judge,
    (moment, back_to): (Moment, Option<Moment>),
) -> Verdict {
    let log = RecordLog::new();
    let booted = match missing {
        Some(device) => machine.power_on_without(device, contents, Some(&log)),
        None => machine.power_on(contents, Some(&log)),
    };
    let Booted { fs, shut_down } = match booted {
        Ok(booted) => booted,
        Err(why) => return Verdict::Refused { why, changes: log.len() },
    };
    let mut cut = Cut { at: moment.at, tick: moment.tick, ..Cut::default() };
    judge.judge(&*fs, moment, &mut cut);
    if let Some(back_to) = back_to.filter(|_| cut.stale_bytes > 0) {
        let mut then = Cut::default();
        judge.judge(&*fs, back_to, &mut then);
        only_old(&mut cut, &then);
    }
    drop(fs);
    match shut_down() {
        Ok(contents) => cut.damage.extend(structure(&contents[machine.disk()])),
        Err(why) => cut.damage.push(format!("it could not be unmounted: {why}")),
    }
    Verdict::Recovered(Box::new(cut))
}

/// With a journal from before, a file may be as it was then. Of what has been overwritten since,
/// durably, the judge knows nothing any more and takes it for stale: it is a broken promise if
/// the judge of that moment, to whom it was present, finds nothing wrong with the task's files.
fn only_old(cut: &mut Cut, then: &Cut) {
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
