//! One to four places of an image are changed.

use steadfast_block::rng::Rng;

/// What files are filled with. Blocks that begin so are not worth changing.
pub const CONTENTS: &[u8; 16] = b"contents of file";
const BLOCK: usize = 1024;
/// Numbers that programs get wrong.
const NUMBERS: [u64; 12] = [
    0,
    1,
    2,
    7,
    0x7f,
    0xff,
    0xffff,
    0x7fff_ffff,
    0xffff_ffff,
    0x8000_0000,
    u64::MAX,
    0x7fff_ffff_ffff_ffff,
];

/// Changes the image; what was done, in words.
pub fn mutate(image: &mut [u8], rng: &mut Rng) -> String {
    let blocks: Vec<usize> = (0..image.len() / BLOCK)
        .filter(|b| {
            let bytes = &image[b * BLOCK..][..BLOCK];
            // Zeros as one comparison: byte by byte, without optimisation, it takes a fifth of all.
            !bytes.starts_with(CONTENTS) && bytes != [0; BLOCK]
        })
        .collect();
    let mut changes = Vec::new();
    let places = if rng.percent(60) { 1 } else { 2 + rng.below(3) };
    for _ in 0..places {
        changes.push(change(image, &blocks, rng));
    }
    changes.join("; ")
}

fn change(image: &mut [u8], blocks: &[usize], rng: &mut Rng) -> String {
    let pick = |rng: &mut Rng| blocks[rng.below(blocks.len() as u64) as usize] * BLOCK;
    // The superblock is one block of hundreds, and the first that everybody reads.
    let block = if rng.percent(15) { BLOCK } else { pick(rng) };
    let at = block + used_offset(&image[block..][..BLOCK], rng);
    match rng.below(10) {
        0 | 1 => {
            image[at] ^= 1 << rng.below(8);
            format!("a bit at {at}")
        }
        2..=5 => {
            let (width, value) = (1 << rng.below(4), number(rng));
            let at = at & !(width - 1);
            image[at..at + width].copy_from_slice(&value.to_le_bytes()[..width]);
            format!("{value} in {width} bytes at {at}")
        }
        6 | 7 => {
            let from = pick(rng);
            let len = 1 << rng.below(9);
            let (from, to) = (from + used_offset(&image[from..][..BLOCK], rng), at);
            let (from, to) = (from & !3, to & !3);
            let len = len.min(image.len() - from.max(to));
            image.copy_within(from..from + len, to);
            format!("{len} bytes of {from} to {to}")
        }
        8 => {
            let len = (1 << rng.below(10)).min(image.len() - at);
            image[at..at + len].fill(0);
            format!("{len} zeros at {at}")
        }
        _ => {
            let from = pick(rng);
            image.copy_within(from..from + BLOCK, block);
            format!("the block at {from} to {block}")
        }
    }
}

fn number(rng: &mut Rng) -> u64 {
    match rng.below(3) {
        0 => NUMBERS[rng.below(NUMBERS.len() as u64) as usize],
        // Inode and block numbers of the image.
        1 => rng.below(64),
        _ => rng.below(12 << 10),
    }
}

/// A byte that is not zero, or one of the eight after it: where a structure is.
fn used_offset(block: &[u8], rng: &mut Rng) -> usize {
    let start = rng.below(BLOCK as u64) as usize;
    let used = (start..BLOCK).chain(0..start).find(|i| block[*i] != 0).unwrap_or(start);
    (used + rng.below(8) as usize).min(BLOCK - 1)
}
