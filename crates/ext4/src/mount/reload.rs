//! Forgetting everything that is in memory of a volume, and reading it anew: what a rollback
//! leaves is what the log holds.

use steadfast_ext4_format::{Result, groups, superblock};
use steadfast_journal::{FsBlock, Overlay};

use crate::meta::{BlockCache, Parts};
use crate::stage::{count_free, read_orphans};
use crate::state::XattrBlockCache;

impl Parts {
    /// Reads superblock, group descriptors and orphans again, from the log where it has newer
    /// ones than the device; caches begin empty. Nobody uses the volume meanwhile, and nothing
    /// uncommitted is in the log.
    ///
    /// # Errors
    /// As for a mount; the volume is of no use then.
    pub(crate) fn reload(&self, cache_blocks: usize) -> Result<()> {
        self.inodes.clear();
        let overlay = self.logged_tables();
        {
            let mut meta = self.lock_meta();
            // A lookup that was still on its way has learnt its name before this.
            self.names.clear();
            meta.cache.replace(BlockCache::new(cache_blocks));
            meta.superblock = superblock::read(&*self.volume.device, &overlay)?;
            meta.groups = groups::read(&*self.volume.device, &self.volume.layout, &overlay)?;
            meta.xattr_blocks = XattrBlockCache::default();
            let (free_blocks, free_inodes) = count_free(&self.volume.layout, &meta.groups);
            self.allocator.reset(&mut meta.alloc, free_blocks, free_inodes);
        }
        self.allocator.forget_committed();
        self.quotas.forget_delayed();
        read_orphans(self)
    }

    /// The blocks of the superblock and the descriptors, as far as they are in the log.
    fn logged_tables(&self) -> Overlay {
        let layout = &self.volume.layout;
        let mut blocks: Vec<u64> = layout.all_groups().map(|g| layout.desc_place(g).0).collect();
        blocks.push(layout.superblock_place().0);
        let images = blocks.into_iter().map(|b| (FsBlock(b), self.log.image(b)));
        images.filter_map(|(block, image)| Some((block, image?))).collect()
    }
}
