//! What a device is and what it promises.

/// Whether contents survive the loss of power.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Persistence {
    /// They do: a disk, flash, memory with a good battery.
    Persistent,
    /// They do not, or it cannot be relied on; `reason` is a sentence for people, for example
    /// "battery 1 has failed" or "a RAM disk loses its contents when power is lost".
    Volatile {
        /// In words, without a full stop.
        reason: String,
    },
}

/// Geometry and promises of a device. Sizes are bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeviceInfo {
    /// Name for messages: a path, or the name given in a scenario.
    pub name: String,
    /// What it is, for people: "15K SAS disk, 146 GB (model)".
    pub model: String,
    /// Size in bytes; a multiple of `logical_block`.
    pub size: u64,
    /// Smallest unit of a request: 512 or 4096 (1 for byte-addressable memory is not used here;
    /// memory offers [`DirectMemory`](crate::DirectMemory) beside its blocks).
    pub logical_block: u32,
    /// Preferred unit and alignment; at least `logical_block`.
    pub physical_block: u32,
    /// Unit that a power cut leaves old or new, never mixed: the sector of a disk, 8 for memory.
    pub atomic_write: u32,
    /// Completed writes may be lost until a flush (or FUA).
    pub volatile_cache: bool,
    /// Whether contents survive the loss of power.
    pub persistence: Persistence,
    /// Seeks cost time.
    pub rotational: bool,
    /// Writes are refused.
    pub read_only: bool,
    /// Whether contents were ever established. False for an NVRAM card that was never
    /// initialised: reads return errors or noise until it has been written once.
    pub initialised: bool,
}

impl DeviceInfo {
    /// A plain persistent device of 512-byte sectors without a volatile cache.
    pub fn new(name: impl Into<String>, model: impl Into<String>, size: u64) -> Self {
        DeviceInfo {
            name: name.into(),
            model: model.into(),
            size,
            logical_block: 512,
            physical_block: 512,
            atomic_write: 512,
            volatile_cache: false,
            persistence: Persistence::Persistent,
            rotational: false,
            read_only: false,
            initialised: true,
        }
    }

    /// Refuses bytes that are not all in the device.
    ///
    /// # Errors
    /// [`OutOfRange`](crate::BlockError::OutOfRange) with the name of the operation.
    pub fn inside(&self, op: &'static str, offset: u64, len: u64) -> crate::Result<()> {
        if offset.checked_add(len).is_some_and(|end| end <= self.size) {
            return Ok(());
        }
        let (device, size) = (self.name.clone(), self.size);
        Err(crate::BlockError::OutOfRange { device, op, offset, len, size })
    }

    /// Why this device must not hold what a power cut may not take; `None` if it may.
    pub fn unfit_to_persist(&self) -> Option<String> {
        if !self.initialised {
            return Some(format!("{} has never been initialised", self.name));
        }
        match &self.persistence {
            Persistence::Persistent => None,
            Persistence::Volatile { reason } => Some(format!("{}: {reason}", self.name)),
        }
    }
}
