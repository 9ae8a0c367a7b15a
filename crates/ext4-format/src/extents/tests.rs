use std::collections::BTreeMap;

use bytes::Bytes;
use proptest::prelude::*;

use super::*;

/// Nodes in memory; 256-byte blocks make deep trees from few extents.
#[derive(Default)]
struct Memory {
    blocks: BTreeMap<u64, Bytes>,
    next: u64,
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

impl NodeStore for &mut Memory {
    fn block_size(&self) -> usize {
        100
    }
    fn write(&mut self, block: u64, node: &Node) -> Result<()> {
        let mut bytes = vec![0; 100];
        node.encode(&mut bytes);
        self.blocks.insert(block, bytes.into());
        Ok(())
    }
    fn allocate(&mut self) -> Result<u64> {
        self.next += 1;
        Ok(1_000_000 + self.next)
    }
    fn free(&mut self, block: u64) -> Result<()> {
        assert!(self.blocks.remove(&block).is_some(), "freed twice");
        Ok(())
    }
}

fn with_tree<R>(
    root: &mut [u8; ROOT_BYTES],
    store: &mut Memory,
    f: impl FnOnce(&mut Tree<&mut Memory>) -> R,
) -> R {
    let mut tree = Tree::open(root, store).unwrap();
    let r = f(&mut tree);
    *root = tree.root();
    r
}

fn empty_root() -> [u8; ROOT_BYTES] {
    let mut root = [0; ROOT_BYTES];
    Node::empty(ROOT_BYTES).encode(&mut root);
    root
}

#[test]
fn appending_fills_leaves_and_truncating_frees_all_nodes() {
    let (mut root, mut store) = (empty_root(), Memory::default());
    for i in 0..200u32 {
        let e = Extent { logical: i, len: 1, start: 10 + u64::from(i) * 2, unwritten: false };
        with_tree(&mut root, &mut store, |t| t.insert(e)).unwrap();
    }
    // 7 entries a node: 200 extents need 29 leaves and 5 index nodes over them.
    assert_eq!(store.blocks.len(), 29 + 5 + 1);
    let last = with_tree(&mut root, &mut store, |t| t.last_extents(3)).unwrap();
    assert_eq!(last, Some(197));
    let gone = with_tree(&mut root, &mut store, |t| t.remove(0, FILE_END)).unwrap();
    assert_eq!(gone.len(), 200);
    assert!(store.blocks.is_empty());
    assert_eq!(root, empty_root());
}

#[test]
fn long_runs_merge_up_to_the_longest_extent() {
    let (mut root, mut store) = (empty_root(), Memory::default());
    for i in 0..80u32 {
        let e = Extent {
            logical: i << 10,
            len: 1 << 10,
            start: 7 + (u64::from(i) << 10),
            unwritten: false,
        };
        with_tree(&mut root, &mut store, |t| t.insert(e)).unwrap();
    }
    let found = with_tree(&mut root, &mut store, |t| t.lookup(40_000)).unwrap();
    let third = Extent { logical: 32768, len: 32768, start: 32775, unwritten: false };
    assert_eq!(found, Lookup::Mapped(third));
}

proptest! {
    #[test]
    fn a_tree_is_a_map(ops in prop::collection::vec((0u8..5, 0u32..300, 1u32..20), 1..200)) {
        let (mut root, mut store) = (empty_root(), Memory::default());
        let mut model: BTreeMap<u32, (u64, bool)> = BTreeMap::new();
        let mut fresh = 10u64;
        for (op, logical, len) in ops {
            let end = logical + len;
            if op < 3 {
                if model.range(logical..end).next().is_some() {
                    continue;
                }
                fresh += u64::from(op % 2);
                let e = Extent { logical, len, start: fresh, unwritten: op == 2 };
                fresh += u64::from(len);
                with_tree(&mut root, &mut store, |t| t.insert(e)).unwrap();
                for i in 0..len {
                    model.insert(logical + i, (e.start + u64::from(i), e.unwritten));
                }
            } else {
                let (from, to) = (logical.into(), end.into());
                let gone = with_tree(&mut root, &mut store, |t| t.remove(from, to)).unwrap();
                let mut expected = BTreeMap::new();
                for l in logical..end {
                    if let Some(v) = model.remove(&l) {
                        expected.insert(l, v);
                    }
                }
                let got: BTreeMap<_, _> = gone.iter().flat_map(blocks_of).collect();
                prop_assert_eq!(got, expected);
            }
            let all = with_tree(&mut root, &mut store, |t| {
                let (mut all, mut from) = (BTreeMap::new(), 0);
                while let Some(e) = t.next_extent(from).unwrap() {
                    all.extend(blocks_of(&e));
                    from = e.end();
                }
                all
            });
            prop_assert_eq!(&all, &model);
        }
        with_tree(&mut root, &mut store, |t| t.remove(0, FILE_END)).unwrap();
        prop_assert!(store.blocks.is_empty());
    }
}

fn blocks_of(e: &Extent) -> impl Iterator<Item = (u32, (u64, bool))> + use<> {
    let e = *e;
    (0..e.len).map(move |i| (e.logical + i, (e.start + u64::from(i), e.unwritten)))
}
