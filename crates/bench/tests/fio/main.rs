//! fio's jobs from outside: what is refused, what runs when in virtual time, what comes out.

#[path = "../iozone/memory.rs"]
mod memory;

mod examples;
mod plans;
mod reports;
mod simulated;
mod verified;

use std::sync::Arc;

use memory::{Behaviour, MemoryFs};
use steadfast_bench::fio::{
    self, AbsoluteRoot, FioPlan, FioResults, JobFile, JobSurroundings, PlanTarget, ReferenceError,
};
use steadfast_runtime::Sim;
use steadfast_vfs::FileSystem;

/// No environment and no files.
struct BareSurroundings;

impl JobSurroundings for BareSurroundings {
    fn variable(&self, _: &str) -> Result<String, ReferenceError> {
        Ok(String::new())
    }

    fn included(&self, _: &str, _: &str) -> Result<String, ReferenceError> {
        Err(ReferenceError::NotHere("no such file"))
    }

    fn keyword(&self, _: &str) -> Option<u64> {
        None
    }
}

/// The plan of a text for a file system without files; or what is wrong with it.
fn planned(text: &str) -> Result<FioPlan, String> {
    let target = PlanTarget { root: AbsoluteRoot::FileSystem, existing: &|_| None, only: &[] };
    let file = JobFile { name: "a.fio".into(), text: text.into() };
    fio::plan(&[file], &BareSurroundings, &target).map_err(|e| e.to_string())
}

/// Runs it in virtual time.
fn simulate(text: &str, behaviour: Behaviour) -> (FioResults, Arc<MemoryFs>) {
    let (plan, fs) = (planned(text).unwrap(), MemoryFs::new(behaviour));
    let shared = Arc::clone(&fs) as Arc<dyn FileSystem>;
    let ran = Sim::new(1).run(move || fio::run(&shared, &plan, |_| {}).unwrap()).unwrap();
    (ran, fs)
}
