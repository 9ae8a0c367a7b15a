//! The bytes that operations write: each says who wrote it and where.

use super::OperationIndex;

/// What each block of a journal begins with (`JBD2_MAGIC_NUMBER`), as it is on the disk.
const JOURNAL_MAGIC: [u8; 4] = 0xc03b_3998_u32.to_be_bytes();

/// The value that an attribute of so many bytes has.
pub fn attribute(len: usize) -> Vec<u8> {
    (0..len).map(|at| byte(0, len, at as u64)).collect()
}

/// Blocks begin at multiples of this.
const BLOCK_MIN: u64 = 1024;

/// Bytes of one value, one after the other: no power of two, so that no block is like another.
const RUN: u64 = 5;

/// The byte that operation `index` of `task` writes at `at`. Never zero: that is what nobody
/// wrote. Blocks of every other operation begin with the number that a log's own begin with.
pub fn byte(task: usize, index: OperationIndex, at: u64) -> u8 {
    if index % 2 == 1
        && let Some(magic) = JOURNAL_MAGIC.get((at % BLOCK_MIN) as usize)
    {
        return *magic;
    }
    run_byte(task, index, at / RUN)
}

fn run_byte(task: usize, index: OperationIndex, run: u64) -> u8 {
    let seed = (task as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ (index as u64) << 20;
    let mixed = (seed ^ run).wrapping_mul(0xa076_1d64_78bd_642f);
    (mixed >> 40) as u8 | 1
}

/// Fills `out` with what the operation writes from `offset` on: [`byte`] of each, but a run at
/// once, because every state that is judged needs it.
pub fn fill(task: usize, index: OperationIndex, offset: u64, out: &mut [u8]) {
    let mut at = 0;
    while at < out.len() {
        let place = offset + at as u64;
        let to = out.len().min(at + (RUN - place % RUN) as usize);
        out[at..to].fill(run_byte(task, index, place / RUN));
        at = to;
    }
    if index % 2 == 1 {
        let end = offset + out.len() as u64;
        for block in offset / BLOCK_MIN..end.div_ceil(BLOCK_MIN) {
            for (place, magic) in (block * BLOCK_MIN..end).zip(JOURNAL_MAGIC) {
                if let Some(at) = place.checked_sub(offset) {
                    out[at as usize] = magic;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_filled_is_each_byte() {
        for index in [6, 7] {
            for offset in [0, 1, 4, 5, 1019, 1021, 1023, 1024, 1026, 4095] {
                for len in [0, 1, 3, 5, 6, 1024, 2100] {
                    let mut filled = vec![0; len];
                    fill(3, index, offset, &mut filled);
                    let each: Vec<u8> =
                        (offset..offset + len as u64).map(|at| byte(3, index, at)).collect();
                    assert_eq!(filled, each, "operation {index}, {len} bytes at {offset}");
                }
            }
        }
    }
}
