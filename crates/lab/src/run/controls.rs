//! The cuts of a recorded run, and beside them its controls: the same recording, cut as if
//! something had been forgotten that keeps promises. A zero of the run means something only where
//! the control's is none.

use std::time::Duration;

use steadfast_crash::explore::{CutSource, Plan, System, explore};

use super::power::{ages, few, not_judged, row};
use super::record;
use super::setting::{Report, Setting, Subject};
use crate::Result;
use crate::results::{AgeSeries, ControlRow, NotJudged, Rate, RiskRow};

/// What a lying cache holds, and when it has written that out: as drives with memory for a cache
/// do.
const LYING_CACHE: u64 = 16 << 20;
const LYING_DRAINS_WITHIN: Duration = Duration::from_secs(5);

/// What is left out of a recorded run, to see that the cuts would find it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Control {
    /// The drive acknowledges flush and FUA and does not do them.
    FlushIgnored,
    /// The file system never asks for them.
    FlushesOmitted,
}

impl Control {
    /// The run, had it been so. `None`: it is no control of this run, as no device of it has a
    /// volatile cache whose flushes count, and then a drive has nothing to ignore.
    pub(super) fn of(self, recorded: &CutSource) -> Option<CutSource> {
        match self {
            Control::FlushIgnored => recorded
                .needs_flushes()
                .then(|| recorded.on_lying_devices(LYING_CACHE, LYING_DRAINS_WITHIN)),
            Control::FlushesOmitted => recorded.is_honest().then(|| recorded.without_flushes()),
        }
    }

    /// The name of its rows in a recording.
    fn file(self) -> &'static str {
        match self {
            Control::FlushIgnored => "control-flush-ignored",
            Control::FlushesOmitted => "control-flushes-omitted",
        }
    }

    /// In words, after "the power went".
    pub fn words(self) -> &'static str {
        match self {
            Control::FlushIgnored => "as if the drives ignored flushes",
            Control::FlushesOmitted => "as if no flush had been asked for",
        }
    }
}

/// The plan of a control's cuts: for every four of the run as many as the scenario says, at places
/// of the same kind.
pub(super) fn control_plan(setting: &Setting, honest: &Plan) -> Plan {
    let cuts = (honest.cuts() * setting.scenario.workload.lying_cuts_per_4).div_ceil(4);
    Plan::trials(honest.places.with_count(cuts), setting.options.seed)
}

/// Cuts a run as `honest` says, and its controls.
pub(super) fn cut_with_controls(
    of: Subject<'_>,
    (system, recorded): (&dyn System, CutSource),
    honest: &Plan,
    report: &Report,
) -> Result<(RiskRow, AgeSeries)> {
    let Subject { setting, variant } = of;
    record::run(of, &recorded);
    let (recorded, finder) = record::noting(setting, recorded);
    let control_plan = control_plan(setting, honest);
    let must_break = recorded.needs_flushes();
    let wanted = [Control::FlushIgnored, Control::FlushesOmitted];
    let controls = wanted.map(|control| control.of(&recorded).filter(|_| control_plan.cuts() > 0));
    let number = controls.iter().flatten().count() as u64;
    let all = (honest.cuts() + number * control_plan.cuts()).max(1) as f64;
    let start = recorded.recording.time_of(recorded.recording.first_crash_point());
    let figures = explore(system, recorded, honest, &|done| report(done as f64 / all));
    record::cuts(of, "cuts", &figures);
    record::found(of, finder.as_deref());
    let ages = ages(variant, start, &figures);
    let mut done_before = honest.cuts();
    let (mut rows, mut missing) = (Vec::new(), not_judged(&figures));
    for (control, which) in controls.into_iter().zip(wanted) {
        let Some(control) = control else {
            rows.push(None);
            continue;
        };
        let before = done_before;
        let figures =
            explore(system, control, &control_plan, &|done| report((before + done) as f64 / all));
        record::cuts(of, which.file(), &figures);
        done_before += control_plan.cuts();
        if let Some(of_control) = not_judged(&figures) {
            let all =
                missing.get_or_insert(NotJudged { cuts: 0, opinions: 0, ..of_control.clone() });
            all.cuts += of_control.cuts;
            all.opinions += of_control.opinions;
        }
        rows.push(Some(ControlRow {
            cuts: figures.cuts.len() as u64,
            broken_promises: figures.sum(|c| c.broken_promises),
            cuts_with_broken_promises: Rate::of_cuts(&figures, |c| c.broken_promises > 0),
            must_break,
        }));
    }
    let mut rows = rows.into_iter();
    let beside = setting.cuts_beside(variant);
    let cuts = beside.map(|_| figures.cuts.clone());
    let row = RiskRow {
        control_flush_ignored: rows.next().flatten(),
        control_flushes_omitted: rows.next().flatten(),
        not_judged: missing,
        ..row(variant, figures)
    };
    Ok((beside.zip(cuts).map_or_else(|| row.clone(), |(n, cuts)| few(row.clone(), &cuts, n)), ages))
}
