//! Large directories, made by us and by the kernel, read by the other.

use std::collections::BTreeMap;

use steadfast_vfs::{FileSystem, FsError, Ino, NewNode, OpenFlags, RenameFlags, path};

use crate::image::Image;
use crate::stage::{Kernel, Ours, Stage};

/// Names of some kinds: short, long, with bytes of 0x80 and more.
fn name(i: u32) -> Vec<u8> {
    let mut name = format!("entry-{i}").into_bytes();
    match i % 5 {
        0 => name.resize(60 + (i % 190) as usize, b'.'),
        1 => name.extend("-\u{e9}\u{2192}\u{1f980}".bytes()),
        2 => name.extend([0xff, 0x80, (i % 127) as u8 | 0x80]),
        _ => {}
    }
    name
}

fn create(fs: &dyn FileSystem, dir: Ino, name: &[u8]) -> Ino {
    let (attr, fh) = fs.create(dir, name, NewNode::default(), OpenFlags::WRITE).unwrap();
    fs.release(fh).unwrap();
    attr.ino
}

/// Names with their inodes, each looked up, too.
fn names(fs: &dyn FileSystem, dir: Ino) -> BTreeMap<Vec<u8>, Ino> {
    let mut all = BTreeMap::new();
    for entry in path::list(fs, dir).unwrap() {
        assert_eq!(fs.lookup(dir, &entry.name).unwrap().ino, entry.ino);
        assert!(all.insert(entry.name, entry.ino).is_none(), "listed twice");
    }
    all
}

/// Makes a directory of `count` names, of which every third goes again and every seventh gets a
/// new name; also what does not fit into its first block.
fn fill(stage: &mut impl Stage, count: u32) {
    let fs = stage.fs();
    let dir = fs
        .mkdir(fs.root(), b"large", NewNode { mode: 0o755, uid: 0, gid: 0, umask: 0 })
        .unwrap()
        .ino;
    for i in 0..count {
        create(fs, dir, &name(i));
    }
    stage.remount();
    let fs = stage.fs();
    let dir = fs.lookup(fs.root(), b"large").unwrap().ino;
    for i in (0..count).step_by(3) {
        fs.unlink(dir, &name(i)).unwrap();
    }
    for i in (0..count).step_by(7).filter(|i| i % 3 != 0) {
        let new = [b"renamed-", &name(i)[..name(i).len().min(240)]].concat();
        fs.rename((dir, &name(i)), (dir, &new), RenameFlags::empty()).unwrap();
    }
}

fn large_of(stage: &impl Stage) -> BTreeMap<Vec<u8>, Ino> {
    let fs = stage.fs();
    names(fs, fs.lookup(fs.root(), b"large").unwrap().ino)
}

/// mke2fs's options: block sizes, with checksums and without, with an index and without.
fn variants() -> Vec<(Vec<&'static str>, u32)> {
    let mut all = Vec::new();
    for (block_size, count) in [("1024", 20_000), ("2048", 8000), ("4096", 20_000)] {
        for checksums in ["metadata_csum", "^metadata_csum"] {
            all.push((vec!["-b", block_size, "-O", checksums, "-N", "25000"], count));
        }
    }
    all.push((vec!["-b", "1024", "-O", "^dir_index", "-N", "25000"], 1500));
    all
}

const IMAGE_BYTES: u64 = 64 << 20;

#[test]
fn our_large_directories_are_the_kernels() {
    for (options, count) in variants() {
        let mut ours = Ours::mount(Image::mke2fs(IMAGE_BYTES, &options));
        fill(&mut ours, count);
        let want = large_of(&ours);
        assert_eq!(want.len() as u32, count - count.div_ceil(3));
        let image = ours.unmount();
        image.assert_clean();
        assert!(large_of(&Kernel::mount(image)) == want, "{options:?}");
    }
}

#[test]
fn the_kernels_large_directories_are_ours() {
    for (options, count) in variants() {
        let mut kernel = Kernel::mount(Image::mke2fs(IMAGE_BYTES, &options));
        fill(&mut kernel, count);
        let want = large_of(&kernel);
        let image = kernel.unmount();
        image.assert_clean();
        let mut ours = Ours::mount(image);
        assert!(large_of(&ours) == want, "{options:?}");
        // And we go on where the kernel stopped.
        let fs = ours.fs();
        let dir = fs.lookup(fs.root(), b"large").unwrap().ino;
        for i in (0..count).step_by(3) {
            create(fs, dir, &name(i));
        }
        ours.remount();
        assert_eq!(large_of(&ours).len() as u32, count);
        ours.unmount().assert_clean();
    }
}

#[test]
fn every_hash_is_understood_by_both() {
    for hash in ["legacy", "half_md4", "tea"] {
        for unsigned in [false, true] {
            let image = Image::mke2fs(IMAGE_BYTES, &["-b", "1024"]);
            image.debugfs(&format!("ssv def_hash_version {hash}"));
            image.debugfs(&format!("ssv flags {}", if unsigned { 2 } else { 1 }));
            let mut kernel = Kernel::mount(image);
            fill(&mut kernel, 1500);
            let want = large_of(&kernel);
            let mut ours = Ours::mount(kernel.unmount());
            assert!(large_of(&ours) == want, "{hash}, unsigned {unsigned}");
            let fs = ours.fs();
            let dir = fs.lookup(fs.root(), b"large").unwrap().ino;
            for i in (0..1500).step_by(3) {
                create(fs, dir, &name(i));
            }
            fs.rename((fs.root(), b"large"), (fs.root(), b"old"), RenameFlags::empty()).unwrap();
            fill(&mut ours, 1500);
            let want = large_of(&ours);
            let image = ours.unmount();
            image.assert_clean();
            assert!(large_of(&Kernel::mount(image)) == want, "{hash}, unsigned {unsigned}");
        }
    }
}

