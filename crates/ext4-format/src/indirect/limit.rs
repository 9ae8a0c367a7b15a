//! How long a file with a block map can be.

use super::DIRECT;

/// Blocks that a map reaches, and that `i_blocks` can count together with the pointer blocks:
/// 2^32 sectors, or with the `huge_file` feature 2^48 (kernel: `ext4_max_bitmap_size`).
pub fn blocks_max(block_size: u32, huge_file: bool) -> u64 {
    let per = u64::from(block_size / 4);
    let reach = (DIRECT + per + per * per + per * per * per).min((1 << 32) - 1);
    let sectors: u64 = if huge_file { (1 << 48) - 1 } else { (1 << 32) - 1 };
    let storage = sectors / u64::from(block_size / 512);
    // The largest number that fits, by bisection: it grows with the number of data blocks.
    let (mut fits, mut too_many) = (0, reach + 1);
    while too_many - fits > 1 {
        let middle = fits + (too_many - fits) / 2;
        if middle + pointer_blocks(middle, per) <= storage {
            fits = middle;
        } else {
            too_many = middle;
        }
    }
    fits
}

/// Pointer blocks of a file of so many blocks without holes.
fn pointer_blocks(blocks: u64, per: u64) -> u64 {
    let single = blocks.saturating_sub(DIRECT);
    let double = single.saturating_sub(per);
    let triple = double.saturating_sub(per * per);
    let leaves = single.div_ceil(per);
    let below_double = double.min(per * per).div_ceil(per * per);
    let below_triple = triple.div_ceil(per * per) + u64::from(triple > 0);
    leaves + below_double + below_triple
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pointers_or_sectors_are_the_limit() {
        assert_eq!(blocks_max(1024, false), 12 + 256 + 256 * 256 + 256 * 256 * 256);
        assert_eq!(blocks_max(4096, true), 12 + 1024 + (1 << 20) + (1 << 30));
        // 2 TiB of sectors, some for the pointers.
        let n = blocks_max(4096, false);
        let most = ((1u64 << 32) - 1) / 8;
        assert!(n < most && n + pointer_blocks(n, 1024) <= most);
        assert!(n + 1 + pointer_blocks(n + 1, 1024) > most);
        assert_eq!(pointer_blocks(12, 256), 0);
        assert_eq!(pointer_blocks(13, 256), 1);
        assert_eq!(pointer_blocks(12 + 257, 256), 3);
        assert_eq!(pointer_blocks(12 + 256 + 65536 + 1, 256), 1 + 256 + 1 + 3);
    }
}
