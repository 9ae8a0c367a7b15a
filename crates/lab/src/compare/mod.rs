//! A recorded program on a catalogue of stacks: what each gives it, and what a power cut takes.

mod columns;
mod page;
#[cfg(test)]
mod tests;
mod text;

use std::path::Path;

use serde::Serialize;
use steadfast_crash::program::describe::counted;
use steadfast_setup::form::{Wrong, WrongFile};
use toml::de::DeTable;

use crate::results::{FilesRow, JudgedScope, Results, RiskRow, Spread, VariantInfo, bytes};
use crate::scenario::Scenario;
use crate::{LabError, OptionError};

/// The stacks that come with the program, as a file that can be changed.
pub const STACKS: &str = include_str!("../../catalogue/stacks.toml");

/// So many stacks that are level with the fastest are named.
const NAMED: usize = 3;

/// Stacks whose times are less than so far from each other are level, whatever their ranges: the
/// models are not known better (docs/validation.md).
const LEVEL: f64 = 1.1;

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
    let StackChoice { flat_out, only, budget, cut_off } = choice;
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
    /// The fastest first.
    pub rows: Vec<StackRow>,
    /// What prices are in.
    pub currency: Option<String>,
    /// What was asked for.
    pub choice: StackChoice,
    /// Stacks that the budget leaves out because they have no price.
    pub without_price: Vec<String>,
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
    /// Its place by speed, the best and the worst that the ranges allow.
    pub place: (usize, usize),
    /// How long the program took, in s: over the seeds.
    pub seconds: Spread,
    /// How many times as fast as on the first stack.
    pub times: Option<f64>,
    /// fsync and its like: how many, half of them in at most so many ms, 99 % of them.
    pub syncs: u64,
    /// The share of cuts that may break a promise, at most, in per cent, at 95 % confidence.
    pub broken_at_most_percent: f64,
    /// What of the program's calls is judged; `null`: it was not cut.
    pub scope: Option<JudgedScope>,
    /// In ms.
    pub sync_p50_ms: f64,
    /// In ms; `null`: there are too few.
    pub sync_p99_ms: Option<f64>,
    /// How often the power was cut; 0: not at all.
    pub cuts: u64,
    /// Promises that were broken, and in how many cuts.
    pub broken_promises: u64,
    /// In how many cuts.
    pub cuts_that_broke: u64,
    /// The most that a cut took of what had returned and was not promised: bytes.
    pub lost_bytes: f64,
    /// Calls.
    pub lost_calls: f64,
    /// The age of the oldest of them, in ms.
    pub lost_ms: f64,
    /// From power on to mounted, in ms: the median.
    pub recovery_ms: f64,
    /// What the others are compared with.
    pub is_first: bool,
    /// It is there as a warning: a device of it does not do what it says.
    pub is_control: bool,
}

