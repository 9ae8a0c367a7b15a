//! Clusters (`bigalloc`): what we write the kernel reads, what it writes we change; e2fsck and our
//! own check agree that all is well.

use bytes::Bytes;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};
use steadfast_ext4::{DataMode, MountOptions};
use steadfast_vfs::{Fallocate, FileSystem, Ino, NewNode, OpenFlags, SetAttr, SetXattr};

use crate::image::Image;
use crate::modes::check;
use crate::sequence::{assert_holds, run, sequence};
use crate::stage::{Kernel, Ours, Stage};

const IMAGE_BYTES: u64 = 48 << 20;
const RW: OpenFlags = OpenFlags::READ.union(OpenFlags::WRITE);

fn variants() -> Vec<Vec<&'static str>> {
    vec![
        vec!["-O", "bigalloc", "-b", "4096", "-C", "65536"],
        vec!["-O", "bigalloc,metadata_csum_seed,orphan_file", "-b", "4096", "-C", "16384"],
        vec!["-O", "bigalloc,^metadata_csum,uninit_bg", "-b", "1024", "-C", "16384"],
        vec!["-O", "bigalloc,inline_data,ea_inode", "-b", "1024", "-C", "65536"],
        vec!["-O", "bigalloc,^flex_bg,^resize_inode,^64bit", "-b", "1024", "-C", "2048"],
    ]
}

#[test]
fn sequences() {
    // Kernels without CONFIG_QFMT_V2 do not write where quota is kept, but read it.
    let mut all = variants();
    let quota = ["-O", "bigalloc,quota,project", "-E", "quotatype=usrquota:grpquota:prjquota"];
    all.push([&quota[..], &["-b", "1024", "-C", "4096"]].concat());
    for options in all {
        check(8, || Image::mke2fs(IMAGE_BYTES, &options), MountOptions::default, true);
    }
}

#[test]
fn sequences_in_other_modes() {
    let image = || Image::mke2fs(IMAGE_BYTES, &variants()[2]);
    for data in [DataMode::Journal, DataMode::Writeback] {
        check(8, image, || MountOptions { data, ..MountOptions::default() }, true);
    }
    let at_once = || MountOptions { delayed_allocation: false, ..MountOptions::default() };
    check(8, image, at_once, true);
    let small = || {
        let mut options = MountOptions::default();
        options.page_cache.memory_bytes = 1 << 20;
        options.metadata_cache_blocks = 16;
        options
    };
    check(8, image, small, true);
}

#[test]
fn trees_of_the_kernel_are_read_and_removed() {
    let config =
        Config { cases: 12, failure_persistence: None, max_shrink_iters: 0, ..Config::default() };
    let rng = TestRng::deterministic_rng(RngAlgorithm::ChaCha);
    let variants = variants();
    let input = (0..variants.len(), sequence(60, false));
    let outcome = TestRunner::new_with_rng(config, rng).run(&input, |(variant, ops)| {
        let mut kernel = Kernel::mount(Image::mke2fs(IMAGE_BYTES, &variants[variant]));
        let model = run(&mut kernel, &ops);
        kernel.remount();
        let free = kernel.fs().statfs().unwrap().blocks_free;
        let image = kernel.unmount();
        image.assert_clean();
        let ours = Ours::mount(image);
        let fs = ours.fs();
        assert_holds(fs, &model, "we");
        assert_eq!(fs.statfs().unwrap().blocks_free, free);
        change_all(fs, fs.root(), b"/");
        ours.unmount().assert_clean();
        Ok(())
    });
    if let Err(e) = outcome {
        panic!("{e}");
    }
}

