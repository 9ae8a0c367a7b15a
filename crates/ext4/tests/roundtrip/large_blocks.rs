//! Blocks larger than a page: 8 to 64 KiB. The kernel here does not mount them; e2fsck and fuse2fs
//! judge, and mke2fs fills images for us to read.

use std::os::unix::fs::FileExt;

use bytes::Bytes;
use steadfast_ext4::{DataMode, MountOptions};
use steadfast_vfs::{Fallocate, NewNode, OpenFlags, SetAttr};

use crate::image::Image;
use crate::modes::check;
use crate::sequence::{assert_same, tree_of};
use crate::stage::{Ours, Stage};

/// Room for a journal of 1024 blocks of 64 KiB.
const IMAGE_BYTES: u64 = 160 << 20;

/// Old data that nobody may see: what was on the device before.
const FOREIGN: u8 = 0xee;

fn variants() -> Vec<Vec<&'static str>> {
    vec![
        vec!["-b", "65536", "-J", "size=64"],
        vec!["-b", "65536", "-O", "^has_journal,^metadata_csum", "-I", "32768"],
        vec!["-b", "16384", "-O", "^has_journal", "-I", "4096"],
        vec!["-b", "8192", "-J", "size=8"],
        vec!["-t", "ext3", "-b", "32768", "-J", "size=32"],
    ]
}

#[test]
fn sequences() {
    for options in variants() {
        check(6, || Image::mke2fs(IMAGE_BYTES, &options), MountOptions::default, true);
    }
}

#[test]
fn sequences_in_other_modes() {
    let image = || Image::mke2fs(IMAGE_BYTES, &["-b", "16384", "-J", "size=16"]);
    for data in [DataMode::Journal, DataMode::Writeback] {
        check(6, image, || MountOptions { data, ..MountOptions::default() }, true);
    }
    let at_once = || MountOptions { delayed_allocation: false, ..MountOptions::default() };
    check(6, image, at_once, true);
}

#[test]
fn what_mke2fs_copies_is_read() {
    let folder = tempfile::tempdir().unwrap();
    let contents: Vec<u8> = (0..700_000u32).map(|i| (i / 7) as u8).collect();
    std::fs::write(folder.path().join("file"), &contents).unwrap();
    std::fs::create_dir(folder.path().join("dir")).unwrap();
    for i in 0..400 {
        std::fs::write(folder.path().join(format!("dir/name{i}{}", "x".repeat(200))), b"x")
            .unwrap();
    }
    let from = folder.path().to_str().unwrap();
    for options in variants() {
        let image = Image::mke2fs(IMAGE_BYTES, &[&options[..], &["-d", from]].concat());
        let theirs = tree_of(image.mount_by_fuse2fs().fs());
        let ours = Ours::mount(image);
        assert_same(&tree_of(ours.fs()), &theirs, "we");
        ours.unmount().assert_clean();
    }
}

/// Fills the free space of an image with old data.
fn soil(image: &Image) {
    let ours = Ours::mount(Image::clone_of(image));
    let fs = ours.fs();
    let (_, fh) = fs.create(fs.root(), b"old", NewNode::default(), OpenFlags::WRITE).unwrap();
    let data = Bytes::from(vec![FOREIGN; 1 << 20]);
    let mut at = 0;
    while let Ok(n) = fs.write(fh, at, data.clone()) {
        at += n as u64;
        if n < data.len() || at >= 60 << 20 {
            break;
        }
    }
    fs.fsync(fh, false).unwrap();
    fs.release(fh).unwrap();
    let soiled = ours.unmount();
    let (from, to) = (std::fs::read(soiled.path()).unwrap(), image.path());
    let file = std::fs::File::options().write(true).open(to).unwrap();
    // Only what the old file held: everything else stays as it was made.
    for (i, block) in from.chunks(4096).enumerate() {
        if block.iter().all(|b| *b == FOREIGN) {
            file.write_all_at(block, i as u64 * 4096).unwrap();
        }
    }
}

#[test]
fn the_rest_of_a_block_is_zeros() {
    for options in [["-b", "65536", "-J", "size=64"], ["-b", "8192", "-J", "size=8"]] {
        let image = Image::mke2fs(IMAGE_BYTES, &options);
        soil(&image);
        let mut ours = Ours::mount(image);
        let fs = ours.fs();
        let node = NewNode { mode: 0o644, ..NewNode::default() };
        let (attr, fh) = fs.create(fs.root(), b"new", node, OpenFlags::WRITE).unwrap();
        let mut model = vec![0u8; 600_000];
        let mut write = |at: usize, len: usize, byte: u8| {
            fs.write(fh, at as u64, Bytes::from(vec![byte; len])).unwrap();
            model[at..at + len].fill(byte);
            fs.fsync(fh, false).unwrap();
        };
        write(5000, 3, 1);
        write(300_000, 100, 2);
        write(599_999, 1, 3);
        write(302_000, 10_000, 4);
        fs.fallocate(fh, Fallocate::PunchHole, 303_000, 5000).unwrap();
        model[303_000..308_000].fill(0);
        fs.fallocate(fh, Fallocate::Allocate { keep_size: true }, 400_000, 100_000).unwrap();
        fs.write(fh, 450_000, Bytes::from(vec![5; 10])).unwrap();
        model[450_000..450_010].fill(5);
        let cut = |size| fs.setattr(attr.ino, SetAttr { size: Some(size), ..SetAttr::default() });
        cut(301_000).unwrap();
        cut(600_000).unwrap();
        model[301_000..].fill(0);
        fs.release(fh).unwrap();
        for _ in 0..2 {
            let fs = ours.fs();
            let fh = fs.open(attr.ino, OpenFlags::READ).unwrap();
            let mut found = Vec::new();
            while found.len() < model.len() {
                found.extend_from_slice(&fs.read(fh, found.len() as u64, 1 << 20).unwrap());
            }
            fs.release(fh).unwrap();
            let wrong = (0..model.len()).find(|i| found[*i] != model[*i]);
            assert_eq!(wrong.map(|i| (i, found[i], model[i])), None, "{options:?}");
            ours.remount();
        }
        ours.unmount().assert_clean();
    }
}