/// The rows of a run, the fastest first.
fn rows(scenario: &Scenario, results: &Results, more: Option<&Results>) -> Vec<StackRow> {
    let of = |v: &VariantInfo| row((results, more), &v.name, &v.label);
    let mut rows: Vec<StackRow> = results.variants.iter().filter_map(of).collect();
    let first = results.variants.first().map(|v| v.name.clone()).unwrap_or_default();
    rows.iter_mut().for_each(|row| row.is_first = row.stack == first);
    let baseline = rows.iter().find(|row| row.is_first).map(|row| row.seconds.median());
    let ranges: Vec<(f64, f64)> =
        rows.iter().map(|row| (row.seconds.min(), row.seconds.max())).collect();
    for row in &mut rows {
        let variant = scenario.variants.iter().find(|v| v.name == row.stack);
        row.price = variant.and_then(|variant| variant.price);
        let (min, max) = (row.seconds.min(), row.seconds.max());
        let faster = ranges.iter().filter(|(_, other_max)| *other_max * LEVEL < min).count();
        let not_slower = ranges.iter().filter(|(other_min, _)| *other_min <= max * LEVEL).count();
        row.place = (faster + 1, not_slower.max(faster + 1));
        row.times = baseline.map(|base| base / row.seconds.median());
    }
    rows.sort_by(|a, b| a.seconds.median().total_cmp(&b.seconds.median()));
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
    let most = |of: fn(&RiskRow) -> f64| risks.iter().map(|risk| of(risk)).fold(0.0, f64::max);
    let recovery: Vec<f64> = risks.iter().map(|risk| risk.recovery_ms.p50()).collect();
    Some(StackRow {
        stack: stack.to_owned(),
        label: label.to_owned(),
        price: None,
        place: (0, 0),
        seconds: Spread::of(&seconds),
        times: None,
        syncs: first.fsyncs,
        broken_at_most_percent: risks
            .iter()
            .map(|risk| risk.cuts_with_broken_promises.at_most_percent())
            .fold(0.0, f64::max),
        scope: risks.first().and_then(|risk| risk.scope),
        sync_p50_ms: first.fsync_ms.p50(),
        sync_p99_ms: first.fsync_ms.p99(),
        cuts: risks.iter().map(|risk| risk.cuts).sum(),
        broken_promises: risks.iter().map(|risk| risk.broken_promises).sum(),
        cuts_that_broke: risks.iter().map(|risk| risk.cuts_with_broken_promises.events).sum(),
        lost_bytes: most(|risk| risk.exposure_bytes.max()),
        lost_calls: most(|risk| risk.exposure_operations.max()),
        lost_ms: most(|risk| risk.exposure_ms.max()),
        recovery_ms: Spread::of(&recovery).median(),
        is_first: false,
        is_control: results.variant(stack).is_some_and(|variant| variant.control),
    })
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
        }
    }

    /// What it means, in sentences made of the figures.
    pub fn sentences(&self) -> Vec<String> {
        let rows = &self.rows;
        let mut said: Vec<String> = self.of_speed().into_iter().collect();
        said.extend(self.of_choice());
        let cut: u64 = rows.iter().map(|row| row.cuts).sum();
        if cut == 0 {
            said.push("The power was not cut (--cuts).".to_owned());
            return said;
        }
        said.extend(self.of_safe());
        said.extend(of_scope(rows));
        let honest = || rows.iter().filter(|row| !row.is_control && row.cuts > 0);
        let (kept, broke): (Vec<_>, Vec<_>) = honest().partition(|row| row.broken_promises == 0);
        if !kept.is_empty() {
            said.extend(of_kept(&kept));
        }
        for row in broke.into_iter().chain(rows.iter().filter(|row| row.is_control)) {
            said.extend(of_broken(row));
        }
        said
    }

    /// What the figures are of, where that is not the whole program on the whole catalogue.
    fn of_choice(&self) -> Vec<String> {
        let StackChoice { flat_out, only, budget, cut_off } = &self.choice;
        let mut said = Vec::new();
        if let Some(calls) = cut_off {
            said.push(format!(
                "The trace was cut off: the figures are of the {} that are in it.",
                counted(*calls, "call")
            ));
        }
        if *flat_out {
            said.push(
                "Without the program's own work (--flat-out): each call is made as soon as those \
                 before it allow."
                    .to_owned(),
            );
        }
        if !self.without_price.is_empty() {
            said.push(format!(
                "Without a price, and so left out ({}): {}.",
                stacks(self.without_price.len()),
                self.without_price.join(", ")
            ));
        }
        let is_part = !only.is_empty() || budget.is_some();
        if let Some(base) = self.rows.iter().find(|row| row.is_first).filter(|_| is_part) {
            said.push(format!(
                "\"times as fast\" is beside {}, the first of these stacks.",
                base.stack
            ));
        }
        said
    }

    fn of_speed(&self) -> Option<String> {
        let (best, base) = (self.best()?, self.rows.iter().find(|row| row.is_first)?);
        let within = match self.choice.budget {
            Some(budget) => format!(" within {}", self.money(budget)),
            None if best.stack == base.stack => return None,
            None => String::new(),
        };
        let beside = match best.stack == base.stack {
            true => String::new(),
            false => format!(
                ", {} on {} ({})",
                seconds(base.seconds.median()),
                base.stack,
                times(best.times.unwrap_or(1.0))
            ),
        };
        let is_level =
            |row: &&&StackRow| row.place.0 == 1 && row.stack != best.stack && !row.is_control;
        let level: Vec<&str> =
            self.rows.iter().filter(|row| is_level(&row)).map(|row| row.stack.as_str()).collect();
        let level = match level.len() {
            0 => String::new(),
            n @ 1..=NAMED => format!(" Level with it: {}.", level[..n].join(", ")),
            n => format!(" Level with it: {} and {} more.", level[..NAMED].join(", "), n - NAMED),
        };
        Some(format!(
            "Fastest{within} is {} ({}{}): {} on it{beside}.{level}",
            best.stack,
            best.label,
            self.costs(best),
            seconds(best.seconds.median()),
        ))
    }

    /// The fastest; of those that are level with it, if all have prices, the cheapest.
    fn best(&self) -> Option<&StackRow> {
        let honest = || self.rows.iter().filter(|row| !row.is_control);
        let level = || honest().filter(|row| row.place.0 == 1);
        let price = |row: &&StackRow| row.price.unwrap_or(f64::MAX);
        match level().all(|row| row.price.is_some()) {
            true => level().min_by(|a, b| price(a).total_cmp(&price(b))),
            false => None,
        }
        .or(honest().next())
        .or(self.rows.first())
    }

    /// Within a budget: the fastest that keeps what it promises, if another one is faster.
    fn of_safe(&self) -> Option<String> {
        self.choice.budget?;
        let keeps = |row: &&StackRow| row.cuts > 0 && row.broken_promises == 0 && !row.is_control;
        let Some(safe) = self.rows.iter().find(keeps) else {
            return Some("No stack within it keeps all that was promised.".to_owned());
        };
        let other = self.best().is_some_and(|best| best.stack != safe.stack);
        Some(match other {
            true => format!(
                "Fastest whose cuts take nothing promised is {} ({}{}): {} on it.",
                safe.stack,
                safe.label,
                self.costs(safe),
                seconds(safe.seconds.median())
            ),
            false => "Its cuts take nothing promised.".to_owned(),
        })
    }

    fn costs(&self, row: &StackRow) -> String {
        row.price.map_or_else(String::new, |price| format!(", {}", self.money(price)))
    }

    fn money(&self, amount: f64) -> String {
        match &self.currency {
            Some(currency) => format!("{amount} {currency}"),
            None => amount.to_string(),
        }
    }

    /// Whether there is a column of prices.
    fn has_prices(&self) -> bool {
        self.rows.iter().any(|row| row.price.is_some())
    }
}

