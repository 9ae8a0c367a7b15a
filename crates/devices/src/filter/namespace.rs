//! What can go wrong with a namespace: a range of memory with an info block that says what is made
//! of it.

use steadfast_block::{self as block, BlockDevice, BlockError, DirectMemory};
use steadfast_runtime::random_u64;
use uuid::{Builder, Uuid};

/// Result of an operation on a namespace.
pub type Result<T> = std::result::Result<T, NamespaceError>;

/// Why an operation on a namespace was not done.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NamespaceError {
    /// The device failed.
    #[error(transparent)]
    Io(#[from] BlockError),
    /// The processor cannot load and store what the device holds.
    #[error("{device}: is not memory, which {by}")]
    NotMemory {
        /// The device's name.
        device: String,
        /// What needs memory, and why, in words.
        by: &'static str,
    },
    /// No info block is where one must be.
    #[error("{device}: holds no {kind}; one has to be made first")]
    None {
        /// The device's name.
        device: String,
        /// What was looked for.
        kind: &'static str,
    },
    /// What is there contradicts itself.
    #[error("{device}: byte {at}: {what}; {advice}")]
    Corrupt {
        /// The device's name.
        device: String,
        /// What is wrong, in words.
        what: String,
        /// Where, in bytes from the start of the device.
        at: u64,
        /// What to do.
        advice: &'static str,
    },
    /// It is whole, but of a kind that is not supported here.
    #[error("{device}: {what}")]
    Unsupported {
        /// The device's name.
        device: String,
        /// What is not supported, in words.
        what: String,
    },
    /// The request cannot be met; nothing was changed.
    #[error("{device}: {what}")]
    Refused {
        /// The device's name.
        device: String,
        /// Why, in words.
        what: String,
    },
}

impl NamespaceError {
    pub(super) fn unsupported(device: &str, what: impl Into<String>) -> Self {
        NamespaceError::Unsupported { device: device.into(), what: what.into() }
    }

    pub(super) fn refused(device: &str, what: impl Into<String>) -> Self {
        NamespaceError::Refused { device: device.into(), what: what.into() }
    }
}

/// Why bytes are no info block.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Fault {
    /// Nothing says that they are one.
    Absent,
    /// They are one, damaged.
    Damaged,
    /// A right checksum, and contents that cannot be: which, in words.
    Impossible(String),
    /// It is of a kind that is not supported.
    Unsupported(String),
}

/// The memory of a device.
pub(super) fn memory<'a>(
    device: &'a dyn BlockDevice,
    by: &'static str,
) -> Result<&'a dyn DirectMemory> {
    let missing = || NamespaceError::NotMemory { device: device.info().name, by };
    device.direct_memory().ok_or_else(missing)
}

/// The same, where something is to be stored.
pub(super) fn memory_to_write<'a>(
    device: &'a dyn BlockDevice,
    by: &'static str,
) -> Result<&'a dyn DirectMemory> {
    let memory = memory(device, by)?;
    let below = device.info();
    match below.read_only {
        true => Err(NamespaceError::refused(&below.name, "is read only")),
        false => Ok(memory),
    }
}

/// Bytes of a device, whether it is memory or not. Offset and length are whole pages.
pub(super) fn read(device: &dyn BlockDevice, at: u64, out: &mut [u8]) -> block::Result<()> {
    if let Some(memory) = device.direct_memory() {
        return memory.load(at, out);
    }
    out.copy_from_slice(&device.read(at, out.len() as u64)?);
    Ok(())
}

/// Of a new namespace.
pub(super) fn random_uuid() -> Uuid {
    let random = Uuid::from_u64_pair(random_u64(), random_u64());
    Builder::from_random_bytes(random.into_bytes()).into_uuid()
}
