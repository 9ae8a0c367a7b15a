//! Recovery after a cut, and what must hold then.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::process::Command;
use std::sync::Arc;

use steadfast_block::BlockDevice;
use steadfast_block::pattern::stamp_of;
use steadfast_devices::filter::record::Note;
use steadfast_devices::filter::{CacheSettings, Record, RecordLog, WriteCache};
use steadfast_devices::source::Ram;
use steadfast_devices::store::Store;
use steadfast_ext4::mount::replayed_blocks;
use steadfast_ext4::{DataMode, Ext4, MountOptions};
use steadfast_ext4_check::check;
use steadfast_runtime::Sim;
use steadfast_vfs::{FileSystem, FsError, Ino, OpenFlags, path};

use crate::workload::{APPENDED, MADE, NAMED, OVERWRITTEN, RECORD, REPLACED, byte, contents};
use crate::{Run, Setup, shaped};

/// Bytes of an image that are in memory at once.
const PIECE: u64 = 1 << 20;
/// Whose the disk's contents were before.
pub const FOREIGN_TAG: u64 = 0xdead;

pub struct Judge {
    setup: Setup,
    folder: tempfile::TempDir,
}

impl Judge {
    pub fn new(setup: Setup) -> Self {
        Judge { setup, folder: tempfile::tempdir().unwrap() }
    }

    /// Recovers and judges; panics on a broken promise. Returns a record of the recovery.
    pub fn judge(&self, stores: Vec<Store>, notes: &[Note], what: &str) -> Run {
        let setup = self.setup;
        let (context, notes) = (what.to_string(), notes.to_vec());
        let bases = stores.clone();
        let (recording, disk, card) = Sim::new(1)
            .run(move || {
                let [disk, card] =
                    [0, 1].map(|i| Ram::from_store("device", stores[i].clone()).persistent());
                let log = RecordLog::new();
                let [first, second] = [&disk, &card].map(|device| {
                    let next = Arc::new(device.clone());
                    let cached = Arc::new(WriteCache::new(next, CacheSettings::default()));
                    Arc::new(Record::new(cached, &log)) as Arc<dyn BlockDevice>
                });
                let options = setup.options(setup.external.then_some(second));
                check_before_recovery(&first, &options, &context);
                let fs = Ext4::mount(first.clone(), options)
                    .unwrap_or_else(|e| panic!("{context}: {e}"));
                let after = After { fs: &fs, setup, what: &context };
                after.check_promises(&notes);
                after.check_foreign();
                crate::attributes::judge(&fs, &notes, &context);
                if setup.casefold {
                    crate::casefold::judge(&fs, &notes, &context);
                }
                crate::fast_maps::judge(&fs, &notes, &context);
                crate::last_names::judge(&fs, &notes, &context);
                crate::removed::judge(&fs, &notes, &context);
                crate::steps::judge(&fs, &notes, &context);
                crate::renamed::judge(&fs, setup.data, &notes, &context);
                fs.unmount().unwrap_or_else(|e| panic!("{context}: {e}"));
                first.flush().unwrap();
                (log.take(), disk.store(), card.store())
            })
            .unwrap();
        self.e2fsck(&disk, setup.external.then_some(&card), what);
        Run { recording, bases }
    }

    /// Written over what was dumped before: to make a file anew takes as long as its bytes.
    fn dump(&self, store: &Store, name: &str) -> PathBuf {
        let path = self.folder.path().join(name);
        let is_new = !path.exists();
        let file = File::options().write(true).create(true).truncate(false).open(&path).unwrap();
        file.set_len(store.size()).unwrap();
        let mut end = 0;
        for (offset, len) in store.populated().chain([(store.size(), 0)]) {
            if !is_new && end < offset {
                file.write_all_at(&vec![0; (offset - end) as usize], end).unwrap();
            }
            for at in (offset..offset + len).step_by(PIECE as usize) {
                let piece = store.read(at, PIECE.min(offset + len - at));
                file.write_all_at(&piece, at).unwrap();
            }
            end = offset + len;
        }
        path
    }

    fn e2fsck(&self, disk: &Store, card: Option<&Store>, what: &str) {
        let mut command = Command::new("timeout");
        command.args(["60", "e2fsck", "-fn"]);
        if let Some(card) = card {
            command.arg("-j").arg(self.dump(card, "journal"));
        }
        command.arg(self.dump(disk, "image"));
        let out = command.output().unwrap();
        let text = String::from_utf8_lossy(&out.stdout);
        assert!(out.status.success(), "{what}: {text}");
    }
}

/// What a cut leaves is no damage by our check either: the journal replayed, the orphans as they
/// are.
fn check_before_recovery(disk: &Arc<dyn BlockDevice>, options: &MountOptions, what: &str) {
    let replayed = replayed_blocks(disk, options).unwrap_or_else(|e| panic!("{what}: {e}"));
    let report = check(disk, Some(&replayed).filter(|replayed| !replayed.is_empty()));
    let report = report.unwrap_or_else(|e| panic!("{what}: {e}"));
    let orphans = report.orphans;
    assert_eq!(report.findings, [], "{what}: before recovery, with orphans {orphans:?}");
}

