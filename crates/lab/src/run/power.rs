//! One variant's power cuts under IOzone: a recorded run in one simulation, each recovery in
//! another.

use std::sync::Arc;
use std::time::Duration;

use steadfast_bench::iozone::{self, Action, Call, Observer, Surroundings};
use steadfast_crash::account::{self, Account, FilesJudge};
use steadfast_crash::explore::{CrashPoints, CutSource, Plan, RebootTarget};
use steadfast_crash::figures::{Figures, StateFigures};
use steadfast_crash::opinion::Opinion;
use steadfast_devices::store::Digest;
use steadfast_runtime::Nanos;

use super::controls::cut_with_controls;
use super::measured;
use super::recorded;
use super::setting::{Report, Subject};
use crate::Result;
use crate::results::{AgeSeries, ClockKind, NotJudged, Percentiles, Rate, RiskRow};
use crate::scenario::Variant;

/// Every so many cuts the recovered image is also judged by e2fsck, where it is installed.
pub(super) const E2FSCK_EVERY: u64 = 40;

/// Records the variant's run, cuts it, and counts what the cuts take.
pub(super) fn run(of: Subject<'_>, iozone: &iozone::Options, report: &Report) -> Result<RiskRow> {
    let (machine, recorded) = recorded(of, iozone)?;
    let programs = programs(&recorded);
    let (row, _) = cut_with_controls(of, (&machine, recorded), &plan(of), report)?;
    Ok(RiskRow { programs: Some(programs), ..row })
}

/// A number for what the benchmark did to its files: at most 52 bits, so that JSON keeps it.
fn programs(recorded: &CutSource) -> u64 {
    let mut digest = Digest::new();
    for (file, operation) in recorded.judge.operations() {
        digest.bytes(format!("{file} {:?}", operation.action).as_bytes());
    }
    digest.end() as u64 & ((1 << 52) - 1)
}

/// Runs the benchmark; the machine, and what it did.
pub(super) fn recorded(
    of: Subject<'_>,
    iozone: &iozone::Options,
) -> Result<(Arc<dyn RebootTarget>, CutSource)> {
    let (memory, iozone) = (of.setting.page_cache_bytes(iozone, of.variant), iozone.clone());
    let (machine, (bases, recording, history)) =
        recorded::recorded(of, (memory, true), move |fs, log, _| {
            let account = Arc::new(AccountWriter(Account::new(log)));
            let judged = Surroundings { judged: true, ..Surroundings::default() };
            measured::iozone(Arc::clone(fs), &iozone, &judged, Some(account.clone()))?;
            Ok(account.0.take())
        })?;
    Ok((machine, CutSource { bases, recording, judge: Arc::new(FilesJudge(history)) }))
}

/// The cuts of a variant, spread over the run.
pub(super) fn plan(of: Subject<'_>) -> Plan {
    spread(of.setting.cuts_of(of.variant), of.setting.options.seed)
}

/// So many cuts, spread over the run.
pub(super) fn spread(cuts: u64, seed: u64) -> Plan {
    Plan { e2fsck_every: E2FSCK_EVERY, ..Plan::trials(CrashPoints::Spread(cuts), seed) }
}

/// Carries what the benchmark says to the account. Calls on a file come from one task, one after
/// the other.
pub(super) struct AccountWriter(pub Account);

impl Observer for AccountWriter {
    fn started(&self, call: &Call<'_>) {
        let action = match call.action {
            Action::Write { offset, len, tag } => account::Action::Write { offset, len, tag },
            // A removed file holds nothing: the same to a judge as an emptied one.
            Action::Truncate | Action::Remove => account::Action::EMPTY,
        };
        self.0.begin_on(call.file, action);
    }

    fn finished(&self, call: &Call<'_>, _at: Nanos, durable: bool) {
        self.0.end_on(call.file, durable);
    }

    fn synced(&self, file: Option<&str>, started: Nanos, _at: Nanos) {
        self.0.synced(file, started);
    }
}