/// Punches, overwrites and cuts each file, and removes every third.
fn change_all(fs: &dyn FileSystem, dir: Ino, path: &[u8]) {
    for (i, entry) in fs.readdir(dir, 0).unwrap().iter().enumerate() {
        let name = &entry.name[..];
        if name == b"." || name == b".." || name == b"lost+found" {
            continue;
        }
        let attr = fs.lookup(dir, name).unwrap();
        match attr.kind {
            steadfast_vfs::FileType::Directory => change_all(fs, attr.ino, name),
            steadfast_vfs::FileType::Regular => {
                let fh = fs.open(attr.ino, RW).unwrap();
                fs.fallocate(fh, Fallocate::PunchHole, 3000, 20_000).unwrap();
                fs.write(fh, attr.size + 2000, Bytes::from(vec![8; 30_000])).unwrap();
                fs.write(fh, 5000, Bytes::from(vec![7; 3000])).unwrap();
                let size = Some(attr.size / 2 + 6000);
                fs.setattr(attr.ino, SetAttr { size, ..SetAttr::default() }).unwrap();
                assert_eq!(fs.read(fh, 5000, 1000).unwrap(), vec![7; 1000], "{path:?}");
                fs.release(fh).unwrap();
                if i % 3 == 0 {
                    fs.unlink(dir, name).unwrap();
                }
            }
            _ => {}
        }
    }
}

/// Clusters of 16 blocks: what a file has of them, and what it gives back.
#[test]
fn clusters_are_counted_once_and_freed_whole() {
    const B: u64 = 1024;
    let image = Image::mke2fs(IMAGE_BYTES, &["-O", "bigalloc", "-b", "1024", "-C", "16384"]);
    let ours = Ours::mount(image);
    let fs = ours.fs();
    let (attr, fh) = fs.create(fs.root(), b"file", NewNode::default(), RW).unwrap();
    fs.sync().unwrap();
    let free = || fs.statfs().unwrap().blocks_free;
    let used = || fs.getattr(attr.ino).unwrap().blocks_512 / 2;
    let start = free();
    let put = |block: u64| {
        assert_eq!(fs.write(fh, block * B, Bytes::from(vec![1; B as usize])), Ok(B as usize));
    };
    // One cluster, however its blocks come, and before they have places as after.
    put(20);
    assert_eq!((used(), free()), (16, start - 16));
    fs.fsync(fh, false).unwrap();
    put(21);
    put(22);
    assert_eq!((used(), free()), (16, start - 16));
    fs.fsync(fh, false).unwrap();
    assert_eq!((used(), free()), (16, start - 16));
    // Space around what is there, and one cluster more.
    fs.fallocate(fh, Fallocate::Allocate { keep_size: false }, 16 * B, 24 * B).unwrap();
    assert_eq!((used(), free()), (32, start - 32));
    // Part of a cluster gives nothing back, the rest of it all.
    fs.fallocate(fh, Fallocate::PunchHole, 16 * B, 10 * B).unwrap();
    assert_eq!(used(), 32);
    // What is only in the cache counts on the cluster that it will share.
    put(18);
    fs.fallocate(fh, Fallocate::PunchHole, 26 * B, 6 * B).unwrap();
    assert_eq!(used(), 32);
    fs.fallocate(fh, Fallocate::PunchHole, 16 * B, 16 * B).unwrap();
    assert_eq!(used(), 16);
    let cut = |size: u64| fs.setattr(attr.ino, SetAttr { size: Some(size), ..SetAttr::default() });
    cut(38 * B).unwrap();
    assert_eq!(used(), 16);
    cut(0).unwrap();
    fs.sync().unwrap();
    assert_eq!((used(), free()), (0, start));
    // Attributes' blocks and directories take clusters, too.
    fs.setxattr(attr.ino, b"user.long", &[9; 700], SetXattr::Any).unwrap();
    fs.sync().unwrap();
    assert_eq!((used(), free()), (16, start - 16));
    fs.removexattr(attr.ino, b"user.long").unwrap();
    fs.sync().unwrap();
    assert_eq!((used(), free()), (0, start));
    fs.release(fh).unwrap();
    ours.unmount().assert_clean();
}