/// Of a stack that broke promises or should have; nothing if there were none to break.
fn of_broken(row: &StackRow) -> Option<String> {
    let broken = counted(row.broken_promises, "promise");
    Some(match row.broken_promises {
        0 if row.promises() == 0 => return None,
        0 => format!("{}, the warning, broke no promise in {} cuts.", row.stack, row.cuts),
        _ => format!(
            "{} loses what was synced: {broken} broken, in {} of {} cuts.",
            row.stack, row.cuts_that_broke, row.cuts
        ),
    })
}

impl StackRow {
    fn promises(&self) -> u64 {
        self.scope.map_or(self.syncs, |scope| scope.promises)
    }
}

/// What of the program no figure shows.
fn of_scope(rows: &[StackRow]) -> Vec<String> {
    let most = |of: fn(JudgedScope) -> u64| rows.iter().filter_map(|r| r.scope).map(of).max();
    let left_out = most(|scope| scope.files_left_out).filter(|n| *n > 0).map(|n| {
        format!(
            "Not judged: {} of more than 64 MiB, or with a range taken out or put in. What a cut \
             takes of that is in no figure.",
            counted(n, "file")
        )
    });
    let unnamed = most(|scope| scope.files_without_name).filter(|n| *n > 0).map(|n| {
        format!(
            "{} synced, and not the folder with the new name: POSIX lets a cut take the whole \
             file, so that breaks no promise.",
            if n == 1 { "1 file was".to_owned() } else { format!("{n} files were") }
        )
    });
    left_out.into_iter().chain(unnamed).collect()
}

/// Of the stacks that keep what they promise: what a cut takes.
fn of_kept(kept: &[&StackRow]) -> Vec<String> {
    let of = stacks(kept.len());
    let surely = kept.iter().filter(|row| row.scope.is_some_and(|s| s.no_volatile_cache)).count();
    let surely = match surely {
        0 => String::new(),
        1 => "; 1 of them has no volatile cache: its zero does not test flushes".to_owned(),
        n => format!("; {n} of them have no volatile cache: their zeros do not test flushes"),
    };
    let bound = kept.iter().map(|row| row.broken_at_most_percent).fold(0.0, f64::max);
    let promised = match kept.iter().any(|row| row.promises() > 0) {
        true => format!(
            "What was synced is there after every cut of {of} (up to {bound:.0} % of cuts may \
             differ: more --cuts say it better){surely}."
        ),
        false => "The program syncs nothing, so nothing was promised to it.".to_owned(),
    };
    let most = |what: fn(&StackRow) -> f64| {
        kept.iter().copied().max_by(|a, b| what(a).total_cmp(&what(b)).then(b.stack.cmp(&a.stack)))
    };
    let figures = (most(|r| r.lost_bytes), most(|r| r.lost_calls), most(|r| r.lost_ms));
    let (Some(bytes_row), Some(calls_row), Some(age_row)) = figures else { return vec![promised] };
    let lost = match calls_row.lost_calls > 0.0 {
        false => format!("A cut takes nothing of {of}."),
        true => format!(
            "Of what was not, a cut takes at most {} ({}), {} ({}), up to {:.0} ms old ({}).",
            bytes(bytes_row.lost_bytes),
            bytes_row.stack,
            counted(calls_row.lost_calls as u64, "call"),
            calls_row.stack,
            age_row.lost_ms,
            age_row.stack
        ),
    };
    vec![promised, lost]
}

fn stacks(count: usize) -> String {
    counted(count as u64, "stack")
}

fn times(times: f64) -> String {
    if times >= 10.0 { format!("{times:.0} times") } else { format!("{times:.1} times") }
}

fn seconds(seconds: f64) -> String {
    if seconds < 1.0 { format!("{:.0} ms", seconds * 1e3) } else { format!("{seconds:.2} s") }
}
