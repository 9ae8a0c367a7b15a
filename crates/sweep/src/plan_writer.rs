//! Writes plans.

use std::borrow::Cow;
use std::collections::HashMap;
use std::io::{BufWriter, Write};

use sha2::{Digest, Sha256};

use crate::digest::{hex, is_sha256, number_of};
use crate::lines::{LINE_MAX, ascii};
use crate::plan::{END, HEAD, PlanEnd, PlanLine, SHARDS_MAX};
use crate::{PlanHead, Result, SweepCase, SweepError, shards};

/// Bytes of a name, at most.
const NAME_MAX: usize = 1024;

/// How long cases took in a former run.
#[derive(Debug, Clone, Default)]
pub struct CaseCosts {
    /// Seconds, by the number of the case's name: names would take ten times the memory.
    seconds: HashMap<u64, f64>,
}

impl CaseCosts {
    /// Notes a case.
    pub fn add(&mut self, case: &str, seconds: f64) {
        if seconds.is_finite() {
            self.seconds.insert(number_of(case), seconds.max(0.0));
        }
    }

    /// Of how many cases it is known.
    pub fn known(&self) -> usize {
        self.seconds.len()
    }

    /// On average; 0 where nothing is known.
    fn mean(&self) -> f64 {
        self.seconds.values().sum::<f64>() / self.seconds.len().max(1) as f64
    }
}

/// A plan that was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlanTotals {
    /// Its fingerprint.
    pub fingerprint: String,
    /// How many cases it has.
    pub cases: u64,
    /// Of how many of them it was known how long they take.
    pub known: u64,
}

/// Writes a plan. `cases` is called twice, and gives the same cases both times. With `costs` the
/// shards take about equally long; a case that is not in them counts as the mean.
///
/// # Errors
/// No plan can be so: no case, two of one name, more shards than cases; or the output's.
pub fn write_plan<C: Iterator<Item = SweepCase>>(
    head: &PlanHead,
    cases: impl Fn() -> C,
    costs: Option<&CaseCosts>,
    out: &mut dyn Write,
) -> Result<PlanTotals> {
    let unplannable = |what: String| Err(SweepError::Unplannable(what));
    if !(1..=SHARDS_MAX).contains(&head.shards) {
        return unplannable(format!("{} shards: there are 1 to {SHARDS_MAX}", head.shards));
    }
    if !is_sha256(&head.program.sha256) {
        return unplannable(format!("'{}' is no SHA-256 of a program", head.program.sha256));
    }
    let numbers: Vec<u64> = cases().map(|case| number_of(&case.name)).collect();
    if numbers.len() < head.shards as usize {
        let (cases, shards) = (numbers.len(), head.shards);
        return unplannable(format!(
            "{cases} cases in {shards} shards: at least one shard would be empty; ask for at most \
             {cases} shards"
        ));
    }
    refuse_doubles(&numbers, &cases)?;
    let mut known = 0;
    let dealt = match costs.filter(|costs| costs.known() > 0) {
        None => shards::by_number(&numbers, head.shards),
        Some(costs) => {
            let mean = costs.mean();
            let seconds = numbers.iter().map(|number| {
                let seconds = costs.seconds.get(number);
                known += u64::from(seconds.is_some());
                seconds.copied().unwrap_or(mean)
            });
            shards::by_seconds(&seconds.collect::<Vec<_>>(), &numbers, head.shards)
        }
    };
    let mut to = HashWriter { out: BufWriter::with_capacity(1 << 16, out), digest: Sha256::new() };
    to.line(&format!("{}{}{}", HEAD.0, json(head)?, HEAD.1))?;
    let mut last: Option<String> = None;
    let mut written = 0;
    for (case, shard) in cases().zip(dealt) {
        if case.name.is_empty() || case.name.len() > NAME_MAX || is_odd(&case.name) {
            return unplannable(format!("{:?} is no name of a case", case.name));
        }
        let line = json(&PlanLine { name: Cow::Owned(case.name), shard, input: case.input })?;
        if let Some(before) = last.replace(line) {
            to.line(&(before + ","))?;
        }
        written += 1;
    }
    last.map_or(Ok(()), |line| to.line(&line))?;
    if written != numbers.len() {
        return unplannable("the cases were others the second time".into());
    }
    let HashWriter { mut out, digest } = to;
    let (cases, fingerprint) = (written as u64, hex(&digest.finalize()));
    let end = json(&PlanEnd { cases, fingerprint: fingerprint.clone() })?;
    writeln!(out, "{}{end}{}", END.0, END.1)?;
    out.flush()?;
    Ok(PlanTotals { fingerprint, cases, known })
}

fn json(value: &impl serde::Serialize) -> Result<String> {
    let unplannable = |e: serde_json::Error| SweepError::Unplannable(e.to_string());
    serde_json::to_string(value).map(ascii).map_err(unplannable)
}

/// A name is quoted in commands and messages, and read by people.
fn is_odd(name: &str) -> bool {
    name.chars().any(|c| !(' '..='~').contains(&c) || c == '\'')
}

/// A name stands for one case. (By their numbers: two names with the same one happen in a plan of a
/// million cases once in thirty million plans.)
fn refuse_doubles<C: Iterator<Item = SweepCase>>(
    numbers: &[u64],
    cases: &impl Fn() -> C,
) -> Result<()> {
    let mut sorted = numbers.to_vec();
    sorted.sort_unstable();
    let double = sorted.windows(2).find(|pair| pair[0] == pair[1]);
    let Some(double) = double else { return Ok(()) };
    let case = cases().find(|case| number_of(&case.name) == double[0]);
    let name = case.map_or_else(String::new, |case| case.name);
    Err(SweepError::Unplannable(format!("two cases are called '{name}'")))
}

/// What is written, and its fingerprint.
struct HashWriter<W> {
    out: W,
    digest: Sha256,
}

impl<W: Write> HashWriter<W> {
    fn line(&mut self, line: &str) -> Result<()> {
        if line.len() as u64 + 1 > LINE_MAX {
            let what = format!("a line of {} bytes; at most {LINE_MAX} are read again", line.len());
            return Err(SweepError::Unplannable(what));
        }
        self.digest.update(line);
        self.digest.update(b"\n");
        Ok(writeln!(self.out, "{line}")?)
    }
}
