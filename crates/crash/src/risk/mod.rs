//! Data loss at power failure of a variant that runs a workload of files: logs, tables,
//! configurations that are replaced, mail. The same for Steadfast's own file system in virtual
//! time and for the kernel's in real time; docs/risk.md defines the figures.

mod judge;
mod old;
mod parameters;
mod speed;
mod task;
mod tasks;
mod tree;
mod words;
mod workload;

pub use old::old_contents;
pub use parameters::FilesWorkload;
pub use speed::Speed;
pub use tree::LARGEST;
pub use workload::FilesRun;
