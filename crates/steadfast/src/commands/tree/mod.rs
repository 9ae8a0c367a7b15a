//! Trees of files: `ls`, `cat`, `put`, `get`, `rm`, over any
//! [`FileSystem`](steadfast_vfs::FileSystem).
//!
//! An image may be damaged, or made to do harm. So
//!
//! 1. walks are loops, not recursion; they know the folders above them and name a cycle
//!    ([`walk`]);
//! 2. what is wrong with one object is told by its path and ends nothing else ([`failures`]);
//! 3. names come from the disk: none leads out of its folder ([`names`]), and on the host no
//!    symbolic link is followed below the target ([`steadfast_vfs::HostFs`]).
//!
//! `put` and `get` are one engine, which copies from one file system to another ([`copy`]).

mod bound;
mod cat;
mod copy;
mod failures;
mod get;
mod listing;
mod ls;
mod names;
mod pieces;
mod put;
mod rm;
mod walk;

pub use bound::{BEYOND, Bound};
pub use cat::cat;
pub use get::{Way, get};
pub use ls::ls;
pub use names::shown;
pub use put::put;
pub use rm::rm;
pub use walk::Side;
