//! Byte-addressable access to a device that is memory.

use crate::Result;

/// A device whose contents the processor can load and store.
///
/// Durability follows the hardware's: [`store`](Self::store) puts bytes in front of the caches,
/// [`persist`](Self::persist) starts writing lines back, [`fence`](Self::fence) waits until they
/// are in the power-fail domain. At a power cut, aligned 8-byte words are old or new; lines that
/// were not persisted may be there or not, in any combination.
pub trait DirectMemory: Send + Sync {
    /// Copies `out.len()` bytes from `offset`.
    fn load(&self, offset: u64, out: &mut [u8]) -> Result<()>;

    /// Stores `data` at `offset`: visible at once, durable after `persist` and `fence`.
    fn store(&self, offset: u64, data: &[u8]) -> Result<()>;

    /// Starts writing back the cache lines of `[offset, offset + len)`.
    fn persist(&self, offset: u64, len: u64) -> Result<()>;

    /// [`store`](Self::store) and [`persist`](Self::persist) in one, for data that nobody loads
    /// soon: memory may have a faster way for it. Durable after `fence`.
    fn store_through(&self, offset: u64, data: &[u8]) -> Result<()> {
        self.store(offset, data)?;
        self.persist(offset, data.len() as u64)
    }

    /// Returns when everything persisted before is durable.
    fn fence(&self) -> Result<()>;
}
