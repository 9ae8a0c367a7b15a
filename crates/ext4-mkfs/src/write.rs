//! Puts the plan on the device.

use std::collections::VecDeque;
use std::sync::Arc;

use bytes::Bytes;
use steadfast_block::{BlockDevice, Completion, Payload, Request};
use steadfast_ext4_format::ondisk::{
    GroupFlags, GroupNo, Layout, SUPERBLOCK_LEN, SUPERBLOCK_OFFSET, Superblock,
};
use steadfast_ext4_format::{Result, bitmap};
use zerocopy::IntoBytes;

use crate::options::{Contents, Options};
use crate::plan::Plan;

/// Zeros are written in pieces of this many bytes.
const ZEROS: usize = 1 << 20;
/// Requests in flight.
const IN_FLIGHT: usize = 32;

/// Writes blocks, several at once, and counts bytes.
struct Writer<'a> {
    device: &'a Arc<dyn BlockDevice>,
    block_size: u64,
    in_flight: VecDeque<Completion>,
    written: u64,
}

impl Writer<'_> {
    fn put(&mut self, block: u64, data: Payload) -> Result<()> {
        let offset = block * self.block_size;
        self.written += data.len() as u64;
        let done = self.device.submit(Request::Write { offset, data, fua: false });
        self.in_flight.push_back(done);
        if self.in_flight.len() > IN_FLIGHT
            && let Some(oldest) = self.in_flight.pop_front()
        {
            oldest.wait()?;
        }
        Ok(())
    }

    fn zero(&mut self, block: u64, count: u64) -> Result<()> {
        let zeros = Bytes::from(vec![0; ZEROS]);
        let per_piece = ZEROS as u64 / self.block_size;
        let mut at = 0;
        while at < count {
            let n = per_piece.min(count - at);
            self.put(block + at, zeros.slice(..(n * self.block_size) as usize).into())?;
            at += n;
        }
        Ok(())
    }

    fn finish(self) -> Result<u64> {
        Completion::wait_all(&self.in_flight)?;
        Ok(self.written)
    }
}

/// Wipes the old superblock and writes everything but the new one and the journal. Gives the
/// bytes written.
pub(super) fn write(
    device: &Arc<dyn BlockDevice>,
    plan: &mut Plan,
    options: &Options,
) -> Result<u64> {
    let layout = plan.layout.clone();
    let block_size = u64::from(layout.block_size);
    let head = layout.superblock_place().0 + 1;
    let mut w = Writer { device, block_size, in_flight: VecDeque::new(), written: 0 };
    w.zero(0, head)?;
    write_bitmaps(&mut w, plan)?;
    write_inode_tables(&mut w, plan, options)?;
    for (block, bytes) in std::mem::take(&mut plan.contents) {
        w.put(block, bytes.into())?;
    }
    for (group, desc) in plan.groups.iter_mut().enumerate() {
        layout.checksums.set_group_desc(GroupNo(group as u32), desc);
    }
    let descs = descriptor_blocks(&layout, plan);
    let kbytes = (w.written + block_size * (1 + u64::from(layout.desc_blocks))) / 1024;
    plan.sb.kbytes_written.set(kbytes);
    plan.sb.update_checksum();
    let bs = layout.block_size as usize;
    let behind = descs.slice(..layout.first_meta_bg as usize * bs);
    for group in layout.all_groups() {
        let has_superblock = layout.has_superblock(group);
        // With clusters and blocks of 1 KiB the first group begins before its superblock.
        let start = match group.0 {
            0 => layout.superblock_place().0,
            _ => layout.group_start(group),
        };
        if let Some(n) = layout.meta_desc_block(group) {
            let place = start + u64::from(has_superblock);
            w.put(place, descs.slice(n as usize * bs..(n as usize + 1) * bs).into())?;
        } else if has_superblock && !behind.is_empty() {
            w.put(start + 1, behind.clone().into())?;
        }
        if has_superblock && group.0 > 0 {
            let mut copy = plan.sb;
            copy.block_group.set(group.0 as u16);
            copy.update_checksum();
            let mut block = vec![0; bs];
            block[..SUPERBLOCK_LEN].copy_from_slice(copy.as_bytes());
            w.put(start, block.into())?;
        }
    }
    w.finish()
}

