//! Data loss at power failure of a variant that runs a workload of files: logs, tables,
//! configurations that are replaced, mail. The same for Steadfast's own file system in virtual
//! time and for the kernel's in real time; docs/risk.md defines the figures.

mod explore;
pub mod history;
mod judge;
mod peer;
mod speed;
mod tasks;
mod told;
mod tree;
mod words;
mod workload;

pub use explore::{explore_peer, old_contents};
pub use judge::judge_tree;
pub use peer::{Peer, Ran, RecordedRun, Workload};
pub use speed::Speed;
pub use tree::Tree;
pub use workload::FilesWorkload;
