//! fio's jobs from outside: what is refused, what runs when in virtual time, what comes out.

#[path = "../iozone/memory.rs"]
mod memory;

mod examples;
mod plans;
mod replays;
mod reports;
mod simulated;
mod verified;

use std::io::{BufRead, Cursor};
use std::sync::Arc;

use memory::{Behaviour, MemoryFs};
use steadfast_bench::fio::{
    self, AbsoluteRoot, FioPlan, FioResults, JobFile, JobSurroundings, PlanTarget, ReferenceError,
};
use steadfast_runtime::Sim;
use steadfast_vfs::FileSystem;

/// No environment, and a log of this text for each name but `none`.
struct BareSurroundings(String);

impl JobSurroundings for BareSurroundings {
    fn variable(&self, _: &str) -> Result<String, ReferenceError> {
        Ok(String::new())
    }

    fn included(&self, _: &str, _: &str) -> Result<String, ReferenceError> {
        Err(ReferenceError::NotHere("no such file"))
    }

    fn log(&self, name: &str) -> Result<Box<dyn BufRead>, ReferenceError> {
        match name {
            "none" => Err(ReferenceError::NotHere("no such file")),
            _ => Ok(Box::new(Cursor::new(self.0.clone()))),
        }
    }

    fn keyword(&self, _: &str) -> Option<u64> {
        None
    }
}

/// The plan of a text for a file system without files; or what is wrong with it.
fn planned(text: &str) -> Result<FioPlan, String> {
    planned_with(text, "")
}

/// The same, where logs have this text.
fn planned_with(text: &str, log: &str) -> Result<FioPlan, String> {
    let target = PlanTarget { root: AbsoluteRoot::FileSystem, existing: &|_| None, only: &[] };
    let file = JobFile { name: "a.fio".into(), text: text.into() };
    fio::plan(&[file], &BareSurroundings(log.into()), &target).map_err(|e| e.to_string())
}

/// Runs it in virtual time.
fn simulate(text: &str, behaviour: Behaviour) -> (FioResults, Arc<MemoryFs>) {
    simulate_with(text, "", behaviour)
}

/// The same, where logs have this text.
fn simulate_with(text: &str, log: &str, behaviour: Behaviour) -> (FioResults, Arc<MemoryFs>) {
    let (plan, fs) = (planned_with(text, log).unwrap(), MemoryFs::new(behaviour));
    let shared = Arc::clone(&fs) as Arc<dyn FileSystem>;
    let ran = Sim::new(1).run(move || fio::run(&shared, &plan, |_| {}).unwrap()).unwrap();
    (ran, fs)
}
