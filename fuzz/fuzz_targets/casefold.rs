//! A directory that ignores case, with an index: its root, a node's entries, and blocks of names.
//! The input replaces its blocks; there are no checksums of metadata (`image`). Names that the
//! input gives are looked up in other spellings.
#![cfg_attr(feature = "libfuzzer", no_main)]

use std::sync::OnceLock;

use steadfast_ext4::Ext4;
use steadfast_ext4_format::ondisk::{Features, Incompat};
use steadfast_ext4_mkfs::Options;
use steadfast_fuzz::image::{Image, ImageBytes, Look, Recipe};
use steadfast_vfs::{FileSystem, NewNode, OpenFlags, Result};

/// `FS_CASEFOLD_FL`.
const CASEFOLD: u32 = 0x4000_0000;
/// Names: more than a few blocks hold.
const NAMES: u32 = 60;

fn fill(fs: &Ext4) -> Result<()> {
    let folder = fs.mkdir(fs.root(), b"folder", NewNode { mode: 0o755, ..NewNode::default() })?;
    fs.set_inode_flags(folder.ino, fs.inode_flags(folder.ino)? | CASEFOLD)?;
    for n in 0..NAMES {
        let name = format!("A Name, Gr\u{f6}\u{df}e {n}, \u{130}\u{3a3}");
        let (_, fh) =
            fs.create(folder.ino, name.as_bytes(), NewNode::default(), OpenFlags::WRITE)?;
        fs.release(fh)?;
        fs.lookup(folder.ino, name.to_lowercase().as_bytes())?;
    }
    Ok(())
}

fn places(look: &Look<'_>) -> Vec<ImageBytes> {
    let folder = look.number("folder");
    let mut places = vec![look.whole_inode(folder)];
    places.extend(look.blocks(folder, 8));
    places
}

pub fn image() -> &'static Image {
    static IMAGE: OnceLock<Image> = OnceLock::new();
    IMAGE.get_or_init(|| {
        let mut features: Features = Options::debian_features();
        features.incompat |= Incompat::CASEFOLD;
        Image::new(&Recipe { features, fill, places, ..Recipe::default() })
    })
}

pub fn run(input: &[u8]) {
    image().fuzz(input);
}

steadfast_fuzz::target!(run);
