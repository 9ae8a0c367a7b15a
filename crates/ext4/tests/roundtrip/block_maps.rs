//! Files whose blocks are mapped by pointers, as in ext2 and ext3, at the edges of each level:
//! written sparsely, read back, cut and deleted, with us and the kernel taking turns.

use std::collections::BTreeMap;

use bytes::Bytes;
use steadfast_vfs::{Attr, FileSystem, NewNode, OpenFlags, SetAttr};

use crate::image::Image;
use crate::stage::{Kernel, Ours, Stage};

const IMAGE_BYTES: u64 = 96 << 20;

/// File blocks around the beginning of each level, with `per` pointers a block.
fn edges(per: u64) -> Vec<u64> {
    let firsts = [0, 12, 12 + per, 12 + per + per * per];
    let near = |first: u64| [first.saturating_sub(1), first, first + 1, first + per];
    let mut all: Vec<u64> = firsts.into_iter().flat_map(near).collect();
    all.extend([12 + per + 5 * per + 3, 12 + per + per * per + 3 * per * per + 7]);
    all
}

fn fill(block: u64) -> u8 {
    (block % 251) as u8 + 1
}

/// Writes some bytes into each of the blocks of a new file.
fn write(fs: &dyn FileSystem, name: &[u8], blocks: &[u64], size: u64, flags: OpenFlags) {
    let node = NewNode { mode: 0o644, ..NewNode::default() };
    let (_, fh) = fs.create(fs.root(), name, node, OpenFlags::WRITE | flags).unwrap();
    for block in blocks {
        let data = Bytes::from(vec![fill(*block); size as usize]);
        assert_eq!(fs.write(fh, block * size, data).unwrap(), size as usize);
    }
    fs.release(fh).unwrap();
}

/// Holds a file against what was written into it, block by block around each.
fn compare(fs: &dyn FileSystem, name: &[u8], blocks: &[u64], size: u64) -> Attr {
    let attr = fs.lookup(fs.root(), name).unwrap();
    let fh = fs.open(attr.ino, OpenFlags::READ).unwrap();
    let written: BTreeMap<u64, u8> = blocks.iter().map(|b| (*b, fill(*b))).collect();
    let around = blocks.iter().flat_map(|b| [b.saturating_sub(1), *b, b + 1]);
    for block in around.filter(|b| b * size < attr.size) {
        let data = fs.read(fh, block * size, size as usize).unwrap();
        let want = written.get(&block).copied().unwrap_or(0);
        assert!(data.iter().all(|b| *b == want), "block {block}: {} for {want}", data[0]);
    }
    fs.release(fh).unwrap();
    attr
}

fn cut(fs: &dyn FileSystem, name: &[u8], size: u64) {
    let attr = fs.lookup(fs.root(), name).unwrap();
    fs.setattr(attr.ino, SetAttr { size: Some(size), ..SetAttr::default() }).unwrap();
}

/// One side writes, the other reads, cuts and goes on; then the first again.
fn take_turns<A: Stage, B: Stage>(
    options: &[&str],
    size: u64,
    flags: OpenFlags,
    first: impl Fn(Image) -> A,
    second: impl Fn(Image) -> B,
) {
    let mut blocks = edges(size / 4);
    let stage = first(Image::mke2fs(IMAGE_BYTES, options));
    let empty = stage.fs().statfs().unwrap().blocks_free;
    write(stage.fs(), b"sparse", &blocks, size, flags);
    stage.fs().sync().unwrap();
    compare(stage.fs(), b"sparse", &blocks, size);
    let storage = stage.fs().lookup(stage.fs().root(), b"sparse").unwrap().blocks_512;
    let image = stage.unmount();
    image.assert_clean();
    let mut stage = second(image);
    let attr = compare(stage.fs(), b"sparse", &blocks, size);
    assert_eq!(attr.blocks_512, storage);
    write(stage.fs(), b"second", &blocks, size, flags);
    while let Some(last) = blocks.pop() {
        if blocks.len().is_multiple_of(3) {
            cut(stage.fs(), b"sparse", last * size);
            stage.fs().sync().unwrap();
            compare(stage.fs(), b"sparse", &blocks, size);
        }
    }
    stage.remount();
    let image = stage.unmount();
    image.assert_clean();
    let mut stage = first(image);
    compare(stage.fs(), b"second", &edges(size / 4), size);
    let fs = stage.fs();
    assert_eq!(fs.lookup(fs.root(), b"sparse").unwrap().blocks_512, 0);
    fs.unlink(fs.root(), b"second").unwrap();
    fs.unlink(fs.root(), b"sparse").unwrap();
    // The kernel may let go of a file later than its last name and a sync, but not of all files.
    stage.remount();
    let free = stage.fs().statfs().unwrap().blocks_free;
    assert_eq!(free, empty, "all blocks are free again");
    stage.unmount().assert_clean();
}

fn variants() -> Vec<(Vec<&'static str>, u64)> {
    vec![
        (vec!["-t", "ext2", "-b", "1024"], 1024),
        (vec!["-t", "ext3", "-b", "1024", "-J", "size=4"], 1024),
        (vec!["-t", "ext3", "-b", "4096", "-J", "size=4", "-O", "huge_file"], 4096),
    ]
}

#[test]
fn every_level_is_written_by_us_and_read_by_the_kernel() {
    for (options, size) in variants() {
        take_turns(&options, size, OpenFlags::empty(), Ours::mount, Kernel::mount);
    }
}

#[test]
fn every_level_is_written_by_the_kernel_and_read_by_us() {
    for (options, size) in variants() {
        take_turns(&options, size, OpenFlags::empty(), Kernel::mount, Ours::mount);
    }
}

#[test]
fn direct_writes_reach_every_level() {
    let options = ["-t", "ext3", "-b", "4096", "-J", "size=4", "-O", "huge_file"];
    take_turns(&options, 4096, OpenFlags::DIRECT, Ours::mount, Ours::mount);
}

#[test]
fn a_long_file_is_cut_in_steps() {
    let image = Image::mke2fs(IMAGE_BYTES, &["-t", "ext3", "-b", "1024", "-J", "size=1"]);
    let ours = Ours::mount(image);
    let fs = ours.fs();
    let empty = fs.statfs().unwrap().blocks_free;
    let node = NewNode { mode: 0o644, ..NewNode::default() };
    let (attr, fh) = fs.create(fs.root(), b"long", node, OpenFlags::WRITE).unwrap();
    let data = Bytes::from(vec![7; 1 << 20]);
    for i in 0..40 {
        fs.write(fh, i << 20, data.clone()).unwrap();
    }
    fs.fsync(fh, false).unwrap();
    fs.release(fh).unwrap();
    let stored = fs.getattr(attr.ino).unwrap().blocks_512 / 2;
    // 40 MiB: one single, and one double with 160 leaves, the last a part.
    assert_eq!(stored, 40 * 1024 + 1 + 1 + 159);
    cut(fs, b"long", 20 << 20);
    fs.unlink(fs.root(), b"long").unwrap();
    fs.sync().unwrap();
    assert_eq!(fs.statfs().unwrap().blocks_free, empty);
    ours.unmount().assert_clean();
}
