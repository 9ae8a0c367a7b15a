//! Sentences that the figures bear out, made from the figures.

use super::change::Change;
use super::text::ends;
use super::{ChangeEffect, Sensitivity};
use crate::results::{Ratio, distinct};

/// A ratio counts as unmoved up to this share.
pub(super) const UNMOVED: f64 = 0.01;

/// What holds over all changes.
pub(super) fn of(found: &Sensitivity) -> Vec<String> {
    let every: Vec<&ChangeEffect> = found.effects.iter().collect();
    let of = |is: fn(&Change) -> bool| -> Vec<&ChangeEffect> {
        every.iter().copied().filter(|e| is(&e.change)).collect()
    };
    let (journals, drives) = (of(|c| c.of_journal), of(|c| c.parameter == "drive"));
    let variants = distinct(found.ratios.iter().map(|r| r.variant.as_str()));
    let each = |say: Sentence, effects: &[&ChangeEffect]| -> Vec<String> {
        variants.iter().filter_map(|variant| say(found, effects, variant)).collect()
    };
    [each(sign, &every), each(journal_device, &journals), each(over_drives, &drives)].concat()
}

/// What is to be said of a variant under these changes, if anything.
type Sentence = fn(&Sensitivity, &[&ChangeEffect], &str) -> Option<String>;

/// The least and the most that a ratio was, the scenario's own included.
pub(super) fn range(r: &Ratio, effects: &[&ChangeEffect]) -> (f64, f64) {
    ends(r, effects.iter().filter_map(|e| e.ratio(&r.test, &r.variant)))
}

/// A ratio, the least and the most that it was.
type RatioRange<'r> = (&'r Ratio, (f64, f64));

fn listed(tests: &[RatioRange<'_>], unit: &str) -> String {
    let test =
        |(r, (low, high)): &RatioRange<'_>| format!("{} ({low:.2} to {high:.2}{unit})", r.test);
    tests.iter().map(test).collect::<Vec<_>>().join(", ")
}

/// In which tests a variant is faster, or slower, whatever was changed.
fn sign(found: &Sensitivity, effects: &[&ChangeEffect], variant: &str) -> Option<String> {
    let of = found.ratios.iter().filter(|r| r.variant == variant);
    let ranges: Vec<RatioRange<'_>> = of.map(|r| (r, range(r, effects))).collect();
    let (faster, either): (Vec<_>, Vec<_>) =
        ranges.into_iter().partition(|(_, (low, _))| *low > 1.0 + UNMOVED);
    let n = effects.len();
    let always = if faster.is_empty() {
        format!("In no test is {variant} faster than {} in all of {n} changes", found.baseline)
    } else {
        let base = &found.baseline;
        format!(
            "In all of {n} changes {variant} is faster than {base} in {}",
            listed(&faster, " times")
        )
    };
    Some(match either.is_empty() {
        true => format!("{always}."),
        false => format!("{always}; level or slower in some: {}.", listed(&either, "")),
    })
}

/// Whether it matters which device has the journal: what changes of its parameters, and others in
/// its place, move of a variant.
fn journal_device(found: &Sensitivity, effects: &[&ChangeEffect], variant: &str) -> Option<String> {
    let part = &effects.first()?.change.part;
    let of: Vec<&Ratio> = found.ratios.iter().filter(|r| r.variant == variant).collect();
    let (others, parameters): (Vec<&ChangeEffect>, Vec<&ChangeEffect>) =
        effects.iter().partition(|e| e.change.parameter == "device");
    let percent = UNMOVED * 100.0;
    let mut text = String::new();
    if !parameters.is_empty() {
        let ranges = of.iter().map(|r| (*r, range(r, &parameters)));
        let moves = |(r, (low, high)): &RatioRange<'_>| {
            *low < r.ratio * (1.0 - UNMOVED) || *high > r.ratio * (1.0 + UNMOVED)
        };
        let moved: Vec<RatioRange<'_>> = ranges.filter(moves).collect();
        let n = parameters.len();
        text += &format!("{n} changes of parameters of '{part}', the journal's device, move of ");
        text += &match moved.is_empty() {
            true => format!("{variant} nothing by more than {percent:.0} %."),
            false => {
                let moved = listed(&moved, "");
                format!("{variant} {moved}, nothing else by more than {percent:.0} %.")
            }
        };
    }
    for other in others {
        let moved: Vec<String> = of
            .iter()
            .filter_map(|r| Some((r, other.ratio(&r.test, variant)?)))
            .filter(|(r, now)| (now / r.ratio - 1.0).abs() > UNMOVED)
            .map(|(r, now)| format!("{} {now:.2} for {:.2}", r.test, r.ratio))
            .collect();
        let moved = match moved.is_empty() {
            true => format!("{variant} moves by {percent:.0} % at most"),
            false => format!("{variant} has {}", moved.join(", ")),
        };
        let gap = if text.is_empty() { "" } else { " " };
        text += &format!("{gap}With '{part}' {}, {moved}.", instead(&other.change.to));
    }
    Some(text)
}

/// How another device is named.
fn instead(to: &str) -> String {
    if to.ends_with("slower") { to.to_owned() } else { format!("replaced by {to}") }
}

fn over_drives(found: &Sensitivity, effects: &[&ChangeEffect], variant: &str) -> Option<String> {
    effects.first()?;
    let of = found.ratios.iter().filter(|r| r.variant == variant);
    let ranges: Vec<String> = of
        .map(|r| {
            let (low, high) = range(r, effects);
            format!("{} {low:.2} to {high:.2}", r.test)
        })
        .collect();
    let n = effects.len() + 1;
    let base = &found.baseline;
    (!ranges.is_empty())
        .then(|| format!("Over {n} drives, {variant} to {base}: {}.", ranges.join(", ")))
}
