//! A recorded program on a catalogue of stacks: what each gives it, and what a power cut takes.

mod columns;
mod page;
mod sentences;
#[cfg(test)]
mod tests;
mod text;

use std::path::Path;

use serde::Serialize;
use serde::ser::{SerializeMap, Serializer};
use steadfast_setup::form::{Wrong, WrongFile};
use steadfast_trace::format::TraceEnd;
use toml::de::DeTable;

use crate::results::{FilesRow, JudgedScope, Results, RiskRow, Spread, VariantInfo};
use crate::scenario::Scenario;
use crate::{LabError, OptionError};

/// The stacks that come with the program, as a file that can be changed.
pub const STACKS: &str = include_str!("../../catalogue/stacks.toml");

/// Stacks whose times are less than so far from each other are level, whatever their ranges: the
/// models are not known better (docs/validation.md).
const LEVEL: f64 = 1.1;
/// Of fewer syncs there is no median.
const MEDIAN_FROM: u64 = 10;

/// What is asked of a comparison.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct StackChoice {
    /// The program does not think.
    pub flat_out: bool,
    /// Only these stacks; none: all.
    pub only: Vec<String>,
    /// Only stacks with a price of at most this.
    pub budget: Option<f64>,
    /// The trace was cut off: after so many calls, which are taken.
    pub cut_off: Option<u64>,
    /// How the recorded program ended; `None`: not known.
    pub recorded: Option<TraceEnd>,
}

/// The stacks that are compared, and the program on each.
#[derive(Debug, Clone)]
pub struct ComparedStacks {
    /// To be run.
    pub scenario: Scenario,
    /// Stacks of the catalogue that a budget leaves out because they have no price.
    pub without_price: Vec<String>,
}

/// The catalogue with a program's calls as its workload, ready to be run.
///
/// # Errors
/// All that is wrong with the catalogue, in its own lines; that it has a workload; a stack of the
/// kernel's; a name in `only` that is no stack of it; a budget where no stack has a price, or none
/// a price within it.
pub fn scenario(
    catalogue: Option<(&str, &str)>,
    trace: &Path,
    choice: &StackChoice,
) -> Result<ComparedStacks, LabError> {
    let StackChoice { flat_out, only, budget, cut_off, .. } = choice;
    let (text, origin) = catalogue.unwrap_or((STACKS, "stacks.toml"));
    let workload = toml::toml! {
        cuts = 10
        lying_cuts_per_4 = 0
    };
    let trace = std::path::absolute(trace).unwrap_or_else(|_| trace.to_owned());
    let mut trace_table = toml::Table::new();
    trace_table.insert("file".into(), trace.to_string_lossy().into_owned().into());
    trace_table.insert("flat_out".into(), (*flat_out).into());
    trace_table.insert("partial".into(), cut_off.is_some().into());
    let mut own = workload;
    own.insert("trace".into(), trace_table.into());
    let mut whole = toml::Table::new();
    whole.insert("workload".into(), own.into());
    has_no_workload(text, origin)?;
    let mut scenario = Scenario::parse_with(text, &whole.to_string(), origin)?;
    if let Some(kernels) = scenario.variants.iter().find(|v| v.kernel.is_some()) {
        let what = format!(
            "'{}' of {origin} has `kernel`: it is run in real time, and no place beside modelled \
             stacks says anything; `lab run` runs both with `[workload.trace]`",
            kernels.name
        );
        return Err(OptionError::Unknown(what).of("--stacks"));
    }
    if let Some(unknown) =
        only.iter().find(|name| !scenario.variants.iter().any(|v| v.name == **name))
    {
        return Err(LabError::NoStack {
            name: unknown.clone(),
            known: scenario.variants.iter().map(|v| v.name.clone()).collect(),
        });
    }
    if !only.is_empty() {
        scenario.variants.retain(|v| only.contains(&v.name));
    }
    let mut without_price = Vec::new();
    if let Some(budget) = budget {
        without_price = keep_within(&mut scenario, *budget, origin)?;
    }
    Ok(ComparedStacks { scenario, without_price })
}

/// The trace is the workload.
fn has_no_workload(text: &str, origin: &str) -> Result<(), LabError> {
    let (file, _) = DeTable::parse_recoverable(text);
    let Some((key, _)) = file.get_ref().get_key_value("workload") else { return Ok(()) };
    let what = "a catalogue of stacks has no [workload]: the calls of the trace are it".to_owned();
    let help = "take the table out, or run the file with `lab run`".to_owned();
    let wrong = Wrong { at: key.span(), what, help };
    Err(LabError::File(Box::new(WrongFile::new(origin, text, vec![wrong], ""))))
}

