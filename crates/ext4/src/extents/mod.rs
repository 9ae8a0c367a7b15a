//! The extent trees of files in a transaction: blocks are mapped, unmapped and moved.

mod clusters;
pub(crate) mod file;
mod shift;

pub(crate) use clusters::{ClusterRange, place_blocks};
pub use file::next_extent;
pub(crate) use file::{
    add_blocks, append_block, block_goal, block_of, find_extent, last_extents, map_extent,
    map_metadata_block, mark_written, remove_from_map, unmap_blocks,
};
pub(crate) use shift::{extent_at_or_before, mark_unwritten, move_extent};
