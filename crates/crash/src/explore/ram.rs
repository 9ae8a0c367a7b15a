//! The least machine: Steadfast's file system on RAM disks.

use std::sync::Arc;

use steadfast_block::BlockDevice;
use steadfast_devices::filter::record::RecordLog;
use steadfast_devices::source::Ram;
use steadfast_devices::store::Store;
use steadfast_ext4::MountOptions;

use super::ext4::{booted, mount, recorded};
use super::machine::{BootedMachine, RebootTarget};
use crate::e2fsck::E2fsck;
use crate::error::{CrashError, Result};

/// Mounts with Steadfast's ext4: the first device holds the file system, a second one its journal.
/// Where it is recorded, the devices have volatile caches.
pub struct OnRam {
    options: MountOptions,
    at_boot: Option<E2fsck>,
}

impl OnRam {
    /// A machine that mounts with these options; the journal's device is put in.
    pub fn new(options: MountOptions) -> OnRam {
        OnRam { options, at_boot: None }
    }

    /// A file system without a journal: it is checked and repaired before the mount, as at a boot.
    #[must_use]
    pub fn repaired_by(self, at_boot: E2fsck) -> OnRam {
        OnRam { at_boot: Some(at_boot), ..self }
    }

    /// As a machine, and so as a [`System`](super::System).
    pub fn shared(self) -> Arc<dyn RebootTarget> {
        Arc::new(self)
    }
}

impl RebootTarget for OnRam {
    fn power_on(&self, contents: Vec<Store>, log: Option<&RecordLog>) -> Result<BootedMachine> {
        let named = contents.into_iter().zip(["disk", "journal"]);
        let rams = named.map(|(store, name)| Ram::from_store(name, store).persistent()).collect();
        boot(rams, self.options.clone(), &|_, ram| cached(ram, log))
    }

    fn before_mount(&self, mut contents: Vec<Store>) -> Result<(Vec<Store>, Option<String>)> {
        let mut said = None;
        if let (Some(e2fsck), Some(disk)) = (&self.at_boot, contents.first_mut()) {
            (*disk, said) = e2fsck.at_boot(disk).map_err(CrashError::host)?;
        }
        Ok((contents, said.map(|said| format!("e2fsck -p was not enough: {said}"))))
    }

    /// If there are two.
    fn journal(&self) -> Option<usize> {
        Some(1)
    }
}

/// A RAM disk, or the same with a volatile cache, recorded.
pub fn cached(ram: &Ram, log: Option<&RecordLog>) -> Arc<dyn BlockDevice> {
    match log {
        Some(log) => recorded(Arc::new(ram.clone().with_volatile_cache()), log, None),
        None => Arc::new(ram.clone()),
    }
}

/// Mounts what RAM disks hold: the file system, and its journal if there are two. `device` makes of
/// each what is mounted.
///
/// # Errors
/// The mount was refused, in words.
pub fn boot(
    rams: Vec<Ram>,
    options: MountOptions,
    device: &dyn Fn(usize, &Ram) -> Arc<dyn BlockDevice>,
) -> Result<BootedMachine> {
    let devices: Vec<_> = rams.iter().enumerate().map(|(n, ram)| device(n, ram)).collect();
    let fs = mount(&devices, options)?;
    let disk = rams
        .first()
        .cloned()
        .map(|disk| -> Box<dyn Fn() -> Store> { Box::new(move || disk.store()) });
    Ok(BootedMachine { disk, ..booted(fs, move || Ok(rams.iter().map(Ram::store).collect())) })
}
