//! What was on a device before.

use steadfast_block::pattern;
use steadfast_devices::store::Store;

/// Tag of what was on the device before the file system was made.
const OLD: u64 = 0xdead;
/// The device is filled with so many bytes, again and again.
const TILE: usize = 1 << 20;

/// What a device of `bytes` bytes held before: stamped data that belongs to no file, so that a
/// block that nobody wrote is seen when a file shows it.
pub fn old_contents(bytes: u64) -> Store {
    Store::tiled(bytes, &pattern::bytes(OLD, 0, TILE))
}
