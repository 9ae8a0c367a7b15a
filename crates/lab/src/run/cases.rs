//! A run in virtual time as independent cases: each job by a name of its own, and what came of it
//! as a value that another machine can make and this one can gather.
//! [`run_seeds`](super::run_seeds) goes the same way, with all cases on this machine.

use std::sync::Arc;

use super::jobs::{self, Job, JobEnd};
use super::setting::{Part, RunOptions, Setting};
use super::workload::JobResult;
use super::{gather, peers::Peers};
use crate::results::Results;
use crate::scenario::Scenario;
use crate::{LabError, ScenarioError, VariantError};

/// What came of a case.
#[derive(Debug, PartialEq)]
pub enum CaseEnd {
    /// Its rows.
    Ran(JobResult),
    /// Why it failed, in words.
    Failed(String),
}

impl From<CaseEnd> for JobEnd {
    fn from(end: CaseEnd) -> JobEnd {
        match end {
            CaseEnd::Ran(ran) => Ok(ran),
            CaseEnd::Failed(why) => Err(VariantError::Elsewhere(why)),
        }
    }
}

impl From<JobEnd> for CaseEnd {
    fn from(job: JobEnd) -> CaseEnd {
        job.map_or_else(|e| CaseEnd::Failed(e.to_string()), CaseEnd::Ran)
    }
}

/// The cases of a scenario with some seeds: each a part (speed or power cuts) of a variant.
pub struct Cases {
    pub(super) settings: Vec<Arc<Setting>>,
    pub(super) jobs: Vec<Job>,
    /// What names begin with, by setting, where these are not of one scenario.
    pub(super) labels: Vec<String>,
}

impl Cases {
    /// Those of a scenario, as `run_seeds` runs them with the same seeds.
    ///
    /// # Errors
    /// What `run_seeds` would refuse; and a scenario, or options, with runs in real time, which no
    /// machine makes twice.
    pub fn new(
        scenario: &Scenario,
        options: &RunOptions,
        seeds: &[u64],
    ) -> Result<Cases, LabError> {
        let asked = options.peers || options.real.is_some() || options.record.is_some();
        if asked || options.band {
            return Err(ScenarioError::NoCases("--peers, --real, --record and --band").of(scenario));
        }
        let settings = seeds.iter().map(|seed| {
            let setting = Setting::new(scenario, &RunOptions { seed: *seed, ..options.clone() })?;
            setting.refused().map_or(Ok(Arc::new(setting)), |why| Err(why.of(scenario)))
        });
        let settings = settings.collect::<Result<Vec<_>, LabError>>()?;
        let first = settings.first().ok_or_else(|| ScenarioError::NoSeed.of(scenario))?;
        let has_kernels = scenario.variants.iter().any(|v| v.kernel.is_some());
        let spec = &scenario.workload;
        if has_kernels && first.loads.iter().any(|load| load.in_real_time(spec).is_some()) {
            return Err(
                ScenarioError::NoCases("the kernel's variants of this workload").of(scenario)
            );
        }
        Ok(Cases::of(settings))
    }

    /// The jobs of these settings.
    pub(super) fn of(settings: Vec<Arc<Setting>>) -> Cases {
        let jobs = jobs::of(&settings);
        Cases { settings, jobs, labels: Vec::new() }
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.jobs.len()
    }

    /// Whether nothing is run.
    pub fn is_empty(&self) -> bool {
        self.jobs.is_empty()
    }

    /// The name of each, in the order in which their results are gathered: the same for the same
    /// variant and seed, whichever others there are.
    pub fn names(&self) -> impl Iterator<Item = String> + '_ {
        self.jobs.iter().map(|Job { seed, variant, load, part }| {
            // OK to index, here and below: the jobs are of these settings.
            let setting = &self.settings[*seed];
            let variant = &setting.scenario.variants[*variant].name;
            let part = match part {
                Part::Speed => "speed",
                Part::Risk => "cuts",
            };
            let load = match setting.loads.len() {
                1 => String::new(),
                _ => format!("workload-{}/", load + 1),
            };
            let label = self.labels.get(*seed).map_or_else(String::new, |l| format!("{l}/"));
            format!("{label}{variant}/{load}{part}/seed-{}", setting.options.seed)
        })
    }

    /// Runs one; `None`: there is none of that number.
    pub fn run(&self, number: usize) -> Option<CaseEnd> {
        let job = *self.jobs.get(number)?;
        Some(self.settings[job.seed].job(job, Arc::new(|_| {})).into())
    }

    /// What all of them brought, each in its place; `None` stands for one that was not run.
    ///
    /// # Errors
    /// There is no seed.
    pub fn results(&self, ends: Vec<Option<CaseEnd>>) -> Result<Results, LabError> {
        self.gathered(ends, Peers::default())
    }

    /// The same with what was run in real time beside them.
    pub(super) fn gathered(
        &self,
        ends: Vec<Option<CaseEnd>>,
        peers: Peers,
    ) -> Result<Results, LabError> {
        let results = gather::results(&self.settings, &self.jobs, ends, peers);
        // OK to expect: there is a setting, or `new` and `run_seeds` would have ended.
        let first = self.settings.first().expect("a case has a setting");
        results.ok_or_else(|| ScenarioError::NoSeed.of(&first.scenario))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::summary::json;
    use crate::{Watch, run_seeds};

    fn small() -> Scenario {
        let mut scenario = Scenario::find("nvram-journal").unwrap();
        scenario.variants.retain(|v| ["internal", "external"].contains(&v.name.as_str()));
        scenario.workload.quick_size = Some("1m".into());
        scenario.workload.quick_scales_disks = false;
        scenario.workload.risk_size = Some("512k".into());
        scenario
    }

    #[test]
    fn cases_one_by_one_through_json_are_the_run() {
        let (scenario, seeds) = (small(), [3, 4]);
        let options = RunOptions { cuts: Some(2), ..RunOptions::default() };
        let watch = Watch { progress: &|_, _| (), stop: &false.into() };
        let whole = run_seeds(&scenario, &options, &seeds, &watch).unwrap();
        let cases = Cases::new(&scenario, &options, &seeds).unwrap();
        let names: Vec<String> = cases.names().collect();
        assert_eq!((names.len(), names[0].as_str()), (12, "internal/workload-1/speed/seed-3"));
        let mut ends: Vec<Option<CaseEnd>> = (0..cases.len()).map(|_| None).collect();
        // In another order.
        for number in (0..cases.len()).rev() {
            let CaseEnd::Ran(ran) = cases.run(number).unwrap() else { panic!("it failed") };
            let written = serde_json::to_string(&ran).unwrap();
            ends[number] = Some(CaseEnd::Ran(serde_json::from_str(&written).unwrap()));
        }
        let gathered = cases.results(ends).unwrap();
        assert!(json(&gathered).unwrap() == json(&whole).unwrap(), "another document");
        assert!(cases.run(12).is_none());
    }

    #[test]
    fn what_is_in_real_time_has_no_cases() {
        let kernels = Scenario::find("data-at-risk").unwrap();
        let refused = |scenario, options| match Cases::new(scenario, &options, &[1]) {
            Ok(_) => panic!("it has cases"),
            Err(e) => e.to_string(),
        };
        let said = refused(&kernels, RunOptions::default());
        assert!(said.contains("the kernel's variants of this workload"), "{said}");
        let peers = RunOptions { peers: true, ..RunOptions::default() };
        assert!(refused(&small(), peers).contains("--peers"));
    }
}
