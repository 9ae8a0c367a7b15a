//! Numbers that must not mix.

use std::fmt;

/// A block of the file system's device, in file-system blocks from its start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FsBlock(pub u64);

/// A block of the log, in log blocks: 0 is the first block of an internal journal's file, or of
/// an external journal's device.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct LogBlock(pub u32);

/// A transaction's number (kernel: `tid_t`). Numbers wrap, so they have no total order: compare
/// them with [`Tid::is_after`], which is right for numbers less than 2^31 apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Tid(pub u32);

impl Tid {
    /// The number `n` transactions later.
    #[must_use]
    pub fn plus(self, n: u32) -> Tid {
        Tid(self.0.wrapping_add(n))
    }

    /// How many transactions lie between `earlier` and this one.
    pub(crate) fn distance_from(self, earlier: Tid) -> u32 {
        self.0.wrapping_sub(earlier.0)
    }

    /// Later than `other` (kernel: `tid_gt`).
    pub fn is_after(self, other: Tid) -> bool {
        self.0.wrapping_sub(other.0).cast_signed() > 0
    }

    /// `other` or later (kernel: `tid_geq`).
    pub fn is_at_least(self, other: Tid) -> bool {
        !other.is_after(self)
    }
}

impl fmt::Display for FsBlock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Display for LogBlock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Display for Tid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn transaction_numbers_wrap() {
        let last = Tid(u32::MAX);
        assert!(last.plus(1).is_after(last));
        assert!(!last.is_after(last.plus(1)));
        assert!(last.is_at_least(last));
        assert_eq!(last.plus(3).distance_from(last), 3);
    }
}
