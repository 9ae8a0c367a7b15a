//! Features of inodes that few file systems have.

use bytes::Bytes;
use steadfast_vfs::{Fallocate, FileSystem, FsError, Ino, NewNode, OpenFlags, SetAttr};

use crate::image::Image;
use crate::stage::{Kernel, Ours, Stage};

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

pub fn write(fs: &dyn FileSystem, name: &str, offset: u64, data: &[u8]) -> Ino {
    let (ino, fh) = match fs.lookup(fs.root(), name.as_bytes()) {
        Ok(attr) => (attr.ino, fs.open(attr.ino, RW).unwrap()),
        Err(_) => {
            let (attr, fh) = fs.create(fs.root(), name.as_bytes(), NewNode::default(), RW).unwrap();
            (attr.ino, fh)
        }
    };
    assert_eq!(fs.write(fh, offset, Bytes::copy_from_slice(data)).unwrap(), data.len());
    fs.release(fh).unwrap();
    ino
}

fn read(fs: &dyn FileSystem, name: &str) -> Bytes {
    let ino = fs.lookup(fs.root(), name.as_bytes()).unwrap().ino;
    let fh = fs.open(ino, OpenFlags::READ).unwrap();
    let data = fs.read(fh, 0, 1 << 20).unwrap();
    fs.release(fh).unwrap();
    data
}

fn set_size(fs: &dyn FileSystem, name: &str, size: u64) {
    let ino = fs.lookup(fs.root(), name.as_bytes()).unwrap().ino;
    fs.setattr(ino, SetAttr { size: Some(size), ..SetAttr::default() }).unwrap();
}

/// The kernel leaves contents in the inode of a file that is cut longer; we read them, and go on.
#[test]
fn contents_stay_in_the_inode_and_come_out_of_it() {
    let options = ["-O", "inline_data", "-b", "4096"];
    let kernel = Kernel::mount(Image::mke2fs(IMAGE_BYTES, &options));
    let fs = kernel.fs();
    for i in 0..12 {
        write(fs, &format!("f{i}"), 0, &vec![b'k'; 10 * i + 1]);
    }
    set_size(fs, "f3", 70);
    set_size(fs, "f4", 20_000);
    set_size(fs, "f5", 5);
    let mut ours = Ours::mount(kernel.unmount());
    let fs = ours.fs();
    let mut want = vec![b'k'; 41];
    want.resize(20_000, 0);
    assert_eq!(read(fs, "f4"), want);
    assert_eq!(read(fs, "f5"), &b"kkkkk"[..]);
    write(fs, "f9", 0, b"x");
    write(fs, "f6", 0, b"x");
    write(fs, "f4", 10_000, b"far");
    want[10_000..10_003].copy_from_slice(b"far");
    let ino = write(fs, "f6", 61, b"tail");
    let fh = fs.open(ino, RW).unwrap();
    fs.fallocate(fh, Fallocate::Allocate { keep_size: true }, 0, 10_000).unwrap();
    fs.release(fh).unwrap();
    for i in 0..30 {
        write(fs, "g", i * 9, b"123456789");
    }
    ours.remount();
    let fs = ours.fs();
    assert_eq!(read(fs, "f4"), want);
    let f6 = [&b"x"[..], &[b'k'; 60], b"tail"].concat();
    assert_eq!(read(fs, "f6"), f6);
    assert_eq!(read(fs, "g"), b"123456789".repeat(30));
    let image = ours.unmount();
    image.assert_clean();
    assert!(image.debugfs_says("stat f9").contains("Flags: 0x10000000"));
    assert!(image.debugfs_says("stat f6").contains("Flags: 0x80000"));
    let kernel = Kernel::mount(image);
    let fs = kernel.fs();
    assert_eq!((read(fs, "f4"), read(fs, "f6")), (want.into(), f6.into()));
    assert_eq!(read(fs, "f3").len(), 70);
    write(fs, "f0", 1, &[b'y'; 300]);
    kernel.unmount().assert_clean();
}
