//! A plan: which cases there are, which shard each is in, and what all depends on.
//!
//! The file is one JSON document with a line for the head, a line for each case and a line for the
//! end, so that it is read line by line:
//!
//! ```text
//! {"head":{"format":"steadfast-sweep-plan","version":1,...},"cases":[
//! {"name":"external/speed/seed-1","shard":3,"input":...},
//! {"name":"external/cuts/seed-1","shard":0,"input":...}
//! ],"end":{"cases":2,"fingerprint":"..."}}
//! ```
//!
//! The fingerprint is the SHA-256 of all bytes before the last line.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::digest::{hex, is_sha256};
use crate::lines::LineReader;
use crate::{Result, SweepError};

pub(crate) const FORMAT: &str = "steadfast-sweep-plan";
pub(crate) const VERSION: u32 = 1;
/// What runs, if nothing else is said.
const COMMAND: &str = "steadfast sweep";
/// What the lines of the file begin and end with.
pub(crate) const HEAD: (&str, &str) = ("{\"head\":", ",\"cases\":[");
pub(crate) const END: (&str, &str) = ("],\"end\":", "}");

/// Shards of a plan, at most: each may be a file that is open.
pub(crate) const SHARDS_MAX: u32 = 100_000;

/// One of the independent computations that a sweep consists of. The same input gives the same
/// result, on every machine.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SweepCase {
    /// Its own, and the same in every plan that has it.
    pub name: String,
    /// What its kind makes of it is nobody's business here.
    pub input: Value,
}

/// A case with its place.
#[derive(Debug, Clone, PartialEq)]
pub struct PlannedCase {
    /// What is computed.
    pub case: SweepCase,
    /// The shard that it is in.
    pub shard: u32,
}

/// The program that runs the cases.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PlanProgram {
    /// For people.
    pub version: String,
    /// Of the executable.
    pub sha256: String,
}

/// A file that cases read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PlanInput {
    /// As it is opened.
    pub path: PathBuf,
    /// Of its contents.
    pub sha256: String,
}

/// What all cases share.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PlanHead {
    format: String,
    version: u32,
    /// Which kind of cases these are.
    pub kind: String,
    /// How many shards there are.
    pub shards: u32,
    /// The program that runs them.
    pub program: PlanProgram,
    /// As people call it: messages say what to run.
    pub command: String,
    /// The files that they read.
    pub inputs: Vec<PlanInput>,
    /// What the kind needs to know for all of them.
    pub settings: Value,
}

impl PlanHead {
    /// Without inputs and settings, of `steadfast sweep`.
    pub fn new(kind: &str, program: PlanProgram, shards: u32) -> PlanHead {
        PlanHead {
            format: FORMAT.into(),
            version: VERSION,
            kind: kind.into(),
            shards,
            program,
            command: COMMAND.into(),
            inputs: Vec::new(),
            settings: Value::Null,
        }
    }
}

/// A line of a case.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct PlanLine<'a> {
    #[serde(borrow)]
    pub name: std::borrow::Cow<'a, str>,
    pub shard: u32,
    pub input: Value,
}

/// What the last line says.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct PlanEnd {
    pub cases: u64,
    pub fingerprint: String,
}

/// A plan's file, whose fingerprint is right.
#[derive(Debug, Clone)]
pub struct PlanFile {
    path: PathBuf,
    head: PlanHead,
    fingerprint: String,
    /// Cases of each shard.
    counts: Vec<u64>,
}

impl PlanFile {
    /// Reads the whole file.
    ///
    /// # Errors
    /// It cannot be read, is no plan, or has been changed.
    pub fn open(path: &Path) -> Result<PlanFile> {
        let mut cases = PlannedCases::open(path)?;
        let mut counts = vec![0; cases.head.shards as usize];
        while let Some(planned) = cases.read()? {
            // OK to index: the reader refuses other shards.
            counts[planned.shard as usize] += 1;
        }
        if let Some(shard) = counts.iter().position(|n| *n == 0) {
            let what = format!("shard {shard} is empty");
            return Err(SweepError::plan(path, cases.lines.number(), what));
        }
        let fingerprint = cases.fingerprint;
        Ok(PlanFile { path: path.into(), head: cases.head, fingerprint, counts })
    }

    /// Its file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// What all cases share.
    pub fn head(&self) -> &PlanHead {
        &self.head
    }

    /// Of everything in it.
    pub fn fingerprint(&self) -> &str {
        &self.fingerprint
    }

    /// The command that runs a part of it.
    pub(crate) fn run_command(&self) -> String {
        format!("{} run --plan {}", self.head.command, self.path.display())
    }

    /// How many shards there are.
    pub fn shards(&self) -> u32 {
        self.head.shards
    }

