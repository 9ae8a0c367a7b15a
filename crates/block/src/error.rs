//! Why a request failed.

/// Result of a request.
pub type Result<T> = std::result::Result<T, BlockError>;

/// Why a request failed. Cloneable, because every waiter of a shared request gets it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BlockError {
    /// The range is not a multiple of the logical block, or empty.
    #[error(
        "{device}: {op} of {len} bytes at byte {offset} is not a multiple of the {block}-byte block"
    )]
    Misaligned {
        /// Device name.
        device: String,
        /// `read`, `write`, `discard`.
        op: &'static str,
        /// Byte offset.
        offset: u64,
        /// Bytes.
        len: u64,
        /// The device's logical block in bytes.
        block: u32,
    },
    /// The range ends beyond the device.
    #[error("{device}: {op} of {len} bytes at byte {offset} ends beyond the device's {size} bytes")]
    OutOfRange {
        /// Device name.
        device: String,
        /// `read`, `write`, `discard`.
        op: &'static str,
        /// Byte offset.
        offset: u64,
        /// Bytes.
        len: u64,
        /// The device's size in bytes.
        size: u64,
    },
    /// The device was opened for reading only.
    #[error("{device}: is read-only")]
    ReadOnly {
        /// Device name.
        device: String,
    },
    /// The medium or the system reported an error.
    #[error("{device}: {op} at byte {offset} failed: {reason}")]
    Io {
        /// Device name.
        device: String,
        /// `read`, `write`, `flush`, `discard`.
        op: &'static str,
        /// Byte offset; 0 for a flush.
        offset: u64,
        /// In words: the system's error or the injected fault.
        reason: String,
    },
    /// The device can no longer be reached (unplugged, worker gone, power cut).
    #[error("{device}: is gone: {reason}")]
    Gone {
        /// Device name.
        device: String,
        /// In words.
        reason: String,
    },
}
