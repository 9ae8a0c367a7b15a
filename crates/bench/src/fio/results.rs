//! What a run brought.

use std::sync::Arc;

use super::plan::FioJob;
use super::stats::JobFigures;
use super::verify::WrongBlock;

/// EILSEQ, with which fio reports data that are not what was written.
const WRONG_DATA: i32 = 84;

/// Why a job ended before its end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JobFault {
    /// The number of the error.
    pub errno: i32,
    /// In words.
    pub what: String,
}

impl From<WrongBlock> for JobFault {
    fn from(error: WrongBlock) -> JobFault {
        JobFault { errno: WRONG_DATA, what: error.to_string() }
    }
}

/// A job, or a group of jobs that are reported together.
#[derive(Debug, Clone)]
pub struct FioEntry {
    /// The first of them.
    pub job: Arc<FioJob>,
    /// How many.
    pub jobs: u64,
    /// Of all of them together.
    pub figures: JobFigures,
    /// Why the first that failed did.
    pub fault: Option<JobFault>,
}

/// The jobs of a group, as the lines at the end of fio's text show them.
#[derive(Debug, Clone)]
pub struct GroupFigures {
    /// Its number.
    pub group: u64,
    /// Figures of each of its jobs.
    pub jobs: Vec<JobFigures>,
}

/// Everything that a run brought.
#[derive(Debug, Clone)]
pub struct FioResults {
    /// As they are reported.
    pub entries: Vec<FioEntry>,
    /// All jobs, by group.
    pub groups: Vec<GroupFigures>,
    /// What a reader of the figures should know.
    pub notes: Vec<String>,
}

impl FioResults {
    /// Of jobs with what each brought.
    pub(super) fn of(
        jobs: Vec<(Arc<FioJob>, JobFigures, Option<JobFault>)>,
        notes: Vec<String>,
    ) -> FioResults {
        let mut entries: Vec<FioEntry> = Vec::new();
        let mut groups: Vec<GroupFigures> = Vec::new();
        for (job, figures, fault) in jobs {
            match groups.iter_mut().find(|known| known.group == job.group) {
                Some(known) => known.jobs.push(figures.clone()),
                None => groups.push(GroupFigures { group: job.group, jobs: vec![figures.clone()] }),
            }
            let together = |known: &&mut FioEntry| {
                known.job.group == job.group
                    && known.job.options.group_reporting
                    && job.options.group_reporting
            };
            match entries.iter_mut().find(together) {
                Some(known) => {
                    known.jobs += 1;
                    known.figures.merge(&figures);
                    known.fault = known.fault.take().or(fault);
                }
                None => entries.push(FioEntry { job, jobs: 1, figures, fault }),
            }
        }
        FioResults { entries, groups, notes }
    }

    /// The first job that failed.
    pub fn fault(&self) -> Option<&JobFault> {
        self.entries.iter().find_map(|entry| entry.fault.as_ref())
    }
}
