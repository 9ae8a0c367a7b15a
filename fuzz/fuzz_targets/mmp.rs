//! The block of multiple-mount protection, and what the superblock says of it. The input replaces
//! both; they have no checksums here (`image`). mkfs does not make the feature: it is set once the
//! image is made. Time is simulated, so the mount's waiting takes none.
#![cfg_attr(feature = "libfuzzer", no_main)]

use std::sync::OnceLock;

use steadfast_devices::store::Store;
use steadfast_fuzz::image::{BLOCK, Image, ImageBytes, Look, Recipe, SUPERBLOCK};

/// Where the superblock has its incompatible features, and which bit is `mmp`.
const FEATURES: u64 = SUPERBLOCK + 0x60;
const MMP: u32 = 0x100;
/// Where it has the interval (two bytes), two bytes of others', and the block's number.
const FIELDS: ImageBytes = ImageBytes { at: SUPERBLOCK + 0x166, len: 10 };
/// A block near the end, where nothing else is.
const OURS: u64 = 4000;

fn protect(store: &mut Store) {
    let bytes = store.read(FEATURES, 4);
    let bits = u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]) | MMP;
    store.write_slice(FEATURES, &bits.to_le_bytes());
    store.write_slice(FIELDS.at, &5u16.to_le_bytes());
    store.write_slice(FIELDS.at + 2, &OURS.to_le_bytes());
    // Its magic number, and that nobody has the file system.
    store.write_slice(OURS * BLOCK, &0x004d_4d50u32.to_le_bytes());
    store.write_slice(OURS * BLOCK + 4, &0xff4d_4d50u32.to_le_bytes());
}

fn places(_: &Look<'_>) -> Vec<ImageBytes> {
    vec![FIELDS, ImageBytes::block(OURS)]
}

pub fn image() -> &'static Image {
    static IMAGE: OnceLock<Image> = OnceLock::new();
    IMAGE.get_or_init(|| Image::new(&Recipe { later: protect, places, ..Recipe::default() }))
}

pub fn run(input: &[u8]) {
    image().fuzz(input);
}

steadfast_fuzz::target!(run);
