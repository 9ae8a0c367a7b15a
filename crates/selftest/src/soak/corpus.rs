//! CrashMonkey's known bugs and ACE's workloads on Steadfast's file systems: a case is some of them
//! on one file system.

use std::time::Duration;

use steadfast_crash::Result;
use steadfast_crash::explore::Plan;
use steadfast_crash::states::{CrashPoints, StateBound};
use steadfast_sweep::SweepCase;

use super::finding::{SoakFinding, keep};
use super::words::SoakWords;
use super::{CaseSpace, SoakResult, first_of};
use crate::corpus::{KNOWN, Own, Workload, WorkloadReport, ace, try_out};

pub(super) const WORDS: &str = "[known|seq-1|seq-2] [fs=ext4,ext4:data=journal] [lying]";

/// Workloads of a case.
const WORKLOADS: usize = 20;
/// What is explored if nobody says otherwise: seq-2 takes hours, and needs a word.
const USUAL: [&str; 2] = ["known", "seq-1"];
const SEQ_2: &str = "seq-2";
const FILE_SYSTEMS: &str = "ext4,ext4:data=journal,ext4:data=transact";

const FIGURES: [&str; 5] = ["workloads", "cuts", "states", "wrong", "refused operations"];

/// Workloads with names, on some file systems.
pub(super) struct CorpusCases {
    lists: Vec<&'static str>,
    file_systems: Vec<String>,
    lying: bool,
    seed: u64,
}

impl CorpusCases {
    pub fn of(words: &mut SoakWords, seed: u64) -> Result<CorpusCases> {
        let lists = match words.has(SEQ_2) {
            true => vec![SEQ_2],
            false => words.some_of(&USUAL),
        };
        let file_systems = words.value("fs").unwrap_or_else(|| FILE_SYSTEMS.to_owned());
        let file_systems: Vec<String> = file_systems.split(',').map(str::to_owned).collect();
        for name in &file_systems {
            Own::of_words(name, Duration::ZERO)?;
        }
        Ok(CorpusCases { lists, file_systems, lying: words.has("lying"), seed })
    }
}

/// How many workloads a list has, and some of them.
fn count(list: &str) -> usize {
    match list {
        "known" => KNOWN.len(),
        "seq-1" => ace::seq1().count(),
        _ => ace::seq2(0, 1).count(),
    }
}

fn workloads(list: &str, first: usize) -> Vec<Workload> {
    match list {
        "known" => KNOWN.iter().skip(first).take(WORKLOADS).map(|k| k.workload()).collect(),
        "seq-1" => ace::seq1().skip(first).take(WORKLOADS).collect(),
        _ => ace::seq2(first, 1).take(WORKLOADS).collect(),
    }
}

impl CaseSpace for CorpusCases {
    fn columns(&self) -> &'static [&'static str] {
        &FIGURES
    }

    fn cases(&self) -> Vec<SweepCase> {
        let mut cases = Vec::new();
        for list in &self.lists {
            let count = count(list);
            for fs in &self.file_systems {
                let lying = if self.lying { ", flushes ignored" } else { "" };
                cases.extend((0..count).step_by(WORKLOADS).map(|first| SweepCase {
                    name: format!("{fs}{lying}, {list}/workloads-{first:06}"),
                    input: serde_json::json!([format!("{list} {fs}"), first]),
                }));
            }
        }
        cases
    }

    fn run(&self, case: &SweepCase) -> Result<SoakResult> {
        let (of, first) = first_of(case, usize::MAX)?;
        let (list, fs) = of.split_once(' ').unwrap_or_default();
        let own = Own::of_words(fs, Duration::ZERO)?;
        let own = if self.lying { own.on_a_lying_disk() } else { own };
        let plan = Plan {
            places: CrashPoints::Flushes,
            bound: StateBound { states: 24, drawn: 4, ..StateBound::default() },
            seed: self.seed,
            use_it: true,
            ..Plan::EVERYWHERE
        };
        let mut result = SoakResult { figures: vec![0; FIGURES.len()], ..SoakResult::default() };
        for workload in workloads(list, first) {
            let tried = try_out(&own, &workload, &plan).map_err(|e| format!("{workload}: {e}"))?;
            let WorkloadReport { cuts, states, wrong, refused_mounts, damaged, .. } = tried;
            let new = [1, cuts, states, wrong, tried.refused];
            result.figures.iter_mut().zip(new).for_each(|(sum, new)| *sum += new);
            let Some((state, words)) = tried.first else { continue };
            let kind = match (refused_mounts, damaged) {
                (0, 0) => "broken promise",
                (0, _) => "damage",
                _ => "manual repair",
            };
            let what = format!("{workload}: state {state}: {}", words.join("; "));
            let (kind, size) = (kind.to_owned(), workload.ops.len() as u64);
            keep(&mut result.findings, SoakFinding { kind, size, what, command: None });
        }
        Ok(result)
    }
}
