use std::collections::BTreeMap;

use bytes::{Bytes, BytesMut};
use proptest::prelude::*;

use super::*;

/// Bytes of a pointer block: four pointers, so that few blocks reach three levels.
const BLOCK: u32 = 16;

/// Pointer blocks in memory.
#[derive(Default)]
struct Memory {
    blocks: BTreeMap<u64, Bytes>,
    next: u32,
}

impl NodeRead for &mut Memory {
    fn read(&self, block: u64) -> Result<Bytes> {
        self.blocks.get(&block).cloned().ok_or_else(|| Ext4Error::corrupt("no block", ""))
    }
    fn valid(&self, start: u64, len: u64) -> bool {
        start > 0 && len > 0
    }
    fn place(&self) -> String {
        "test".into()
    }
}

impl PointerStore for &mut Memory {
    fn create(&mut self, _goal: u64) -> Result<u32> {
        self.next += 1;
        let block = 1_000_000 + self.next;
        self.blocks.insert(block.into(), vec![0; BLOCK as usize].into());
        Ok(block)
    }
    fn set(&mut self, block: u64, index: usize, pointers: &[u32]) -> Result<()> {
        let mut bytes = BytesMut::from(&self.blocks[&block][..]);
        for (i, pointer) in pointers.iter().enumerate() {
            bytes[(index + i) * 4..][..4].copy_from_slice(&pointer.to_le_bytes());
        }
        self.blocks.insert(block, bytes.freeze());
        Ok(())
    }
    fn free(&mut self, block: u64) -> Result<()> {
        assert!(self.blocks.remove(&block).is_some(), "freed twice");
        Ok(())
    }
}

fn with_map<R>(
    root: &mut [u8; 60],
    store: &mut Memory,
    f: impl FnOnce(&mut BlockMap<&mut Memory>) -> R,
) -> R {
    let mut map = BlockMap::open(root, BLOCK, 100, store);
    let r = f(&mut map);
    *root = map.root();
    r
}

/// All that four pointers a block can map.
const REACH: u64 = 12 + 4 + 16 + 64;

proptest! {
    #[test]
    fn behaves_as_a_map(
        ops in prop::collection::vec((any::<bool>(), 0u64..REACH, 1u64..40), 1..40),
    ) {
        let (mut root, mut store, mut model) = ([0; 60], Memory::default(), BTreeMap::new());
        let mut fresh = 10u64;
        for (map, at, len) in ops {
            let end = (at + len).min(REACH);
            if map {
                // Only holes are mapped.
                for l in at..end {
                    if model.contains_key(&l) {
                        continue;
                    }
                    let run = Extent { logical: l as u32, len: 1, start: fresh, unwritten: false };
                    with_map(&mut root, &mut store, |m| m.insert(run)).unwrap();
                    model.insert(l, fresh);
                    fresh += if l % 5 == 0 { 3 } else { 1 };
                }
            } else {
                let gone = with_map(&mut root, &mut store, |m| m.remove(at, end)).unwrap();
                let gone: Vec<_> = gone
                    .iter()
                    .flat_map(|e| (0..e.len).map(|i| (e.logical + i, e.start + u64::from(i))))
                    .map(|(l, b)| (u64::from(l), b))
                    .collect();
                let expected: Vec<_> = model.range(at..end).map(|(l, b)| (*l, *b)).collect();
                prop_assert_eq!(gone, expected);
                model.retain(|l, _| !(at..end).contains(l));
            }
        }
        for l in 0..REACH {
            let found = with_map(&mut root, &mut store, |m| m.lookup(l as u32)).unwrap();
            match found {
                Lookup::Mapped(e) => {
                    prop_assert_eq!(u64::from(e.logical), l);
                    for i in 0..u64::from(e.len) {
                        prop_assert_eq!(model.get(&(l + i)), Some(&(e.start + i)));
                    }
                }
                Lookup::Hole { until } => {
                    prop_assert!(!model.contains_key(&l));
                    let next = model.range(l..).next().map_or(FILE_END, |(l, _)| *l);
                    prop_assert_eq!(until, next);
                }
            }
        }
        let last = with_map(&mut root, &mut store, |m| m.last_extents(1)).unwrap();
        prop_assert_eq!(last.is_some(), !model.is_empty());
        if let (Some(last), Some((end, _))) = (last, model.iter().next_back()) {
            prop_assert!(u64::from(last) <= *end && model.contains_key(&last.into()));
        }
        with_map(&mut root, &mut store, |m| m.remove(0, FILE_END)).unwrap();
        prop_assert!(store.blocks.is_empty());
        prop_assert_eq!(root, [0; 60]);
    }
}

