//! `steadfast mount`, `umount` and `status`: a file system at a mount point, and the process that
//! serves it.

pub mod background;
mod claim;
mod control;
mod control_socket;
mod descriptors;
mod ending;
pub mod holders;
pub mod keeper;
pub mod log;
pub mod mmp;
pub mod options;
pub mod place;
mod remount;
pub mod serve;
pub mod served;
pub mod stack;
mod status;
mod transact;
mod trouble;
mod umount;

pub use ending::Ending;
pub use serve::mount;
pub use status::status;
pub use transact::{rollback, transact};
pub use umount::umount;
