//! Features of inodes that few file systems have.

use bytes::Bytes;
use steadfast_vfs::{FsError, NewNode, OpenFlags, SetAttr};

use crate::image::Image;
use crate::stage::{Ours, Stage};

const IMAGE_BYTES: u64 = 48 << 20;
const RW: OpenFlags = OpenFlags::READ.union(OpenFlags::WRITE);

/// A verity file's hashes lie beyond its end; nobody can enable it here (the kernel has to be
/// built for it), so debugfs makes one of an ordinary file.
#[test]
fn verity_files_are_read_and_never_written() {
    let ours = Ours::mount(Image::mke2fs(IMAGE_BYTES, &["-b", "4096", "-O", "verity"]));
    let fs = ours.fs();
    let (attr, fh) = fs.create(fs.root(), b"file", NewNode::default(), RW).unwrap();
    let data = Bytes::from(vec![7; 100_000]);
    assert_eq!(fs.write(fh, 0, data.clone()).unwrap(), data.len());
    fs.release(fh).unwrap();
    let image = ours.unmount();
    image.debugfs("sif file size 30000");
    image.debugfs("sif file flags 0x180000");
    image.assert_clean();
    let ours = Ours::mount(image);
    let fs = ours.fs();
    let fh = fs.open(attr.ino, OpenFlags::READ).unwrap();
    assert_eq!(fs.read(fh, 0, 200_000).unwrap(), data.slice(..30_000));
    fs.release(fh).unwrap();
    let refused = |e: FsError| assert!(matches!(e, FsError::NotPermitted { .. }), "{e}");
    refused(fs.open(attr.ino, RW).unwrap_err());
    refused(fs.setattr(attr.ino, SetAttr { size: Some(1), ..SetAttr::default() }).unwrap_err());
    fs.setattr(attr.ino, SetAttr { mode: Some(0o600), ..SetAttr::default() }).unwrap();
    let image = ours.unmount();
    image.assert_clean();
    assert!(image.debugfs_says("stat file").contains("Blockcount: 200"));
    let ours = Ours::mount(image);
    ours.fs().unlink(ours.fs().root(), b"file").unwrap();
    ours.unmount().assert_clean();
}
