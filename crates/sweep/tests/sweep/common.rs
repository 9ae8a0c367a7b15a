//! A small sweep, whose cases are numbers and whose results are their squares.

use std::fs;
use std::path::{Path, PathBuf};

use steadfast_sweep::{
    CaseOutcome, MergeFault, PlanFile, PlanHead, PlanProgram, ShardRun, SweepCase, SweepError,
    merge, write_plan,
};

pub fn program(digit: &str) -> PlanProgram {
    PlanProgram { version: "1.0".into(), sha256: digit.repeat(64) }
}

pub fn cases(count: u64) -> impl Iterator<Item = SweepCase> {
    (0..count).map(|n| SweepCase { name: format!("n-{n}"), input: n.into() })
}

pub fn square(case: &SweepCase) -> CaseOutcome {
    match case.input.as_u64() {
        Some(n) => CaseOutcome::Done((n * n).into()),
        None => CaseOutcome::Failed("no number".into()),
    }
}

/// A folder with a plan and, in `results`, what its shards bring.
pub struct Sweep {
    folder: tempfile::TempDir,
    pub plan: PlanFile,
}

impl Sweep {
    pub fn new(count: u64, shards: u32, digit: &str) -> Sweep {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("plan.json");
        let head = PlanHead::new("squares", program(digit), shards);
        let mut text = Vec::new();
        write_plan(&head, || cases(count), None, &mut text).unwrap();
        fs::write(&path, text).unwrap();
        fs::create_dir(folder.path().join("results")).unwrap();
        Sweep { plan: PlanFile::open(&path).unwrap(), folder }
    }

    /// All of its shards have been run.
    pub fn done(count: u64, shards: u32) -> Sweep {
        let sweep = Sweep::new(count, shards, "a");
        (0..shards).for_each(|shard| sweep.run(shard));
        sweep
    }

    pub fn run(&self, shard: u32) {
        ShardRun::new(&self.plan, shard, &self.results()).run(square).unwrap();
    }

    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    pub fn results(&self) -> PathBuf {
        self.path().join("results")
    }

    pub fn file(&self, shard: u32) -> PathBuf {
        self.results().join(format!("shard-{shard:06}.jsonl"))
    }

    pub fn text(&self, shard: u32) -> String {
        fs::read_to_string(self.file(shard)).unwrap()
    }

    /// What a merge hands over, in order.
    pub fn merged(&self) -> Result<Vec<(String, CaseOutcome)>, SweepError> {
        self.merged_of(&[self.results()])
    }

    pub fn merged_of(&self, files: &[PathBuf]) -> Result<Vec<(String, CaseOutcome)>, SweepError> {
        let mut all = Vec::new();
        merge(&self.plan, files, &mut |case, outcome| {
            all.push((case.name, outcome));
            Ok(())
        })?;
        Ok(all)
    }

    /// What a merge is refused for.
    pub fn faults(&self) -> Vec<MergeFault> {
        match self.merged() {
            Err(SweepError::Refused(faults)) => faults,
            other => panic!("it was not refused: {other:?}"),
        }
    }

    pub fn expected(&self) -> Vec<(String, CaseOutcome)> {
        cases(self.plan.cases()).map(|case| (case.name.clone(), square(&case))).collect()
    }
}
