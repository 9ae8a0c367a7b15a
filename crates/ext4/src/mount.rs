//! Mounting: options, feature checks, recovery, unmounting.
