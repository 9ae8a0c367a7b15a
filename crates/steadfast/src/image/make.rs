//! Making a file system, and a journal beside it.

use std::path::Path;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use steadfast_block::BlockDevice;
use steadfast_block::signatures;
use steadfast_devices::source::{FileDevice, FileOptions, NewFile};
use steadfast_ext4_check as check;
use steadfast_ext4_mkfs::{self as mkfs, Contents, JournalChoice, JournalDeviceOptions, Options};
use steadfast_setup::path;

use super::source::NumberedDevice;
use super::{ExtVersion, Journal, Source};
use crate::error::{Error, Result};

/// What mke2fs makes small external journals of, in blocks: the least is 1024.
const JOURNAL_BLOCKS_MIN: u32 = 2048;

/// A change of the options that have no method of their own.
type Change = dyn Fn(&mut Options) + Send + Sync;

/// What is to be made.
#[derive(Clone, Default)]
pub(super) struct ImageSpec {
    /// Of an image that was to be opened, not made.
    pub of_open: bool,
    pub size: Option<u64>,
    pub kind: ExtVersion,
    pub block_size: Option<u32>,
    pub label: String,
    pub zeroed: bool,
    pub journal_size: Option<u64>,
    pub change: Option<Arc<Change>>,
}

/// The making of it.
pub(super) struct Making {
    pub wanted: ImageSpec,
    pub owner: (u32, u32),
    pub accept_volatile: bool,
}

/// A device and whether it was made here, so that it holds zeros.
struct TargetDevice {
    device: Arc<dyn BlockDevice>,
    zeros: bool,
}

/// Image files that were made, and are removed again if making fails.
#[derive(Default)]
struct NewImages(Vec<NewFile>);

impl Drop for NewImages {
    fn drop(&mut self) {
        // They were not there before, and hold nothing.
        self.0.drain(..).for_each(NewFile::remove);
    }
}

impl Making {
    /// Makes the file system, and its journal if that is outside.
    pub fn make(
        self,
        source: &Source,
        journal: Option<Journal>,
        epoch: u64,
    ) -> Result<(Arc<dyn BlockDevice>, Option<NumberedDevice>)> {
        let wanted = &self.wanted;
        if wanted.of_open {
            return Err(refused("what a file system is made like is for Image::create only"));
        }
        let mut fresh = NewImages::default();
        let disk = self.disk(source, &mut fresh)?;
        let info = disk.device.info();
        let time = seconds(epoch);
        let mut options = Options::random(time);
        options.block_size = wanted.block_size;
        options.label.clone_from(&wanted.label);
        options.root_owner = self.owner;
        options.contents = if disk.zeros { Contents::Zeros } else { Contents::Unknown };
        if wanted.kind != ExtVersion::Ext4 {
            options.features = Options::ext2_features();
        }
        let default =
            if wanted.kind == ExtVersion::Ext2 { Journal::None } else { Journal::Internal };
        let block = wanted.block_size.unwrap_or_else(|| mkfs::default_block_size(&info));
        let blocks = info.size / u64::from(block.max(1));
        let mut opened = None;
        options.journal = match journal.unwrap_or(default) {
            Journal::None => JournalChoice::None,
            Journal::Internal => match wanted.journal_size {
                None => JournalChoice::Internal,
                Some(bytes) => {
                    let blocks = u32::try_from(bytes / u64::from(block.max(1)));
                    JournalChoice::InternalOf(blocks.map_err(|_| refused("a journal too large"))?)
                }
            },
            Journal::External(at) => {
                let accept_volatile = self.accept_volatile || info.unfit_to_persist().is_some();
                let blocks = mkfs::default_journal_blocks(blocks).unwrap_or(0);
                let bytes = u64::from(blocks.max(JOURNAL_BLOCKS_MIN)) * u64::from(block);
                let bytes = wanted.journal_size.unwrap_or(bytes);
                let making = JournalDeviceOptions {
                    block_size: block,
                    accept_volatile,
                    ..JournalDeviceOptions::random(time)
                };
                let (device, number) = external(&at, bytes, making, &mut fresh)?;
                opened = Some((Arc::clone(&device), number));
                JournalChoice::External { device, accept_volatile }
            }
        };
        if let Some(change) = &wanted.change {
            change(&mut options);
        }
        let failed = |source| Error::FileSystem { doing: "making", device: info.name, source };
        signatures::wipe(&disk.device)?;
        mkfs::make(&disk.device, &options).map_err(failed)?;
        disk.device.flush()?;
        // What is there now is whole.
        fresh.0.clear();
        Ok((disk.device, opened))
    }

