//! The hash of a name, which orders an indexed directory.
//!
//! Three functions exist (superblock `s_def_hash_version`, and again in each index root): the
//! legacy one, half MD4 and TEA. Each comes in two variants, because the first implementation
//! used the machine's `char`: bytes of 0x80 and more count as negative or as positive. Which of
//! them a file system uses stands in `s_flags`. Source: the kernel's fs/ext4/hash.c.
//!
//! The lowest bit of a hash is always clear; in an index it marks a leaf whose first names have
//! the same hash as the last names of the leaf before it.

use crate::ondisk::HashVersion;

/// A name's hash: `major` places it in the index, `minor` orders names of equal `major` when a
/// directory is read (always 0 for the legacy function).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct NameHash {
    /// Bit 0 clear; at most 0xffff_fffc.
    pub major: u32,
    /// All 32 bits.
    pub minor: u32,
}

/// How a file system hashes: the parts that are the same for all its directories.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HashSeed {
    /// `s_hash_seed`; all zeros stands for MD4's initial state.
    pub words: [u32; 4],
    /// Bytes of 0x80 and more count as positive (`s_flags` has UNSIGNED_HASH).
    pub unsigned: bool,
}

const MD4_INITIAL: [u32; 4] = [0x6745_2301, 0xefcd_ab89, 0x98ba_dcfe, 0x1032_5476];

/// The largest hash would be taken for the end of the directory by 32-bit readers.
const EOF: u32 = 0x7fff_ffff << 1;

/// The hash of `name`.
pub fn hash_name(version: HashVersion, seed: &HashSeed, name: &[u8]) -> NameHash {
    let mut state = if seed.words == [0; 4] { MD4_INITIAL } else { seed.words };
    let widen = |b: u8| if seed.unsigned { u32::from(b) } else { b as i8 as u32 };
    let (major, minor) = match version {
        HashVersion::Legacy => (legacy(name, widen), 0),
        HashVersion::HalfMd4 => {
            for start in (0..name.len()).step_by(32) {
                half_md4(&mut state, &words::<8>(&name[start..], widen));
            }
            (state[1], state[2])
        }
        HashVersion::Tea => {
            for start in (0..name.len()).step_by(16) {
                tea(&mut state, &words::<4>(&name[start..], widen));
            }
            (state[0], state[1])
        }
    };
    let major = major & !1;
    NameHash { major: if major == EOF { EOF - 2 } else { major }, minor }
}

fn legacy(name: &[u8], widen: impl Fn(u8) -> u32) -> u32 {
    let (mut last, mut before) = (0x12a3_fe2d_u32, 0x37ab_e8f9_u32);
    for b in name {
        let mut next = before.wrapping_add(last ^ widen(*b).wrapping_mul(7_152_373));
        if next & 0x8000_0000 != 0 {
            next = next.wrapping_sub(0x7fff_ffff);
        }
        (before, last) = (last, next);
    }
    last << 1
}

/// The next `N` words of input: four bytes each, the first highest; what the name does not fill
/// is filled with its remaining length.
fn words<const N: usize>(rest: &[u8], widen: impl Fn(u8) -> u32) -> [u32; N] {
    let len = rest.len() as u32;
    let mut pad = len | (len << 8);
    pad |= pad << 16;
    let mut out = [pad; N];
    for (word, bytes) in out.iter_mut().zip(rest.chunks(4)) {
        *word = bytes.iter().fold(pad, |w, b| widen(*b).wrapping_add(w << 8));
    }
    out
}

fn tea(state: &mut [u32; 4], input: &[u32; 4]) {
    let (mut x, mut y, mut sum) = (state[0], state[1], 0_u32);
    let [a, b, c, d] = *input;
    for _ in 0..16 {
        sum = sum.wrapping_add(0x9e37_79b9);
        x = x.wrapping_add(
            (y << 4).wrapping_add(a) ^ y.wrapping_add(sum) ^ (y >> 5).wrapping_add(b),
        );
        y = y.wrapping_add(
            (x << 4).wrapping_add(c) ^ x.wrapping_add(sum) ^ (x >> 5).wrapping_add(d),
        );
    }
    state[0] = state[0].wrapping_add(x);
    state[1] = state[1].wrapping_add(y);
}

