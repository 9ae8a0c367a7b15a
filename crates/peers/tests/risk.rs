//! A workload's way through a peer: prepared, recorded, cut, recovered, judged.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use steadfast_block::rng::Rng;
use steadfast_crash::CrashError;
use steadfast_crash::explore::{Boot, System};
use steadfast_crash::figures::StateFigures;
use steadfast_crash::judge::Judge;
use steadfast_devices::filter::record::{DeviceId, Moment, RecordLog};
use steadfast_devices::model::ssd::SsdCache;
use steadfast_devices::model::{ModelParams, SsdParams};
use steadfast_devices::store::Store;
use steadfast_peers::{Begin, KernelFs, Peer};
use steadfast_suite::OtherNamespace;
use steadfast_vfs::path::resolve;
use steadfast_vfs::{FileSystem, FsError, NewNode, OpenFlags};

const BYTES: u64 = 32 << 20;
/// What the disk held before.
const OLD: u8 = 0xee;

/// Counts how many of them are there, and whether the first has its contents.
struct Both;

/// Writes a file and fsyncs it, and writes another.
fn two_files(
    fs: &Arc<dyn FileSystem>,
    log: &RecordLog,
    begin: Begin<'_>,
) -> steadfast_crash::Result<()> {
    let flags = OpenFlags::READ | OpenFlags::WRITE;
    let write = |name: &str| -> Result<_, FsError> {
        let (_, fh) = fs.create(fs.root(), name.as_bytes(), NewNode::default(), flags)?;
        fs.write(fh, 0, Bytes::from(vec![1; 8192]))?;
        Ok(fh)
    };
    begin()?;
    let words = |e: FsError| CrashError::Run(e.to_string());
    let kept = write("kept").map_err(words)?;
    fs.fsync(kept, false).map_err(words)?;
    fs.release(kept).map_err(words)?;
    fs.fsyncdir(fs.root()).map_err(words)?;
    log.note(1, [0; 3]);
    fs.release(write("other").map_err(words)?).map_err(words)
}

impl Judge for Both {
    fn judge(&self, fs: &dyn FileSystem, _: Moment, cut: &mut StateFigures) {
        for name in ["kept", "other"] {
            if let Ok(attr) = resolve(fs, name.as_bytes(), true) {
                let fh = fs.open(attr.ino, OpenFlags::READ).unwrap();
                let held = fs.read(fh, 0, 1 << 16).unwrap();
                fs.release(fh).unwrap();
                cut.findings.push(format!("{name}: {}", held.iter().all(|b| *b == 1)));
            }
        }
    }
}

fn at_risk() -> (Peer, Store) {
    let ssd =
        SsdParams { sectors: BYTES / 512, write_cache: SsdCache::Volatile, ..SsdParams::default() };
    let mut before = Store::new(BYTES);
    for at in (0..BYTES).step_by(1 << 20) {
        before.write_slice(at, &[OLD; 1 << 20]);
    }
    let options = ("-O ^has_journal -O has_journal", "data=ordered");
    (Peer::on_models(KernelFs::Ext4, options, vec![ModelParams::Ssd(ssd)]), before)
}

/// The kernel's file system lives on in the copy, and keeps the device: nothing waits for that, and
/// what was measured and recorded is not lost.
#[test]
fn a_run_is_not_lost_with_what_cannot_be_taken_away() {
    let (peer, before) = at_risk();
    let ran = peer.record(before, |fs, log, begin| {
        two_files(fs, log, begin)?;
        // Another mount namespace comes to be, with a copy of every mount.
        Ok(OtherNamespace::new().unwrap())
    });
    let ((_, recording, copied), taken_away) = ran.unwrap();
    drop(copied);
    assert!(!recording.events().is_empty());
    let said = taken_away.unwrap_err().to_string();
    assert!(said.contains("stays in use"), "{said}");
}

#[test]
fn a_workload_is_recorded_and_its_cuts_are_judged() {
    let (peer, before) = at_risk();
    let ((bases, recording, ()), taken_away) = peer.record(before, two_files).unwrap();
    taken_away.unwrap();
    let note = recording.notes()[0].moment;
    // What the disk held before is still in its free blocks.
    let stale = bases[0].read(BYTES / 2 + (1 << 20), 4096);
    assert_eq!(stale.iter().filter(|b| **b == OLD).count(), 4096);

    let left = |cut: u64, percent: u64| {
        let at = recording.at(DeviceId(0), cut);
        vec![at.contents(&bases[0], 0, percent, &mut Rng::new(1))]
    };
    let first = recording.first_crash_point();
    let recovered = |contents| {
        let found = Rc::new(RefCell::new(StateFigures::default()));
        let seen = Rc::clone(&found);
        let look = move |fs: &dyn FileSystem, _| Both.judge(fs, note, &mut seen.borrow_mut());
        let recovered = System::recover(&peer, Boot::of(contents, Rc::new(look)), 1).unwrap();
        assert_eq!((recovered.refused, recovered.damage), (None, vec![]));
        assert!(recovered.time > Duration::ZERO && !recovered.manual_repair);
        found.take().findings
    };
    assert_eq!(recovered(left(first, 0)), Vec::<String>::new());
    assert_eq!(recovered(left(note.tick, 0)), ["kept: true"]);
}
