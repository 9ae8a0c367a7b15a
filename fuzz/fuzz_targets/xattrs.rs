//! Extended attributes: those in an inode, those in a block, and values in inodes of their own. The
//! input replaces inodes and the block of an image; the checksums of metadata are off (`image`),
//! the hashes of attributes are for the fuzzer to keep: a wrong one is one of the ways to be
//! damaged.
#![cfg_attr(feature = "libfuzzer", no_main)]

use std::sync::OnceLock;

use steadfast_ext4::Ext4;
use steadfast_ext4_format::ondisk::{Features, Incompat};
use steadfast_ext4_mkfs::Options;
use steadfast_fuzz::image::{Image, ImageBytes, Look, Recipe};
use steadfast_vfs::{FileSystem, NewNode, OpenFlags, Result, SetXattr};

/// Where an inode says which block its attributes are in (`i_file_acl_lo`).
const BLOCK_FIELD: u64 = 104;

fn fill(fs: &Ext4) -> Result<()> {
    for name in [&b"inside"[..], b"outside", b"large"] {
        let (attr, fh) = fs.create(fs.root(), name, NewNode::default(), OpenFlags::WRITE)?;
        fs.release(fh)?;
        let set = |name: &[u8], value: &[u8]| fs.setxattr(attr.ino, name, value, SetXattr::Any);
        set(b"user.a", b"one")?;
        set(b"trusted.b", b"")?;
        if name == b"outside" {
            set(b"user.long", &[b'l'; 300])?;
            set(b"security.more", &[b'm'; 200])?;
        }
        if name == b"large" {
            set(b"user.value", &[b'v'; 3000])?;
        }
    }
    Ok(())
}

fn places(look: &Look<'_>) -> Vec<ImageBytes> {
    let [inside, outside, large] = ["inside", "outside", "large"].map(|name| look.number(name));
    // Values get inodes as they come: the next free one.
    let value = look.whole_inode(large + 1);
    let inodes = [inside, outside, large].map(|number| look.whole_inode(number));
    let block = look.word(look.inode(outside) + BLOCK_FIELD);
    let value_block = look.blocks(large + 1, 1);
    inodes.into_iter().chain([value, ImageBytes::block(block.into())]).chain(value_block).collect()
}

pub fn image() -> &'static Image {
    static IMAGE: OnceLock<Image> = OnceLock::new();
    IMAGE.get_or_init(|| {
        let mut features: Features = Options::debian_features();
        features.incompat |= Incompat::EA_INODE;
        Image::new(&Recipe { features, fill, places, ..Recipe::default() })
    })
}

pub fn run(input: &[u8]) {
    image().fuzz(input);
}

steadfast_fuzz::target!(run);
