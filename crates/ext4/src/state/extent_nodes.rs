//! Decoded nodes of extent trees that were needed lately.
//!
//! A node is checked whole when it is decoded: 340 extents in 4 KiB, each looked for among the
//! blocks that no file may own. The same few leaves are needed again and again, so they are kept
//! with the very buffer that they were decoded from. A buffer never changes while somebody holds
//! it: who gets the same one again has the same node, whatever became of the block meanwhile.

use std::sync::Arc;

use bytes::Bytes;
use steadfast_ext4_format::extents::Node;

/// Most nodes that are kept.
const NODES_MAX: usize = 64;
/// Most bytes of blocks that are kept; a node needs about twice as much again.
const BYTES_MAX: usize = 256 << 10;

/// A node and the buffer that it was decoded from.
struct LoadedNode {
    block: u64,
    contents: Bytes,
    node: Arc<Node>,
}

/// The nodes that are kept, each in the one place that its block number gives it.
pub(crate) struct NodeCache {
    places: Vec<Option<LoadedNode>>,
}

impl NodeCache {
    /// None yet; for blocks of so many bytes.
    pub fn new(block_size: usize) -> Self {
        let places = (BYTES_MAX / block_size.max(1)).clamp(1, NODES_MAX);
        NodeCache { places: std::iter::repeat_with(|| None).take(places).collect() }
    }

    /// The node of a block, if these are the contents that it was decoded from.
    pub fn get(&self, block: u64, contents: &Bytes) -> Option<Arc<Node>> {
        let cached = self.places[self.place(block)].as_ref()?;
        let same = cached.contents.as_ptr() == contents.as_ptr()
            && cached.contents.len() == contents.len();
        (cached.block == block && same).then(|| cached.node.clone())
    }

    /// Keeps a node in the place of another.
    pub fn put(&mut self, block: u64, contents: Bytes, node: Arc<Node>) {
        let place = self.place(block);
        self.places[place] = Some(LoadedNode { block, contents, node });
    }

    /// Leaves of a growing file lie apart by its extents: the multiplication spreads them.
    fn place(&self, block: u64) -> usize {
        let spread = block.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
        (spread % self.places.len() as u64) as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_same_buffer_is_known() {
        let mut nodes = NodeCache::new(4096);
        let contents = Bytes::from(vec![7; 4096]);
        let node = Arc::new(Node::empty(60));
        nodes.put(5, contents.clone(), node.clone());
        assert!(nodes.get(5, &contents).is_some());
        // Another block, equal bytes at another place, and a part of the buffer.
        assert!(nodes.get(6, &contents).is_none());
        assert!(nodes.get(5, &Bytes::from(vec![7; 4096])).is_none());
        assert!(nodes.get(5, &contents.slice(..60)).is_none());
    }

    #[test]
    fn no_more_than_the_bound_is_kept() {
        for (block_size, most) in [(1024, 64), (4096, 64), (65536, 4), (1 << 30, 1)] {
            let mut nodes = NodeCache::new(block_size);
            for block in 0..1000 {
                nodes.put(block, Bytes::from(vec![0; 8]), Arc::new(Node::empty(60)));
            }
            assert_eq!(nodes.places.iter().flatten().count(), most);
        }
    }
}
