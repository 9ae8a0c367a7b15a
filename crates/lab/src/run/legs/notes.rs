//! What a reader of the table of legs must know.

use crate::results::{LegRow, Note, SeedResults};
use crate::scenario::{Scenario, Variant};

/// Says whether the controls have shown that the check can fail, and what of ours has failed.
pub(in crate::run) fn notes(scenario: &Scenario, runs: &[SeedResults]) -> Vec<Note> {
    let each = scenario.variants.iter().filter_map(|variant| {
        let rows = || {
            let all = runs.iter().flat_map(SeedResults::of::<LegRow>);
            all.filter(|r| r.variant == variant.name)
        };
        rows().next()?;
        let sum = |of: fn(&LegRow) -> u64| rows().map(of).sum::<u64>();
        let found = sum(|r| r.lost_flushed.events) + sum(|r| r.copies_differ.events);
        note(scenario, variant, found, sum(|r| r.cuts))
    });
    each.collect()
}

fn note(scenario: &Scenario, variant: &Variant, found: u64, cuts: u64) -> Option<Note> {
    let name = &variant.name;
    match (scenario.lies(variant), scenario.is_model(variant), found) {
        (true, _, 0) => Some(Note::alarm(format!(
            "CONTROL DID NOT FAIL: nothing was found of '{name}' in {cuts} cuts: make more before \
             trusting the zeros of the others."
        ))),
        (true, _, n) => Some(Note::remark(format!(
            "'{name}' is a control: it breaks a rule, which is found {n} times in {cuts} cuts. The \
             check can fail."
        ))),
        (false, false, n) if n > 0 => Some(Note::alarm(format!(
            "PROMISES BROKEN: flushed data lost, or disks that differ, {n} times in {cuts} cuts of \
             '{name}'."
        ))),
        _ => None,
    }
}
