//! Every way to give the wrong journal device has its own message, and changes nothing.

use std::sync::Arc;

use bytes::Bytes;
use steadfast_block::{BlockDevice, Completion, DeviceInfo, Persistence, Request};
use steadfast_journal::external::{
    ExternalDevice, ExternalOptions, Owner, attach, detach, format_device, open_device, open_for,
};
use steadfast_journal::{
    Config, FormatOptions, FsBlock, Journal, JournalError, Result, Update, recover,
};
use uuid::Uuid;

use crate::disk::Disk;

const DEVICE: Uuid = Uuid::from_u128(0xd);
const FS: Uuid = Uuid::from_u128(0xf5);
const OTHER: Uuid = Uuid::from_u128(0x07e4);
const OWNER: Owner = Owner { fs_uuid: FS, journal_uuid: DEVICE, block_size: 4096 };

fn made(users: &[Uuid]) -> Arc<Disk> {
    let disk = Disk::plain("card", vec![0x55; 6 << 20]);
    let mut format = FormatOptions::new(DEVICE);
    format.users = users.to_vec();
    let options = ExternalOptions {
        block_size: 4096,
        label: "journal".into(),
        unix_seconds: 0,
        blocks: None,
        format,
    };
    format_device(disk.device(), &options).unwrap();
    disk
}

/// The message of a refusal that has left the disk alone.
fn refused(
    disk: &Arc<Disk>,
    f: impl FnOnce(Arc<dyn BlockDevice>) -> Result<ExternalDevice>,
) -> String {
    let before = disk.bytes();
    let e = f(disk.device()).unwrap_err();
    assert!(disk.bytes() == before, "{e}");
    assert!(matches!(e, JournalError::Refused { .. }), "{e:?}");
    e.to_string()
}

#[test]
fn the_right_device_opens() {
    let disk = made(&[FS]);
    let found = open_for(disk.device(), &OWNER).unwrap();
    assert_eq!((found.uuid, found.label.as_str(), found.log.blocks()), (DEVICE, "journal", 1536));
    assert!(found.log.is_external());
}

#[test]
fn wrong_devices() {
    let owner = |d| open_for(d, &OWNER);
    let blank = Disk::plain("blank", vec![0; 6 << 20]);
    let text = refused(&blank, owner);
    assert!(text.contains("blank is not a journal device: it has no ext superblock"), "{text}");

    // A file system: the magic without the feature.
    let fs = Disk::plain("data", vec![0; 6 << 20]);
    fs.poke(1024 + 0x38, &[0x53, 0xef]);
    let text = refused(&fs, owner);
    assert!(text.contains("data is not a journal device: it holds a file system"), "{text}");

    let text = refused(&made(&[FS]), |d| open_for(d, &Owner { block_size: 1024, ..OWNER }));
    assert!(text.contains("4096-byte blocks, the file system 1024-byte"), "{text}");

    let text = refused(&made(&[FS]), |d| open_for(d, &Owner { journal_uuid: OTHER, ..OWNER }));
    assert!(text.contains("is another journal") && text.contains(&OTHER.to_string()), "{text}");

    let text = refused(&made(&[OTHER]), owner);
    assert!(text.contains("in use by another file system"), "{text}");

    let text = refused(&made(&[FS, OTHER]), owner);
    assert!(text.contains("used by 2 file systems"), "{text}");

    let text = refused(&made(&[]), owner);
    assert!(text.contains("attached to no file system"), "{text}");

    let tiny = Disk::plain("tiny", vec![0; 2048]);
    assert!(refused(&tiny, owner).contains("too small"));
}

#[test]
fn damaged_superblocks_are_corrupt() {
    for (at, byte) in [(1024 + 0x18, 9), (1024 + 0x06, 0xff), (4096 + 0x10, 1), (4096 + 0x30, 1)] {
        let disk = made(&[FS]);
        disk.poke(at, &[byte]);
        let e = open_for(disk.device(), &OWNER).unwrap_err();
        assert!(matches!(e, JournalError::Corrupt { .. }), "byte {at}: {e:?}");
    }
}

#[test]
fn attaching_and_detaching() {
    let disk = made(&[]);
    attach(disk.device(), FS, 4096).unwrap();
    open_for(disk.device(), &OWNER).unwrap();
    attach(disk.device(), FS, 4096).unwrap();
    let text = refused(&disk, |d| attach(d, OTHER, 4096));
    assert!(text.contains("in use by another file system"), "{text}");
    assert!(refused(&disk, |d| attach(d, FS, 1024)).contains("block"));
    assert!(detach(disk.device(), OTHER).is_err());
    detach(disk.device(), FS).unwrap();
    attach(disk.device(), OTHER, 4096).unwrap();
}

/// A journal that comes back from an earlier life replays over a file system that has moved on:
/// such a device cannot be attached.
#[test]
fn a_stale_journal_is_not_attached() {
    let (disk, fs) = (made(&[FS]), Disk::plain("fs", vec![0; 1 << 20]));
    let log = open_for(disk.device(), &OWNER).unwrap().log;
    let journal = Journal::open(log.clone(), fs.device(), Config::default()).unwrap();
    let writes = vec![(FsBlock(3), Bytes::from(vec![1; 4096]))];
    let tid = journal.submit(Update { writes, ..Update::default() }).unwrap();
    journal.commit(tid).unwrap();
    journal.abandon();
    let text = refused(&disk, |d| attach(d, FS, 4096));
    assert!(text.contains("transactions of an earlier use"), "{text}");
    assert!(detach(disk.device(), FS).is_err());
    recover(&log, &*fs).unwrap();
    assert_eq!(fs.block(3, 4096), [1; 4096]);
    detach(disk.device(), FS).unwrap();
}

/// A disk that says something else of itself.
struct Saying(Arc<Disk>, Box<dyn Fn(&mut DeviceInfo) + Send + Sync>);

impl BlockDevice for Saying {
    fn info(&self) -> DeviceInfo {
        let mut info = self.0.info();
        (self.1)(&mut info);
        info
    }

    fn submit(&self, request: Request) -> Completion {
        self.0.submit(request)
    }
}

#[test]
fn a_device_that_forgets_is_refused_unless_accepted() {
    let open = |change: fn(&mut DeviceInfo), accept_volatile| {
        let device = Arc::new(Saying(made(&[FS]), Box::new(change)));
        let log = open_device(device).unwrap().log;
        let fs = Disk::plain("fs", vec![0; 1 << 20]);
        let config = Config { accept_volatile, ..Config::default() };
        Journal::open(log, fs.device(), config).map(|j| j.close().unwrap())
    };
    let failed = |info: &mut DeviceInfo| {
        info.persistence = Persistence::Volatile { reason: "battery 1 has failed".into() };
    };
    let uninitialised = |info: &mut DeviceInfo| info.initialised = false;
    let text = open(failed, false).unwrap_err().to_string();
    assert!(text.contains("card: battery 1 has failed"), "{text}");
    let text = open(uninitialised, false).unwrap_err().to_string();
    assert!(text.contains("never been initialised"), "{text}");
    open(failed, true).unwrap();
}
