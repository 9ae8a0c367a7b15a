//! The bytes of a task's writes.
//!
//! fio fills a buffer with noise once and changes a little of every 512 bytes in each write, so
//! that no layer below gains from data that repeat. So does this. In a simulation the bytes are
//! the same in each write, unless they are verified: no model's time depends on them.

use bytes::{Bytes, BytesMut};
use steadfast_block::pattern::{self, SECTOR};
use steadfast_block::rng::Rng;

use super::options::Buffers;

/// Memory for direct I/O begins on a page.
const ALIGN: usize = 4096;

/// The tag of what is laid out before the jobs run.
pub(super) const LAYOUT_TAG: u64 = 0xffff << 48 | 1;

/// Where the bytes of a task's writes come from.
pub(super) struct TaskBuffer {
    kind: Buffers,
    rng: Rng,
    /// As long as the longest write.
    bytes: Bytes,
}

/// So many bytes on a page boundary.
fn aligned(len: usize, fill: impl FnOnce(&mut [u8])) -> Bytes {
    let mut memory = vec![0; len + ALIGN];
    let start = memory.as_ptr().align_offset(ALIGN).min(ALIGN);
    fill(&mut memory[start..start + len]);
    Bytes::from(memory).slice(start..start + len)
}

/// Bytes that no compression shortens.
fn noise(rng: &mut Rng, buf: &mut [u8]) {
    for chunk in buf.chunks_mut(8) {
        let word = rng.bits().to_le_bytes();
        chunk.copy_from_slice(&word[..chunk.len()]);
    }
}

impl TaskBuffer {
    /// For writes of up to so many bytes.
    pub(super) fn new(kind: Buffers, seed: u64, len: usize) -> TaskBuffer {
        let mut rng = Rng::new(seed ^ 0x6275_6666);
        let whole = len.next_multiple_of(SECTOR);
        let bytes = match (kind, steadfast_runtime::is_simulated()) {
            (Buffers::Zeros, _) => aligned(len, |_| {}),
            (_, true) => pattern::interned(LAYOUT_TAG, 0, whole),
            (_, false) => aligned(len, |buf| noise(&mut rng, buf)),
        };
        TaskBuffer { kind, rng, bytes }
    }

    /// The bytes of a write.
    pub(super) fn next(&mut self, len: usize) -> Bytes {
        let changes = match self.kind {
            Buffers::Zeros | Buffers::Same => false,
            Buffers::Scrambled | Buffers::Refilled => !steadfast_runtime::is_simulated(),
        };
        if changes {
            let mut bytes = match std::mem::take(&mut self.bytes).try_into_mut() {
                Ok(bytes) => bytes,
                // Somebody below keeps it.
                Err(kept) => copy(&kept),
            };
            self.change(&mut bytes[..len]);
            self.bytes = bytes.freeze();
        }
        self.bytes.slice(..len)
    }

    fn change(&mut self, bytes: &mut [u8]) {
        if self.kind == Buffers::Refilled {
            return noise(&mut self.rng, bytes);
        }
        for sector in bytes.chunks_mut(SECTOR) {
            let len = sector.len().min(16);
            noise(&mut self.rng, &mut sector[..len]);
        }
    }
}

/// A copy on a page boundary that can be changed.
fn copy(bytes: &Bytes) -> BytesMut {
    let copied = aligned(bytes.len(), |buf| buf.copy_from_slice(bytes));
    // Nobody else has it.
    copied.try_into_mut().unwrap_or_else(|bytes| BytesMut::from(&bytes[..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_write_differs_from_the_one_before() {
        for (kind, differs) in [
            (Buffers::Scrambled, true),
            (Buffers::Refilled, true),
            (Buffers::Same, false),
            (Buffers::Zeros, false),
        ] {
            let mut buffer = TaskBuffer::new(kind, 1, 8192);
            let first = buffer.next(8192);
            let kept = first.to_vec();
            let second = buffer.next(4096);
            assert_eq!(first, kept, "{kind:?}: what was written is not changed");
            for sector in 0..8 {
                let at = sector * SECTOR..(sector + 1) * SECTOR;
                assert_eq!(first[at.clone()] != second[at], differs, "{kind:?}");
            }
            assert_eq!(second.as_ptr().align_offset(ALIGN), 0);
        }
    }

    #[test]
    fn memory_is_used_again() {
        let mut buffer = TaskBuffer::new(Buffers::Scrambled, 1, 4096);
        let at = buffer.next(4096).as_ptr();
        assert_eq!(buffer.next(4096).as_ptr(), at);
    }
}
