//! What power cuts take from the measured run itself: of its own size, on its own devices, with
//! its own page cache.
//!
//! The run that is judged byte by byte (see `power`) is small, so what a cut takes of it is
//! bounded by its size. Here the benchmark whose speed is reported is recorded, and cut while
//! something was acknowledged and not promised; of that is read how much is missing.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use steadfast_bench::iozone::{Call, Observer};
use steadfast_crash::explore::{
    ActiveTime, CrashPoints, CutSource, Plan, RebootTarget, StackMachine, explore,
};
use steadfast_crash::figures::StateFigures;
use steadfast_devices::filter::record::RecordLog;
use steadfast_ext4::Ext4;
use steadfast_runtime::Nanos;

use super::disk_use::log_used;
use super::power::{AccountWriter, spread as spread_cuts};
use super::setting::{Report, Subject};
use crate::results::{LossRow, Percentiles, Rate, SteadyLoss};

/// Label of the note that the journal has wrapped.
const WRAPPED: u64 = 0x77_7261_7070;

/// Reports each call to the account and to another, and notes when the journal has wrapped.
pub(super) struct Watch {
    account: Arc<AccountWriter>,
    also: Arc<dyn Observer>,
    log: RecordLog,
    fs: Arc<Ext4>,
    calls: AtomicU64,
    wrapped: AtomicBool,
}

impl Watch {
    /// Of a run on `fs`, whose devices are recorded in `log`.
    pub fn new(
        account: Arc<AccountWriter>,
        also: Arc<dyn Observer>,
        (log, fs): (&RecordLog, &Arc<Ext4>),
    ) -> Watch {
        let (log, fs) = (log.clone(), Arc::clone(fs));
        Watch { account, also, log, fs, calls: AtomicU64::new(0), wrapped: AtomicBool::new(false) }
    }

    /// A journal has wrapped when more was logged than it has blocks.
    fn look_at_journal(&self) {
        let asked = self.calls.fetch_add(1, Ordering::Relaxed).is_multiple_of(16);
        if !asked || self.wrapped.load(Ordering::Relaxed) {
            return;
        }
        if log_used(&self.fs).is_some_and(|used| used > 1.0) {
            self.wrapped.store(true, Ordering::Relaxed);
            self.log.note(WRAPPED, [0; 3]);
        }
    }
}

impl Observer for Watch {
    fn started(&self, call: &Call<'_>) {
        self.account.started(call);
        self.also.started(call);
    }

    fn finished(&self, call: &Call<'_>, at: Nanos, durable: bool) {
        self.account.finished(call, at, durable);
        self.also.finished(call, at, durable);
        self.look_at_journal();
    }

    fn synced(&self, file: Option<&str>, started: Nanos, at: Nanos) {
        self.account.synced(file, started, at);
        self.also.synced(file, started, at);
    }
}

/// Cuts the measured run.
pub(super) fn cut(
    of: Subject<'_>,
    machine: StackMachine,
    recorded: CutSource,
    data_bytes: u64,
    report: &Report,
) -> LossRow {
    let Subject { setting, variant } = of;
    let cuts = setting.loss_cuts;
    let plan = Plan {
        places: CrashPoints::Unsynced(cuts),
        e2fsck_every: 0,
        ..spread_cuts(cuts, setting.options.seed ^ 0x10_55)
    };
    let recording = &recorded.recording;
    let wrapped = recording.notes().iter().find(|n| n.label == WRAPPED).map(|n| n.moment.tick);
    let whole = share_unsynced(&recorded);
    let machine: Arc<dyn RebootTarget> = Arc::new(machine);
    let figures =
        explore(&machine, recorded, &plan, &|done| report(done as f64 / cuts.max(1) as f64));
    let spread = |cuts: &[&StateFigures], of: fn(&StateFigures) -> f64| {
        Percentiles::of(cuts.iter().map(|cut| of(cut)).collect())
    };
    let (bytes, ms) =
        (|c: &StateFigures| c.lost_bytes as f64, |c: &StateFigures| c.lost_age.as_secs_f64() * 1e3);
    let all: Vec<&StateFigures> = figures.cuts.iter().collect();
    let steady: Vec<&StateFigures> =
        all.iter().filter(|c| wrapped.is_some_and(|tick| c.tick > tick)).copied().collect();
    LossRow {
        variant: variant.name.clone(),
        cuts: all.len() as u64,
        places: figures.places(|_| true),
        data_bytes,
        unsynced_share: whole,
        unsynced_bytes: spread(&all, |c| c.unsynced_bytes as f64),
        bytes: spread(&all, bytes),
        ms: spread(&all, ms),
        damage: Rate::of_cuts(&figures, |c| !c.damage.is_empty()),
        journal_wrapped: wrapped.is_some(),
        steady: (!steady.is_empty())
            .then(|| SteadyLoss { bytes: spread(&steady, bytes), ms: spread(&steady, ms) }),
    }
}

/// The share of the run's time in which something was acknowledged and not promised; pauses do not
/// count, neither here nor there.
fn share_unsynced(recorded: &CutSource) -> f64 {
    let recording = &recorded.recording;
    let (first, last) = (recording.first_crash_point(), recording.last_crash_point());
    let time = ActiveTime::of(recording);
    let between = |from: u64, to: u64| {
        let (from, to) = (time.before(from.max(first)), time.before(to.min(last)));
        to.saturating_sub(from).as_secs_f64()
    };
    let all = between(first, last);
    let risky: f64 = recorded.judge.unsynced().iter().map(|(from, to)| between(*from, *to)).sum();
    // An empty sum is -0.
    if all > 0.0 && risky > 0.0 { risky / all } else { 0.0 }
}
