//! Random sequences of operations with each set of options.

use std::sync::Arc;

use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};
use steadfast_block::BlockDevice;
use steadfast_devices::source::{FileDevice, FileOptions, Ram};
use steadfast_ext4::{DataMode, Ext4, MountOptions};
use steadfast_ext4_mkfs::{JournalChoice, JournalDeviceOptions, Options};
use steadfast_ext4_mkfs::{make, make_journal_device};
use steadfast_vfs::FileSystem;

use crate::image::Image;
use crate::sequence::{assert_holds, run, sequence};
use crate::stage::Stage;

const IMAGE_BYTES: u64 = 48 << 20;

/// An image mounted by us with options.
struct Mounted {
    image: Image,
    options: MountOptions,
    fs: Option<Arc<Ext4>>,
}

impl Mounted {
    fn new(image: Image, options: MountOptions) -> Self {
        let mut mounted = Mounted { image, options, fs: None };
        mounted.remount();
        mounted
    }
}

impl Stage for Mounted {
    fn fs(&self) -> &dyn FileSystem {
        &**self.fs.as_ref().unwrap()
    }

    fn remount(&mut self) {
        if let Some(fs) = self.fs.take() {
            fs.unmount().unwrap();
        }
        self.fs = Some(Ext4::mount(open(&self.image), self.options.clone()).unwrap());
    }

    fn unmount(mut self) -> Image {
        self.fs.take().unwrap().unmount().unwrap();
        self.image
    }
}

pub fn check(
    cases: u32,
    image: impl Fn() -> Image,
    options: impl Fn() -> MountOptions,
    kernel: bool,
) {
    let config =
        Config { cases, failure_persistence: None, max_shrink_iters: 200, ..Config::default() };
    let rng = TestRng::deterministic_rng(RngAlgorithm::ChaCha);
    let outcome = TestRunner::new_with_rng(config, rng).run(&sequence(60, false), |ops| {
        let mut stage = Mounted::new(image(), options());
        let model = run(&mut stage, &ops);
        assert_holds(stage.fs(), &model, "we");
        stage.remount();
        assert_holds(stage.fs(), &model, "we, mounted again");
        let image = stage.unmount();
        if kernel {
            image.assert_clean();
            let mount =
                if image.has_large_blocks() { image.mount_by_fuse2fs() } else { image.mount("ro") };
            assert_holds(mount.fs(), &model, "the kernel");
        }
        Ok(())
    });
    if let Err(e) = outcome {
        panic!("{e}");
    }
}

fn open(image: &Image) -> Arc<dyn BlockDevice> {
    Arc::new(FileDevice::open(image.path(), &FileOptions::default()).unwrap())
}

fn with(change: impl Fn(&mut MountOptions)) -> MountOptions {
    let mut options = MountOptions::default();
    change(&mut options);
    options
}

fn small_blocks() -> Image {
    Image::mke2fs(IMAGE_BYTES, &["-b", "1024"])
}

fn large_blocks() -> Image {
    Image::mke2fs(IMAGE_BYTES, &["-b", "4096", "-J", "size=4"])
}

#[test]
fn writeback() {
    let options = || with(|o| o.data = DataMode::Writeback);
    check(25, large_blocks, options, true);
    check(25, small_blocks, options, true);
}

#[test]
fn journalled_data() {
    let options = || with(|o| o.data = DataMode::Journal);
    check(25, large_blocks, options, true);
    check(25, small_blocks, options, true);
}

#[test]
fn without_delayed_allocation() {
    let options = || with(|o| o.delayed_allocation = false);
    check(25, large_blocks, options, true);
    check(25, small_blocks, options, true);
}

#[test]
fn with_little_memory() {
    let options = || {
        with(|o| {
            o.page_cache.memory_bytes = 1 << 20;
            o.metadata_cache_blocks = 16;
        })
    };
    check(25, large_blocks, options, true);
}

#[test]
fn without_a_journal() {
    let image = || Image::mke2fs(IMAGE_BYTES, &["-O", "^has_journal"]);
    check(25, image, MountOptions::default, true);
}

