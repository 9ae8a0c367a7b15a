//! Extended attributes: the same answers as the kernel's, and each reads what the other wrote.

use std::collections::BTreeMap;

use steadfast_vfs::{FileSystem, FsError, Ino, NewNode, OpenFlags, SetXattr};

use crate::image::Image;
use crate::stage::{Kernel, Ours, Stage};

const IMAGE_BYTES: u64 = 24 << 20;

/// Options of mke2fs: with and without room in the inode, with small and large blocks.
const VARIANTS: [&[&str]; 6] = [
    &["-b", "1024", "-O", "ea_inode"],
    &["-b", "4096", "-I", "512", "-O", "ea_inode,metadata_csum_seed,^has_journal"],
    &["-b", "1024", "-I", "128", "-O", "^metadata_csum"],
    &["-b", "1024", "-I", "256"],
    &["-b", "4096", "-I", "512", "-O", "metadata_csum_seed,orphan_file"],
    &["-b", "4096", "-I", "256", "-O", "^has_journal"],
];

/// Attributes of all files in the root, by name of the file and of the attribute.
type All = BTreeMap<Vec<u8>, BTreeMap<Vec<u8>, Vec<u8>>>;

fn all(fs: &dyn FileSystem) -> All {
    let entries = fs.readdir(fs.root(), 0).unwrap();
    let files = entries.into_iter().filter(|e| e.name.starts_with(b"f"));
    files
        .map(|e| {
            let ino = fs.lookup(fs.root(), &e.name).unwrap().ino;
            let names = fs.listxattr(ino).unwrap().into_iter();
            (e.name, names.map(|n| (n.clone(), fs.getxattr(ino, &n).unwrap())).collect())
        })
        .collect()
}

fn file(fs: &dyn FileSystem, name: &[u8]) -> Ino {
    match fs.lookup(fs.root(), name) {
        Ok(attr) => attr.ino,
        Err(_) => {
            let made = fs.create(fs.root(), name, NewNode::default(), OpenFlags::WRITE);
            let (attr, fh) = made.unwrap();
            fs.release(fh).unwrap();
            attr.ino
        }
    }
}

fn number<T>(outcome: &Result<T, FsError>) -> i32 {
    outcome.as_ref().map_or_else(FsError::errno, |_| 0)
}

/// A long walk over sizes, names and flags; the same each time. What each step answered.
fn walk(fs: &dyn FileSystem, steps: u32) -> Vec<(String, i32)> {
    let mut random = 12345_u64;
    let mut next = |below: u64| {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (random >> 33) % below
    };
    let names = [
        &b"user.a"[..],
        b"user.longer-name-of-an-attribute",
        b"trusted.t",
        b"security.label",
        b"user.\xfe\xff",
        b"user.x1",
        b"user.x2",
    ];
    let sizes =
        [0, 1, 3, 4, 17, 40, 60, 90, 200, 400, 700, 930, 960, 1500, 3900, 4000, 9000, 60000];
    let mut said = Vec::new();
    for step in 0..steps {
        let name = names[next(names.len() as u64) as usize];
        let ino = file(fs, format!("f{}", next(4)).as_bytes());
        let shown = String::from_utf8_lossy(name).into_owned();
        if next(5) == 0 {
            said.push((format!("{step}: remove {shown}"), number(&fs.removexattr(ino, name))));
            continue;
        }
        let size = sizes[next(sizes.len() as u64) as usize];
        // Few different values, so that blocks and inodes of values may be shared.
        let value = vec![next(3) as u8; size];
        let how =
            [SetXattr::Any, SetXattr::Any, SetXattr::Create, SetXattr::Replace][next(4) as usize];
        let outcome = fs.setxattr(ino, name, &value, how);
        said.push((format!("{step}: set {shown}, {size} bytes, {how:?}"), number(&outcome)));
        let now = fs.getxattr(ino, name).map_or_else(|e| e.errno(), |v| v.len() as i32);
        said.push((format!("{step}: get {shown}"), now));
    }
    said
}

fn assert_same_walk(ours: Vec<(String, i32)>, kernel: Vec<(String, i32)>) {
    for (ours, kernel) in ours.into_iter().zip(kernel) {
        assert_eq!(ours, kernel, "(ours, the kernel's)");
    }
}

