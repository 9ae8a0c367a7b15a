//! fio: job files, over any file system.
//!
//! ```text
//! job_file   the text: sections, [global], include, ${NAME}
//! options    what their lines mean; one table has all options
//! plan       the jobs and their files, and what cannot be
//! io_log     a log of fio's, read once
//! log_job    what a log makes of its job
//! files      files laid out, opened, closed
//! run        the parent: jobs started by their rules, joined
//! worker     one job: as many tasks as it has requests in flight
//! steps      which step is next, when a pass and a job are over
//! offsets    which request is next: kind, file, offset, length
//! replay     the same of a job that replays a log
//! random_map which blocks were come to
//! pace       rates, and time to think
//! buffer     what is written
//! verify     whether what is read is what was written
//! stats      counts and times
//! results    what came out
//! report     the same as fio writes it: text, JSON, terse
//! ```
//!
//! What fio does is taken from fio 3.33, its manual and its output; where we differ on purpose,
//! `docs/fio.md` has the list and the reasons.

mod buffer;
mod files;
mod io_log;
mod job_file;
mod log_job;
mod offsets;
pub mod options;
mod pace;
mod plan;
mod random_map;
mod replay;
pub mod report;
mod results;
mod run;
mod stats;
mod steps;
mod verify;
mod worker;
mod wrong;

pub use files::{FileCallError, length_of, room};
pub use job_file::{JobSurroundings, ReferenceError};
pub use plan::{AbsoluteRoot, FioJob, FioPlan, JobFile, PlanTarget, plan};
pub use results::{FioEntry, FioResults, JobFault};
pub use run::run;
pub use wrong::JobFileError;
