//! How far the kernel reads ahead on a mount: a value of its *backing device*, in `/sys`.
//!
//! The protocol can only make it smaller. Only root may write it, and nothing depends on it.

use std::io::Result;

/// Sets the read-ahead of the mount with this device number (`major:minor`), in KiB. Asks nothing
/// of whoever serves the mount, who may not have begun yet.
pub(crate) fn set(device: &str, kib: u32) -> Result<()> {
    std::fs::write(format!("/sys/class/bdi/{device}/read_ahead_kb"), kib.to_string())
}