/// The group descriptors as they lie on disk, padded to whole blocks.
fn descriptor_blocks(layout: &Layout, plan: &Plan) -> Bytes {
    let mut descs = vec![0; (layout.desc_blocks * layout.block_size) as usize];
    for (place, d) in descs.chunks_exact_mut(usize::from(layout.desc_size)).zip(&plan.groups) {
        d.write_to(place);
    }
    descs.into()
}

/// A bitmap of a whole block in which everything from bit `len` on is set.
fn padded_bitmap(block_size: u32, len: u32) -> Vec<u8> {
    let mut bits = vec![0; block_size as usize];
    bitmap::set(&mut bits, len, block_size * 8 - len);
    bits
}

/// Writes the bitmaps of the groups that have been initialised; their checksums go into the
/// descriptors.
fn write_bitmaps(w: &mut Writer, plan: &mut Plan) -> Result<()> {
    let layout = &plan.layout;
    for group in layout.all_groups() {
        let desc = &mut plan.groups[group.0 as usize];
        if !desc.flags().contains(GroupFlags::BLOCK_UNINIT) {
            let start = layout.group_start(group);
            let blocks = u64::from(layout.blocks_in_group(group));
            let ratio = u64::from(layout.blocks_per_cluster);
            let mut bits = padded_bitmap(layout.block_size, layout.clusters_in_group(group));
            for (from, to) in plan.space.used_in(start, start + blocks) {
                let (from, to) = ((from - start) / ratio, (to - start).div_ceil(ratio));
                bitmap::set(&mut bits, from as u32, (to - from) as u32);
            }
            layout.checksums.set_block_bitmap(&bits, layout.clusters_per_group(), desc);
            w.put(desc.block_bitmap(), bits.into())?;
        }
        if !desc.flags().contains(GroupFlags::INODE_UNINIT) {
            let ipg = layout.inodes_per_group;
            let mut bits = padded_bitmap(layout.block_size, ipg);
            let first = layout.inode_number(group, 0);
            let last = layout.inode_number(group, ipg - 1);
            for (ino, _) in plan.inodes.range(first..=last) {
                bitmap::set(&mut bits, ino.0 - first.0, 1);
            }
            layout.checksums.set_inode_bitmap(&bits, ipg, desc);
            w.put(desc.inode_bitmap(), bits.into())?;
        }
    }
    Ok(())
}

/// Writes the used part of the inode tables, and zeros the rest where it has to be.
fn write_inode_tables(w: &mut Writer, plan: &Plan, options: &Options) -> Result<()> {
    let layout = &plan.layout;
    let lazy = options.contents == Contents::Unknown && layout.features.group_checksums();
    let inode_size = usize::from(layout.inode_size);
    for group in layout.all_groups() {
        let table = plan.tables[group.0 as usize].inode_table;
        let first = layout.inode_number(group, 0);
        let last = layout.inode_number(group, layout.inodes_per_group - 1);
        let used = plan.inodes.range(first..=last);
        let high = used.clone().next_back().map_or(0, |(ino, _)| ino.0 - first.0 + 1);
        let blocks = u64::from(high.div_ceil(layout.inodes_per_block()));
        if blocks > 0 {
            let mut bytes = vec![0; blocks as usize * layout.block_size as usize];
            for (ino, inode) in used {
                let at = (ino.0 - first.0) as usize * inode_size;
                bytes[at..at + inode_size].copy_from_slice(inode.as_bytes());
            }
            w.put(table, bytes.into())?;
        }
        if !lazy && options.contents != Contents::Zeros {
            w.zero(table + blocks, u64::from(layout.inode_table_blocks) - blocks)?;
        }
    }
    Ok(())
}

/// Makes what was written durable, then writes the primary superblock, durable on return.
pub(super) fn commit(device: &Arc<dyn BlockDevice>, plan: &Plan) -> Result<()> {
    device.flush()?;
    let (block, offset) = plan.layout.superblock_place();
    let bytes = superblock_block(&plan.layout, &plan.sb, offset);
    device.write(block * u64::from(plan.layout.block_size), bytes.into())?;
    device.flush()?;
    Ok(())
}

fn superblock_block(layout: &Layout, sb: &Superblock, offset: usize) -> Vec<u8> {
    debug_assert!(offset as u64 == SUPERBLOCK_OFFSET || offset == 0);
    let mut block = vec![0; layout.block_size as usize];
    block[offset..offset + SUPERBLOCK_LEN].copy_from_slice(sb.as_bytes());
    block
}
