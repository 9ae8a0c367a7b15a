//! A device of its own for a journal (`mke2fs -O journal_dev`): an ext superblock that says so
//! and gives it a UUID, and behind it the journal's.

use std::sync::Arc;

use bytes::Bytes;
use steadfast_block::BlockDevice;
use steadfast_ext4_format::Result;
use steadfast_journal::external::{self, ExternalOptions};
use steadfast_journal::{self as jbd2, FormatOptions};
use uuid::Uuid;

use crate::options::{random_uuid, refused};

/// Fewest blocks of a journal (`JBD2_MIN_JOURNAL_BLOCKS`).
const MIN_BLOCKS: u64 = 1024;

/// What a journal device is to be like.
#[derive(Debug, Clone)]
pub struct JournalDeviceOptions {
    /// Its identity, by which the file system will know it.
    pub uuid: Uuid,
    /// Bytes a block; must be the file system's.
    pub block_size: u32,
    /// Label, at most 16 bytes.
    pub label: String,
    /// Seconds since 1970.
    pub time: u64,
    /// Takes a device that would lose the journal with the power.
    pub accept_volatile: bool,
    /// Leaves what is on the device behind the superblocks as it is. Only for a device of zeros.
    pub zeros: bool,
}

impl JournalDeviceOptions {
    /// 4 KiB blocks.
    pub fn new(uuid: Uuid, time: u64) -> Self {
        JournalDeviceOptions {
            uuid,
            block_size: 4096,
            label: String::new(),
            time,
            accept_volatile: false,
            zeros: false,
        }
    }

    /// As [`new`](Self::new), with an identity from the runtime's random numbers.
    pub fn random(time: u64) -> Self {
        Self::new(random_uuid(), time)
    }
}

/// What was made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MadeJournalDevice {
    /// Its identity.
    pub uuid: Uuid,
    /// Bytes a block.
    pub block_size: u32,
    /// Blocks, superblocks included.
    pub blocks: u32,
}

/// Makes `device` an empty journal that nobody uses. Whatever was there is lost.
///
/// # Errors
/// Refused: the device does not fit; said before anything is written. Errors of the device.
pub fn make_journal_device(
    device: &Arc<dyn BlockDevice>,
    options: &JournalDeviceOptions,
) -> Result<MadeJournalDevice> {
    let blocks = look_journal_device(device, options)?;
    let block_size = options.block_size;
    // What was there ceases to be anything before it is overwritten.
    device.write(0, Bytes::from(vec![0; (block_size as usize).max(2048)]).into())?;
    device.flush()?;
    let mut format = FormatOptions::new(options.uuid);
    // The file system's first mount chooses them, as after mke2fs.
    format.checksums = jbd2::Checksums::None;
    format.wide = false;
    format.erase = !options.zeros;
    let how = ExternalOptions {
        block_size,
        label: options.label.clone(),
        unix_seconds: options.time as u32,
        blocks: Some(blocks),
        format,
    };
    external::format_device(Arc::clone(device), &how)?;
    device.flush()?;
    Ok(MadeJournalDevice { uuid: options.uuid, block_size, blocks })
}

/// The blocks that [`make_journal_device`] would use. Nothing is written.
///
/// # Errors
/// What it refuses.
pub fn look_journal_device(
    device: &Arc<dyn BlockDevice>,
    options: &JournalDeviceOptions,
) -> Result<u32> {
    let info = device.info();
    let block_size = options.block_size;
    if !block_size.is_power_of_two() || !(1024..=65536).contains(&block_size) {
        return Err(refused(format!(
            "blocks of {block_size} bytes: choose 1024 to 65536, a power of two"
        )));
    }
    if options.label.len() > 16 {
        return Err(refused(format!("the label {:?} is longer than 16 bytes", options.label)));
    }
    if info.read_only {
        return Err(refused(format!("{}: the device is read-only", info.name)));
    }
    if !options.accept_volatile
        && let Some(reason) = info.unfit_to_persist()
    {
        return Err(refused(format!(
            "unfit to be a journal: {reason}; the journal would be lost with the power \
             (--accept-volatile takes it all the same)"
        )));
    }
    let blocks = (info.size / u64::from(block_size)).min(u64::from(u32::MAX));
    if blocks < MIN_BLOCKS {
        return Err(refused(format!(
            "{blocks} blocks of {block_size} bytes; a journal has at least {MIN_BLOCKS} (here {} \
             KiB)",
            MIN_BLOCKS * u64::from(block_size) / 1024
        )));
    }
    // OK to cast: it is at most `u32::MAX`.
    Ok(blocks as u32)
}
