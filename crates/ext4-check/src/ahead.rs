//! Reading ahead: blocks that will be wanted in a known order, read in the order of the device.
//!
//! A file system's directories lie scattered, most of them a block long. What is wanted next is
//! collected in windows; the blocks of a window are sorted, neighbours are read together, with
//! what lies between them if that is little, and all of a window is asked for at once, one window
//! before it is needed.
//!
//! # Invariant
//!
//! At most two windows are in memory, each of [`WINDOW_BYTES`] or one extent, and [`GAP_BYTES`]
//! that nobody wants for each block.

use std::collections::{BTreeMap, VecDeque};
use std::iter::Peekable;
use std::sync::Arc;

use bytes::Bytes;
use steadfast_block::{BlockDevice, Completion, Request};

/// First block and length.
pub(super) type ReadRange = (u64, u32);

/// Wanted bytes in a window.
const WINDOW_BYTES: u64 = 2 << 20;
/// Unwanted bytes that are read rather than left out.
const GAP_BYTES: u64 = 16 << 10;
/// Bytes of one request, unless the extent is longer.
const PIECE_BYTES: u64 = 1 << 20;

/// A window on its way, or here.
#[derive(Default)]
struct ReadWindow {
    /// Extents that were not asked for yet.
    left: usize,
    /// First block to length and answer.
    pieces: BTreeMap<u64, (u64, Completion)>,
}

/// What is read ahead.
pub(super) struct ReadAhead {
    block_size: u64,
    wanted: Peekable<std::vec::IntoIter<ReadRange>>,
    windows: VecDeque<ReadWindow>,
}

/// Extents as pieces in the order of the device: neighbours together.
fn pieces(mut extents: Vec<ReadRange>, block_size: u64) -> Vec<(u64, u64)> {
    let (gap, most) = (GAP_BYTES / block_size, PIECE_BYTES / block_size);
    extents.sort_unstable();
    let mut pieces: Vec<(u64, u64)> = Vec::new();
    for (first, len) in extents {
        let end = first + u64::from(len);
        match pieces.last_mut() {
            Some((start, n)) if first <= *start + *n + gap && end <= *start + most => {
                *n = (*n).max(end - *start);
            }
            _ => pieces.push((first, u64::from(len))),
        }
    }
    pieces
}

impl ReadAhead {
    pub(super) fn new(block_size: u64) -> Self {
        ReadAhead {
            block_size,
            wanted: Vec::new().into_iter().peekable(),
            windows: VecDeque::new(),
        }
    }

    /// Begins anew, with what will be wanted: extents within the device.
    pub(super) fn plan(&mut self, wanted: Vec<ReadRange>) {
        self.wanted = wanted.into_iter().peekable();
        self.windows.clear();
    }

    /// The next extent is asked for now.
    pub(super) fn advance(&mut self, device: &Arc<dyn BlockDevice>) {
        if self.windows.front().is_some_and(|window| window.left == 0) {
            self.windows.pop_front();
        }
        while self.windows.len() < 2 && self.wanted.peek().is_some() {
            let window = self.fill(device);
            self.windows.push_back(window);
        }
        if let Some(window) = self.windows.front_mut() {
            window.left -= 1;
        }
    }

    fn fill(&mut self, device: &Arc<dyn BlockDevice>) -> ReadWindow {
        let (mut extents, mut blocks) = (Vec::new(), 0);
        let most = WINDOW_BYTES / self.block_size;
        while let Some(extent) =
            self.wanted.next_if(|(_, len)| blocks == 0 || blocks + u64::from(*len) <= most)
        {
            blocks += u64::from(extent.1);
            extents.push(extent);
        }
        let left = extents.len();
        let pieces = pieces(extents, self.block_size).into_iter().map(|(first, count)| {
            let (offset, len) = (first * self.block_size, count * self.block_size);
            (first, (count, device.submit(Request::Read { offset, len })))
        });
        ReadWindow { left, pieces: pieces.collect() }
    }

    /// Blocks that have been read ahead. `None` if they have not, or could not be read: in a
    /// piece the fault may be another block's.
    pub(super) fn get(&self, first: u64, count: u64) -> Option<Bytes> {
        self.windows.iter().find_map(|window| {
            let (start, (blocks, answer)) = window.pieces.range(..=first).next_back()?;
            if first + count > start + blocks {
                return None;
            }
            let bytes = answer.wait().ok()?;
            let from = ((first - start) * self.block_size) as usize;
            let to = from + (count * self.block_size) as usize;
            (to <= bytes.len()).then(|| bytes.slice(from..to))
        })
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use steadfast_block::{DeviceInfo, Result};

    use super::*;

    /// Notes what is read.
    struct Noted(Mutex<Vec<(u64, u64)>>);

    impl BlockDevice for Noted {
        fn info(&self) -> DeviceInfo {
            DeviceInfo::new("noted", "test", 1 << 30)
        }

        fn submit(&self, request: Request) -> Completion {
            let (offset, len) = request.range().unwrap();
            self.0.lock().unwrap().push((offset / 1024, len / 1024));
            let bytes: Vec<u8> = (offset / 1024..(offset + len) / 1024)
                .flat_map(|block| [block as u8; 1024])
                .collect();
            let answer: Result<Bytes> = Ok(bytes.into());
            Completion::ready(answer)
        }
    }

    #[test]
    fn scattered_blocks_are_read_together_in_order() {
        let noted = Arc::new(Noted(Mutex::default()));
        let device: Arc<dyn BlockDevice> = noted.clone();
        // Every fourth block, backwards, and one far away.
        let wanted: Vec<ReadRange> =
            (0..400).rev().map(|i| (i * 4, 1)).chain([(90_000, 64)]).collect();
        let mut ahead = ReadAhead::new(1024);
        ahead.plan(wanted.clone());
        for (first, len) in wanted {
            ahead.advance(&device);
            let bytes = ahead.get(first, len.into()).unwrap();
            assert_eq!((bytes.len(), bytes[0]), (len as usize * 1024, first as u8));
        }
        assert_eq!(*noted.0.lock().unwrap(), [(0, 1021), (1024, 573), (90_000, 64)]);
    }

    #[test]
    fn no_more_than_two_windows_are_held() {
        let device: Arc<dyn BlockDevice> = Arc::new(Noted(Mutex::default()));
        let mut ahead = ReadAhead::new(1024);
        ahead.plan((0..10_000).map(|i| (i * 100, 1)).collect());
        for i in 0..10_000 {
            ahead.advance(&device);
            assert!(ahead.get(i * 100, 1).is_some());
            assert!(ahead.windows.len() <= 2);
        }
        ahead.advance(&device);
        ahead.advance(&device);
        assert!(ahead.windows.is_empty() && ahead.get(0, 1).is_none());
    }
}
