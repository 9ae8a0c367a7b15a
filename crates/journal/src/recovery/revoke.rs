//! Second pass: which images must not be replayed.

use std::collections::BTreeMap;

use super::scan::Transaction;
use crate::{FsBlock, Tid};

/// Blocks to the youngest transaction that revoked them.
pub(super) struct Revoked(BTreeMap<FsBlock, Tid>);

/// Collects the revokes of all transactions.
pub(super) fn table(transactions: &[Transaction]) -> Revoked {
    let entries = transactions.iter().flat_map(|t| t.revokes.iter().map(|block| (*block, t.tid)));
    // Oldest first, so the youngest is what remains.
    Revoked(entries.collect())
}

impl Revoked {
    /// Whether an image that transaction `tid` logged was revoked, by itself or later.
    pub(super) fn covers(&self, block: FsBlock, tid: Tid) -> bool {
        self.0.get(&block).is_some_and(|by| by.is_at_least(tid))
    }
}
