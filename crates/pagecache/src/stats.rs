//! Statistics of the cache.

/// Counters since the cache was made, and its present contents.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Stats {
    /// Requested pages that were cached.
    pub hit_pages: u64,
    /// Requested pages that had to be read or waited for.
    pub miss_pages: u64,
    /// Pages read ahead.
    pub read_ahead_pages: u64,
    /// Reads that the store was asked for.
    pub store_reads: u64,
    /// Calls that handed dirty pages to the store.
    pub store_writes: u64,
    /// Pages written back, failed ones included.
    pub written_pages: u64,
    /// Calls to the store whose write failed.
    pub failed_writes: u64,
    /// Evicted pages.
    pub evicted_pages: u64,
    /// Time that writers were held up by the dirty limits, in nanoseconds, summed over writers.
    pub throttled_ns: u64,
    /// Bytes of memory in use now (see the crate's sixth invariant).
    pub memory_bytes: u64,
    /// The most that were ever in use.
    pub memory_bytes_max: u64,
    /// Dirty bytes now whose write-back has not started.
    pub dirty_bytes: u64,
    /// Bytes in flight to the device now.
    pub writeback_bytes: u64,
    /// Bytes whose write-back failed and that are to be retried.
    pub retry_bytes: u64,
    /// Bytes that are lost: their write-back failed, and they were not rewritten since.
    pub lost_bytes: u64,
}
