//! Steadfast's file system on the devices of a run: made, mounted, recorded and shut down.
//!
//! The first device holds the file system; a second one, if there is one, its journal. What the
//! workloads differ in is which devices they have, and with which options.

use std::sync::Arc;

use steadfast_block::BlockDevice;
use steadfast_devices::filter::record::{Durability, Record, RecordLog};
use steadfast_devices::model::Model;
use steadfast_devices::source::Ram;
use steadfast_devices::store::Store;
use steadfast_ext4::{Ext4, MountOptions};
use steadfast_ext4_mkfs::{self as mkfs, Contents, JournalChoice, JournalDeviceOptions, Options};

use super::machine::BootedMachine;
use crate::error::{CrashError, Result};

/// Any error, in words.
pub fn words(error: impl std::fmt::Display) -> CrashError {
    error.to_string().into()
}

/// RAM disks as devices.
pub fn blocks(rams: &[Ram]) -> Vec<Arc<dyn BlockDevice>> {
    rams.iter().map(|ram| Arc::new(ram.clone()) as Arc<dyn BlockDevice>).collect()
}

/// Puts contents on devices, as far as there are any.
///
/// # Errors
/// They do not fit.
pub fn fill(models: &[Arc<dyn Model>], contents: Vec<Store>) -> Result<()> {
    let mut both = models.iter().zip(contents);
    both.try_for_each(|(model, contents)| model.set_contents(contents)).map_err(words)
}

/// The device, recorded; its durability is that of the device if nothing is said of it.
pub fn recorded(
    device: Arc<dyn BlockDevice>,
    log: &RecordLog,
    durability: Option<Durability>,
) -> Arc<dyn BlockDevice> {
    let durability = durability.unwrap_or_else(|| Durability::of(&device.info()));
    Arc::new(Record::with_durability(device, log, durability))
}

/// Makes a file system, and the journal on a device of its own: with the same blocks and, where the
/// file system may rely on zeros, zeros too. `journal` makes the other options at a time.
///
/// # Errors
/// A device failed, or is too small.
pub fn make(
    devices: &[Arc<dyn BlockDevice>],
    mut options: Options,
    journal: impl FnOnce(u64) -> JournalDeviceOptions,
) -> steadfast_ext4::Result<()> {
    if let Some(device) = devices.get(1) {
        let mut journal = journal(options.time);
        journal.block_size = options.block_size.unwrap_or(journal.block_size);
        journal.zeros = matches!(options.contents, Contents::Zeros);
        mkfs::make_journal_device(device, &journal)?;
        let device = Arc::clone(device);
        options.journal = JournalChoice::External { device, accept_volatile: false };
    }
    mkfs::make(&devices[0], &options).map(drop)
}

/// Mounts a file system; the journal's device is put in.
///
/// # Errors
/// The mount was refused, in words.
pub fn mount(devices: &[Arc<dyn BlockDevice>], options: MountOptions) -> Result<Arc<Ext4>> {
    let disk = devices.first().ok_or("there is no device")?;
    let options = MountOptions { journal_device: devices.get(1).cloned(), ..options };
    Ext4::mount(Arc::clone(disk), options).map_err(words)
}

/// A machine that is up; `left` says what its devices hold after the unmount.
pub fn booted(fs: Arc<Ext4>, left: impl FnOnce() -> Result<Vec<Store>> + 'static) -> BootedMachine {
    let mounted = Arc::clone(&fs);
    let shut_down = move || {
        mounted.unmount().map_err(words)?;
        left()
    };
    BootedMachine { fs, shut_down: Box::new(shut_down) }
}
