//! The steps: which words make which call.

mod attributes;
mod data;
mod folders;
mod names;
mod open;
mod show;
mod times;

use super::world::{Fault, StepResult, World};

/// Makes the call of a step; its value.
pub(super) fn call(world: &mut World, words: &[&str]) -> StepResult {
    let groups = [
        names::call,
        open::call,
        data::call,
        times::call,
        attributes::call,
        folders::call,
        show::call,
    ];
    for group in groups {
        if let Some(outcome) = group(world, words) {
            return outcome;
        }
    }
    Err(Fault::Script("no such step, or not with so many words".into()))
}