struct After<'a> {
    fs: &'a Ext4,
    setup: Setup,
    what: &'a str,
}

impl After<'_> {
    fn read(&self, name: &str) -> Option<Vec<u8>> {
        let attr = match self.fs.lookup(self.fs.root(), name.as_bytes()) {
            Ok(attr) => attr,
            Err(FsError::NotFound) => return None,
            Err(e) => panic!("{}: {name}: {e}", self.what),
        };
        Some(self.read_all(attr.ino, attr.size))
    }

    fn read_all(&self, ino: Ino, size: u64) -> Vec<u8> {
        let fh = self.fs.open(ino, OpenFlags::READ).unwrap();
        let data = self.fs.read(fh, 0, size as usize);
        self.fs.release(fh).unwrap();
        data.unwrap_or_else(|e| panic!("{}: {e}", self.what)).to_vec()
    }

    fn check_promises(&self, notes: &[Note]) {
        let newest = |label| notes.iter().rev().find(|n| n.label == label);
        if let Some(note) = newest(APPENDED) {
            let data = self.read("appended").expect("the appended file is there");
            let end = note.detail[1] as usize;
            assert!(data.len() >= end, "{}: {} of {end} bytes", self.what, data.len());
            let expected = contents(1, 0, end);
            let differs = data.iter().zip(&expected).position(|(a, b)| a != b);
            assert_eq!(differs, None, "{}: appended", self.what);
        }
        let mut versions = vec![0; 64];
        for n in notes.iter().filter(|n| n.label == OVERWRITTEN) {
            versions[n.detail[0] as usize] = n.detail[1];
        }
        if versions[0] > 0 {
            self.check_direct(&versions);
        }
        for n in notes.iter().filter(|n| n.label == NAMED) {
            let name = format!("named{}", n.detail[0]);
            let whole = self.read(&name) == Some(contents(3000 + n.detail[0], 0, 6000).to_vec());
            assert!(whole, "{}: {name} is not whole", self.what);
        }
        let shaped = self.read(shaped::NAME);
        let may_show_others = self.setup.data == DataMode::Writeback;
        let Setup { block_size, cluster_size, block_maps, .. } = self.setup;
        let unit = cluster_size.unwrap_or(block_size).into();
        let ground = shaped::Ground { unit, block_maps };
        shaped::check(shaped.as_deref(), notes, ground, may_show_others, self.what);
        if let Some(note) = newest(REPLACED) {
            self.check_replaced(note.detail[0]);
        }
        if let Some(note) = newest(MADE) {
            let dir = self.fs.lookup(self.fs.root(), b"names").unwrap();
            for i in 0..note.detail[0] {
                let name = format!("a-rather-long-name-so-that-blocks-fill-up-{i}");
                let found = self.fs.lookup(dir.ino, name.as_bytes());
                assert!(found.is_ok(), "{}: {name}: {found:?}", self.what);
            }
        }
    }

    fn check_direct(&self, versions: &[u64]) {
        let data = self.read("direct").expect("the direct file is there");
        for (record, version) in versions.iter().enumerate().filter(|(_, v)| **v > 0) {
            let from = record * RECORD as usize;
            for at in (from..from + RECORD as usize).step_by(512) {
                let stamp = data.get(at..at + 512).and_then(stamp_of);
                let fine = stamp.is_some_and(|s| s.tag >= *version && s.position == at as u64);
                assert!(fine, "{}: byte {at}: {stamp:?}, version {version}", self.what);
            }
        }
    }

    fn check_replaced(&self, version: u64) {
        let data = self.read("replaced").expect("the replaced file is there");
        let whole = (version..40).any(|v| data == contents(100 + v, 0, 9000));
        assert!(whole, "{}: replaced is not whole, or older than {version}", self.what);
    }

    /// Without a promise a file may lack data, but shows none of others.
    fn check_foreign(&self) {
        if self.setup.data == DataMode::Writeback {
            return;
        }
        for entry in path::list(self.fs, self.fs.root()).unwrap() {
            let name = String::from_utf8(entry.name.clone()).unwrap();
            let Some(number) = name.strip_prefix("noise") else { continue };
            let file = 1000 + number.parse::<u64>().unwrap();
            let data = self.read(&name).unwrap();
            let foreign =
                data.iter().enumerate().find(|(at, b)| **b != 0 && **b != byte(file, *at as u64));
            assert_eq!(foreign, None, "{}: {name} of {} bytes", self.what, data.len());
        }
        if let Some(data) = self.read("big") {
            let own = |round: u64| {
                data.iter()
                    .enumerate()
                    .all(|(at, b)| *b == 0 || *b == byte(2000 + round, at as u64))
            };
            assert!((0..3).any(own), "{}: big holds foreign data", self.what);
        }
    }
}
