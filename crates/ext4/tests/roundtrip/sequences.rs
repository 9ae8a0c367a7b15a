//! Random sequences of operations by us, judged by e2fsck and the kernel, and the other way round.

use crate::image::Image;
use crate::sequence::{Op, Tree, assert_same, run, sequence, tree_of};
use crate::stage::{Kernel, Ours, Stage};
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};

const IMAGE_BYTES: u64 = 48 << 20;

/// mke2fs's options: Debian's defaults and upstream's, which differ in two features; small, middle
/// and large blocks; 32- and 64-byte group descriptors.
fn variants() -> Vec<Vec<&'static str>> {
    let mut all = Vec::new();
    for features in ["^metadata_csum_seed,^orphan_file", "metadata_csum_seed,orphan_file"] {
        for block_size in ["1024", "2048", "4096"] {
            for wide in ["64bit", "^64bit"] {
                all.push(vec!["-b", block_size, "-O", features, "-O", wide]);
            }
        }
    }
    all
}

/// Runs `check` on `cases` pairs of a variant of mke2fs and a sequence; the same ones each time.
fn for_sequences(cases: u32, only_names: bool, check: impl Fn(&[&str], &[Op])) {
    let config =
        Config { cases, failure_persistence: None, max_shrink_iters: 300, ..Config::default() };
    let rng = TestRng::deterministic_rng(RngAlgorithm::ChaCha);
    let mut runner = TestRunner::new_with_rng(config, rng);
    let variants = variants();
    let input = (0..variants.len(), sequence(60, only_names));
    let outcome = runner.run(&input, |(variant, ops)| {
        check(&variants[variant], &ops);
        Ok(())
    });
    if let Err(e) = outcome {
        panic!("{e}");
    }
}

fn read_by_us(image: Image) -> (Tree, Image) {
    let ours = Ours::mount(image);
    let tree = tree_of(ours.fs());
    (tree, ours.unmount())
}

#[test]
fn our_trees_are_read_by_the_kernel() {
    for_sequences(200, false, |options, ops| {
        let mut ours = Ours::mount(Image::mke2fs(IMAGE_BYTES, options));
        let model = run(&mut ours, ops);
        assert_same(&tree_of(ours.fs()), &model.tree(), "we");
        let image = ours.unmount();
        image.assert_clean();
        let mount = image.mount("ro");
        assert_same(&tree_of(mount.fs()), &model.tree(), "the kernel");
    });
}

#[test]
fn names_by_us_are_names_for_the_kernel() {
    for_sequences(60, true, |options, ops| {
        let mut ours = Ours::mount(Image::mke2fs(IMAGE_BYTES, options));
        let model = run(&mut ours, ops);
        let image = ours.unmount();
        image.assert_clean();
        let mount = image.mount("ro");
        assert_same(&tree_of(mount.fs()), &model.tree(), "the kernel");
    });
}

#[test]
fn trees_of_the_kernel_are_read_by_us() {
    for_sequences(60, false, |options, ops| {
        let mut kernel = Kernel::mount(Image::mke2fs(IMAGE_BYTES, options));
        let model = run(&mut kernel, ops);
        assert_same(&tree_of(kernel.fs()), &model.tree(), "the kernel");
        let (tree, image) = read_by_us(kernel.unmount());
        assert_same(&tree, &model.tree(), "we");
        image.assert_clean();
    });
}