/// MD4 (RFC 1320) with half of each round's steps: eight words a block instead of sixteen.
fn half_md4(state: &mut [u32; 4], input: &[u32; 8]) {
    type Mix = fn(u32, u32, u32) -> u32;
    const ROUNDS: [(Mix, u32, [usize; 8], [u32; 4]); 3] = [
        (|x, y, z| z ^ (x & (y ^ z)), 0, [0, 1, 2, 3, 4, 5, 6, 7], [3, 7, 11, 19]),
        (
            |x, y, z| (x & y).wrapping_add((x ^ y) & z),
            0x5a82_7999,
            [1, 3, 5, 7, 0, 2, 4, 6],
            [3, 5, 9, 13],
        ),
        (|x, y, z| x ^ y ^ z, 0x6ed9_eba1, [3, 7, 2, 6, 1, 5, 0, 4], [3, 9, 11, 15]),
    ];
    let [mut a, mut b, mut c, mut d] = *state;
    for (mix, constant, order, shifts) in ROUNDS {
        for (step, word) in order.into_iter().enumerate() {
            let sum = a
                .wrapping_add(mix(b, c, d))
                .wrapping_add(input[word])
                .wrapping_add(constant)
                .rotate_left(shifts[step % 4]);
            (a, b, c, d) = (d, sum, b, c);
        }
    }
    for (word, add) in state.iter_mut().zip([a, b, c, d]) {
        *word = word.wrapping_add(add);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    /// What debugfs says: its hash versions 3 to 5 are the unsigned variants.
    fn debugfs(
        version: HashVersion,
        seed: &str,
        unsigned: bool,
        names: &[String],
    ) -> Vec<NameHash> {
        let number = version.code() + if unsigned { 3 } else { 0 };
        let script: String = names
            .iter()
            .map(|name| format!("dx_hash -h {number} -s {seed} \"{name}\"\n"))
            .collect();
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("script");
        std::fs::write(&file, script).unwrap();
        let out = Command::new("debugfs").arg("-f").arg(&file).output().unwrap();
        let text = String::from_utf8_lossy(&out.stdout);
        text.lines()
            .filter_map(|line| line.rsplit_once(" is 0x")?.1.split_once(" (minor 0x"))
            .map(|(major, minor)| NameHash {
                major: u32::from_str_radix(major, 16).unwrap(),
                minor: u32::from_str_radix(minor.trim_end_matches(')'), 16).unwrap(),
            })
            .collect()
    }

    fn names() -> Vec<String> {
        let letters: Vec<char> = "abcXYZ019._+éßñ漢字🦀ÿ".chars().collect();
        (0..300_usize)
            .map(|i| {
                let letter = |j| letters[(i * 7 + j * (i + 3)) % letters.len()];
                (0..i % 60 + 1).map(letter).collect::<String>()
            })
            .filter(|name| name.len() <= 255)
            .collect()
    }

    #[test]
    fn hashes_are_those_of_debugfs() {
        let seeds = [
            ("00000000-0000-0000-0000-000000000000", [0; 4]),
            (
                "11223344-5566-7788-99aa-bbccddeeff00",
                [0x4433_2211, 0x8877_6655, 0xccbb_aa99, 0x00ff_eedd],
            ),
        ];
        let names = names();
        for version in [HashVersion::Legacy, HashVersion::HalfMd4, HashVersion::Tea] {
            for (text, words) in seeds {
                for unsigned in [false, true] {
                    let seed = HashSeed { words, unsigned };
                    let ours: Vec<_> =
                        names.iter().map(|n| hash_name(version, &seed, n.as_bytes())).collect();
                    assert_eq!(ours, debugfs(version, text, unsigned, &names), "{version:?}");
                }
            }
        }
    }
}
