//! A file system on an image file, perhaps with its journal on another, and who may work on them.

use std::fs::File;
use std::io::Write;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use steadfast_block::BlockDevice;
use steadfast_devices::source::Ram;
use steadfast_devices::store::Store;
use steadfast_ext4::MountOptions;
use steadfast_ext4_check::check;
use steadfast_host::{LoopDevice, Mount};
use tempfile::TempDir;

use crate::sparse_image::{run, run_ok};

const MIB: u64 = 1 << 20;
const DISK_BYTES: u64 = 48 * MIB;

/// How a file system is made.
#[derive(Debug, Clone, Copy)]
pub struct Shape {
    pub block_size: u32,
    /// For `mke2fs -O`.
    pub features: &'static str,
    /// Whether the journal has a device of its own.
    pub external: bool,
}

/// What was on the disk and, if there is one, on the journal's device at one moment.
#[derive(Clone)]
pub struct Contents {
    pub disk: Store,
    pub card: Option<Store>,
}

impl Contents {
    /// As devices in memory; writing to them changes no others.
    pub fn devices(&self) -> (Ram, Option<Ram>) {
        let disk = Ram::from_store("disk", self.disk.clone()).persistent();
        let card = self.card.clone().map(|c| Ram::from_store("card", c).persistent());
        (disk, card)
    }
}

/// Mount options that name the journal's device.
pub fn with_card(card: Option<&Ram>, options: MountOptions) -> MountOptions {
    let journal_device =
        card.map(|c| std::sync::Arc::new(c.clone()) as std::sync::Arc<dyn BlockDevice>);
    MountOptions { journal_device, ..options }
}

/// The journal's image as a block device: e2fsprogs and the kernel want one. It stays the same
/// device throughout: were its number another one than the file system remembers, e2fsck would
/// first mend that. Kept open, so that nobody detaches it.
struct Card {
    // Closed before the device is let go of.
    open: File,
    device: LoopDevice,
    file: PathBuf,
}

/// The image files.
pub struct Stage {
    folder: TempDir,
    card: Option<Card>,
    pub shape: Shape,
}

impl Stage {
    /// A fresh file system made by mke2fs.
    pub fn mke2fs(shape: Shape) -> Stage {
        let folder = TempDir::new().unwrap();
        let block_size = shape.block_size.to_string();
        // A small journal goes round; 4-KiB blocks need 4 MiB for the least number of blocks.
        let journal_mib = u64::from(shape.block_size) / 1024;
        let card = shape.external.then(|| {
            let file = folder.path().join("card");
            File::create(&file).unwrap().set_len((journal_mib + 1) * MIB).unwrap();
            let path = file.to_str().unwrap();
            run_ok("mke2fs", &["-q", "-F", "-O", "journal_dev", "-b", &block_size, path]);
            let device = LoopDevice::attach(&file).unwrap();
            let open = File::options().read(true).write(true).open(device.path()).unwrap();
            Card { open, device, file }
        });
        let stage = Stage { folder, card, shape };
        File::create(stage.disk()).unwrap().set_len(DISK_BYTES).unwrap();
        let journal = match &stage.card {
            Some(card) => format!("device={}", card.device.name()),
            // A few more than 16 fsyncs fit.
            None if shape.features.contains("fast_commit") => {
                format!("size={journal_mib},fast_commit_size={}", 64 * journal_mib)
            }
            None => format!("size={journal_mib}"),
        };
        let disk = stage.disk();
        // Nothing is left to be initialised while we look.
        let mut args = vec!["-q", "-F", "-t", "ext4", "-b", &block_size, "-J", &journal];
        args.extend(["-E", "lazy_itable_init=0,lazy_journal_init=0", "-O", shape.features]);
        args.push(disk.to_str().unwrap());
        run_ok("mke2fs", &args);
        stage
    }

    fn disk(&self) -> PathBuf {
        self.folder.path().join("disk")
    }

