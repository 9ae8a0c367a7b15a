//! A buffer for writes: its space, and when parts of what it holds leave it.

use super::agenda::Agenda;

#[derive(Debug, Default)]
pub(super) struct BufferSpace {
    capacity: u64,
    held: u64,
    leaving: Agenda<u64>,
}

impl BufferSpace {
    pub(super) fn new(capacity: u64) -> Self {
        BufferSpace { capacity, ..BufferSpace::default() }
    }

    /// Takes space for `len` bytes; from when there is: from `at` on, or when enough have left.
    pub(super) fn take(&mut self, at: u64, len: u64) -> u64 {
        let mut when = at;
        while let Some((_, bytes)) = self.leaving.take_due(at) {
            self.held -= bytes;
        }
        while self.held > 0 && self.held + len > self.capacity {
            let Some((left_at, bytes)) = self.leaving.take_due(u64::MAX) else { break };
            self.held -= bytes;
            when = when.max(left_at);
        }
        self.held += len;
        when
    }

    /// So many bytes will leave it.
    pub(super) fn leave(&mut self, at_ns: u64, bytes: u64) {
        self.leaving.enter(at_ns, bytes);
    }
}
