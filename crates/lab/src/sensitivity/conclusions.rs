//! Sentences that the figures bear out, made from the figures.

use super::{Effect, Sensitivity};
use crate::results::Ratio;

/// A ratio counts as unmoved up to this share.
pub(super) const UNMOVED: f64 = 0.01;

/// What holds over all changes.
pub(super) fn of(found: &Sensitivity) -> Vec<String> {
    let mut list = Vec::new();
    let every: Vec<&Effect> = found.effects.iter().collect();
    for variant in variants(found) {
        list.extend(sign(found, &every, variant));
    }
    let journals: Vec<&Effect> = every.iter().copied().filter(|e| e.change.of_journal).collect();
    list.extend(journal_device(found, &journals));
    let drives: Vec<&Effect> =
        every.iter().copied().filter(|e| e.change.parameter == "drive").collect();
    if !drives.is_empty() {
        for variant in variants(found) {
            list.extend(over_drives(found, &drives, variant));
        }
    }
    list
}

fn variants(found: &Sensitivity) -> Vec<&str> {
    let mut names: Vec<&str> = Vec::new();
    for r in &found.ratios {
        if !names.contains(&r.variant.as_str()) {
            names.push(&r.variant);
        }
    }
    names
}

/// The least and the most that a ratio was, the scenario's own included.
pub(super) fn range(r: &Ratio, effects: &[&Effect]) -> (f64, f64) {
    let all = effects.iter().filter_map(|e| e.ratio(&r.test, &r.variant));
    all.fold((r.ratio, r.ratio), |(low, high), x| (low.min(x), high.max(x)))
}

/// In which tests a variant is faster, or slower, whatever was changed.
fn sign(found: &Sensitivity, effects: &[&Effect], variant: &str) -> Option<String> {
    let of = found.ratios.iter().filter(|r| r.variant == variant);
    let ranges: Vec<(&Ratio, (f64, f64))> = of.map(|r| (r, range(r, effects))).collect();
    let faster: Vec<String> = ranges
        .iter()
        .filter(|(_, (low, _))| *low > 1.0 + UNMOVED)
        .map(|(r, (low, high))| format!("{} ({low:.2} to {high:.2} times)", r.test))
        .collect();
    let either: Vec<String> = ranges
        .iter()
        .filter(|(_, (low, _))| *low <= 1.0 + UNMOVED)
        .map(|(r, (low, high))| format!("{} ({low:.2} to {high:.2})", r.test))
        .collect();
    let n = effects.len();
    let always = if faster.is_empty() {
        format!("In no test is {variant} faster than {} in all of {n} changes", found.baseline)
    } else {
        let base = &found.baseline;
        format!("In all of {n} changes {variant} is faster than {base} in {}", faster.join(", "))
    };
    Some(match either.is_empty() {
        true => format!("{always}."),
        false => format!("{always}; level or slower in some: {}.", either.join(", ")),
    })
}

/// Whether it matters what the journal's device costs.
fn journal_device(found: &Sensitivity, effects: &[&Effect]) -> Option<String> {
    let part = &effects.first()?.change.part;
    let moved = |e: &&&Effect| e.most(&found.ratios).is_some_and(|(_, m)| m.abs() > UNMOVED);
    let (moving, still): (Vec<&&Effect>, Vec<&&Effect>) = effects.iter().partition(moved);
    let most = |list: &[&&Effect]| {
        let all = list.iter().filter_map(|e| e.most(&found.ratios)).map(|(_, m)| m.abs());
        all.fold(0.0, f64::max) * 100.0
    };
    let whole = |list: &[&&Effect]| -> Vec<String> {
        let devices = list.iter().filter(|e| e.change.parameter == "device");
        devices.map(|e| e.change.to.clone()).collect()
    };
    let mut text = format!(
        "Of {} changes of '{part}', the journal's device, {} move no ratio by more than {:.0} % \
         (at most {:.1} %)",
        effects.len(),
        still.len(),
        UNMOVED * 100.0,
        most(&still)
    );
    if !whole(&still).is_empty() {
        text += &format!(", among them: {}", whole(&still).join(", "));
    }
    text += ".";
    for e in moving {
        if let Some((r, m)) = e.most(&found.ratios) {
            let percent = m * 100.0;
            let (name, to) = (&e.change.parameter, &e.change.to);
            let (test, variant) = (&r.test, &r.variant);
            text += &format!(" {name} = {to}: {test} of {variant} {percent:+.1} %.");
        }
    }
    Some(text)
}

fn over_drives(found: &Sensitivity, effects: &[&Effect], variant: &str) -> Option<String> {
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
