//! Two targets' transcripts side by side, and the differences that are known.

use super::Transcript;
use crate::{Result, SuiteError};

/// A case whose transcripts differ.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Difference {
    /// The case's name.
    pub case: String,
    /// The steps that differ: what the measure gave, and what the other.
    pub lines: Vec<(String, String)>,
    /// Why it is known and accepted; none: a fault.
    pub reason: Option<String>,
}

/// The outcome of comparing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Comparison {
    /// Cases compared.
    pub cases: usize,
    /// Cases that differ.
    pub differences: Vec<Difference>,
    /// Entries of the list that no difference needed: they are to be taken out.
    pub stale: Vec<String>,
}

impl Comparison {
    /// Whether every difference has its reason. Stale entries are not against it: a fault that has
    /// been mended must not break the tests of who mended it. `cargo xtask conformance` fails of
    /// them.
    pub fn is_good(&self) -> bool {
        self.faults().next().is_none()
    }

    /// The differences that are not on the list.
    pub fn faults(&self) -> impl Iterator<Item = &Difference> {
        self.differences.iter().filter(|d| d.reason.is_none())
    }
}

/// The differences between the kernel's ext4 and a target that are accepted, each with its reason.
#[derive(Debug, Clone)]
pub struct KnownDifferences {
    entries: Vec<Entry>,
}

#[derive(Debug, Clone)]
struct Entry {
    /// A case's name; a `*` at the end stands for any rest.
    case: String,
    /// A text that every differing step has to hold; empty: any.
    step: String,
    reason: String,
}

impl KnownDifferences {
    /// Those of a kind of target (see `Kind::name`), from `known-differences.txt`.
    pub fn of(kind: &str) -> Result<KnownDifferences> {
        Self::parse(kind, include_str!("../../known-differences.txt"))
    }

    /// Lines `KIND | CASE | STEP | REASON`; `#` begins a remark.
    fn parse(kind: &str, text: &str) -> Result<KnownDifferences> {
        let mut entries = Vec::new();
        for line in text.lines().map(str::trim).filter(|l| !l.is_empty() && !l.starts_with('#')) {
            let fields: Vec<&str> = line.split('|').map(str::trim).collect();
            let [of, case, step, reason] = fields[..] else {
                let what = format!("'{line}' is not KIND | CASE | STEP | REASON");
                return Err(SuiteError::Script { case: "known-differences.txt".into(), what });
            };
            if of == kind {
                let (case, step, reason) = (case.into(), step.into(), reason.into());
                entries.push(Entry { case, step, reason });
            }
        }
        Ok(KnownDifferences { entries })
    }
}

impl Entry {
    fn covers(&self, case: &str, lines: &[(String, String)]) -> bool {
        let is_named = match self.case.strip_suffix('*') {
            Some(start) => case.starts_with(start),
            None => self.case == case,
        };
        is_named && lines.iter().all(|(measure, _)| measure.contains(&self.step))
    }
}

/// Compares what two targets did with the same cases; `measure` is right by definition.
pub fn compare(
    measure: &[Transcript],
    other: &[Transcript],
    known: &KnownDifferences,
) -> Comparison {
    assert_eq!(measure.len(), other.len(), "the same cases on both targets");
    let mut needed = vec![false; known.entries.len()];
    let mut differences = Vec::new();
    for (right, left) in measure.iter().zip(other) {
        assert_eq!(right.case, left.case, "the same order on both targets");
        let pairs = right.lines.iter().zip(&left.lines);
        let lines: Vec<(String, String)> =
            pairs.filter(|(r, l)| r != l).map(|(r, l)| (r.clone(), l.clone())).collect();
        if lines.is_empty() {
            continue;
        }
        let entry = known.entries.iter().position(|e| e.covers(&right.case, &lines));
        if let Some(entry) = entry {
            needed[entry] = true;
        }
        let reason = entry.map(|e| known.entries[e].reason.clone());
        differences.push(Difference { case: right.case.clone(), lines, reason });
    }
    let was_run = |e: &&Entry| match e.case.strip_suffix('*') {
        Some(start) => measure.iter().any(|t| t.case.starts_with(start)),
        None => measure.iter().any(|t| t.case == e.case),
    };
    let unneeded = known.entries.iter().zip(needed).filter(|(_, n)| !n).map(|(e, _)| e);
    let stale = unneeded.filter(was_run).map(|e| e.case.clone()).collect();
    Comparison { cases: measure.len(), differences, stale }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn transcript(case: &str, lines: &[&str]) -> Transcript {
        Transcript { case: case.into(), lines: lines.iter().map(|l| (*l).to_owned()).collect() }
    }

    #[test]
    fn a_difference_is_a_fault_unless_it_is_listed_for_its_step() {
        let known = "k | f/a | stat | because\nk | f/c* | | stale\nother | f/b | | no\n";
        let known = KnownDifferences::parse("k", known).unwrap();
        let of = |a, b| {
            [
                transcript("f/a", &["stat x -> 1", a]),
                transcript("f/b", &["x -> 1"]),
                transcript("f/cc", &[b]),
            ]
        };
        let measure = of("stat y -> 1", "same");
        let found = compare(&measure, &of("stat y -> 2", "same"), &known);
        assert_eq!(found.differences[0].reason.as_deref(), Some("because"));
        assert_eq!((found.faults().count(), found.stale.as_slice()), (0, &["f/c*".to_owned()][..]));
        assert!(found.is_good());
        let found = compare(&of("open y -> 1", "same"), &of("open y -> 2", "same"), &known);
        assert_eq!(found.faults().count(), 1);
    }
}
