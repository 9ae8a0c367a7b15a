//! A disk with files and a few journal devices, at one moment; and who judges it.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use bytes::Bytes;
use steadfast_block::BlockDevice;
use steadfast_devices::source::Ram;
use steadfast_devices::store::Store;
use steadfast_ext4::{Ext4, MountOptions};
use steadfast_ext4_check as check;
use steadfast_ext4_format::ondisk::Features;
use steadfast_ext4_mkfs::{
    JournalChoice, JournalDeviceOptions, Options, make, make_journal_device,
};
use steadfast_ext4_tune::JournalDevice;
use steadfast_vfs::{FileSystem, NewNode, OpenFlags};

pub const DISK_BYTES: u64 = 32 << 20;
pub const CARD_BYTES: u64 = 5 << 20;
const FILES: u8 = 5;

/// Which journal a file system begins with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Start {
    None,
    Internal,
    /// On the first card.
    External,
}

/// A disk and two cards.
pub type Stores = [Store; 3];

/// The devices, empty of everything but files and the journal that is asked for.
pub fn build(start: Start, upstream: bool) -> Stores {
    let features = if upstream { Options::upstream_features() } else { Options::debian_features() };
    build_with(start, features)
}

/// As [`build`], with these features.
pub fn build_with(start: Start, features: Features) -> Stores {
    let disk = Ram::new("disk", DISK_BYTES).persistent();
    let cards = [0, 1].map(|_| Ram::new("card", CARD_BYTES).persistent());
    for card in &cards {
        let device: Arc<dyn BlockDevice> = Arc::new(card.clone());
        make_journal_device(&device, &JournalDeviceOptions::random(1_700_000_000)).unwrap();
    }
    let mut options = Options::random(1_700_000_000);
    options.features = features;
    options.block_size = Some(4096);
    options.journal = match start {
        Start::None => JournalChoice::None,
        Start::Internal => JournalChoice::InternalOf(1200),
        Start::External => {
            JournalChoice::External { device: Arc::new(cards[0].clone()), accept_volatile: false }
        }
    };
    let device: Arc<dyn BlockDevice> = Arc::new(disk.clone());
    make(&device, &options).unwrap();
    let journal: Option<Arc<dyn BlockDevice>> =
        (start == Start::External).then(|| Arc::new(cards[0].clone()) as _);
    let fs = mount(&device, journal).unwrap();
    for i in 0..FILES {
        put(&fs, &format!("file{i}"), &contents(i));
    }
    fs.unmount().unwrap();
    [disk.store(), cards[0].store(), cards[1].store()]
}

fn contents(i: u8) -> Bytes {
    vec![i + 1; 3000 + 9000 * usize::from(i)].into()
}

/// Mounts read-write.
pub fn mount(
    device: &Arc<dyn BlockDevice>,
    journal: Option<Arc<dyn BlockDevice>>,
) -> steadfast_ext4::Result<Arc<Ext4>> {
    let mut options = MountOptions { journal_device: journal, ..MountOptions::default() };
    options.page_cache.memory_bytes = 4 << 20;
    Ext4::mount(Arc::clone(device), options)
}

/// Writes a file and makes it durable.
pub fn put(fs: &Ext4, name: &str, data: &Bytes) {
    let flags = OpenFlags::READ | OpenFlags::WRITE;
    let (_, fh) = fs.create(fs.root(), name.as_bytes(), NewNode::default(), flags).unwrap();
    fs.write(fh, 0, data.clone()).unwrap();
    fs.fsync(fh, false).unwrap();
    fs.release(fh).unwrap();
}

/// Panics unless all files are there.
pub fn assert_files(fs: &Ext4, what: &str) {
    for i in 0..FILES {
        let attr = fs.lookup(fs.root(), format!("file{i}").as_bytes()).unwrap();
        let fh = fs.open(attr.ino, OpenFlags::READ).unwrap();
        let data = fs.read(fh, 0, attr.size as usize).unwrap();
        fs.release(fh).unwrap();
        assert!(data == contents(i), "{what}: file{i}");
    }
}

/// Devices with these contents.
pub fn devices(stores: &Stores) -> [Ram; 3] {
    stores.clone().map(|store| Ram::from_store("device", store).persistent())
}

pub fn dynamic(ram: &Ram) -> Arc<dyn BlockDevice> {
    Arc::new(ram.clone())
}

pub fn journal(ram: &Ram) -> JournalDevice {
    JournalDevice { device: dynamic(ram), number: 0, accept_volatile: false }
}

/// Which of the cards the file system names as its journal.
pub fn named_card(machine: &[Ram; 3]) -> Option<usize> {
    let uuid = check::info(&dynamic(&machine[0])).unwrap().external_journal?;
    [1, 2].into_iter().find(|i| {
        let card = check::info(&dynamic(&machine[*i]));
        card.is_ok_and(|c| c.uuid == uuid)
    })
}

/// Files of the host with a machine's contents.
pub struct Images {
    folder: tempfile::TempDir,
}

impl Images {
    pub fn new() -> Images {
        Images { folder: tempfile::tempdir().unwrap() }
    }

    /// Writes a store into a file.
    pub fn dump(&self, store: &Store, name: &str) -> PathBuf {
        let path = self.folder.path().join(name);
        let file = File::create(&path).unwrap();
        file.set_len(store.size()).unwrap();
        for (offset, len) in store.populated() {
            file.write_all_at(&store.read(offset, len), offset).unwrap();
        }
        path
    }

    /// Panics unless e2fsck is content; with `tidy`, after it has tidied what needs no decision.
    pub fn e2fsck(&self, disk: &Path, card: Option<&Path>, tidy: bool, what: &str) {
        let run = |option: &str| {
            let mut command = Command::new("timeout");
            command.args(["-s", "KILL", "60", "e2fsck", option]);
            if let Some(card) = card {
                command.arg("-j").arg(card);
            }
            let out = command.arg(disk).output().unwrap();
            (out.status.code(), String::from_utf8_lossy(&out.stdout).into_owned())
        };
        if tidy {
            let (code, said) = run("-fp");
            assert!(matches!(code, Some(0 | 1)), "{what}: e2fsck -fp: {code:?} {said}");
        }
        let (code, said) = run("-fn");
        assert!(code == Some(0), "{what}: e2fsck -fn: {said}");
    }
}
