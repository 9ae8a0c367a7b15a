//! The power is cut while a tree is copied into an image: the file system is whole, and a file that
//! is replaced is the old one or the new one.

use std::path::Path;
use std::sync::Arc;

use steadfast_block::BlockDevice;
use steadfast_block::rng::Rng;
use steadfast_devices::filter::record::DeviceId;
use steadfast_devices::filter::{Record, RecordLog, Recording};
use steadfast_devices::model::ssd::SsdCache;
use steadfast_devices::model::{Model, ModelParams, SsdParams};
use steadfast_devices::store::Store;
use steadfast_ext4::{Ext4, MountOptions};
use steadfast_ext4_check as check;
use steadfast_ext4_mkfs::{JournalChoice, Options, make};
use steadfast_runtime::Sim;
use steadfast_vfs::path::resolve;

use crate::fs::FileSystem;

const SECTORS: u64 = 32 << 11;
const CUTS: u64 = 40;
const OLD: &[u8] = &[b'o'; 300_000];
const NEW: &[u8] = &[b'n'; 200_000];

fn disk() -> Arc<dyn Model> {
    let cache = SsdCache::Volatile;
    let params = SsdParams { sectors: SECTORS, write_cache: cache, ..SsdParams::default() };
    ModelParams::Ssd(params).build("disk").unwrap()
}

fn by_path(fs: &Arc<Ext4>) -> FileSystem {
    FileSystem::over(Arc::clone(fs) as Arc<_>, "disk")
}

fn copy_in(fs: &Arc<Ext4>, host: &Path, to: &str) {
    assert_eq!(by_path(fs).copy_in(host, to).unwrap().failures, 0);
}

/// What is copied: a file that is there already, in between many small ones with other names.
fn folder(contents: &[u8]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let top = folder.path().join("t");
    std::fs::create_dir(&top).unwrap();
    for i in 0..60 {
        let name = top.join(format!("{i:02}"));
        std::fs::write(&name, vec![i; 3000 * usize::from(i)]).unwrap();
        std::fs::hard_link(&name, top.join(format!("{i:02}-again"))).unwrap();
    }
    std::fs::write(top.join("30-replaced"), contents).unwrap();
    folder
}

/// A copy over what an earlier one has left; what the disk held before, and what it was
/// asked.
fn recorded() -> (Store, Recording) {
    let (old, new) = (folder(OLD), folder(NEW));
    let run = move || {
        let disk = disk();
        let device: Arc<dyn BlockDevice> = disk.clone();
        let mut options = Options::random(1_700_000_000);
        options.journal = JournalChoice::InternalOf(1024);
        make(&device, &options).unwrap();
        let fs = Ext4::mount(Arc::clone(&device), MountOptions::default()).unwrap();
        copy_in(&fs, &old.path().join("t"), "/");
        fs.unmount().unwrap();
        let log = RecordLog::new();
        let base = disk.contents();
        let recorded: Arc<dyn BlockDevice> = Arc::new(Record::new(device, &log));
        let fs = Ext4::mount(recorded, MountOptions::default()).unwrap();
        // Each command ends with an unmount; a timer may commit in between.
        copy_in(&fs, &new.path().join("t"), "/");
        by_path(&fs).sync().unwrap();
        copy_in(&fs, new.path(), "/again");
        fs.unmount().unwrap();
        (base, log.take())
    };
    Sim::new(1).run(run).unwrap()
}

#[test]
fn a_copy_that_is_cut_leaves_the_old_file_or_the_new_one() {
    let (base, recording) = recorded();
    let mut rng = Rng::new(7);
    let (first, last) = (recording.first_crash_point(), recording.last_crash_point());
    let (mut old, mut new) = (0, 0);
    for number in 0..CUTS {
        let cut = first + 1 + (last - first - 1) * number / (CUTS - 1);
        let keep = [0, 10, 50, 90, 100][rng.below(5) as usize];
        let store = recording.at(DeviceId(0), cut).contents(&base, 0, keep, &mut rng);
        let (replaced, spare) = recovered(store, &format!("cut {cut}, keep {keep} %"));
        assert!(replaced == OLD || replaced == NEW, "cut {cut}: {} bytes", replaced.len());
        old += u32::from(replaced == OLD);
        new += u32::from(replaced == NEW);
        // It has a spare name for a moment only, between two changes of one transaction.
        assert!(spare <= 1, "cut {cut}: {spare} spare names");
    }
    assert!(old > 0 && new > 0, "{old} old, {new} new");
}

/// Recovers and checks; what the replaced file holds, and how many spare names there are.
fn recovered(store: Store, what: &str) -> (Vec<u8>, usize) {
    let what = what.to_string();
    let run = move || {
        let disk = disk();
        disk.set_contents(store).unwrap();
        let device: Arc<dyn BlockDevice> = disk;
        let fs = Ext4::mount(Arc::clone(&device), MountOptions::default()).unwrap();
        let contents = by_path(&fs).read("/t/30-replaced").unwrap();
        let folder = resolve(&*fs, b"/t", true).unwrap();
        let names = steadfast_vfs::path::list(&*fs, folder.ino).unwrap();
        let spare = names.iter().filter(|e| e.name.starts_with(b".steadfast-")).count();
        fs.unmount().unwrap();
        let report = check::check(&device, None).unwrap();
        assert!(report.findings.is_empty(), "{what}: {:?}", report.findings);
        (contents, spare)
    };
    Sim::new(2).run(run).unwrap()
}