/// The figures of all cuts of a variant.
pub(super) fn row(variant: &Variant, figures: Figures) -> RiskRow {
    let spread =
        |f: fn(&StateFigures) -> f64| Percentiles::of(figures.cuts.iter().map(f).collect());
    let rate = |f: fn(&StateFigures) -> bool| Rate::of_cuts(&figures, f);
    RiskRow {
        variant: variant.name.clone(),
        cuts: figures.cuts.len() as u64,
        places: figures.places(|_| true),
        broken_promises: figures.sum(|c| c.broken_promises),
        cuts_with_broken_promises: rate(|c| c.broken_promises > 0),
        exposure_bytes: spread(|c| c.lost_bytes as f64),
        exposure_operations: spread(|c| c.lost_operations as f64),
        run_clock: ClockKind::Virtual,
        exposure_ms: spread(|c| c.lost_age.as_secs_f64() * 1e3),
        torn_writes: figures.sum(|c| c.torn_writes),
        torn_units: figures.sum(|c| c.torn_units),
        stale_bytes: figures.sum(|c| c.stale_bytes),
        order_violations: figures.sum(|c| c.order_violations),
        empty_after_rename: figures.sum(|c| c.empty_after_rename),
        empty_after_replace: figures.sum(|c| c.empty_after_replace),
        damage: rate(|c| !c.damage.is_empty()),
        manual_repair: rate(|c| c.manual_repair),
        e2fsck_checked: figures.count(|c| c.e2fsck.as_ref().is_some_and(Opinion::is_given)),
        e2fsck_damage: figures.count(|c| matches!(c.e2fsck, Some(Opinion::Damaged(_)))),
        recovery_clock: ClockKind::Virtual,
        recovery_ms: spread(|c| c.recovery.as_secs_f64() * 1e3),
        findings: figures.findings,
        ..RiskRow::default()
    }
}

/// Every so many cuts of a variant: as many as the kernel's variants have.
pub(super) fn few(row: RiskRow, figures: &[StateFigures], cuts: u64) -> RiskRow {
    let every = (figures.len() as u64).checked_div(cuts).unwrap_or(0).max(1) as usize;
    let of = |f: fn(&StateFigures) -> f64| {
        Some(Percentiles::of(figures.iter().step_by(every).take(cuts as usize).map(f).collect()))
    };
    RiskRow {
        few_exposure_bytes: of(|c| c.lost_bytes as f64),
        few_exposure_ms: of(|c| c.lost_age.as_secs_f64() * 1e3),
        ..row
    }
}

/// The age of what each cut took; the run began at `start`.
pub(super) fn ages(variant: &Variant, start: Nanos, figures: &Figures) -> AgeSeries {
    let ms = |time: Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
    AgeSeries {
        variant: variant.name.clone(),
        clock: if variant.is_cut_in_real_time() { ClockKind::Wall } else { ClockKind::Virtual },
        at_ms: figures.cuts.iter().map(|c| ms(c.at.since(start))).collect(),
        age_ms: figures.cuts.iter().map(|c| ms(c.lost_age)).collect(),
    }
}

/// What of the figures is missing.
pub(super) fn not_judged(figures: &Figures) -> Option<NotJudged> {
    let (whole, opinions) = (figures.not_judged.clone(), figures.opinions_missing());
    let number = |missing: &Option<(u64, String)>| missing.as_ref().map_or(0, |(n, _)| *n);
    let (cuts, asked) = (number(&whole), number(&opinions));
    let (_, why) = whole.or(opinions)?;
    Some(NotJudged { cuts, opinions: asked, why })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::{SeedResults, points};
    use crate::scenario::Scenario;

    /// The chart compares like with like: no percentile of ours beside a maximum of the kernel's.
    #[test]
    fn beside_the_kernels_variants_stand_as_many_cuts() {
        let scenario = Scenario::find("data-at-risk").unwrap();
        let cut = |n: u64| StateFigures { lost_bytes: n, ..StateFigures::default() };
        let figures =
            |cuts: u64| Figures { cuts: (0..cuts).map(cut).collect(), ..Figures::default() };
        let ours = few(row(&scenario.variants[0], figures(400)), &figures(400).cuts, 40);
        assert!(ours.exposure_bytes.p99().is_some());
        let kernels = row(&scenario.variants[6], figures(40));
        let risk = [ours, kernels];
        let speed = |v: &Variant| measured::speed(&scenario, v, "write", 1.0).into();
        let speeds = [0, 6].map(|v| speed(&scenario.variants[v])).to_vec();
        let measurements = speeds.into_iter().chain(risk.map(Into::into)).collect();
        let points = points(&SeedResults { seed: 1, measurements });
        assert_eq!(points.len(), 2);
        assert!(points.iter().all(|p| p.exposure_is == "max of 40"), "{points:?}");
        assert_eq!((points[0].exposure_bytes, points[1].exposure_bytes), (390.0, 39.0));
    }
}
