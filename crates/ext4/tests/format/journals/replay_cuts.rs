//! The power goes while a journal is replayed: whoever replays next ends with a sound file system,
//! whose superblock counts what is free.

use std::fs;
use std::sync::Arc;

use steadfast_block::BlockDevice;
use steadfast_block::rng::Rng;
use steadfast_devices::filter::record::DeviceId;
use steadfast_devices::filter::{CacheSettings, Record, RecordLog, Recording, WriteCache};
use steadfast_devices::source::Ram;
use steadfast_devices::store::Store;
use steadfast_ext4::MountOptions;
use steadfast_ext4::mount::{delete_orphans, replay};
use steadfast_runtime::Sim;

use super::stage::{Contents, Shape, Stage, write_durably};
use crate::sparse_image::can_mount;

/// The kernel makes files and holds one open that has no name.
fn left(shape: Shape) -> (Stage, Contents) {
    let stage = Stage::mke2fs(shape);
    let mount = stage.mount("rw,commit=9999");
    let nameless = mount.path().join("nameless");
    write_durably(&nameless, &[3; 70_000]);
    let held = fs::File::open(&nameless).unwrap();
    fs::remove_file(nameless).unwrap();
    for n in 0..20 {
        fs::create_dir(mount.path().join(format!("d{n}"))).unwrap();
        write_durably(&mount.path().join(format!("d{n}/f")), &[n; 9_000]);
    }
    let dirty = stage.contents();
    drop(held);
    drop(mount);
    (stage, dirty)
}

/// Records our replay, and what it does to orphans.
fn recorded(disk: &Store) -> Recording {
    let disk = disk.clone();
    let work = move || {
        let log = RecordLog::new();
        let ram = Ram::from_store("disk", disk).persistent();
        let cached = Arc::new(WriteCache::new(Arc::new(ram), CacheSettings::default()));
        let device: Arc<dyn BlockDevice> = Arc::new(Record::new(cached, &log));
        replay(&device, &MountOptions::default()).unwrap().unwrap();
        assert_eq!(delete_orphans(&device, &MountOptions::default()).unwrap(), Some(1));
        log.take()
    };
    Sim::new(1).run(work).unwrap()
}

/// What a second try makes of what the first left.
fn again(disk: Store) -> Contents {
    let ram = Ram::from_store("disk", disk).persistent();
    let device: Arc<dyn BlockDevice> = Arc::new(ram.clone());
    replay(&device, &MountOptions::default()).unwrap();
    delete_orphans(&device, &MountOptions::default()).unwrap();
    Contents { disk: ram.store(), card: None }
}

#[test]
fn a_cut_in_the_replay_leaves_counters_that_are_right_afterwards() {
    if !can_mount() {
        return;
    }
    for features in ["metadata_csum,64bit,orphan_file", "^metadata_csum,^64bit"] {
        let (stage, dirty) = left(Shape { block_size: 1024, features, external: false });
        let recording = recorded(&dirty.disk);
        let (first, last) = (recording.first_crash_point(), recording.last_crash_point());
        let mut rng = Rng::new(11);
        let soak = std::env::var("STEADFAST_SOAK").is_ok();
        let step = if soak { 1 } else { (last - first) / 12 + 1 };
        for (i, cut) in (first..=last).rev().step_by(step as usize).enumerate() {
            let keep = [50, 0, 100][i % 3];
            let state = recording.at(DeviceId(0), cut);
            let disk = state.contents(&dirty.disk, 0, keep, &mut rng);
            stage.assert_sound(&again(disk), &format!("cut {cut} of {last}, keep {keep}"));
        }
    }
}