    /// What is on both now. While somebody works on them: at a moment when nobody writes.
    pub fn contents(&self) -> Contents {
        if let Some(card) = &self.card {
            // Past the device's cache: the kernel writes logged blocks around it.
            card.open.sync_all().unwrap();
        }
        let read = || Contents {
            disk: Store::import(&self.disk()).unwrap(),
            card: self.card.as_ref().map(|c| Store::import(&c.file).unwrap()),
        };
        // The kernel may just be writing something back. Twice the same is one moment.
        let mut last = read();
        for _ in 0..100 {
            let again = read();
            if again.disk == last.disk && again.card == last.card {
                return again;
            }
            last = again;
        }
        panic!("the images never rest");
    }

    /// Replaces what is on both.
    pub fn put(&self, contents: &Contents) {
        contents.disk.export(&self.disk()).unwrap();
        if let (Some(card), Some(store)) = (&self.card, &contents.card) {
            // Through the device, so that its cache knows.
            card.open.write_all_at(&store.read(0, store.size()), 0).unwrap();
            card.open.sync_all().unwrap();
        }
    }

    /// Has e2fsck work on the file system: its exit code and what it says.
    fn e2fsck(&self, options: &[&str]) -> (Option<i32>, String) {
        let disk = self.disk();
        let mut args = options.to_vec();
        if let Some(card) = &self.card {
            args.extend(["-j", card.device.name()]);
        }
        args.push(disk.to_str().unwrap());
        let out = run("e2fsck", &args);
        if let Some(card) = &self.card {
            card.open.sync_all().unwrap();
        }
        let said = [out.stdout, out.stderr].concat();
        (out.status.code(), String::from_utf8_lossy(&said).into_owned())
    }

    /// Replays the journal with e2fsck and does nothing else, except that it deletes orphans.
    pub fn replay_with_e2fsck(&self) {
        let (code, said) = self.e2fsck(&["-y", "-E", "journal_only"]);
        assert!(matches!(code, Some(0 | 1)), "{:?}: {said}", self.shape);
        assert!(!said.contains("Pass 1"), "{:?}: more than a replay: {said}", self.shape);
    }

    /// Has e2fsck bring up to date what a mount would.
    pub fn repair(&self) {
        let (code, said) = self.e2fsck(&["-fp"]);
        assert!(matches!(code, Some(0 | 1)), "{:?}: {said}", self.shape);
    }

    /// Panics unless e2fsck finds nothing to say: it ends with status 0, too, when it has only
    /// offered to correct a counter.
    pub fn assert_clean(&self, what: &str) {
        let (code, said) = self.e2fsck(&["-fn"]);
        assert!(code == Some(0) && !said.contains("Fix? no"), "{:?}, {what}: {said}", self.shape);
    }

    /// Panics unless e2fsck and our check find nothing to say of these contents.
    pub fn assert_sound(&self, contents: &Contents, what: &str) {
        self.put(contents);
        self.assert_clean(what);
        let device: Arc<dyn BlockDevice> = Arc::new(contents.devices().0);
        let report = check(&device, None).unwrap();
        assert_eq!(report.findings, [], "{:?}, {what}: our check", self.shape);
        assert!(!report.needs_recovery && report.orphans.is_empty(), "{what}: {report:?}");
    }

    /// Free blocks and inodes, as the superblock of a clean file system has them.
    pub fn free_counts(&self) -> [u32; 2] {
        let disk = File::open(self.disk()).unwrap();
        [0x0c, 0x10].map(|at| {
            let mut bytes = [0; 4];
            disk.read_exact_at(&mut bytes, 1024 + at).unwrap();
            u32::from_le_bytes(bytes)
        })
    }

    /// The device block of the superblock of an internal journal.
    pub fn journal_superblock(&self) -> Option<u64> {
        if self.card.is_some() {
            return None;
        }
        let said = run_ok("debugfs", &["-R", "bmap <8> 0", self.disk().to_str().unwrap()]);
        Some(said.trim().parse().unwrap())
    }

    /// Mounts with the kernel.
    pub fn mount(&self, options: &str) -> Mount {
        let mut options = options.to_string();
        if let Some(card) = &self.card {
            options += &format!(",journal_path={}", card.device.name());
        }
        Mount::of_image(&self.disk(), None, &options).unwrap()
    }
}

/// Writes a whole file of the host and makes it durable.
pub fn write_durably(path: &Path, bytes: &[u8]) {
    let mut file = File::create(path).unwrap();
    file.write_all(bytes).unwrap();
    file.sync_all().unwrap();
}
