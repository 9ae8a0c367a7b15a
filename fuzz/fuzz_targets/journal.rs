//! Recovery of a log whose blocks are anything. So that the fuzzer need not find checksums and
//! sequence numbers by chance, the log's superblock is mostly right, and a block of the input that
//! begins with a small number gets the header of a journal block of that type.
#![cfg_attr(feature = "libfuzzer", no_main)]

use std::sync::Arc;

use steadfast_block::BlockDevice;
use steadfast_devices::source::Ram;
use steadfast_journal::{FsBlock, Log, LogBlock, LogExtent, recover, recover_dry};

const BLOCK: usize = 1024;
const BLOCKS: u32 = 1024;
const MAGIC: u32 = 0xc03b_3998;
const FIRST_SEQUENCE: u32 = 7;

fn superblock(incompatible: u32, start: u32) -> Vec<u8> {
    let mut sb = vec![0; BLOCK];
    let words = [MAGIC, 4, 0, BLOCK as u32, BLOCKS, 1, FIRST_SEQUENCE, start, 0, 0, incompatible];
    for (at, word) in words.iter().enumerate() {
        sb[at * 4..at * 4 + 4].copy_from_slice(&word.to_be_bytes());
    }
    sb
}

pub fn run(input: &[u8]) {
    let [features, start, rest @ ..] = input else { return };
    // Without checksums: they would keep everything else from being reached.
    let mut contents = superblock(u32::from(features & 0b111), u32::from(*start));
    for piece in rest.chunks(BLOCK).take(64) {
        let mut block = [0; BLOCK];
        block[..piece.len()].copy_from_slice(piece);
        if (1..=5).contains(&piece[0]) {
            let sequence = FIRST_SEQUENCE + u32::from(piece.get(1).unwrap_or(&0) % 4);
            let kind = u32::from(piece[0]);
            for (at, word) in [MAGIC, kind, sequence].iter().enumerate() {
                block[at * 4..at * 4 + 4].copy_from_slice(&word.to_be_bytes());
            }
        }
        contents.extend_from_slice(&block);
    }
    let device: Arc<dyn BlockDevice> =
        Arc::new(Ram::new("log", u64::from(BLOCKS) * 2 * BLOCK as u64));
    device.write(0, contents.into()).unwrap();
    let extent = LogExtent { log_block: LogBlock(0), device_block: 0, len: BLOCKS };
    let Ok(log) = Log::internal(Arc::clone(&device), BLOCK as u32, vec![extent]) else { return };
    let dry = recover_dry(&log, &*device);
    let real = recover(&log, &*device);
    match (&dry, &real) {
        (Ok((would, overlay)), Ok(did)) => {
            assert_eq!(would, did);
            for (FsBlock(block), data) in overlay {
                let at = block * BLOCK as u64;
                // The log itself may be overwritten by what it replays.
                if *block >= u64::from(BLOCKS) {
                    assert_eq!(device.read(at, BLOCK as u64).unwrap(), *data);
                }
            }
            if overlay.keys().all(|b| b.0 >= u64::from(BLOCKS)) {
                assert!(recover(&log, &*device).unwrap().was_clean);
            }
        }
        (Err(_), Err(_)) => {}
        (dry, real) => panic!("dry: {dry:?}, real: {real:?}"),
    }
}

steadfast_fuzz::target!(run);
