//! Every target takes the inputs that are kept for it: those that reach something of their own, and
//! those that found a fault.

use std::path::{Path, PathBuf};

#[path = "../fuzz_targets"]
mod targets {
    pub mod block_map;
    pub mod btt;
    pub mod casefold;
    pub mod control_request;
    pub mod dd_operands;
    pub mod directory_block;
    pub mod extent_tree;
    pub mod fast_commit;
    pub mod fsdax;
    pub mod host_config;
    pub mod host_state;
    pub mod inline_data;
    pub mod iozone_options;
    pub mod journal;
    pub mod journal_device;
    pub mod lab_results;
    pub mod mmp;
    pub mod mount_options;
    pub mod orphan_file;
    pub mod pmem_label;
    pub mod quota;
    pub mod recording;
    pub mod scenario;
    pub mod superblock;
    pub mod tar;
    pub mod trace;
    pub mod trace_import;
    pub mod volume;
    pub mod xattrs;
}

fn files(folder: &str) -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join(folder);
    let entries = folder.read_dir().unwrap_or_else(|e| panic!("{}: {e}", folder.display()));
    entries.map(|entry| entry.unwrap().path()).collect()
}

fn take(target: &str, run: fn(&[u8])) {
    let seeds = files(&format!("seeds/{target}"));
    assert!(!seeds.is_empty(), "no inputs are kept for {target}");
    for seed in seeds {
        let input = std::fs::read(&seed).unwrap();
        let taken = std::panic::catch_unwind(|| run(&input));
        assert!(taken.is_ok(), "{target} fails with {}", seed.display());
    }
}

macro_rules! seeds_of {
    ($($target:ident),*) => {
        $(#[test]
        fn $target() {
            take(stringify!($target), targets::$target::run);
        })*

        #[test]
        fn every_target_is_named() {
            let named = [$(stringify!($target)),*];
            let names = |folder| {
                let files = files(folder).into_iter();
                let mut names: Vec<String> = files
                    .filter_map(|path| Some(path.file_stem()?.to_str()?.to_owned()))
                    .collect();
                names.sort();
                names
            };
            assert_eq!(names("fuzz_targets"), named, "targets");
            assert_eq!(names("seeds"), named, "folders of seeds");
        }
    };
}

seeds_of!(
    block_map,
    btt,
    casefold,
    control_request,
    dd_operands,
    directory_block,
    extent_tree,
    fast_commit,
    fsdax,
    host_config,
    host_state,
    inline_data,
    iozone_options,
    journal,
    journal_device,
    lab_results,
    mmp,
    mount_options,
    orphan_file,
    pmem_label,
    quota,
    recording,
    scenario,
    superblock,
    tar,
    trace,
    trace_import,
    volume,
    xattrs
);