    /// How many cases there are.
    pub fn cases(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// How many cases a shard has; none of a shard that is not there.
    pub(crate) fn cases_of(&self, shard: u32) -> u64 {
        self.counts.get(shard as usize).copied().unwrap_or(0)
    }

    /// The case of a name.
    ///
    /// # Errors
    /// There is none, or the plan cannot be read.
    pub fn find(&self, name: &str) -> Result<PlannedCase> {
        let mut cases = self.planned()?;
        while let Some(planned) = cases.read()? {
            if planned.case.name == name {
                return Ok(planned);
            }
        }
        let plan = self.path.display();
        Err(SweepError::NoSuch(format!("{plan}: there is no case '{name}' in it")))
    }

    /// Gives all cases, in the order of the plan.
    ///
    /// # Errors
    /// The plan cannot be read.
    pub fn each(&self, take: &mut dyn FnMut(PlannedCase)) -> Result<()> {
        let mut cases = self.planned()?;
        while let Some(planned) = cases.read()? {
            take(planned);
        }
        Ok(())
    }

    /// All cases, once more from the file.
    pub(crate) fn planned(&self) -> Result<PlannedCases> {
        let mut cases = PlannedCases::open(&self.path)?;
        cases.wanted = Some(self.fingerprint.clone());
        Ok(cases)
    }

    /// The cases of a shard.
    pub(crate) fn planned_of(&self, shard: u32) -> Result<ShardCases> {
        Ok(ShardCases { shard, cases: self.planned()? })
    }
}

/// The cases of one shard, in the order of the plan.
pub(crate) struct ShardCases {
    shard: u32,
    cases: PlannedCases,
}

impl ShardCases {
    pub fn read(&mut self) -> Result<Option<SweepCase>> {
        while let Some(planned) = self.cases.read()? {
            if planned.shard == self.shard {
                return Ok(Some(planned.case));
            }
        }
        Ok(None)
    }
}

/// Reads the cases of a plan's file, and verifies it at its end.
pub(crate) struct PlannedCases {
    lines: LineReader,
    pub head: PlanHead,
    digest: Sha256,
    count: u64,
    /// Of a file that was read before.
    wanted: Option<String>,
    /// Once the end was read.
    fingerprint: String,
}

impl PlannedCases {
    fn open(path: &Path) -> Result<PlannedCases> {
        let mut lines = LineReader::open(path)?;
        let wrong = |what: &str| SweepError::plan(path, 1, what);
        let line = lines.read()?.ok_or_else(|| wrong("it is no plan of a sweep"))?;
        let digest = Sha256::new().chain_update(line).chain_update(b"\n");
        let json = line.strip_prefix(HEAD.0.as_bytes());
        let json = json.and_then(|line| line.strip_suffix(HEAD.1.as_bytes()));
        let json =
            json.ok_or_else(|| wrong("it is no plan of a sweep, as sweep plan writes it"))?;
        let head: PlanHead = serde_json::from_slice(json)
            .map_err(|e| wrong(&format!("it is no plan of a sweep: {e}")))?;
        if head.format != FORMAT || head.version != VERSION {
            let found = format!("format {} {}, not {FORMAT} {VERSION}", head.format, head.version);
            return Err(wrong(&found));
        }
        if !(1..=SHARDS_MAX).contains(&head.shards) {
            let found = format!("it has {} shards; there are 1 to {SHARDS_MAX}", head.shards);
            return Err(wrong(&found));
        }
        let fingerprint = String::new();
        Ok(PlannedCases { lines, head, digest, count: 0, wanted: None, fingerprint })
    }

    /// The next case. `None`: that was the last, and the plan is as it was written.
    pub fn read(&mut self) -> Result<Option<PlannedCase>> {
        let path = self.lines.path().to_owned();
        let number = self.lines.number() + 1;
        let wrong = |what: String| SweepError::plan(&path, number, what);
        let Some(line) = self.lines.read()? else {
            return Err(wrong("it was cut off: its end is missing".into()));
        };
        if let Some(end) = line.strip_prefix(END.0.as_bytes()) {
            let end = end.strip_suffix(END.1.as_bytes()).unwrap_or(end);
            let end: PlanEnd = serde_json::from_slice(end).map_err(|e| wrong(e.to_string()))?;
            let found = hex(&std::mem::take(&mut self.digest).finalize());
            if found != end.fingerprint || end.cases != self.count || !is_sha256(&found) {
                return Err(wrong("it has been changed: its fingerprint is another one".into()));
            }
            if self.wanted.as_ref().is_some_and(|wanted| *wanted != found) {
                return Err(wrong("it was replaced while it was used".into()));
            }
            if self.lines.read()?.is_some() || self.lines.has_rest() {
                return Err(wrong("something follows its end".into()));
            }
            self.fingerprint = found;
            return Ok(None);
        }
        self.digest.update(line);
        self.digest.update(b"\n");
        self.count += 1;
        let json = line.strip_suffix(b",").unwrap_or(line);
        let PlanLine { name, shard, input } =
            serde_json::from_slice(json).map_err(|e| wrong(format!("it is no case: {e}")))?;
        if shard >= self.head.shards {
            return Err(wrong(format!("there is no shard {shard}")));
        }
        Ok(Some(PlannedCase { case: SweepCase { name: name.into_owned(), input }, shard }))
    }
}
