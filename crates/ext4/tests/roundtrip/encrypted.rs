//! Encrypted directories without their key, made by the kernel: what we show is what it shows.

use std::collections::BTreeMap;
use std::process::Command;

use bytes::Bytes;
use steadfast_vfs::{
    FileSystem, FileType, FsError, Ino, NewNode, OpenFlags, RenameFlags, SetAttr, path,
};

use crate::image::Image;
use crate::stage::{Kernel, Ours, Stage};

/// Gives the kernel a key for the file system, and the empty directory a policy with it
/// (FS_IOC_ADD_ENCRYPTION_KEY, FS_IOC_SET_ENCRYPTION_POLICY; names padded to 4 bytes).
const ENCRYPT: &str = r#"
open(D, "<", $ARGV[0]) or die "open: $!";
my $key = pack("LLx32LLx32", 2, 0, 64, 0) . ("k" x 64);
defined(ioctl(D, 0xc0506617, $key)) or die "key: $!";
my $policy = pack("CCCCCx3", 2, 1, 4, 0, 0) . substr($key, 8, 16);
defined(ioctl(D, 0x800c6613, $policy)) or die "policy: $!";
"#;

fn file(fs: &dyn FileSystem, dir: Ino, name: &str) {
    let rw = OpenFlags::READ | OpenFlags::WRITE;
    let (_, fh) = fs.create(dir, name.as_bytes(), NewNode::default(), rw).unwrap();
    fs.write(fh, 0, Bytes::from_static(b"a secret")).unwrap();
    fs.release(fh).unwrap();
}

/// Two directories: of one block, and with an index. Some names are longer than what is shown.
fn encrypted(block_size: &str) -> Image {
    let mut kernel =
        Kernel::mount(Image::mke2fs(48 << 20, &["-b", block_size, "-O", "encrypt,stable_inodes"]));
    let mount = kernel.folder().to_owned();
    let fs = kernel.fs();
    for (dir, count) in [("few", 8), ("many", 900)] {
        let ino = fs.mkdir(fs.root(), dir.as_bytes(), NewNode::default()).unwrap().ino;
        let mut perl = Command::new("perl");
        let done = perl.args(["-e", ENCRYPT]).arg(mount.join(dir)).output().unwrap();
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
        for i in 0..count {
            file(fs, ino, &format!("{i}-{}", "n".repeat(i * 37 % 250)));
        }
        for len in [3, 90] {
            let target = "t".repeat(len);
            fs.symlink(ino, format!("link{len}").as_bytes(), target.as_bytes(), NewNode::default())
                .unwrap();
        }
        fs.mkdir(ino, b"empty", NewNode::default()).unwrap();
    }
    kernel.remount();
    kernel.unmount()
}

/// Type and target by directory and name.
type Shown = BTreeMap<(String, Vec<u8>), (FileType, Option<Vec<u8>>)>;

/// All names of both directories with their types, and targets of links.
fn shown(fs: &dyn FileSystem) -> Shown {
    let mut all = BTreeMap::new();
    for dir in ["few", "many"] {
        let ino = fs.lookup(fs.root(), dir.as_bytes()).unwrap().ino;
        for entry in path::list(fs, ino).unwrap() {
            let attr = fs.lookup(ino, &entry.name).unwrap();
            assert_eq!(attr.kind, entry.kind);
            let target = (attr.kind == FileType::Symlink).then(|| fs.readlink(attr.ino).unwrap());
            all.insert((dir.into(), entry.name), (attr.kind, target));
        }
    }
    all
}

#[test]
fn without_the_key_names_are_the_kernels_and_contents_are_refused() {
    for block_size in ["1024", "4096"] {
        let kernel = Kernel::mount(encrypted(block_size));
        let want = shown(kernel.fs());
        assert_eq!(want.len(), 8 + 900 + 6);
        let image = kernel.unmount();
        image.assert_clean();
        let ours = Ours::mount(image);
        let fs = ours.fs();
        assert!(shown(fs) == want);
        let no_key = |r: Result<(), FsError>| assert_eq!(r, Err(FsError::NoKey));
        let node = NewNode::default();
        let dir = fs.lookup(fs.root(), b"many").unwrap().ino;
        no_key(fs.create(dir, b"new", node, OpenFlags::WRITE).map(drop));
        no_key(fs.mkdir(dir, b"new", node).map(drop));
        no_key(fs.symlink(dir, b"new", b"target", node).map(drop));
        for (i, ((at, name), (kind, _))) in want.iter().enumerate() {
            let dir = fs.lookup(fs.root(), at.as_bytes()).unwrap().ino;
            let ino = fs.lookup(dir, name).unwrap().ino;
            match kind {
                FileType::Regular if i % 50 == 0 => {
                    no_key(fs.open(ino, OpenFlags::READ).map(drop));
                    let cut = SetAttr { size: Some(0), ..SetAttr::default() };
                    no_key(fs.setattr(ino, cut).map(drop));
                    no_key(fs.rename((dir, name), (fs.root(), b"out"), RenameFlags::empty()));
                    let again = fs.create(dir, name, node, OpenFlags::WRITE).map(drop);
                    assert_eq!(again, Err(FsError::Exists));
                }
                FileType::Directory => fs.rmdir(dir, name).unwrap(),
                _ if i % 3 == 0 => fs.unlink(dir, name).unwrap(),
                _ => {}
            }
        }
        let left = shown(fs);
        assert!(left.len() < 700, "{}", left.len());
        let image = ours.unmount();
        image.assert_clean();
        assert!(shown(Kernel::mount(image).fs()) == left);
    }
}
