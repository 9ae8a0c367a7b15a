//! What is wrong with a workload, so that findings of many cases can be joined.

use serde::{Deserialize, Serialize};

use crate::small::SequenceReport;

/// A fault, and a workload that shows it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SoakFinding {
    /// The kind of fault.
    pub kind: String,
    /// How large the workload is: smaller ones are looked at first.
    pub size: u64,
    /// What was seen.
    pub what: String,
    /// What shows it again; `None`: the case does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
}

/// The kind of fault that an exploration has shown, the worst first.
pub(super) fn kind_of(report: &SequenceReport) -> Option<&'static str> {
    let kinds = [
        (report.damaged, "damage"),
        (report.broken, "broken promise"),
        (report.stale, "stale bytes"),
        (report.e2fsck_refuted, "refuted by e2fsck"),
        (report.differing + report.contradictions, "pruned state differs"),
        (report.e2fsck_unanswered, "e2fsck has no answer"),
    ];
    kinds.iter().find(|(count, _)| *count > 0).map(|(_, kind)| *kind)
}

/// Takes a finding in, if it is the smallest of its kind.
pub(super) fn keep(findings: &mut Vec<SoakFinding>, new: SoakFinding) {
    match findings.iter_mut().find(|finding| finding.kind == new.kind) {
        Some(finding) if new.size < finding.size => *finding = new,
        Some(_) => {}
        None => findings.push(new),
    }
}

/// The figures of an exploration, in the order of [`COLUMNS`].
pub(super) fn figures(report: &SequenceReport) -> [u64; COLUMNS.len()] {
    [
        report.cuts,
        report.states,
        report.distinct,
        report.pruned,
        report.compared,
        report.second_cuts,
        report.e2fsck,
        report.broken + report.stale + report.damaged + report.e2fsck_refuted,
        report.differing + report.contradictions + report.e2fsck_unanswered,
    ]
}

/// What [`figures`] are of.
pub(super) const COLUMNS: [&str; 9] = [
    "cuts",
    "states",
    "different",
    "pruned states",
    "compared",
    "recoveries cut",
    "e2fsck",
    "wrong",
    "in doubt",
];

/// Those of a space before them.
pub(super) const fn columns<const MORE: usize, const ALL: usize>(
    before: [&'static str; MORE],
) -> [&'static str; ALL] {
    assert!(ALL == MORE + COLUMNS.len());
    let mut all = [""; ALL];
    let mut at = 0;
    while at < ALL {
        all[at] = if at < MORE { before[at] } else { COLUMNS[at - MORE] };
        at += 1;
    }
    all
}
