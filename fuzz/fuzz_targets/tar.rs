//! Tar archives, member by member with their data. The checksums of headers are made right if the
//! input says so, which the fuzzer could not guess.
#![cfg_attr(feature = "libfuzzer", no_main)]

use steadfast_tar::{MemberKind, Reader};

const BLOCK: usize = 512;
const CHECKSUM: std::ops::Range<usize> = 148..156;

pub fn run(input: &[u8]) {
    let Some((how, rest)) = input.split_first() else { return };
    let mut archive = rest.to_vec();
    for block in archive.chunks_exact_mut(BLOCK).filter(|block| &block[257..262] == b"ustar") {
        if how & 1 == 1 {
            block[CHECKSUM].fill(b' ');
            let sum: u32 = block.iter().map(|byte| u32::from(*byte)).sum();
            block[CHECKSUM].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
        }
    }
    let mut reader = Reader::new(&archive[..]);
    let mut buffer = [0; 4096];
    let mut all = 0;
    while let Ok(Some(member)) = reader.next_member() {
        let mut end = 0;
        while let Ok(Some((at, len))) = reader.data(&mut buffer) {
            assert!(member.kind == MemberKind::File && member.refused.is_none());
            assert!(at >= end && at + len as u64 <= member.size, "{at} {len}");
            end = at + len as u64;
            all += len;
        }
    }
    assert!(all <= archive.len());
}

steadfast_fuzz::target!(run);
