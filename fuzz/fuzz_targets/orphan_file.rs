//! The orphan file, and the list of orphans in the superblock, at the mount after a power cut. The
//! input replaces both, and the inodes of two orphans: a file to delete and one to cut. There are
//! no checksums of metadata (`image`).
#![cfg_attr(feature = "libfuzzer", no_main)]

use std::sync::OnceLock;

use steadfast_ext4::Ext4;
use steadfast_ext4_format::ondisk::{Compat, Features};
use steadfast_ext4_mkfs::Options;
use steadfast_fuzz::image::{Image, ImageBytes, Look, Recipe, SUPERBLOCK};
use steadfast_vfs::{FileSystem, NewNode, OpenFlags, Result};

/// Where the superblock has the first of the list (`s_last_orphan`), and the number of the file's
/// inode (`s_orphan_file_inum`).
const LIST: ImageBytes = ImageBytes { at: SUPERBLOCK + 0xe8, len: 4 };
const FILE: u64 = SUPERBLOCK + 0x280;
/// The first inode that is nobody's.
const FIRST: u32 = 11;

fn fill(fs: &Ext4) -> Result<()> {
    for name in [&b"deleted"[..], b"also deleted", b"stays"] {
        let (_, fh) = fs.create(fs.root(), name, NewNode::default(), OpenFlags::WRITE)?;
        fs.write(fh, 0, vec![7; 5000].into())?;
        if name != b"stays" {
            // Its handle is not given back: it is open when the power is cut.
            fs.unlink(fs.root(), name)?;
        }
    }
    fs.sync()
}

fn places(look: &Look<'_>) -> Vec<ImageBytes> {
    let file = look.word(FILE);
    let mut places = vec![LIST, look.whole_inode(file)];
    places.extend(look.blocks(file, 2));
    places.extend((FIRST..FIRST + 6).map(|number| look.whole_inode(number)));
    places
}

pub fn image() -> &'static Image {
    static IMAGE: OnceLock<Image> = OnceLock::new();
    IMAGE.get_or_init(|| {
        let mut features: Features = Options::debian_features();
        features.compat |= Compat::ORPHAN_FILE;
        Image::new(&Recipe { features, fill, places, cut: true, ..Recipe::default() })
    })
}

pub fn run(input: &[u8]) {
    image().fuzz(input);
}

steadfast_fuzz::target!(run);
