//! What a mount holds beyond its last transaction point.

use std::fmt;

use steadfast_journal::Tid;

/// What came after the last transaction point: what going back takes away.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SincePoint {
    /// New and changed data in bytes, whole blocks; directories' new blocks too.
    pub data_bytes: u64,
    /// Changed metadata in bytes, as the journal holds it.
    pub metadata_bytes: u64,
}

impl SincePoint {
    /// Nothing has changed since.
    pub fn is_nothing(&self) -> bool {
        *self == SincePoint::default()
    }
}

impl fmt::Display for SincePoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kib = |bytes: u64| bytes.div_ceil(1024);
        let (data, metadata) = (kib(self.data_bytes), kib(self.metadata_bytes));
        write!(f, "{data} KiB of data, {metadata} KiB of changed metadata")
    }
}

/// The transaction point that a power cut leaves now, and a rollback goes to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LastPoint {
    /// The journal's transaction that holds it.
    pub transaction: Tid,
    /// When it was made, in seconds since 1970.
    pub at: u64,
}

/// What a rollback has done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RolledBack {
    /// The point that it went to.
    pub point: Option<LastPoint>,
    /// What is gone.
    pub taken: SincePoint,
}
