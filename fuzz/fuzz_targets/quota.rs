//! Quota files: their headers, the tree that leads to an owner, and the blocks of entries, of
//! users, groups and projects. The input replaces their blocks and inodes. They have no checksums.
#![cfg_attr(feature = "libfuzzer", no_main)]

use std::sync::OnceLock;

use steadfast_ext4::Ext4;
use steadfast_ext4_format::ondisk::{Features, RoCompat};
use steadfast_ext4_mkfs::Options;
use steadfast_fuzz::image::{Image, ImageBytes, Look, Recipe, SUPERBLOCK};
use steadfast_vfs::{FileSystem, NewNode, OpenFlags, Result};

/// Where the superblock has the numbers of the files' inodes (`s_usr_quota_inum` and the next one,
/// `s_prj_quota_inum`).
const FILES: [u64; 3] = [SUPERBLOCK + 0x240, SUPERBLOCK + 0x244, SUPERBLOCK + 0x26c];

fn fill(fs: &Ext4) -> Result<()> {
    for owner in [0, 1, 300, 70_000] {
        let node = NewNode { uid: owner, gid: owner, ..NewNode::default() };
        let name = format!("of {owner}");
        let (attr, fh) = fs.create(fs.root(), name.as_bytes(), node, OpenFlags::WRITE)?;
        fs.write(fh, 0, vec![7; 5000].into())?;
        fs.release(fh)?;
        fs.set_project(attr.ino, owner)?;
    }
    Ok(())
}

fn places(look: &Look<'_>) -> Vec<ImageBytes> {
    let files = FILES.map(|field| look.word(field));
    let mut places = files.map(|number| look.whole_inode(number)).to_vec();
    places.extend(files.iter().flat_map(|number| look.blocks(*number, 8)));
    places
}

pub fn image() -> &'static Image {
    static IMAGE: OnceLock<Image> = OnceLock::new();
    IMAGE.get_or_init(|| {
        let mut features: Features = Options::debian_features();
        features.ro_compat |= RoCompat::QUOTA | RoCompat::PROJECT;
        Image::new(&Recipe { features, fill, places, ..Recipe::default() })
    })
}

pub fn run(input: &[u8]) {
    image().fuzz(input);
}

steadfast_fuzz::target!(run);
