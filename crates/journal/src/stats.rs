//! What a journal counts.

/// Counts since the journal was opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct JournalStats {
    /// Updates that have joined a transaction.
    pub updates: u64,
    /// Transactions committed.
    pub commits: u64,
    /// Log blocks that they took, control blocks included.
    pub logged_blocks: u64,
    /// Checkpoint rounds.
    pub checkpoints: u64,
    /// Blocks written home.
    pub home_blocks: u64,
    /// Requests in which they were written.
    pub home_writes: u64,
    /// Times that an update had to wait for log space.
    pub space_waits: u64,
    /// Fast commits.
    pub fast_commits: u64,
    /// Log blocks that they took.
    pub fast_blocks: u64,
}
