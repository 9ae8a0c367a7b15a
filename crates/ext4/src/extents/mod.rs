//! The extent trees of files in a transaction: blocks are mapped, unmapped and moved.

mod clusters;
pub(crate) mod file;
mod shift;

pub(crate) use clusters::Placed;
