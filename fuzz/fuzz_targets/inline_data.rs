//! Contents in inodes: a file of which a part is in the attribute `system.data`, a short one, a
//! directory and a symbolic link. The input replaces their inodes; there are no checksums of
//! metadata (`image`). mkfs does not make the feature: its bit is set once the image is made.
#![cfg_attr(feature = "libfuzzer", no_main)]

use std::sync::OnceLock;

use steadfast_devices::store::Store;
use steadfast_ext4::Ext4;
use steadfast_fuzz::image::{Image, ImageBytes, Look, Recipe, SUPERBLOCK};
use steadfast_vfs::{FileSystem, NewNode, OpenFlags, Result};

/// Where the superblock has its incompatible features, and which bit is `inline_data`.
const FEATURES: u64 = SUPERBLOCK + 0x60;
const INLINE_DATA: u32 = 0x8000;

const NAMES: [&str; 4] = ["short", "long", "folder", "link"];

fn set_bit(store: &mut Store) {
    let bytes = store.read(FEATURES, 4);
    let bits = u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]) | INLINE_DATA;
    store.write_slice(FEATURES, &bits.to_le_bytes());
}

fn fill(fs: &Ext4) -> Result<()> {
    for (name, len) in [(&b"short"[..], 20), (b"long", 100)] {
        let (_, fh) = fs.create(fs.root(), name, NewNode::default(), OpenFlags::WRITE)?;
        fs.write(fh, 0, vec![b's'; len].into())?;
        fs.release(fh)?;
    }
    let folder = fs.mkdir(fs.root(), b"folder", NewNode { mode: 0o755, ..NewNode::default() })?;
    for name in [&b"a"[..], b"another", b"third name"] {
        let (_, fh) = fs.create(folder.ino, name, NewNode::default(), OpenFlags::WRITE)?;
        fs.release(fh)?;
    }
    fs.symlink(fs.root(), b"link", &[b't'; 90], NewNode::default()).map(drop)
}

fn places(look: &Look<'_>) -> Vec<ImageBytes> {
    NAMES.map(|name| look.whole_inode(look.number(name))).to_vec()
}

pub fn image() -> &'static Image {
    static IMAGE: OnceLock<Image> = OnceLock::new();
    IMAGE.get_or_init(|| Image::new(&Recipe { later: set_bit, fill, places, ..Recipe::default() }))
}

pub fn run(input: &[u8]) {
    image().fuzz(input);
}

steadfast_fuzz::target!(run);
