//! `workload.fio` of a scenario file: jobs of fio's, in a file or in the scenario itself.

use std::io::BufRead;
use std::path::Path;

use steadfast_bench::fio::{
    AbsoluteRoot, FioPlan, JobFile, JobFileError, JobSurroundings, PlanTarget, ReferenceError, plan,
};
use steadfast_setup::form::Fields;
use steadfast_setup::table;
use steadfast_vfs::bounded;

table! {
    /// Jobs of fio's are run on each variant's file system, and not cut.
    pub struct FioSpec: "workload.fio", check FioSpec::check {
        /// A job file (docs/fio.md). A relative path is from this file's folder.
        file: Option<String>, else "`jobs` has them";
        /// The text of a job file.
        jobs: Option<String>, else "`file` has them";
        /// Names of the sections that are run without `--full`; if there are none, all.
        quick_sections: Vec<String> = [];
    }
}

/// A scenario has no environment, and includes nothing: it is the same everywhere.
struct ScenarioSurroundings;

impl JobSurroundings for ScenarioSurroundings {
    fn variable(&self, _: &str) -> Result<String, ReferenceError> {
        Err(ReferenceError::NotHere("the jobs of a scenario have no environment"))
    }

    fn included(&self, _: &str, _: &str) -> Result<String, ReferenceError> {
        Err(ReferenceError::NotHere("the jobs of a scenario include nothing"))
    }

    fn log(&self, _: &str) -> Result<Box<dyn BufRead>, ReferenceError> {
        Err(ReferenceError::NotHere("the jobs of a scenario replay no logs"))
    }

    fn keyword(&self, _: &str) -> Option<u64> {
        None
    }
}

impl FioSpec {
    fn check(fields: &Fields<'_>, _: Option<&FioSpec>) {
        match (fields.has("file"), fields.has("jobs")) {
            (true, true) => fields.wrong("jobs", "there are both `file` and `jobs`", "take one"),
            (false, false) => {
                fields.wrong("", "there is neither `file` nor `jobs`", "one of them has the jobs");
            }
            _ => {}
        }
        let Some(text) = fields.get::<String>("jobs") else { return };
        let file = JobFile { name: "jobs".into(), text };
        if let Err(e) = FioSpec::planned(&file, &[], &|_| None) {
            fields.wrong("jobs", e.to_string(), "docs/fio.md has the options");
        }
    }

    /// A relative path is from the folder of the file that says it.
    pub(super) fn said_in(&mut self, origin: &str) {
        let Some(file) = &mut self.file else { return };
        let folder = Path::new(origin).parent().unwrap_or(Path::new(""));
        *file = folder.join(&file).to_string_lossy().into_owned();
    }

    /// The job file.
    ///
    /// # Errors
    /// It cannot be read: its name, and why.
    pub(crate) fn job_file(&self) -> Result<JobFile, String> {
        match (&self.file, &self.jobs) {
            (Some(name), _) => {
                let text = bounded::text(Path::new(name), bounded::SETTINGS_MAX);
                let text = text.map_err(|e| format!("{name}: {e}"))?;
                Ok(JobFile { name: name.clone(), text })
            }
            (None, jobs) => {
                Ok(JobFile { name: "jobs".into(), text: jobs.clone().unwrap_or_default() })
            }
        }
    }

    /// The jobs of these sections, or all, on a file system that has files of these lengths.
    ///
    /// # Errors
    /// All lines that are wrong.
    pub(crate) fn planned(
        file: &JobFile,
        only: &[String],
        existing: &dyn Fn(&str) -> Option<u64>,
    ) -> Result<FioPlan, JobFileError> {
        let target = PlanTarget { root: AbsoluteRoot::FileSystem, existing, only };
        plan(std::slice::from_ref(file), &ScenarioSurroundings, &target)
    }

    /// In words, as a report shows it.
    pub fn description(&self) -> String {
        match &self.file {
            Some(file) => format!("fio {file}"),
            None => "fio, with the jobs of the scenario".into(),
        }
    }
}
