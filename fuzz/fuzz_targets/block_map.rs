//! Block maps of ext2 and ext3: direct pointers, one block of pointers, and two and three levels of
//! them, of a file, a directory and a symbolic link. The input replaces the maps in the inodes and
//! the blocks of pointers. They have no checksums.
#![cfg_attr(feature = "libfuzzer", no_main)]

use std::sync::OnceLock;

use steadfast_ext4::Ext4;
use steadfast_ext4_mkfs::Options;
use steadfast_fuzz::image::{BLOCK, Image, ImageBytes, Look, MAP_AT, MAP_BYTES, Recipe};
use steadfast_vfs::{FileSystem, NewNode, OpenFlags, Result};

/// Pointers in an inode, and in a block.
const DIRECT: u64 = 12;
const IN_BLOCK: u64 = BLOCK / 4;

fn fill(fs: &Ext4) -> Result<()> {
    let (_, fh) = fs.create(fs.root(), b"file", NewNode::default(), OpenFlags::WRITE)?;
    let twice = DIRECT + IN_BLOCK;
    let thrice = twice + IN_BLOCK * IN_BLOCK;
    for block in [0, 1, 5, DIRECT, DIRECT + 3, twice, twice + IN_BLOCK, thrice, thrice + IN_BLOCK] {
        fs.write(fh, block * BLOCK, vec![7; BLOCK as usize].into())?;
    }
    fs.release(fh)?;
    let folder = fs.mkdir(fs.root(), b"folder", NewNode { mode: 0o755, ..NewNode::default() })?;
    for n in 0..40 {
        let name = format!("a name of some length: {n}");
        let (_, fh) =
            fs.create(folder.ino, name.as_bytes(), NewNode::default(), OpenFlags::WRITE)?;
        fs.release(fh)?;
    }
    fs.symlink(fs.root(), b"link", &[b't'; 90], NewNode::default()).map(drop)
}

fn places(look: &Look<'_>) -> Vec<ImageBytes> {
    let maps = ["file", "folder", "link"].map(|name| look.inode(look.number(name)) + MAP_AT);
    let mut places = maps.map(|at| ImageBytes { at, len: MAP_BYTES }).to_vec();
    // What one, two and three levels lead to, the first pointer of each block.
    for (level, place) in (1..).zip(DIRECT..DIRECT + 3) {
        let mut block = look.word(maps[0] + place * 4);
        for _ in 0..level {
            places.push(ImageBytes::block(block.into()));
            block = look.word(u64::from(block) * BLOCK);
        }
    }
    places
}

pub fn image() -> &'static Image {
    static IMAGE: OnceLock<Image> = OnceLock::new();
    IMAGE.get_or_init(|| {
        let features = Options::ext2_features();
        Image::new(&Recipe { features, fill, places, ..Recipe::default() })
    })
}

pub fn run(input: &[u8]) {
    image().fuzz(input);
}

steadfast_fuzz::target!(run);
