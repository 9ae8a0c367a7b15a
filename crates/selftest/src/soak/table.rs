//! What all cases together say: a row for each set-up, and of each kind of fault the smallest
//! workload that shows it.

use std::collections::BTreeMap;
use std::fmt;

use steadfast_crash::{CrashError, Result};

use super::{SoakFinding, SoakResult};

/// Results that were taken in, in the order of the plan.
#[derive(Debug, Clone)]
pub struct SoakTable {
    columns: &'static [&'static str],
    rows: Vec<TableRow>,
    findings: BTreeMap<String, JoinedFinding>,
    /// The first cases that could not be explored, and how many there are.
    failed: (Vec<String>, u64),
}

#[derive(Debug, Clone)]
struct TableRow {
    name: String,
    cases: u64,
    figures: Vec<u64>,
}

#[derive(Debug, Clone)]
struct JoinedFinding {
    cases: u64,
    case: String,
    smallest: SoakFinding,
}

/// Cases named that could not be explored.
const FAILED_NAMED: usize = 12;

impl SoakTable {
    pub(super) fn new(columns: &'static [&'static str]) -> SoakTable {
        let (rows, findings, failed) = (Vec::new(), BTreeMap::new(), (Vec::new(), 0));
        SoakTable { columns, rows, findings, failed }
    }

    /// Takes a result in.
    ///
    /// # Errors
    /// It is none of these cases'.
    pub fn take(&mut self, case: &str, result: SoakResult) -> Result<()> {
        let figures = result.figures;
        if figures.len() != self.columns.len() {
            let (found, columns) = (figures.len(), self.columns.len());
            return Err(CrashError::Words(format!("{case}: {found} figures, not {columns}")));
        }
        let name = case.split('/').next().unwrap_or_default();
        match self.rows.iter_mut().find(|row| row.name == name) {
            Some(row) => {
                row.cases += 1;
                row.figures.iter_mut().zip(figures).for_each(|(sum, new)| *sum += new);
            }
            None => self.rows.push(TableRow { name: name.into(), cases: 1, figures }),
        }
        for smallest in result.findings {
            let new = JoinedFinding { cases: 1, case: case.into(), smallest };
            match self.findings.get_mut(&new.smallest.kind) {
                Some(joined) => {
                    let cases = joined.cases + 1;
                    if new.smallest.size < joined.smallest.size {
                        *joined = new;
                    }
                    joined.cases = cases;
                }
                None => drop(self.findings.insert(new.smallest.kind.clone(), new)),
            }
        }
        Ok(())
    }

    /// Takes in that a case could not be explored.
    pub fn take_failed(&mut self, case: &str, why: &str) {
        let (named, count) = &mut self.failed;
        *count += 1;
        if named.len() < FAILED_NAMED {
            named.push(format!("{case}: {why}"));
        }
    }

    /// Whether nothing was found, and everything explored.
    pub fn is_good(&self) -> bool {
        self.findings.is_empty() && self.failed.1 == 0
    }
}

impl fmt::Display for SoakTable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (named, failed) = &self.failed;
        writeln!(f, "| set-up | cases | {} |", self.columns.join(" | "))?;
        writeln!(f, "|---|--:|{}", "--:|".repeat(self.columns.len()))?;
        for TableRow { name, cases, figures } in &self.rows {
            let figures: Vec<String> = figures.iter().map(u64::to_string).collect();
            writeln!(f, "| {name} | {cases} | {} |", figures.join(" | "))?;
        }
        for (kind, JoinedFinding { cases, case, smallest }) in &self.findings {
            writeln!(f, "\nFOUND: {kind}, in {cases} cases; the smallest, of {case}:")?;
            writeln!(f, "  {}", smallest.what)?;
            writeln!(f, "  {}", smallest.command.as_deref().unwrap_or_default())?;
        }
        for line in named {
            writeln!(f, "\nNOT EXPLORED: {line}")?;
        }
        match (self.is_good(), failed) {
            (true, _) => writeln!(f, "\nNothing wrong was found."),
            (false, 0) => Ok(()),
            (false, count) => writeln!(f, "\n{count} cases could not be explored."),
        }
    }
}
