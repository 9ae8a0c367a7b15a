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
use steadfast_ext4_mkfs::{Contents, JournalDeviceOptions, Options};
use steadfast_setup::Blocks;

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
    options: Options,
    journal: impl FnOnce(u64) -> JournalDeviceOptions,
) -> steadfast_ext4::Result<()> {
    let zeros = matches!(options.contents, Contents::Zeros);
    let journal = |time| JournalDeviceOptions { zeros, ..journal(time) };
    let blocks = Blocks::new(Arc::clone(&devices[0]), devices.get(1).cloned(), None);
    blocks.make_with(options, journal)
}

/// Mounts a file system.
///
/// # Errors
/// The mount was refused, in words.
pub fn mount(devices: &[Arc<dyn BlockDevice>], options: MountOptions) -> Result<Arc<Ext4>> {
    let disk = Arc::clone(devices.first().ok_or("there is no device")?);
    Blocks::new(disk, devices.get(1).cloned(), None).mount(options).map_err(words)
}

/// A machine that is up; `left` says what its devices hold after the unmount.
pub fn booted(fs: Arc<Ext4>, left: impl FnOnce() -> Result<Vec<Store>> + 'static) -> BootedMachine {
    let mounted = Arc::clone(&fs);
    let shut_down = move || {
        mounted.unmount().map_err(words)?;
        left()
    };
    BootedMachine { fs, shut_down: Box::new(shut_down), disk: None }
}