/// Keeps what is cheap enough; the names of what has no price.
fn keep_within(
    scenario: &mut Scenario,
    budget: f64,
    origin: &str,
) -> Result<Vec<String>, LabError> {
    let wrong = |what: String| Err(OptionError::Unknown(what).of("--budget"));
    let prices = scenario.variants.iter().filter_map(|v| v.price);
    let Some(least) = prices.min_by(f64::total_cmp) else {
        return wrong(format!(
            "no stack of {origin} has a price; give a catalogue (--stacks) with `price` in its \
             [[variant]] tables"
        ));
    };
    if least > budget {
        return wrong(format!("no stack costs {budget} or less; the cheapest costs {least}"));
    }
    let unpriced = scenario.variants.iter().filter(|v| v.price.is_none());
    let without_price = unpriced.map(|v| v.name.clone()).collect();
    scenario.variants.retain(|v| v.price.is_some_and(|price| price <= budget));
    Ok(without_price)
}

/// A program on the stacks of a catalogue.
#[derive(Debug, Clone, PartialEq)]
pub struct StackComparison {
    /// The fastest first; of those that are level with it, if all have prices, the cheapest.
    /// Warnings last.
    pub rows: Vec<StackRow>,
    /// What prices are in.
    pub currency: Option<String>,
    /// What was asked for.
    pub choice: StackChoice,
    /// Stacks that the budget leaves out because they have no price.
    pub without_price: Vec<String>,
    /// It was stopped before all of so many stacks had been run.
    pub stopped: Option<usize>,
}

/// The program on one stack.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct StackRow {
    /// The stack.
    pub stack: String,
    /// What it is, for people.
    pub label: String,
    /// What it costs; `null`: not known.
    pub price: Option<f64>,
    /// Its place by speed, the best and the worst that the ranges allow; `null`: of a warning.
    pub place: Option<(usize, usize)>,
    /// How long the program took, in s: over the seeds.
    pub seconds: Spread,
    /// How many times as fast as on the first stack.
    pub times: Option<f64>,
    /// fsync and its like: how many.
    pub syncs: u64,
    /// Half of them took at most so many ms; `null`: there are fewer than ten.
    pub sync_p50_ms: Option<f64>,
    /// The same of 99 % of them; `null`: there are fewer than 400.
    pub sync_p99_ms: Option<f64>,
    /// What of the program's calls is judged; `null`: it was not cut.
    pub scope: Option<JudgedScope>,
    /// What the cuts took; nothing, if there were none.
    #[serde(flatten, serialize_with = "measured")]
    pub loss: Option<Loss>,
    /// The device of an external journal that data goes through, too.
    #[serde(skip)]
    pub data_journal: Option<String>,
    /// What the others are compared with.
    pub is_first: bool,
    /// It is there as a warning: a device of it does not do what it says.
    pub is_control: bool,
}

/// What the cuts of a stack took.
#[derive(Debug, Clone, PartialEq)]
pub struct Loss {
    /// How often the power was cut.
    pub cuts: u64,
    /// Promises that were broken.
    pub broken_promises: u64,
    /// In how many cuts.
    pub cuts_that_broke: u64,
    /// The share of cuts that may break a promise, at most, in per cent, at 95 % confidence.
    pub broken_at_most_percent: f64,
    /// The most that one of the cuts took of what had returned, promised or not: bytes.
    pub lost_bytes: f64,
    /// Calls.
    pub lost_calls: f64,
    /// The age of the oldest of them, in ms.
    pub lost_ms: f64,
    /// From power on to mounted, in ms: the median.
    pub recovery_ms: f64,
}

/// What was not measured is `null`, and `cuts` 0.
fn measured<S: Serializer>(loss: &Option<Loss>, to: S) -> Result<S::Ok, S::Error> {
    let of = |figure: fn(&Loss) -> f64| loss.as_ref().map(figure);
    let count = |figure: fn(&Loss) -> u64| loss.as_ref().map(figure);
    let mut all = to.serialize_map(None)?;
    all.serialize_entry("cuts", &count(|loss| loss.cuts).unwrap_or(0))?;
    all.serialize_entry("broken_promises", &count(|loss| loss.broken_promises))?;
    all.serialize_entry("cuts_that_broke", &count(|loss| loss.cuts_that_broke))?;
    all.serialize_entry("broken_at_most_percent", &of(|loss| loss.broken_at_most_percent))?;
    all.serialize_entry("lost_bytes", &of(|loss| loss.lost_bytes))?;
    all.serialize_entry("lost_calls", &of(|loss| loss.lost_calls))?;
    all.serialize_entry("lost_ms", &of(|loss| loss.lost_ms))?;
    all.serialize_entry("recovery_ms", &of(|loss| loss.recovery_ms))?;
    all.end()
}

