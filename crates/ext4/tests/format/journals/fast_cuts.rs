//! The power goes while fast commits are replayed: whoever replays next, we, the kernel or e2fsck,
//! shows the same tree.

use std::sync::Arc;

use steadfast_block::BlockDevice;
use steadfast_block::rng::Rng;
use steadfast_devices::filter::record::DeviceId;
use steadfast_devices::filter::{CacheSettings, Record, RecordLog, Recording, WriteCache};
use steadfast_devices::source::Ram;
use steadfast_devices::store::Store;
use steadfast_ext4::MountOptions;
use steadfast_ext4::mount::replay;
use steadfast_runtime::Sim;

use super::fast_commits::{FEATURES, assert_same, left, mounted_once};
use super::fast_work::work;
use super::stage::{Contents, Shape};
use crate::sparse_image::can_mount;

/// Records our replay.
fn recorded(disk: &Store) -> Recording {
    let disk = disk.clone();
    Sim::new(1)
        .run(move || {
            let log = RecordLog::new();
            let ram = Ram::from_store("disk", disk).persistent();
            let cached = Arc::new(WriteCache::new(Arc::new(ram), CacheSettings::default()));
            let device: Arc<dyn BlockDevice> = Arc::new(Record::new(cached, &log));
            let report = replay(&device, &MountOptions::default()).unwrap().unwrap();
            assert!(report.fast_commits > 2, "{report:?}");
            log.take()
        })
        .unwrap()
}

#[test]
fn a_cut_in_the_replay_changes_nothing() {
    if !can_mount() {
        return;
    }
    let shape = Shape { block_size: 4096, features: FEATURES, external: false };
    let left = left(shape, "", |dir| work(dir, 8, 14));
    let recording = recorded(&left.dirty.disk);
    let (first, last) = (recording.first_crash_point(), recording.last_crash_point());
    let mut rng = Rng::new(11);
    let step = if std::env::var("STEADFAST_SOAK").is_ok() { 1 } else { (last - first) / 30 + 1 };
    for (i, cut) in (first..=last).rev().step_by(step as usize).enumerate() {
        let keep = [50, 0, 100][i % 3];
        let base = &left.dirty.disk;
        let disk = recording.at(DeviceId(0), cut).contents(base, 0, keep, &mut rng);
        let what = format!("cut {cut} of {last}, keep {keep}");
        let cut_off = Contents { disk, card: None };
        let ours = mounted_once(&cut_off);
        left.stage.put(&ours);
        left.stage.assert_clean(&what);
        if i % 5 == 0 {
            assert_same(&left.shown(&ours), &left.tree, &what);
        }
        if i % 10 == 1 {
            // What the kernel is left is its own to replay, or a transaction like others.
            assert_same(&left.shown(&cut_off), &left.tree, &format!("{what}, the kernel"));
        }
    }
}
