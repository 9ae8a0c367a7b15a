//! What was on a device before.

use steadfast_block::pattern;
use steadfast_devices::store::Store;

/// Tag of what was on the device before the file system was made.
const OLD: u64 = 0xdead;
/// The device is filled in pieces of so many bytes.
const FILLED: u64 = 64 << 10;

/// What a device of `bytes` bytes held before: stamped data that belongs to no file, so that a
/// block that nobody wrote is seen when a file shows it.
pub fn old_contents(bytes: u64) -> Store {
    let mut old = Store::new(bytes);
    for at in (0..bytes).step_by(FILLED as usize) {
        let len = FILLED.min(bytes - at);
        old.write_slice(at, &pattern::bytes(OLD, at, len as usize));
    }
    old
}
