//! Block maps of the new file system's files, where it has no extents.

use bytes::Bytes;
use steadfast_ext4_format::extents::NodeRead;
use steadfast_ext4_format::indirect::{BlockMap, PointerStore};
use steadfast_ext4_format::ondisk::{Extent, RawInode};
use steadfast_ext4_format::{Ext4Error, Result};

use crate::plan::Plan;

/// The plan's blocks as pointer blocks.
struct Pointers<'p> {
    plan: &'p mut Plan,
    made: u64,
}

impl NodeRead for Pointers<'_> {
    fn read(&self, block: u64) -> Result<Bytes> {
        let contents = self.plan.contents.get(&block);
        // OK to unwrap: the map reads what it has created.
        Ok(Bytes::copy_from_slice(contents.unwrap()))
    }

    fn valid(&self, start: u64, len: u64) -> bool {
        self.plan.layout.contains(start, len)
    }

    fn place(&self) -> String {
        "new block map".into()
    }
}

impl PointerStore for Pointers<'_> {
    fn create(&mut self, _goal: u64) -> Result<u32> {
        let block = self.plan.take(1)?[0].0;
        self.plan.contents.insert(block, vec![0; self.plan.layout.block_size as usize]);
        self.made += 1;
        u32::try_from(block).map_err(|_| Ext4Error::Unsupported {
            what: "a block map on a file system of more than 2^32 blocks".into(),
        })
    }

    fn set(&mut self, block: u64, index: usize, pointers: &[u32]) -> Result<()> {
        if let Some(contents) = self.plan.contents.get_mut(&block) {
            for (place, pointer) in contents[index * 4..].chunks_exact_mut(4).zip(pointers) {
                place.copy_from_slice(&pointer.to_le_bytes());
            }
        }
        Ok(())
    }

    fn free(&mut self, block: u64) -> Result<()> {
        unreachable!("a new map only grows, but frees block {block}")
    }
}

impl Plan {
    /// Maps extents into the inode by pointers. Gives the number of pointer blocks.
    pub(super) fn map_by_pointers(
        &mut self,
        inode: &mut RawInode,
        extents: &[Extent],
    ) -> Result<u64> {
        let (size, blocks) = (self.layout.block_size, self.layout.blocks_count);
        let mut map = BlockMap::open(inode.block(), size, blocks, Pointers { plan: self, made: 0 });
        for extent in extents {
            map.insert(*extent)?;
        }
        *inode.block_mut() = map.root();
        Ok(map.into_store().made)
    }
}