#[test]
fn answers_and_contents_are_the_kernels() {
    for options in VARIANTS {
        let image = || Image::mke2fs(IMAGE_BYTES, options);
        let (mut ours, mut kernel) = (Ours::mount(image()), Kernel::mount(image()));
        assert_same_walk(walk(ours.fs(), 400), walk(kernel.fs(), 400));
        let contents = all(ours.fs());
        assert_eq!(contents, all(kernel.fs()));
        ours.remount();
        kernel.remount();
        assert_eq!(contents, all(ours.fs()), "{options:?}: after a remount");
        let (ours, kernel) = (ours.unmount(), kernel.unmount());
        ours.assert_clean();
        // Each goes on with what the other has written.
        let (ours, kernel) = (Kernel::mount(ours), Ours::mount(kernel));
        assert_eq!((all(ours.fs()), all(kernel.fs())), (contents.clone(), contents));
        assert_same_walk(walk(ours.fs(), 200), walk(kernel.fs(), 200));
        let contents = all(ours.fs());
        assert_eq!(contents, all(kernel.fs()));
        for i in 0..4 {
            kernel.fs().unlink(kernel.fs().root(), format!("f{i}").as_bytes()).unwrap();
        }
        kernel.unmount().assert_clean();
        ours.unmount().assert_clean();
    }
}

/// Error numbers of what cannot be.
fn refusals(fs: &dyn FileSystem) -> Vec<(&'static str, i32)> {
    let ino = file(fs, b"f");
    let link = fs.symlink(fs.root(), b"l", b"f", NewNode::default()).unwrap().ino;
    let set = |ino, name: &[u8], len| number(&fs.setxattr(ino, name, &vec![1; len], SetXattr::Any));
    let get = |ino, name: &[u8]| number(&fs.getxattr(ino, name));
    vec![
        ("no name", set(ino, b"", 1)),
        ("only a prefix", set(ino, b"user.", 1)),
        ("no prefix", set(ino, b"nonesuch", 1)),
        ("unknown prefix", set(ino, b"foo.bar", 1)),
        ("longest name", set(ino, &[b"user.".to_vec(), vec![b'n'; 250]].concat(), 1)),
        ("long name", set(ino, &[b"user.".to_vec(), vec![b'n'; 251]].concat(), 1)),
        ("longest value", set(ino, b"user.v", 65_536)),
        ("long value", set(ino, b"user.v", 65_537)),
        ("system.", set(ino, b"system.data", 1)),
        ("get system.", get(ino, b"system.data")),
        ("user. on a link", set(link, b"user.v", 1)),
        ("get user. on a link", get(link, b"user.v")),
        ("trusted. on a link", set(link, b"trusted.v", 1)),
        ("get trusted. on a link", get(link, b"trusted.v")),
        ("remove what is not there", number(&fs.removexattr(ino, b"user.none"))),
        ("get what is not there", get(ino, b"user.none")),
    ]
}

#[test]
fn what_the_kernel_refuses_we_refuse() {
    let image = || Image::mke2fs(IMAGE_BYTES, &[]);
    let (ours, kernel) = (Ours::mount(image()), Kernel::mount(image()));
    for (ours, kernel) in refusals(ours.fs()).into_iter().zip(refusals(kernel.fs())) {
        assert_eq!(ours, kernel);
    }
    ours.unmount().assert_clean();
}

#[test]
fn equal_attributes_share_a_block_until_one_changes() {
    let ours = Ours::mount(Image::mke2fs(IMAGE_BYTES, &["-b", "1024"]));
    let fs = ours.fs();
    let value = vec![7; 600];
    let inos: Vec<Ino> = (0..20).map(|i| file(fs, format!("f{i}").as_bytes())).collect();
    let before = fs.statfs().unwrap().blocks_free;
    for ino in &inos {
        fs.setxattr(*ino, b"user.same", &value, SetXattr::Any).unwrap();
        assert_eq!(fs.getattr(*ino).unwrap().blocks_512, 2);
    }
    assert_eq!(fs.statfs().unwrap().blocks_free, before - 1);
    fs.setxattr(inos[0], b"user.same", &[8; 600], SetXattr::Replace).unwrap();
    assert_eq!(fs.statfs().unwrap().blocks_free, before - 2);
    fs.removexattr(inos[1], b"user.same").unwrap();
    fs.unlink(fs.root(), b"f2").unwrap();
    assert_eq!(fs.getxattr(inos[3], b"user.same").unwrap(), value);
    let contents = all(fs);
    let image = ours.unmount();
    image.assert_clean();
    let kernel = Kernel::mount(image);
    assert_eq!(all(kernel.fs()), contents);
}
