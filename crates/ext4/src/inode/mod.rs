//! Inodes in a transaction: made, deleted, and kept among the orphans until they are gone.
//!
//! What an inode is in memory: [`Inode`](crate::state::Inode); how a transaction changes one:
//! [`Txn`](crate::meta::Txn).

mod create;
mod orphans;

pub(crate) use create::{FOR_ALL, create_inode, delete_inode};
pub(crate) use orphans::orphan_after;
