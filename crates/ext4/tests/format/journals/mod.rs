//! Journals exchanged with the kernel and e2fsprogs, at the level of a file system: what the
//! kernel left behind we replay to the same bytes as `e2fsck -E journal_only`; what we left behind
//! e2fsck and the kernel replay to the same bytes as we do. Internal and external journals.
//!
//! Needs e2fsprogs and, to mount, root.

mod by_the_kernel;
mod by_us;
mod compare;
mod fast_commits;
mod fast_cuts;
mod fast_work;
mod fast_written;
mod mount_cuts;
mod refusals;
mod replay_cuts;
mod stage;
