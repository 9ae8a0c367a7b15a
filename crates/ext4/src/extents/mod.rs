//! The extent trees of files in a transaction: blocks are mapped, unmapped and moved.

mod clusters;
pub(crate) mod file;
mod known;
mod shift;

pub(crate) use clusters::Placed;
pub(crate) use known::KnownNodes;
