//! What power cuts take.

use steadfast_crash::program::describe::counted;

use super::{Sentence, names};
use crate::results::{LegRow, Rate, Results, RiskRow, bytes as human, distinct};

/// A variant's cuts over all seeds.
struct Cuts<'r> {
    variant: &'r str,
    is_kernel: bool,
    is_control: bool,
    broken: Rate,
    by_hand: Rate,
    /// Of acknowledged work, most.
    bytes: f64,
    ms: f64,
    /// A control of its own that was to fail, and whether it did.
    controls: Vec<bool>,
}

fn all(results: &Results) -> Vec<Cuts<'_>> {
    let rows: Vec<&RiskRow> = results.all::<RiskRow>().collect();
    let of = |variant| {
        let rows = || rows.iter().filter(move |r| r.variant == variant);
        let sum = |f: fn(&RiskRow) -> Rate| Rate::of_all(&rows().map(|r| f(r)).collect::<Vec<_>>());
        let most = |f: fn(&RiskRow) -> f64| rows().map(|r| f(r)).fold(0.0, f64::max);
        let controls = rows().flat_map(|r| [&r.control_flush_ignored, &r.control_flushes_omitted]);
        let controls = controls.flatten().filter(|c| c.must_break);
        let info = results.variant(variant);
        Cuts {
            variant,
            is_kernel: info.is_some_and(|v| v.kernel.is_some()),
            is_control: info.is_some_and(|v| v.control),
            broken: sum(|r| r.cuts_with_broken_promises),
            by_hand: sum(|r| r.manual_repair),
            bytes: most(|r| r.comparable_bytes().max()),
            ms: most(|r| r.comparable_ms().max()),
            controls: controls.map(|c| !c.is_blind()).collect(),
        }
    };
    distinct(rows.iter().map(|r| r.variant.as_str())).into_iter().map(of).collect()
}

/// What holds, what others lose, and what nobody had synced.
pub(super) fn sentences(results: &Results) -> Vec<Sentence> {
    let all = all(results);
    let mut said = Vec::new();
    said.extend(zeros(&all));
    said.extend(of_kernel(&all));
    said.extend(not_synced(&all));
    said.extend(of_legs(results));
    said.into_iter().map(Sentence::plain).collect()
}

fn zeros(all: &[Cuts<'_>]) -> Option<String> {
    let is_zero = |c: &&Cuts<'_>| !c.is_control && c.broken.events == 0 && c.broken.of > 0;
    let zeros: Vec<&Cuts<'_>> = all.iter().filter(is_zero).collect();
    let bound = zeros.iter().map(|c| c.broken.at_most_percent()).fold(0.0, f64::max);
    let (least, most) =
        (zeros.iter().map(|c| c.broken.of).min()?, zeros.iter().map(|c| c.broken.of).max()?);
    let cuts = if least == most { format!("{most}") } else { format!("{least} to {most}") };
    let of = match zeros.len() {
        1 => format!("'{}'", zeros[0].variant),
        n => format!("each of {}", counted(n as u64, "variant")),
    };
    Some(format!(
        "In {cuts} power cuts of {of} no synced data was lost (so many bound the rate at \
         {bound:.0} %). {}",
        of_flushes(&zeros, all)
    ))
}

/// Of what zeros are a test: where no cache is volatile, nothing is lost without flushes either.
fn of_flushes(zeros: &[&Cuts<'_>], all: &[Cuts<'_>]) -> String {
    let control = all.iter().find(|c| c.is_control && c.broken.events > 0);
    let control = control.map_or_else(String::new, |c| {
        format!("; the control '{}' loses it in {} of {}", c.variant, c.broken.events, c.broken.of)
    });
    if zeros.iter().any(|c| c.controls.contains(&false)) {
        return format!("Controls without flushes did not lose it either{control}.");
    }
    let on = match (zeros.iter().filter(|c| !c.controls.is_empty()).count(), zeros.len()) {
        (0, _) => return format!("No cache of theirs is volatile: that tests no flush{control}."),
        (1, 1) => "it".to_owned(),
        (tested, all) if tested == all => "all of them".to_owned(),
        (tested, _) => format!("{tested} of them"),
    };
    format!("That tests flushes on {on}, where controls without flushes lose it{control}.")
}

fn of_kernel(all: &[Cuts<'_>]) -> Option<String> {
    let lost = |c: &&Cuts<'_>| c.is_kernel && c.broken.events + c.by_hand.events > 0;
    let parts: Vec<String> = all
        .iter()
        .filter(lost)
        .map(|c| {
            let by_hand = match c.by_hand.events {
                0 => String::new(),
                n => format!(" (repair by hand after {n})"),
            };
            format!("'{}' in {} of {}{by_hand}", c.variant, c.broken.events, c.broken.of)
        })
        .collect();
    (!parts.is_empty())
        .then(|| format!("Of the kernel's, synced data was lost by {}.", parts.join(", ")))
}

fn not_synced(all: &[Cuts<'_>]) -> Option<String> {
    let honest: Vec<&Cuts<'_>> = all.iter().filter(|c| !c.is_control).collect();
    let most = honest.iter().max_by(|a, b| a.ms.total_cmp(&b.ms))?;
    if most.ms == 0.0 {
        return Some("Nothing was lost that had not been synced, either.".into());
    }
    let least = honest.iter().min_by(|a, b| a.ms.total_cmp(&b.ms))?;
    let bytes = honest.iter().map(|c| c.bytes).fold(0.0, f64::max);
    let age = |ms: f64| match ms {
        ms if ms < 1000.0 => format!("{ms:.0} ms"),
        ms => format!("{:.1} s", ms / 1e3),
    };
    let others = match age(least.ms) == age(most.ms) {
        true => String::new(),
        false => format!(", on '{}' {}", least.variant, age(least.ms)),
    };
    Some(format!(
        "What was not synced is lost, as everywhere: up to {} old on '{}'{others}; at most {} at a \
         cut.",
        age(most.ms),
        most.variant,
        human(bytes)
    ))
}

/// Volumes with a leg in memory.
fn of_legs(results: &Results) -> Option<String> {
    let rows: Vec<&LegRow> = results.all::<LegRow>().collect();
    let sum = |variant: &str| {
        let of = rows.iter().filter(|r| r.variant == variant).map(|r| r.lost_flushed);
        Rate::of_all(&of.collect::<Vec<_>>())
    };
    let of = |is_model: bool| {
        let of = rows.iter().filter(move |r| r.model == is_model);
        let of = distinct(of.map(|r| r.variant.as_str())).into_iter();
        of.map(|v| (v, sum(v))).collect::<Vec<_>>()
    };
    let lost: Vec<String> = of(true)
        .into_iter()
        .chain(of(false))
        .filter(|(_, rate)| rate.events > 0)
        .map(|(v, rate)| format!("'{v}' in {} of {} cuts", rate.events, rate.of))
        .collect();
    let ours = of(false);
    let kept: Vec<&str> = ours.iter().filter(|(_, r)| r.events == 0).map(|(v, _)| *v).collect();
    let mut said = Vec::new();
    if !lost.is_empty() {
        said.push(format!("Flushed data was lost by {}", lost.join(", ")));
    }
    if !kept.is_empty() {
        said.push(format!("kept by {}", names(&kept, 4)));
    }
    (!said.is_empty()).then(|| format!("{}.", said.join("; ")))
}
