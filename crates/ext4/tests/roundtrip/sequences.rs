//! Random sequences of operations by us, judged by e2fsck and the kernel, and the other way round.

use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};
use steadfast_ext4::{AccessTimes, DataMode, MountOptions};

use crate::image::Image;
use crate::sequence::{Choice, assert_holds, assert_same_attrs, attrs_of, run, sequence};
use crate::stage::{Kernel, Ours, Stage};

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
    all.push(vec!["-O", "inline_data"]);
    let quota = "quotatype=usrquota:grpquota:prjquota";
    all.push(vec!["-O", "quota,project", "-E", quota]);
    all.push(vec!["-O", "inline_data", "-b", "1024", "-I", "512"]);
    all
}

/// The data modes, and allocation at once rather than delayed.
fn mounts() -> Vec<MountOptions> {
    let with = |data| MountOptions { data, ..MountOptions::default() };
    let at_once = MountOptions { delayed_allocation: false, ..MountOptions::default() };
    vec![
        with(DataMode::Ordered),
        with(DataMode::Journal),
        with(DataMode::Writeback),
        with(DataMode::Transact),
        at_once,
    ]
}

/// Runs `check` on variants of mke2fs, mount options and sequences; the same ones each time.
fn for_sequences(cases: u32, only_names: bool, check: impl Fn(&[&str], MountOptions, &[Choice])) {
    let config =
        Config { cases, failure_persistence: None, max_shrink_iters: 300, ..Config::default() };
    let rng = TestRng::deterministic_rng(RngAlgorithm::ChaCha);
    let mut runner = TestRunner::new_with_rng(config, rng);
    let (variants, mounts) = (variants(), mounts());
    let input = (0..variants.len(), 0..mounts.len(), sequence(60, only_names));
    let outcome = runner.run(&input, |(variant, mount, ops)| {
        check(&variants[variant], mounts[mount].clone(), &ops);
        Ok(())
    });
    if let Err(e) = outcome {
        panic!("{e}");
    }
}

/// As the kernel is mounted here: looking at a tree does not change it.
fn unmoved(options: MountOptions) -> MountOptions {
    MountOptions { access_times: AccessTimes::Never, ..options }
}

#[test]
fn our_trees_are_read_by_the_kernel() {
    for_sequences(200, false, |options, mount, ops| {
        let mut ours = Ours::mount_as(Image::mke2fs(IMAGE_BYTES, options), unmoved(mount));
        let model = run(&mut ours, ops);
        assert_holds(ours.fs(), &model, "we");
        ours.remount();
        let attrs = attrs_of(ours.fs());
        let image = ours.unmount();
        image.assert_clean();
        let mount = image.mount("ro");
        assert_holds(mount.fs(), &model, "the kernel");
        assert_same_attrs(&attrs, &attrs_of(mount.fs()));
    });
}

#[test]
fn names_by_us_are_names_for_the_kernel() {
    for_sequences(60, true, |options, mount, ops| {
        let mut ours = Ours::mount_as(Image::mke2fs(IMAGE_BYTES, options), mount);
        let model = run(&mut ours, ops);
        let image = ours.unmount();
        image.assert_clean();
        let mount = image.mount("ro");
        assert_holds(mount.fs(), &model, "the kernel");
    });
}

#[test]
fn trees_of_the_kernel_are_read_by_us() {
    for_sequences(60, false, |options, mount, ops| {
        // Kernels without CONFIG_QFMT_V2 do not write where quota is kept.
        if options.contains(&"quota,project") {
            return;
        }
        let mut kernel = Kernel::mount(Image::mke2fs(IMAGE_BYTES, options));
        let model = run(&mut kernel, ops);
        assert_holds(kernel.fs(), &model, "the kernel");
        kernel.remount();
        let attrs = attrs_of(kernel.fs());
        let image = kernel.unmount();
        image.assert_clean();
        let ours = Ours::mount_as(image, unmoved(mount));
        assert_holds(ours.fs(), &model, "we");
        assert_same_attrs(&attrs_of(ours.fs()), &attrs);
        ours.unmount().assert_clean();
    });
}
