//! Trees in tar archives: unpacked into a file system, and packed from one.
//!
//! An archive may be a stranger's: its names stay below the folder that it is unpacked into,
//! symbolic links in it are data and are never followed, and nothing of the host is touched.

mod pack;
mod unpack;
mod whiteouts;

pub(super) use pack::pack;
pub(super) use unpack::unpack;
pub use whiteouts::Whiteouts;
