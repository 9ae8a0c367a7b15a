//! One schedule of some tasks on a set-up in one line of words, so that what was found can be
//! reproduced by one command: the example `schedules` of this crate.

use std::fmt;
use std::str::FromStr;

use steadfast_crash::{CrashError, Result};
use steadfast_ext4::DataMode;
use steadfast_runtime::{Preemption, PreemptionPoint};
use steadfast_suite::operation::Operation;
use steadfast_vfs::TransactMask;

use super::Schedule;
use crate::mixed::Setup;
use crate::small::machine::{SequenceRun, SmallMachine};
use crate::small::sequence::{Sequence, Start};

/// Transaction points of data=transact.
const POINTS: TransactMask = TransactMask::FSYNC.union(TransactMask::SYNC);

/// What is run. The same case leaves the same.
#[derive(Debug, Clone)]
pub struct ScheduledCase {
    /// The machine.
    pub setup: Setup,
    /// What each task does.
    pub tasks: Vec<Sequence>,
    /// The schedule.
    pub schedule: Schedule,
    /// Whether locks are points.
    pub locks: bool,
}

impl ScheduledCase {
    /// A set-up of the smallest machine: with data=transact fsync and sync make points.
    pub fn setup(data: DataMode, external: bool) -> Setup {
        let points = (data == DataMode::Transact).then_some(POINTS);
        Setup { data, external, points, block_size: 1024, ..Setup::PLAIN }
    }

    /// Runs it; which points were passed.
    pub(in crate::small) fn record(
        &self,
        machine: &SmallMachine,
    ) -> Result<(SequenceRun, Vec<PreemptionPoint>)> {
        let preemption = Preemption::at(&self.schedule.points);
        let preemption = if self.locks { preemption.with_locks() } else { preemption };
        let run = machine.record(&self.tasks, Some((&preemption, self.schedule.begins)))?;
        Ok((run, preemption.passed()))
    }

    /// How many operations the tasks have.
    pub fn operations(&self) -> usize {
        self.tasks.iter().map(Sequence::len).sum()
    }

    /// The command that reproduces it.
    pub fn command(&self) -> String {
        self.setup.command("schedules", self)
    }

    fn take(&mut self, word: &str) -> Result<()> {
        let (name, value) = word.split_once('=').unwrap_or((word, ""));
        match name {
            "internal" | "external" => self.setup.external = name == "external",
            "locks" => self.locks = true,
            _ if self.schedule.take(word)? => {}
            _ if self.setup.take(name, value)? => {
                self.setup.points = ScheduledCase::setup(self.setup.data, false).points;
            }
            _ => self.tasks.push(sequence(word)?),
        }
        Ok(())
    }
}

impl fmt::Display for ScheduledCase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ScheduledCase { setup, tasks, schedule, locks } = self;
        let journal = if setup.external { "external" } else { "internal" };
        write!(f, "{} {journal}{}", setup.data.name(), setup.bug_word())?;
        for sequence in tasks {
            let operations: Vec<String> = sequence.operations.iter().map(word).collect();
            let start = format!("{:?}", sequence.start).to_lowercase();
            write!(f, " {start}:{}", operations.join("+"))?;
        }
        if *locks {
            write!(f, " locks")?;
        }
        write!(f, " {schedule}")
    }
}

impl FromStr for ScheduledCase {
    type Err = CrashError;

    /// Reads what [`Display`](fmt::Display) writes.
    fn from_str(line: &str) -> Result<ScheduledCase> {
        let mut case = ScheduledCase {
            setup: ScheduledCase::setup(DataMode::Ordered, false),
            tasks: Vec::new(),
            schedule: Schedule::default(),
            locks: false,
        };
        line.split_whitespace().try_for_each(|word| case.take(word))?;
        match case.schedule.begins < case.tasks.len() {
            true => Ok(case),
            false => Err(CrashError::Words(format!(
                "no task {} of {}",
                case.schedule.begins,
                case.tasks.len()
            ))),
        }
    }
}

/// An operation in a word that a shell leaves as it is.
fn word(operation: &Operation) -> String {
    operation.to_string().replace(' ', ".")
}

/// Reads a start and operations: `populated:unlink.a+sync`.
fn sequence(word_of_it: &str) -> Result<Sequence> {
    let unknown = || CrashError::Words(format!("{word_of_it}: not a word of a case"));
    let (start, operations) = word_of_it.split_once(':').ok_or_else(unknown)?;
    let named = |s: &&Start| format!("{s:?}").to_lowercase() == start;
    let start = *Start::ALL.iter().find(named).ok_or_else(unknown)?;
    let operations = operations.split('+').filter(|text| !text.is_empty());
    let operations = operations.map(|text| text.parse().map_err(|_| unknown()));
    Ok(Sequence { start, operations: operations.collect::<Result<_, _>>()? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_case_is_read_as_it_is_written() {
        for line in [
            "ordered internal populated:rename.a.d/a+sync empty:create.a begins=1 points=2,5",
            "transact external empty:create.a+fsync.a populated: locks begins=0",
        ] {
            let case: ScheduledCase = line.parse().unwrap();
            assert_eq!(case.to_string(), line);
            assert_eq!(case.setup.points.is_some(), line.starts_with("transact"));
        }
        let old = "ordered empty:create.a+fsync.a.false begins=0".parse::<ScheduledCase>().unwrap();
        assert!(old.to_string().contains(" empty:create.a+fsync.a "), "{old}");
        for wrong in ["ordered populated:sync begins=1", "populated:dance", "odd", ""] {
            assert!(wrong.parse::<ScheduledCase>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn every_operation_of_the_smallest_workloads_has_a_word_of_its_own() {
        for sequence in Sequence::all(2) {
            let case = ScheduledCase {
                setup: ScheduledCase::setup(DataMode::Ordered, false),
                tasks: vec![sequence.clone()],
                schedule: Schedule::default(),
                locks: false,
            };
            let read: ScheduledCase = case.to_string().parse().unwrap();
            assert_eq!(read.tasks, [sequence], "{case}");
        }
    }
}
