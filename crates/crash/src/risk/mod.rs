//! What a power cut takes from a set-up that runs a workload of files: logs, tables,
//! configurations that are replaced, mail. The same for Steadfast's own file system in virtual
//! time and for the kernel's in real time; docs/risk.md defines the figures.

mod peer;
mod speed;

pub use peer::{Peer, PeerKind, PeerSpec, Ran, RecordedRun, Workload};
pub use speed::Speed;
