//! Second pass: the images that must not be replayed.

use std::collections::BTreeMap;

use super::scan::Transaction;
use crate::{FsBlock, Tid};

/// Blocks to the youngest transaction that revoked them.
pub(super) struct RevokeTable {
    youngest: BTreeMap<FsBlock, Tid>,
    /// Whether only images that are not younger than the revoke are meant.
    by_age: bool,
}

/// Collects the revokes of all transactions.
pub(super) fn table(transactions: &[Transaction], by_age: bool) -> RevokeTable {
    let entries = transactions.iter().flat_map(|t| t.revokes.iter().map(|block| (*block, t.tid)));
    // Oldest first, so the youngest is what remains.
    RevokeTable { youngest: entries.collect(), by_age }
}

impl RevokeTable {
    /// Whether an image that transaction `tid` logged was revoked, by itself or later.
    pub(super) fn covers(&self, block: FsBlock, tid: Tid) -> bool {
        self.youngest.get(&block).is_some_and(|by| !self.by_age || by.is_at_least(tid))
    }
}
