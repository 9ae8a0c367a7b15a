//! The lines of a file of results.
//!
//! An attempt, a line for each case as it ends, and at last the manifest. A resumed file has the
//! lines of the attempts before, and its own attempt after them. Each line ends with a sum over the
//! plan's fingerprint and the line up to it.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::digest::line_sum;
use crate::lines::ascii;

pub(crate) const FORMAT: &str = "steadfast-sweep-results";
/// 2: attempts say which tools there are.
pub(crate) const VERSION: u32 = 2;

/// What stands around the sum at the end of a line.
const SUM: (&str, &str) = (",\"sum\":\"", "\"}");

/// Programs of a machine that results depend on, and their versions; what it lacks is not there.
pub type Tools = BTreeMap<String, String>;

/// What came of a case.
#[derive(Debug, Clone, PartialEq)]
pub enum CaseOutcome {
    /// It was computed.
    Done(Value),
    /// It could not be, which is a result too: the same on every machine.
    Failed(String),
}

/// A process begins or resumes a shard.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Attempt {
    pub format: String,
    pub version: u32,
    pub plan: String,
    pub program: String,
    pub shard: u32,
    pub host: String,
    /// What of this machine results depend on.
    pub tools: Tools,
    pub pid: u32,
    /// Milliseconds since 1970.
    pub at_ms: u64,
}

/// A case has ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct CaseRecord {
    pub case: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<Value>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failed: Option<String>,
    pub seconds: f64,
    pub at_ms: u64,
}

impl CaseRecord {
    pub fn outcome(self) -> CaseOutcome {
        match self.failed {
            Some(why) => CaseOutcome::Failed(why),
            // A result that is null is written as one, and read as none.
            None => CaseOutcome::Done(self.result.unwrap_or(Value::Null)),
        }
    }

    /// Whether the computation brought the same: how long it took is the machine's.
    pub fn is_like(&self, other: &CaseRecord) -> bool {
        (&self.case, &self.result, &self.failed) == (&other.case, &other.result, &other.failed)
    }
}

/// The last line of a shard that is whole.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Manifest {
    pub cases: u64,
    /// SHA-256 of all bytes before this line.
    pub results: String,
    pub plan: String,
    pub program: String,
    pub shard: u32,
    pub host: String,
    /// That the cases took together.
    pub seconds: f64,
    pub at_ms: u64,
}

/// A line.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum ResultLine {
    Attempt(Attempt),
    Case(CaseRecord),
    Manifest(Manifest),
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct OfAttempt {
    attempt: Attempt,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct OfManifest {
    manifest: Manifest,
}

impl ResultLine {
    /// As it is written, without the line's end.
    pub fn text(&self, plan: &str) -> serde_json::Result<String> {
        let text = match self {
            ResultLine::Attempt(attempt) => {
                serde_json::to_string(&OfAttempt { attempt: attempt.clone() })
            }
            ResultLine::Case(end) => serde_json::to_string(end),
            ResultLine::Manifest(manifest) => {
                serde_json::to_string(&OfManifest { manifest: manifest.clone() })
            }
        }?;
        let mut text = ascii(text);
        // The brace: the sum is one more member.
        text.pop();
        let sum = line_sum(plan, text.as_bytes());
        Ok(format!("{text}{}{sum}{}", SUM.0, SUM.1))
    }

    /// Reads a line of a plan's results, or says what is wrong with it.
    pub fn read(plan: &str, line: &[u8]) -> Result<ResultLine, String> {
        const NO_SUM: &str = "it is no line of a sweep's results";
        let line = std::str::from_utf8(line).map_err(|_| NO_SUM.to_owned())?;
        let (text, sum) = line.rsplit_once(SUM.0).ok_or(NO_SUM)?;
        let sum = sum.strip_suffix(SUM.1).ok_or(NO_SUM)?;
        if sum != line_sum(plan, text.as_bytes()) {
            return Err("it is not as it was written: its sum is another one".into());
        }
        let json = format!("{text}}}");
        let read = match () {
            () if text.starts_with("{\"attempt\"") => serde_json::from_str(&json)
                .map(|OfAttempt { attempt }| ResultLine::Attempt(attempt)),
            () if text.starts_with("{\"manifest\"") => serde_json::from_str(&json)
                .map(|OfManifest { manifest }| ResultLine::Manifest(manifest)),
            () => serde_json::from_str(&json).map(ResultLine::Case),
        };
        read.map_err(|e| format!("{NO_SUM}: {e}"))
    }

    /// The attempt that a file begins with, whichever plan it is of; its sum is not looked at.
    pub fn attempt(line: &[u8]) -> Option<Attempt> {
        let text = std::str::from_utf8(line).ok()?;
        let (text, _) = text.rsplit_once(SUM.0)?;
        let of: OfAttempt = serde_json::from_str(&format!("{text}}}")).ok()?;
        let known = of.attempt.format == FORMAT && of.attempt.version == VERSION;
        known.then_some(of.attempt)
    }

    pub fn at_ms(&self) -> u64 {
        match self {
            ResultLine::Attempt(attempt) => attempt.at_ms,
            ResultLine::Case(end) => end.at_ms,
            ResultLine::Manifest(manifest) => manifest.at_ms,
        }
    }
}
