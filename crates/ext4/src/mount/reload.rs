//! Forgetting everything that is in memory of a volume, and reading it anew: what a rollback
//! leaves is what the log holds.

use std::sync::PoisonError;

use steadfast_ext4_format::Result;
use steadfast_ext4_format::{groups, superblock};
use steadfast_journal::{FsBlock, Overlay};

use crate::meta::{MetaState, Volume};
use crate::stage::{count_free, read_orphans};
use crate::state::{AllocState, XattrBlockCache};

impl Volume {
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
            meta.cache.replace(MetaState::new_cache(cache_blocks));
            meta.superblock = superblock::read(&*self.device, &overlay)?;
            meta.groups = groups::read(&*self.device, &self.layout, &overlay)?;
            meta.alloc = AllocState::default();
            meta.xattr_blocks = XattrBlockCache::default();
            let (free_blocks, free_inodes) = count_free(&self.layout, &meta.groups);
            let held = self.home.as_ref().map(|home| home.forget_released()).unwrap_or_default();
            held.iter().for_each(|(start, end)| meta.alloc.rest(*start, *end));
            let mut space = self.space();
            (space.free_blocks, space.free_inodes) = (free_blocks, free_inodes);
            (space.delayed_blocks, space.settled_blocks) = (0, 0);
            space.resting_blocks = held.iter().map(|(start, end)| end - start).sum();
        }
        self.free.freed_committed.lock().unwrap_or_else(PoisonError::into_inner).clear();
        if let Some(fresh) = &self.free.fresh {
            fresh.clear();
        }
        read_orphans(self)
    }

    /// The blocks of the superblock and the descriptors, as far as they are in the log.
    fn logged_tables(&self) -> Overlay {
        let layout = &self.layout;
        let mut blocks: Vec<u64> = layout.all_groups().map(|g| layout.desc_place(g).0).collect();
        blocks.push(layout.superblock_place().0);
        let images = blocks.into_iter().map(|b| (FsBlock(b), self.log.image(b)));
        images.filter_map(|(block, image)| Some((block, image?))).collect()
    }
}
