//! The home mark of a file system that is mounted, or being recovered (see `ondisk/home_mark.rs`).
//!
//! # Order
//!
//! 1. Before a checkpoint's first home write, the mark says the newest transaction that it writes
//!    home, durably: one write with FUA, and none if it says so already.
//! 2. The superblock's images are logged with an older mark. One that goes home gets the present
//!    one on its way.
//! 3. Blocks that a transaction has freed can be taken for data, which is written in place past
//!    the log, only when the mark has reached that transaction. Else a log that ends before it,
//!    in which they still belong to somebody, would be replayed, and a file would show another
//!    one's data. Until then they are not reused, as before the commit.
//!
//! Recovery writes home too and does the same.
//!
//! Only external journals have a mark: a journal inside is on the disk, and of the same time.

use std::sync::{Arc, PoisonError};

use bytes::Bytes;
use steadfast_block::BlockDevice;
use steadfast_ext4_format::ondisk::{
    CHANGES_AT, Incompat, Layout, SUPERBLOCK_LEN, SUPERBLOCK_OFFSET, Superblock,
};
use steadfast_ext4_format::{Ext4Error, Result, superblock};
use steadfast_journal::{CheckpointHook, FsBlock, JournalError, Tid};
use steadfast_runtime::{Mutex, MutexGuard};
use zerocopy::IntoBytes;

/// Ranges of blocks, start to end.
pub(super) type BlockRanges = Vec<(u64, u64)>;

/// The file system's block with the superblock, as it stands on the device.
struct DiskSuperblock {
    block: Vec<u8>,
    /// What the superblock's mark says.
    mark: Option<Tid>,
}

/// The mark, and who writes the superblock to its place.
pub(crate) struct HomeMark {
    device: Arc<dyn BlockDevice>,
    /// The superblock's block, and where it is in there.
    place: (FsBlock, usize),
    /// Held while the superblock is written to its place.
    written: Mutex<DiskSuperblock>,
    /// Blocks whose freeing has been committed and not been reached by the mark, by transaction.
    freed: std::sync::Mutex<FreedBlocks>,
}

#[derive(Default)]
struct FreedBlocks {
    /// File data is written in place, past the log.
    data_in_place: bool,
    /// The mark on the device.
    mark: Option<Tid>,
    held: Vec<(Tid, BlockRanges)>,
    /// Reached by the mark, and not taken yet.
    released: BlockRanges,
}

impl std::fmt::Debug for HomeMark {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("HomeMark").field("mark", &self.freed().mark).finish_non_exhaustive()
    }
}

impl HomeMark {
    /// Of the file system on `device`, whose superblock is whole. `data_in_place`: not all data
    /// will go through the log.
    pub(crate) fn read(
        device: &Arc<dyn BlockDevice>,
        layout: &Layout,
        data_in_place: bool,
    ) -> Result<HomeMark> {
        let (block, offset) = layout.superblock_place();
        let size = layout.block_size as usize;
        let mut bytes = superblock::read_bytes(&**device, block * size as u64, size)?;
        // It may have been torn.
        let within = &mut bytes[offset..offset + SUPERBLOCK_LEN];
        let found = Superblock::parse_mended(within)?;
        within.copy_from_slice(found.as_bytes());
        let mark = Superblock::parse(&bytes[offset..])?.home_mark();
        let freed = FreedBlocks { data_in_place, mark, ..FreedBlocks::default() };
        Ok(HomeMark {
            device: Arc::clone(device),
            place: (FsBlock(block), offset),
            written: Mutex::new(DiskSuperblock { block: bytes, mark }),
            freed: std::sync::Mutex::new(freed),
        })
    }

    fn freed(&self) -> std::sync::MutexGuard<'_, FreedBlocks> {
        self.freed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A committed transaction has freed these blocks.
    pub(crate) fn hold(&self, tid: Tid, blocks: BlockRanges) {
        let mut freed = self.freed();
        match freed.mark {
            Some(mark) if mark.is_at_least(tid) => freed.released.extend(blocks),
            _ if freed.data_in_place => freed.held.push((tid, blocks)),
            _ => freed.released.extend(blocks),
        }
    }

    /// Whether blocks wait for the mark.
    pub(crate) fn holds_blocks(&self) -> bool {
        !self.freed().held.is_empty()
    }

    /// Takes the blocks that the mark has reached.
    pub(crate) fn take_released(&self) -> BlockRanges {
        std::mem::take(&mut self.freed().released)
    }

