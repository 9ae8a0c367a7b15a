//! Counts at their limit. That of links is set by debugfs: 65,000 directories take minutes.

use steadfast_ext4::MountOptions;
use steadfast_vfs::{FileSystem, FileType, FsError, NewNode, RenameFlags, SetXattr};

use crate::image::Image;
use crate::orphans::debugfs;

/// Without `dir_nlink` a directory has at most 65,000 links, and so at most as many subdirectories
/// less two, whichever way they come.
#[test]
fn a_full_directory_takes_no_directory_by_any_way() {
    let image = Image::mke2fs(16 << 20, &["-O", "^dir_nlink", "-b", "1024"]);
    let fs = crate::mount(&image, MountOptions::default());
    let node = NewNode { mode: 0o755, ..NewNode::default() };
    let full = fs.mkdir(fs.root(), b"full", node).unwrap().ino;
    fs.mkdir(full, b"inside", node).unwrap();
    let (_, fh) = fs.create(full, b"file", NewNode::default(), crate::RW).unwrap();
    fs.release(fh).unwrap();
    fs.mkdir(fs.root(), b"dir", node).unwrap();
    fs.unmount().unwrap();
    drop(fs);
    debugfs(&image, "sif /full links_count 65000");

    let fs = crate::mount(&image, MountOptions::default());
    let (root, full) = (fs.root(), fs.lookup(fs.root(), b"full").unwrap().ino);
    let many = Err(FsError::TooManyLinks);
    let (plain, exchange) = (RenameFlags::empty(), RenameFlags::EXCHANGE);
    assert_eq!(fs.mkdir(full, b"new", node).map(drop), many);
    assert_eq!(fs.rename((root, b"dir"), (full, b"new"), plain), many);
    assert_eq!(fs.rename((root, b"dir"), (full, b"file"), exchange), many);
    assert_eq!(fs.getattr(full).unwrap().nlink, 65_000);
    // In the place of one that goes, there is room.
    fs.rename((root, b"dir"), (full, b"inside"), plain).unwrap();
    assert_eq!(fs.getattr(full).unwrap().nlink, 65_000);
    assert_eq!(fs.lookup(full, b"file").unwrap().kind, FileType::Regular);
    fs.unmount().unwrap();
}

/// A block of attributes has at most 1024 users (`EXT4_XATTR_REFCOUNT_MAX`); the next inode with
/// the same attributes gets another one.
#[test]
fn so_many_inodes_share_a_block_of_attributes() {
    let image = Image::mke2fs(16 << 20, &["-b", "1024", "-I", "128", "-N", "2048"]);
    let fs = crate::mount(&image, MountOptions::default());
    let create = |n| crate::create(&*fs, &format!("f{n}"), crate::RW);
    let files: Vec<_> = (0..1026).map(create).collect();
    files.iter().for_each(|(_, fh)| fs.release(*fh).unwrap());
    let mut taken = Vec::new();
    let mut free = fs.statfs().unwrap().blocks_free;
    for (n, (attr, _)) in files.iter().enumerate() {
        fs.setxattr(attr.ino, b"user.x", &[7; 100], SetXattr::Any).unwrap();
        let left = fs.statfs().unwrap().blocks_free;
        taken.extend((left != free).then_some(n));
        free = left;
    }
    assert_eq!(taken, [0, 1024]);
    fs.unmount().unwrap();
    drop(fs);
    image.assert_clean();
}
