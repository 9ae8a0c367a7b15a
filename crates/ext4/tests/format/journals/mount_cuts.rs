//! The power goes while we mount, work and unmount: what is left needs no person. A log with
//! transactions beside a superblock that needs no recovery would: `e2fsck -p`, as it runs at a
//! boot, stops there.

use std::sync::Arc;

use steadfast_block::BlockDevice;
use steadfast_block::rng::Rng;
use steadfast_devices::filter::record::DeviceId;
use steadfast_devices::filter::{CacheSettings, Record, RecordLog, Recording, WriteCache};
use steadfast_devices::source::Ram;
use steadfast_devices::store::Store;
use steadfast_ext4::Ext4;
use steadfast_ext4::MountOptions;
use steadfast_runtime::Sim;
use steadfast_vfs::{FileSystem, NewNode};

use super::stage::{Contents, Shape, Stage};

/// Records a mount that makes folders and ends.
fn recorded(disk: &Store) -> Recording {
    let disk = disk.clone();
    let work = move || {
        let log = RecordLog::new();
        let ram = Ram::from_store("disk", disk).persistent();
        let cached = Arc::new(WriteCache::new(Arc::new(ram), CacheSettings::default()));
        let device: Arc<dyn BlockDevice> = Arc::new(Record::new(cached, &log));
        let fs = Ext4::mount(device, MountOptions::default()).unwrap();
        for n in 0..20 {
            fs.mkdir(fs.root(), format!("d{n}").as_bytes(), NewNode::default()).unwrap();
        }
        fs.sync().unwrap();
        fs.unmount().unwrap();
        log.take()
    };
    Sim::new(1).run(work).unwrap()
}

#[test]
fn a_cut_in_a_mount_or_unmount_needs_no_person() {
    for features in ["metadata_csum,64bit,orphan_file", "^metadata_csum,^64bit"] {
        let stage = Stage::mke2fs(Shape { block_size: 1024, features, external: false });
        let before = stage.contents();
        let recording = recorded(&before.disk);
        let from = recording.first_crash_point();
        assert!(from < recording.last_crash_point());
        let mut rng = Rng::new(7);
        for cut in from..=recording.last_crash_point() {
            for keep in [0, 50, 100] {
                let state = recording.at(DeviceId(0), cut);
                let disk = state.contents(&before.disk, 0, keep, &mut rng);
                stage.put(&Contents { disk, card: None });
                stage.repair();
                stage.assert_clean(&format!(
                    "cut {cut} of {}, keep {keep}",
                    recording.last_crash_point()
                ));
            }
        }
    }
}