#[test]
fn a_run_over_all_levels_and_twice_is_refused() {
    let (mut root, mut store) = ([0; 60], Memory::default());
    let all = Extent { logical: 0, len: REACH as u32, start: 50, unwritten: false };
    with_map(&mut root, &mut store, |m| m.insert(all)).unwrap();
    // One block of one level, one and four, one and four and sixteen.
    assert_eq!(store.blocks.len(), 1 + 5 + 21);
    let again = Extent { logical: 40, len: 1, start: 7, unwritten: false };
    assert!(with_map(&mut root, &mut store, |m| m.insert(again)).is_err());
    let beyond = Extent { logical: REACH as u32, len: 1, start: 7, unwritten: false };
    let error = with_map(&mut root, &mut store, |m| m.insert(beyond)).unwrap_err();
    assert!(error.to_string().contains("too large"), "{error}");
    assert_eq!(with_map(&mut root, &mut store, |m| m.goal(30)).unwrap(), Some(80));
}

#[test]
fn missing_pointer_blocks_are_made_first() {
    let (mut root, mut store) = ([0; 60], Memory::default());
    assert_eq!(with_map(&mut root, &mut store, |m| m.prepare(3, 9)).unwrap(), 9);
    assert_eq!(with_map(&mut root, &mut store, |m| m.prepare(33, 9)).unwrap(), 3);
    assert_eq!(store.blocks.len(), 3);
    with_map(&mut root, &mut store, |m| m.remove(0, FILE_END)).unwrap();
    assert!(store.blocks.is_empty(), "empty pointer blocks go with a removal");
}

#[test]
fn pointer_blocks_in_a_circle_end() {
    let (mut root, mut store) = ([0; 60], Memory::default());
    let at = |slot: usize| slot * 4..slot * 4 + 4;
    root[at(14)].copy_from_slice(&5u32.to_le_bytes());
    let mut circle = vec![0; BLOCK as usize];
    circle[12..].copy_from_slice(&5u32.to_le_bytes());
    store.blocks.insert(5, circle.into());
    let mut map = BlockMap::open(&root, BLOCK, 1, &mut store);
    let mut from = 0;
    let error = loop {
        match map.next_extent(from) {
            Ok(Some(e)) => from = e.end(),
            Ok(None) => from = 0,
            Err(e) => break e,
        }
    };
    assert!(error.to_string().contains("storage"), "{error}");
    assert!(map.remove(0, FILE_END).is_err());
}

/// A damaged map names one empty block again and again: it is searched once.
#[test]
fn an_empty_block_is_searched_once() {
    let mut store = Memory::default();
    for (block, pointer) in [(100u64, 101u32), (101, 102), (102, 0)] {
        store.blocks.insert(block, pointer.to_le_bytes().repeat(4).into());
    }
    let mut root = [0; 60];
    root[56..].copy_from_slice(&100u32.to_le_bytes());
    let map = BlockMap::open(&root, BLOCK, 100, &mut store);
    let all = map.reads_left.get();
    assert_eq!(map.next_extent(0).unwrap(), None);
    assert_eq!(all - map.reads_left.get(), 3);
    assert_eq!(map.last_extents(1).unwrap(), None);
    assert_eq!(all - map.reads_left.get(), 6);
}

#[test]
fn a_search_that_begins_in_the_middle_makes_no_block_empty() {
    let mut store = Memory::default();
    // One block of pointers stands below two pointers; only its first leads to anything.
    store.blocks.insert(100, [101u32, 101, 0, 0].iter().flat_map(|p| p.to_le_bytes()).collect());
    store.blocks.insert(101, [7u32, 0, 0, 0].iter().flat_map(|p| p.to_le_bytes()).collect());
    let mut root = [0; 60];
    root[52..56].copy_from_slice(&100u32.to_le_bytes());
    let map = BlockMap::open(&root, BLOCK, 100, &mut store);
    let first = DIRECT + 4;
    let found = |from| map.next_extent(from).unwrap().map(|e| u64::from(e.logical));
    assert_eq!(found(first), Some(first));
    assert_eq!(found(first + 1), Some(first + 4));
    assert_eq!(found(first + 5), None);
}
