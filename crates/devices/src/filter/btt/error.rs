//! What errors say of a sector namespace.

use crate::filter::namespace::NamespaceError;

/// Why the device below must be memory.
pub(super) const NEEDS_MEMORY: &str =
    "a sector namespace needs: other disks keep their sectors whole by themselves";

/// What is there contradicts itself.
pub(super) fn corrupt(device: &str, at: u64, what: impl Into<String>) -> NamespaceError {
    let advice =
        "check the namespace (ndctl check-namespace too), and restore from a backup what it names";
    NamespaceError::Corrupt { device: device.into(), what: what.into(), at, advice }
}

/// No info block is where one must be.
pub(super) fn none(device: String) -> NamespaceError {
    NamespaceError::None { device, kind: "sector namespace" }
}
