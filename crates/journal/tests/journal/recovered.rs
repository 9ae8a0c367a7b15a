//! What a recovery reports, whom it asks before it writes, what it refuses, and what it discards.

use std::sync::{Arc, Mutex};

use bytes::Bytes;
use steadfast_journal::{
    CheckpointHook, Checksums, Config, FsBlock, Journal, Overlay, Recovery, Result, Tid, Update,
    discard_contents, recover, recover_dry,
};

use crate::disk::{Cache, Disk, Recorder};
use crate::fuzz::{Dirty, dirty, log_on};
use crate::load::{BLOCK, stamp};

/// Notes what it is asked.
#[derive(Debug, Default)]
pub struct Owner {
    pub asked: Mutex<Vec<(Tid, Vec<FsBlock>)>>,
}

impl CheckpointHook for Owner {
    fn before_checkpoint(&self, newest: Tid, images: &mut [(FsBlock, Bytes)]) -> Result<()> {
        let blocks = images.iter().map(|(block, _)| *block).collect();
        self.asked.lock().unwrap().push((newest, blocks));
        Ok(())
    }
}

fn disks(dirty: &Dirty) -> (Arc<Disk>, Arc<Disk>) {
    (Disk::plain("fs", dirty.fs.clone()), Disk::plain("log", dirty.log.clone()))
}

#[test]
fn the_owner_is_asked_once_before_anything_goes_home() {
    let dirty = dirty(Checksums::V3);
    let (fs, disk) = disks(&dirty);
    let log = log_on(&disk);
    let owner = Owner::default();
    let found = Recovery::read(&log, &*fs).unwrap();
    let due: Vec<_> = found.overlay.keys().copied().collect();
    let report = found.finish(&log, &*fs, &Overlay::new(), Some(&owner)).unwrap();
    // The number of the newest transaction whose blocks these are, of 25 from number 2 on.
    assert_eq!(report.range, Some((Tid(2), Tid(26))));
    assert_eq!(*owner.asked.lock().unwrap(), [(Tid(26), due)]);
    // A clean log says the same of the newest that it ever held, and nobody is asked again.
    let clean = Recovery::read(&log, &*fs).unwrap();
    assert!(clean.report.was_clean && clean.report.newest_tid() == Tid(26));
    clean.finish(&log, &*fs, &Overlay::new(), Some(&owner)).unwrap();
    assert_eq!(owner.asked.lock().unwrap().len(), 1);
}

/// With a damaged superblock, or the wrong disk, an image's home may be beyond the end.
#[test]
fn an_image_beyond_the_file_systems_end_is_refused() {
    let dirty = dirty(Checksums::V3);
    let (_, disk) = disks(&dirty);
    let log = log_on(&disk);
    let (_, overlay) = recover_dry(&log, &*Disk::plain("fs", dirty.fs.clone())).unwrap();
    let last = overlay.keys().next_back().unwrap().0 as usize;
    let short = Disk::plain("fs", dirty.fs[..last * BLOCK].to_vec());
    let error = recover(&log, &*short).unwrap_err().to_string();
    assert!(error.contains("beyond the file system's device"), "{error}");
    assert!(short.bytes() == dirty.fs[..last * BLOCK], "an error, yet something was written");
    // The last block of a device is not beyond it.
    let just = Disk::plain("fs", dirty.fs[..(last + 1) * BLOCK].to_vec());
    assert_eq!(recover(&log, &*just).unwrap().transactions, dirty.transactions);
}

/// What was discarded does not come back with the transactions of later days.
#[test]
fn a_discarded_log_is_clean_and_its_numbers_are_not_used_again() {
    let dirty = dirty(Checksums::V3);
    let (fs, disk) = disks(&dirty);
    let log = log_on(&disk);
    discard_contents(&log).unwrap();
    let (report, overlay) = recover_dry(&log, &*fs).unwrap();
    assert!(report.was_clean && overlay.is_empty(), "{report:?}");
    assert!(report.next_tid.is_after(Tid(26 + 1000)), "{report:?}");
    // A clean log stays as it is, with its number.
    discard_contents(&log).unwrap();
    assert_eq!(recover(&log, &*fs).unwrap().next_tid, report.next_tid);

    let journal = Journal::open(log.clone(), fs.device(), Config::default()).unwrap();
    let writes = vec![(FsBlock(5), Bytes::from(stamp(5, 99)))];
    let tid = journal.submit(Update { writes, ..Update::default() }).unwrap();
    journal.commit(tid).unwrap();
    journal.abandon();
    let (report, overlay) = recover_dry(&log, &*fs).unwrap();
    assert_eq!((report.transactions, overlay.len()), (1, 1), "{report:?}");
}

/// Recovery flushes a device with a volatile cache, and only such a device.
#[test]
fn what_went_home_is_flushed_before_the_log_is_clean() {
    let dirty = dirty(Checksums::V3);
    for (cache, flushes) in [(Cache::Volatile, 1), (Cache::None, 0)] {
        let recorder = Recorder::new();
        let fs = recorder.disk("fs", dirty.fs.clone(), cache);
        let disk = recorder.disk("log", dirty.log.clone(), Cache::None);
        recover(&log_on(&disk), &*fs).unwrap();
        assert_eq!(recorder.flushes(), flushes);
    }
}
