//! The newest committed images that are not checkpointed, by block.
//!
//! Transactions and checkpoints process blocks in order, and there may be hundreds of thousands of
//! images. So adjacent blocks are grouped: one table lookup finds eight.

use bytes::Bytes;
use rustc_hash::FxHashMap;

use crate::{FsBlock, Tid};

/// Blocks in a group.
const GROUP: u64 = 8;

/// An image that is committed and not yet home.
pub(crate) struct Newest {
    pub tid: Tid,
    pub image: Bytes,
}

/// Blocks whose numbers differ in the last three bits only.
#[derive(Default)]
struct Group {
    images: [Option<Newest>; GROUP as usize],
    used: u8,
}

/// See the module's text.
#[derive(Default)]
pub(crate) struct Images {
    /// None is empty.
    groups: FxHashMap<u64, Box<Group>>,
    len: usize,
}

/// The group of a block, and its place there.
fn place(block: FsBlock) -> (u64, usize) {
    (block.0 / GROUP, (block.0 % GROUP) as usize)
}

impl Images {
    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    pub(crate) fn get(&self, block: FsBlock) -> Option<&Newest> {
        let (group, at) = place(block);
        self.groups.get(&group)?.images[at].as_ref()
    }

    /// Puts an image in the place of the one that there was.
    pub(crate) fn insert(&mut self, block: FsBlock, newest: Newest) -> Option<Newest> {
        let (group, at) = place(block);
        let group = self.groups.entry(group).or_default();
        let older = group.images[at].replace(newest);
        if older.is_none() {
            group.used += 1;
            self.len += 1;
        }
        older
    }

    pub(crate) fn remove(&mut self, block: FsBlock) -> Option<Newest> {
        self.remove_if(block, |_| true)
    }

    /// Removes an image that is as asked for.
    pub(crate) fn remove_if(
        &mut self,
        block: FsBlock,
        wanted: impl FnOnce(&mut Newest) -> bool,
    ) -> Option<Newest> {
        let (number, at) = place(block);
        let group = self.groups.get_mut(&number)?;
        let removed = group.images[at].take_if(wanted)?;
        group.used -= 1;
        self.len -= 1;
        if group.used == 0 {
            self.groups.remove(&number);
        }
        Some(removed)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn as_a_map(steps in proptest::collection::vec((0u64..40, 0u32..4, 0u8..4), 0..200)) {
            let (mut images, mut model) = (Images::default(), BTreeMap::new());
            for (block, tid, what) in steps {
                let block = FsBlock(block);
                let newest = Newest { tid: Tid(tid), image: Bytes::new() };
                let (got, want) = match what {
                    0 => (images.remove(block), model.remove(&block)),
                    1 => {
                        let is_there = model.get(&block) == Some(&tid);
                        let want = if is_there { model.remove(&block) } else { None };
                        (images.remove_if(block, |n| n.tid == Tid(tid)), want)
                    }
                    _ => (images.insert(block, newest), model.insert(block, tid)),
                };
                prop_assert_eq!(got.map(|n| n.tid.0), want);
                prop_assert_eq!(images.len(), model.len());
                prop_assert!(images.groups.values().all(|group| group.used > 0));
                let got = images.get(block).map(|n| n.tid.0);
                prop_assert_eq!(got, model.get(&block).copied());
            }
        }
    }
}