/// The rows of a run, the fastest first, warnings last.
fn rows(scenario: &Scenario, results: &Results, more: Option<&Results>) -> Vec<StackRow> {
    let of = |v: &VariantInfo| row((results, more), &v.name, &v.label);
    let mut rows: Vec<StackRow> = results.variants.iter().filter_map(of).collect();
    let first = results.variants.first().map(|v| v.name.clone()).unwrap_or_default();
    rows.iter_mut().for_each(|row| row.is_first = row.stack == first);
    let baseline = rows.iter().find(|row| row.is_first).map(|row| row.seconds.median());
    let honest = rows.iter().filter(|row| !row.is_control);
    let ranges: Vec<(f64, f64)> =
        honest.map(|row| (row.seconds.min(), row.seconds.max())).collect();
    for row in &mut rows {
        let variant = scenario.variants.iter().find(|v| v.name == row.stack);
        row.price = variant.and_then(|variant| variant.price);
        let data = variant.filter(|v| v.stack.mount.split(',').any(|word| word == "data=journal"));
        row.data_journal = data.and_then(|variant| variant.stack.journal.clone());
        let (min, max) = (row.seconds.min(), row.seconds.max());
        let faster = ranges.iter().filter(|(_, other_max)| *other_max * LEVEL < min).count();
        let not_slower = ranges.iter().filter(|(other_min, _)| *other_min <= max * LEVEL).count();
        row.place = (!row.is_control).then(|| (faster + 1, not_slower.max(faster + 1)));
        row.times = baseline.map(|base| base / row.seconds.median());
    }
    rows.sort_by(|a, b| {
        let medians = || a.seconds.median().total_cmp(&b.seconds.median());
        a.is_control.cmp(&b.is_control).then_with(medians)
    });
    let level = rows.iter().take_while(|row| row.is_level()).count();
    let prices: Option<Vec<f64>> = rows[..level].iter().map(|row| row.price).collect();
    let cheapest = |prices: Vec<f64>| {
        (0..prices.len()).min_by(|a, b| prices[*a].total_cmp(&prices[*b]).then(a.cmp(b)))
    };
    if let Some(best) = prices.and_then(cheapest) {
        rows[..=best].rotate_right(1);
    }
    rows
}

fn row(
    (results, more): (&Results, Option<&Results>),
    stack: &str,
    label: &str,
) -> Option<StackRow> {
    let all = results.all::<FilesRow>().chain(more.into_iter().flat_map(Results::all::<FilesRow>));
    let speeds: Vec<&FilesRow> = all.filter(|r| r.variant == stack).collect();
    let risks: Vec<&RiskRow> = results.all::<RiskRow>().filter(|r| r.variant == stack).collect();
    let first = speeds.first()?;
    let seconds: Vec<f64> = speeds.iter().map(|row| row.elapsed_seconds).collect();
    Some(StackRow {
        stack: stack.to_owned(),
        label: label.to_owned(),
        price: None,
        place: None,
        seconds: Spread::of(&seconds),
        times: None,
        syncs: first.fsyncs,
        sync_p50_ms: (first.fsyncs >= MEDIAN_FROM).then(|| first.fsync_ms.p50()),
        sync_p99_ms: first.fsync_ms.p99(),
        scope: risks.first().and_then(|risk| risk.scope),
        loss: Loss::of(&risks),
        data_journal: None,
        is_first: false,
        is_control: results.variant(stack).is_some_and(|variant| variant.control),
    })
}

impl Loss {
    /// Of the rows of a stack; nothing without a cut.
    fn of(risks: &[&RiskRow]) -> Option<Loss> {
        let most = |of: fn(&RiskRow) -> f64| risks.iter().map(|risk| of(risk)).fold(0.0, f64::max);
        let recovery: Vec<f64> = risks.iter().map(|risk| risk.recovery_ms.p50()).collect();
        let cuts = risks.iter().map(|risk| risk.cuts).sum();
        (cuts > 0).then(|| Loss {
            cuts,
            broken_promises: risks.iter().map(|risk| risk.broken_promises).sum(),
            cuts_that_broke: risks.iter().map(|risk| risk.cuts_with_broken_promises.events).sum(),
            broken_at_most_percent: most(|risk| risk.cuts_with_broken_promises.at_most_percent()),
            lost_bytes: most(|risk| risk.exposure_bytes.max()),
            lost_calls: most(|risk| risk.exposure_operations.max()),
            lost_ms: most(|risk| risk.exposure_ms.max()),
            recovery_ms: Spread::of(&recovery).median(),
        })
    }
}

impl StackComparison {
    /// Of a run of a [`scenario`] that was asked for so. `more`: runs with further seeds that were
    /// not cut.
    pub fn new(
        (stacks, choice): (&ComparedStacks, &StackChoice),
        results: &Results,
        more: Option<&Results>,
    ) -> StackComparison {
        StackComparison {
            rows: rows(&stacks.scenario, results, more),
            currency: stacks.scenario.currency.clone(),
            choice: choice.clone(),
            without_price: stacks.without_price.clone(),
            stopped: (results.partial || more.is_some_and(|more| more.partial))
                .then_some(stacks.scenario.variants.len()),
        }
    }

    /// Whether there is a column of prices.
    fn has_prices(&self) -> bool {
        self.rows.iter().any(|row| row.price.is_some())
    }
}

impl StackRow {
    fn promises(&self) -> u64 {
        self.scope.map_or(self.syncs, |scope| scope.promises)
    }

    /// Whether a cut took what was promised.
    fn broke(&self) -> bool {
        self.loss.as_ref().is_some_and(|loss| loss.broken_promises > 0)
    }

    /// Whether it may be the fastest.
    fn is_level(&self) -> bool {
        self.place.is_some_and(|(best, _)| best == 1)
    }
}
