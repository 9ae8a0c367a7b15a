//! The page of a sweep: made of the plan and the files of results alone.

use std::collections::HashMap;
use std::path::Path;

use anyhow::Result;
use steadfast_lab::report::sweep::{CaseFigure, DRAWN_MAX, MapCase, MapState, SweepPage};
use steadfast_sweep::{CaseOutcome, EndedCase, PlanFile, SweepCounts, SweepProgress};

use super::error::to_anyhow;
use super::kind;

/// Cases that failed, of which is said why.
const FAILED_SHOWN: usize = 10;

/// How far a plan's sweep is.
pub fn of(plan: &PlanFile, results: &Path) -> Result<(SweepPage, SweepCounts)> {
    let mut map = CaseMap::of(plan)?;
    let mut notes = Vec::new();
    let mut progress = SweepProgress::new(plan, results);
    let done = progress.ended(&mut |EndedCase { case, outcome, seconds, .. }| {
        let state = match outcome {
            CaseOutcome::Failed(why) => {
                if notes.len() < FAILED_SHOWN {
                    notes.push((true, format!("{case}: {why}")));
                }
                MapState::Failed
            }
            CaseOutcome::Done(result) => {
                let time = CaseFigure { value: seconds, what: "seconds", alarm: false };
                MapState::Ended(kind::figure_of(plan, &result).unwrap_or(time))
            }
        };
        map.ended(&case, state);
    });
    let done = done.map_err(to_anyhow)?;
    let CaseMap { rows, left_out, .. } = map;
    let title = format!("A sweep of {}: plan {:.16}", plan.head().kind, plan.fingerprint());
    let progress = done.to_string();
    Ok((SweepPage { title, progress, notes, rows, left_out }, done))
}

/// The cases that are drawn, and where each is.
#[derive(Default)]
struct CaseMap {
    rows: Vec<(String, Vec<MapCase>)>,
    places: HashMap<String, (usize, usize)>,
    left_out: u64,
}

impl CaseMap {
    fn of(plan: &PlanFile) -> Result<CaseMap> {
        let (mut map, mut row_of) = (CaseMap::default(), HashMap::new());
        plan.each(&mut |planned| {
            if map.places.len() >= DRAWN_MAX {
                map.left_out += 1;
                return;
            }
            let name = planned.case.name;
            let (row, short) = match name.rsplit_once('/') {
                Some((row, short)) => (row, short),
                // What has a number goes together, what has none stands alone.
                None if name.ends_with(|c: char| c.is_ascii_digit()) => {
                    (&*plan.head().kind, &*name)
                }
                None => (&*name, &*name),
            };
            let rows = &mut map.rows;
            let number = *row_of.entry(row.to_owned()).or_insert_with(|| {
                rows.push((row.to_owned(), Vec::new()));
                rows.len() - 1
            });
            // OK to index: it was made for this row.
            let cases = &mut rows[number].1;
            cases.push(MapCase { name: short.to_owned(), state: MapState::Waiting });
            let place = (number, cases.len() - 1);
            map.places.insert(name, place);
        })
        .map_err(to_anyhow)?;
        Ok(map)
    }

    fn ended(&mut self, case: &str, state: MapState) {
        if let Some((row, place)) = self.places.get(case) {
            // OK to index: places are of these rows.
            self.rows[*row].1[*place].state = state;
        }
    }
}