/// Names of one TEA hash: flipping the top bits of two neighbouring words of the name, which is
/// the key, changes nothing.
fn colliding(i: u32) -> Vec<u8> {
    let mut name = vec![b'n'; 240];
    for bit in (0..30).filter(|bit| i >> bit & 1 != 0) {
        name[bit * 8] ^= 0x80;
        name[bit * 8 + 4] ^= 0x80;
    }
    name
}

#[test]
fn names_of_equal_hash_are_found_by_both() {
    let image = Image::mke2fs(IMAGE_BYTES, &["-b", "1024"]);
    image.debugfs("ssv def_hash_version tea");
    let ours = Ours::mount(image);
    let fs = ours.fs();
    let dir = fs.mkdir(fs.root(), b"large", NewNode::default()).unwrap().ino;
    for i in 0..150 {
        create(fs, dir, &colliding(i));
        create(fs, dir, &name(i));
    }
    for i in (0..150).step_by(4) {
        fs.unlink(dir, &colliding(i)).unwrap();
    }
    let want = large_of(&ours);
    assert_eq!(want.len(), 300 - 38);
    let image = ours.unmount();
    image.assert_clean();
    assert!(large_of(&Kernel::mount(image)) == want);
}

/// Links of one file: each look-up through the host's file system goes through the names that it
/// has seen of the file.
const LINKS: u32 = 1000;

/// An index of three levels: with `large_dir` only.
#[test]
fn a_large_dir_has_three_levels() {
    let long = |i: u32| [format!("{i:06}").as_bytes(), &[b'-'; 240]].concat();
    let links = |fs: &dyn FileSystem, dir: Ino, range: std::ops::Range<u32>| {
        let mut file = Ino(0);
        let mut link = |i: u32| {
            if i.is_multiple_of(LINKS) {
                file = create(fs, fs.root(), format!("file{i}").as_bytes());
            }
            fs.link(file, dir, &long(i))
        };
        range.map(|i| (i, link(i))).find_map(|(i, r)| r.err().map(|e| (i, e)))
    };
    let count = 40_000;
    let mut ours = Ours::mount(Image::mke2fs(IMAGE_BYTES, &["-b", "1024", "-O", "large_dir"]));
    let fs = ours.fs();
    let dir = fs.mkdir(fs.root(), b"large", NewNode::default()).unwrap().ino;
    assert_eq!(links(fs, dir, 0..count), None);
    for i in (0..count).step_by(3) {
        fs.unlink(dir, &long(i)).unwrap();
    }
    ours.remount();
    let want = large_of(&ours);
    let image = ours.unmount();
    image.assert_clean();
    let root = image.debugfs_says("htree_dump /large");
    assert!(root.contains("Indirect levels: 2"), "{}", &root[..500]);
    let kernel = Kernel::mount(image);
    assert!(large_of(&kernel) == want);
    let fs = kernel.fs();
    let dir = fs.lookup(fs.root(), b"large").unwrap().ino;
    assert_eq!(links(fs, dir, count..count + 5000), None);
    let want = large_of(&kernel);
    let ours = Ours::mount(kernel.unmount());
    assert!(large_of(&ours) == want);
    ours.unmount().assert_clean();
    let ours = Ours::mount(Image::mke2fs(IMAGE_BYTES, &["-b", "1024"]));
    let fs = ours.fs();
    let dir = fs.mkdir(fs.root(), b"large", NewNode::default()).unwrap().ino;
    let (full, why) = links(fs, dir, 0..count).expect("two levels are too few");
    assert!(full > 15_000 && matches!(why, FsError::NoSpace { .. }), "{full}: {why}");
    ours.unmount().assert_clean();
}

/// A file takes 65,000 links and no more. A directory takes more subdirectories and stops
/// counting them.
#[test]
fn links_have_a_limit_and_subdirectories_none() {
    let image = Image::mke2fs(160 << 20, &["-b", "1024", "-N", "66000"]);
    let mut ours = Ours::mount(image);
    let fs = ours.fs();
    let dir = fs.mkdir(fs.root(), b"large", NewNode::default()).unwrap().ino;
    let file = create(fs, fs.root(), b"file");
    for i in 1..65_000 {
        fs.link(file, dir, format!("link{i}").as_bytes()).unwrap();
    }
    assert_eq!(fs.getattr(file).unwrap().nlink, 65_000);
    assert_eq!(fs.link(file, dir, b"one too many"), Err(FsError::TooManyLinks));
    let many = fs.mkdir(fs.root(), b"many", NewNode::default()).unwrap().ino;
    for i in 0..65_100 {
        fs.mkdir(many, format!("d{i}").as_bytes(), NewNode::default()).unwrap();
    }
    assert_eq!(fs.getattr(many).unwrap().nlink, 1);
    fs.rmdir(many, b"d77").unwrap();
    fs.rename((many, b"d78"), (fs.root(), b"moved"), RenameFlags::empty()).unwrap();
    assert_eq!(fs.getattr(many).unwrap().nlink, 1);
    ours.remount();
    assert_eq!(path::list(ours.fs(), many).unwrap().len(), 65_098);
    ours.unmount().assert_clean();
}