    fn disk(&self, source: &Source, fresh: &mut NewImages) -> Result<TargetDevice> {
        let ImageSpec { size, zeroed, .. } = self.wanted;
        match (source, size) {
            (Source::Path(path), Some(size)) if !path.exists() => {
                Ok(TargetDevice { device: created(path, size, fresh)?, zeros: true })
            }
            (Source::Path(path), None) if !path.exists() => Err(refused(&format!(
                "{}: no such file; Image::size says how large the new image is to be",
                path.display()
            ))),
            (source, Some(_)) => Err(refused(&format!(
                "{source:?}: is there already, and has a size: do not give one"
            ))),
            (source, None) => {
                let device = source.open(false)?;
                refuse_to_overwrite(&device)?;
                Ok(TargetDevice { device, zeros: zeroed })
            }
        }
    }
}

/// A new image file.
fn created(path: &Path, size: u64, fresh: &mut NewImages) -> Result<Arc<dyn BlockDevice>> {
    let size = size / 4096 * 4096;
    let (device, made) = FileDevice::create_removable(path, size, &FileOptions::default())?;
    fresh.0.push(made);
    Ok(Arc::new(device))
}

/// The device of an external journal, which is made one unless it is one already.
fn external(
    at: &Source,
    bytes: u64,
    options: JournalDeviceOptions,
    fresh: &mut NewImages,
) -> Result<NumberedDevice> {
    let (opened, zeros) = match at {
        Source::Path(path) if !path.exists() => ((created(path, bytes, fresh)?, 0), true),
        at => (at.opened(false)?, false),
    };
    let device = &opened.0;
    if check::info(device).is_ok_and(|info| info.is_journal_device) {
        return Ok(opened);
    }
    refuse_to_overwrite(device)?;
    signatures::wipe(device)?;
    let options = JournalDeviceOptions { zeros, ..options };
    mkfs::make_journal_device(device, &options).map_err(|source| Error::FileSystem {
        doing: "making a journal on",
        device: device.info().name,
        source,
    })?;
    device.flush()?;
    Ok(opened)
}

fn refuse_to_overwrite(device: &Arc<dyn BlockDevice>) -> Result<()> {
    match occupant(device) {
        None => Ok(()),
        Some(what) => Err(refused(&format!(
            "{}: holds {what}: open it, remove it, or choose another place",
            device.info().name
        ))),
    }
}

/// What a device holds that nobody wants to lose, in words with their article: a file system or a
/// journal of ours, or what is known by its signature.
///
/// ```
/// use std::sync::Arc;
/// use steadfast::devices::source::Ram;
/// use steadfast::{Image, block::BlockDevice, occupant};
///
/// let disk: Arc<dyn BlockDevice> = Arc::new(Ram::new("disk", 16 << 20));
/// assert_eq!(occupant(&disk), None);
/// Image::create(disk.clone()).mount()?.unmount()?;
/// assert!(occupant(&disk).unwrap().starts_with("a file system (UUID "));
/// # Ok::<(), std::io::Error>(())
/// ```
pub fn occupant(device: &Arc<dyn BlockDevice>) -> Option<String> {
    path::occupant(device)
}

/// Seconds since 1970: of the machine's clock, or of a simulation that began at `epoch`.
fn seconds(epoch: u64) -> u64 {
    if steadfast_runtime::is_simulated() {
        return epoch + steadfast_runtime::now().0 / 1_000_000_000;
    }
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

fn refused(what: &str) -> Error {
    Error::Refused { what: what.to_owned() }
}
