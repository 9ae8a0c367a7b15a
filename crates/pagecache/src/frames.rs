//! Page frames in a slab, and the list of those that may be evicted.
//!
//! The LRU list is threaded through the slab: touching a page, which every hit does, takes a few
//! index assignments. A frame is *on the LRU* exactly while it is clean and not in flight.

use std::num::NonZeroU32;

use bytes::Bytes;

use crate::FileKey;

/// Index of a frame, plus one: so an absent one takes no more room.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FrameId(NonZeroU32);

impl FrameId {
    fn of(index: u32) -> FrameId {
        FrameId(NonZeroU32::MIN.saturating_add(index))
    }

    fn index(self) -> u32 {
        self.0.get() - 1
    }
}

const NONE: u32 = u32::MAX;

struct Frame {
    file: FileKey,
    page: u64,
    data: Bytes,
    on_lru: bool,
    /// Towards the most recently used.
    newer: u32,
    /// Towards the least recently used.
    older: u32,
}

/// All frames.
pub(crate) struct Frames {
    slots: Vec<Frame>,
    free: Vec<u32>,
    newest: u32,
    oldest: u32,
    on_lru: u64,
}

impl Frames {
    pub(crate) fn new() -> Self {
        Frames { slots: Vec::new(), free: Vec::new(), newest: NONE, oldest: NONE, on_lru: 0 }
    }

    /// Frames in use.
    pub(crate) fn len(&self) -> u64 {
        (self.slots.len() - self.free.len()) as u64
    }

    /// Frames that may be evicted.
    pub(crate) fn evictable(&self) -> u64 {
        self.on_lru
    }

    /// Whether a frame may be evicted.
    pub(crate) fn is_evictable(&self, id: FrameId) -> bool {
        self.slots[id.index() as usize].on_lru
    }

    /// Makes a frame, not on the LRU.
    pub(crate) fn insert(&mut self, file: FileKey, page: u64, data: Bytes) -> FrameId {
        let frame = Frame { file, page, data, on_lru: false, newer: NONE, older: NONE };
        if let Some(i) = self.free.pop() {
            self.slots[i as usize] = frame;
            return FrameId::of(i);
        }
        // OK to expect: 2^32 frames are 16 TiB, beyond any memory limit a machine can hold.
        let i = u32::try_from(self.slots.len()).expect("fewer than 2^32 page frames");
        self.slots.push(frame);
        FrameId::of(i)
    }

    /// Frees a frame.
    pub(crate) fn remove(&mut self, id: FrameId) {
        self.remove_from_lru(id);
        self.slots[id.index() as usize].data = Bytes::new();
        self.free.push(id.index());
    }

    pub(crate) fn data(&self, id: FrameId) -> &Bytes {
        &self.slots[id.index() as usize].data
    }

    pub(crate) fn data_mut(&mut self, id: FrameId) -> &mut Bytes {
        &mut self.slots[id.index() as usize].data
    }

    /// Adds a frame at the recently used end of the LRU.
    pub(crate) fn add_to_lru(&mut self, id: FrameId) {
        self.remove_from_lru(id);
        let newest = self.newest;
        let frame = &mut self.slots[id.index() as usize];
        (frame.on_lru, frame.newer, frame.older) = (true, NONE, newest);
        match newest {
            NONE => self.oldest = id.index(),
            n => self.slots[n as usize].newer = id.index(),
        }
        self.newest = id.index();
        self.on_lru += 1;
    }

    /// Removes a frame from the LRU, if it is on it.
    pub(crate) fn remove_from_lru(&mut self, id: FrameId) {
        let frame = &mut self.slots[id.index() as usize];
        if !frame.on_lru {
            return;
        }
        frame.on_lru = false;
        let (newer, older) = (frame.newer, frame.older);
        match newer {
            NONE => self.newest = older,
            n => self.slots[n as usize].older = older,
        }
        match older {
            NONE => self.oldest = newer,
            o => self.slots[o as usize].newer = newer,
        }
        self.on_lru -= 1;
    }

    /// Notes a use of the frame.
    pub(crate) fn touch(&mut self, id: FrameId) {
        if self.slots[id.index() as usize].on_lru && self.newest != id.index() {
            self.add_to_lru(id);
        }
    }

    /// Frees the least recently used frame of the LRU and returns its page.
    pub(crate) fn evict(&mut self) -> Option<(FileKey, u64)> {
        if self.oldest == NONE {
            return None;
        }
        let id = FrameId::of(self.oldest);
        let frame = &self.slots[id.index() as usize];
        let page = (frame.file, frame.page);
        self.remove(id);
        Some(page)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn evicts_in_order_of_use() {
        let mut f = Frames::new();
        let ids: Vec<_> = (0..4).map(|p| f.insert(FileKey(1), p, Bytes::new())).collect();
        ids.iter().for_each(|id| f.add_to_lru(*id));
        f.touch(ids[0]);
        f.remove_from_lru(ids[2]);
        assert_eq!((f.len(), f.evictable()), (4, 3));
        let order: Vec<_> = std::iter::from_fn(|| f.evict()).map(|(_, p)| p).collect();
        assert_eq!(order, [1, 3, 0]);
        assert_eq!((f.len(), f.evictable()), (1, 0));
        f.add_to_lru(ids[2]);
        assert_eq!(f.evict(), Some((FileKey(1), 2)));
        assert_eq!(f.insert(FileKey(2), 0, Bytes::new()), ids[2]);
    }
}