#[test]
fn on_an_external_journal() {
    for data in [DataMode::Ordered, DataMode::Writeback, DataMode::Journal] {
        let card: Arc<dyn BlockDevice> = Arc::new(Ram::new("card", 8 << 20).persistent());
        let image = || {
            make_journal_device(&card, &JournalDeviceOptions::random(1_700_000_000)).unwrap();
            let image = Image::mke2fs(IMAGE_BYTES, &[]);
            let mut options = Options::random(1_700_000_000);
            options.block_size = Some(4096);
            options.journal =
                JournalChoice::External { device: card.clone(), accept_volatile: false };
            make(&open(&image), &options).unwrap();
            image
        };
        let options = || {
            with(|o| {
                o.data = data;
                o.journal_device = Some(card.clone());
                o.journal.async_commit = data != DataMode::Ordered;
            })
        };
        // e2fsck and the kernel would want the card too: they have it in the power-cut tests.
        check(10, image, options, false);
    }
}

#[test]
fn contents_in_inodes() {
    for variant in [
        vec!["-O", "inline_data", "-b", "1024"],
        vec!["-O", "inline_data", "-b", "4096", "-I", "1024"],
        vec!["-O", "inline_data,^metadata_csum,^dir_index"],
    ] {
        for data in [DataMode::Ordered, DataMode::Journal] {
            let options = || with(|o| o.data = data);
            check(15, || Image::mke2fs(IMAGE_BYTES, &variant), options, true);
        }
    }
}

#[test]
fn older_features() {
    for options in [
        vec!["-O", "^metadata_csum"],
        vec!["-O", "^metadata_csum,uninit_bg"],
        vec!["-O", "^metadata_csum,^64bit", "-b", "1024"],
        vec!["-O", "^flex_bg,^resize_inode,^sparse_super"],
        vec!["-O", "^large_file,^huge_file,^dir_nlink,^extra_isize,^dir_index"],
    ] {
        check(10, || Image::mke2fs(IMAGE_BYTES, &options), MountOptions::default, true);
    }
}

#[test]
fn block_maps() {
    for options in [
        vec!["-t", "ext2", "-b", "1024"],
        vec!["-t", "ext2", "-b", "4096"],
        vec!["-t", "ext2", "-r", "0"],
        vec!["-t", "ext3", "-b", "1024", "-J", "size=4"],
        vec!["-t", "ext3", "-b", "4096", "-I", "128", "-J", "size=4"],
        vec!["-O", "^extent,^flex_bg,^64bit", "-b", "2048"],
        vec!["-O", "^extent,^64bit,^filetype,^large_file,^sparse_super,^resize_inode,^dir_index"],
    ] {
        check(8, || Image::mke2fs(IMAGE_BYTES, &options), MountOptions::default, true);
    }
}

#[test]
fn block_maps_in_other_modes() {
    let image = || Image::mke2fs(IMAGE_BYTES, &["-t", "ext3", "-b", "1024", "-J", "size=4"]);
    check(10, image, || with(|o| o.data = DataMode::Journal), true);
    check(10, image, || with(|o| o.data = DataMode::Writeback), true);
    check(10, image, || with(|o| o.delayed_allocation = false), true);
}

#[test]
fn other_places_of_descriptors_and_backups() {
    for options in [
        vec!["-O", "meta_bg,^resize_inode", "-b", "1024", "-g", "1024", "-J", "size=4"],
        vec!["-O", "meta_bg,^resize_inode,^flex_bg,^64bit,^metadata_csum,uninit_bg", "-g", "1024"],
        vec!["-O", "sparse_super2", "-b", "1024"],
        vec!["-O", "sparse_super2,^metadata_csum,uninit_bg", "-b", "1024", "-I", "128"],
        vec!["-I", "128", "-b", "1024"],
        vec!["-I", "1024", "-b", "1024"],
        vec!["-I", "4096", "-b", "4096", "-N", "1024"],
    ] {
        check(6, || Image::mke2fs(IMAGE_BYTES, &options), MountOptions::default, true);
    }
}