    /// Who asks knows nothing of freed blocks any more: those that the mark has reached are free,
    /// and these are the others.
    pub(crate) fn forget_released(&self) -> BlockRanges {
        let mut freed = self.freed();
        freed.released.clear();
        freed.held.iter().flat_map(|(_, blocks)| blocks).copied().collect()
    }

    /// Lets `write` write the superblock to its place; nobody else does meanwhile, nor begins a
    /// checkpoint. It returns the superblock as written.
    pub(crate) fn while_written<T>(
        &self,
        write: impl FnOnce() -> Result<(Superblock, T)>,
    ) -> Result<T> {
        let mut written = self.written.lock();
        let (superblock, out) = write()?;
        let offset = self.place.1;
        written.block[offset..][..superblock.as_bytes().len()]
            .copy_from_slice(superblock.as_bytes());
        written.mark = superblock.home_mark();
        self.reached(written.mark);
        Ok(out)
    }

    /// The device's mark is this one: blocks that wait for it are released.
    fn reached(&self, mark: Option<Tid>) {
        let mut freed = self.freed();
        freed.mark = mark;
        let Some(mark) = mark else { return };
        let held = std::mem::take(&mut freed.held);
        for (tid, blocks) in held {
            match mark.is_at_least(tid) {
                true => freed.released.extend(blocks),
                false => freed.held.push((tid, blocks)),
            }
        }
    }

    /// Step 1.
    fn advance(&self, written: &mut MutexGuard<'_, DiskSuperblock>, newest: Tid) -> Result<()> {
        if written.mark.is_some_and(|mark| mark.is_at_least(newest)) {
            return Ok(());
        }
        let offset = self.place.1;
        let mut superblock = Superblock::parse_unchecked(&written.block[offset..])?;
        superblock.set_home_mark(newest);
        if superblock.home_mark() != Some(newest) {
            // It says that nothing is to be replayed.
            self.reached(Some(newest));
            return Ok(());
        }
        written.block[offset..][..superblock.as_bytes().len()]
            .copy_from_slice(superblock.as_bytes());
        let sector = u64::from(self.device.info().logical_block);
        let from = (SUPERBLOCK_OFFSET + CHANGES_AT as u64) / sector * sector;
        // OK to subtract: no sector is larger than a block.
        let at = (from - self.place.0.0 * written.block.len() as u64) as usize;
        let bytes = Bytes::copy_from_slice(&written.block[at..at + sector as usize]);
        self.device.write_fua(from, bytes.into())?;
        written.mark = Some(newest);
        self.reached(written.mark);
        Ok(())
    }

    /// Step 2: the image as it is to go home.
    fn marked(&self, image: &Bytes, mark: Option<Tid>) -> Bytes {
        let offset = self.place.1;
        let Ok(mut superblock) = Superblock::parse(&image[offset..]) else { return image.clone() };
        if let Some(mark) = mark {
            superblock.set_home_mark(mark);
        }
        let mut bytes = image.to_vec();
        bytes[offset..][..superblock.as_bytes().len()].copy_from_slice(superblock.as_bytes());
        bytes.into()
    }

    /// Whether an image of the superblock says that nothing is to be replayed.
    fn is_clean(&self, image: &Bytes) -> bool {
        Superblock::parse(&image[self.place.1..]).is_ok_and(|superblock| {
            !superblock.features().incompat.contains(Incompat::NEEDS_RECOVERY)
        })
    }
}

impl CheckpointHook for HomeMark {
    fn before_checkpoint(
        &self,
        newest: Tid,
        images: &mut [(FsBlock, Bytes)],
    ) -> steadfast_journal::Result<()> {
        let failed = |e: Ext4Error| match e {
            Ext4Error::Block(e) => JournalError::Block(e),
            e => JournalError::Aborted { cause: e.to_string() },
        };
        let mut written = self.written.lock();
        // The last write of an unmount makes all logs things of the past.
        let ends =
            matches!(&*images, [(block, image)] if *block == self.place.0 && self.is_clean(image));
        if !ends {
            self.advance(&mut written, newest).map_err(failed)?;
        }
        let mark = written.mark;
        if let Some((_, image)) = images.iter_mut().find(|(block, _)| *block == self.place.0) {
            *image = self.marked(image, mark);
            written.block.copy_from_slice(image);
        }
        Ok(())
    }
}
