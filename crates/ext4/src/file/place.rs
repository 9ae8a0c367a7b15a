//! Places on the device for blocks of a file.

use steadfast_ext4_format::Result;
use steadfast_ext4_format::extents::Lookup;
use steadfast_ext4_format::ondisk::{Extent, MAX_WRITTEN_LEN};

use super::in_place::is_dax;
use crate::alloc::{BlockRequest, Purpose};
use crate::extents::{ClusterRange, find_extent, map_extent, place_blocks};
use crate::indirect::prepare_map;
use crate::meta::Txn;
use crate::mounted::Ext4;
use crate::state::Inode;

/// Files below this size get no window: they are written whole, at once.
const STREAM_MIN: u64 = 64 << 10;
/// The window of a file that is used in place is so many times as large as the file.
const AHEAD_IN_PLACE: u64 = 8;

/// Maps the hole `[start, end)` file blocks to newly allocated ones. Returns where it ends
/// because the transaction is large enough; at least one block is mapped.
pub(crate) fn place_run(
    fs: &Ext4,
    txn: &mut Txn<'_>,
    inode: &Inode,
    start: u64,
    end: u64,
    purpose: Purpose,
    unwritten: bool,
) -> Result<u64> {
    let size = inode.state().size_written().max(end * fs.volume.block_size());
    // What is used in place is written call by call, and a fast commit holds files of a few
    // extents only: such a file has a window from its second block on, and a large one.
    let window = match start > 0 && is_dax(fs, inode) {
        true => window_blocks(fs, size.saturating_mul(AHEAD_IN_PLACE).max(STREAM_MIN)),
        false => window_blocks(fs, size),
    };
    match purpose {
        Purpose::DelayedData => txn.quota_promised = true,
        Purpose::Data | Purpose::Metadata => txn.quota_asked = true,
    }
    let budget = fs.parts.log.update_blocks_max();
    let mut at = start;
    while at < end && (at == start || txn.changed_blocks() < budget) {
        // OK to cast: files end below 2^32 blocks.
        let logical = at as u32;
        let (goal, room) = prepare_map(txn, inode.no, logical)?;
        let want = (end - at).min(u64::from(MAX_WRITTEN_LEN) - 1).min(room) as u32;
        let request = BlockRequest { goal, want, owner: inode.no, purpose, window };
        let ClusterRange { start, len, taken } = place_blocks(txn, request, logical)?;
        map_extent(txn, inode.no, Extent { logical, len, start, unwritten }, taken)?;
        at += u64::from(len);
    }
    Ok(at)
}

/// Blocks kept free behind a growing file: as many as it has, up to a limit.
pub(crate) fn window_blocks(fs: &Ext4, size: u64) -> u32 {
    if size < STREAM_MIN {
        return 0;
    }
    let most = fs.options.window_max;
    (size.next_power_of_two().min(most) / fs.volume.block_size()) as u32
}

/// The parts of ranges of file blocks that have no place. Who gives a reserved block one takes
/// the reservation away afterwards, so it may still be there.
pub(crate) fn still_holes(
    txn: &Txn<'_>,
    inode: &Inode,
    ranges: Vec<(u64, u64)>,
) -> Result<Vec<(u64, u64)>> {
    let mut holes = Vec::with_capacity(ranges.len());
    for (mut at, end) in ranges {
        while at < end {
            // OK to cast: files end below 2^32 blocks.
            at = match find_extent(txn, inode.no, at as u32)? {
                Lookup::Mapped(e) => e.end(),
                Lookup::Hole { until } => {
                    holes.push((at, until.min(end)));
                    until
                }
            };
        }
    }
    Ok(holes)
}
