//! Files, block devices, RAM disks and aliases.

use std::path::Path;
use std::sync::Arc;

use steadfast_block::BlockDevice;
use steadfast_devices::source::Ram;
use steadfast_setup::SetupError;
use steadfast_setup::path::{self, PathOptions};

use super::registry::{DeviceSlot, Registry};
use super::{Device, Result};
use crate::endpoint::Endpoint;
use crate::protocol::RefusalKind::{NotFound, Refused, UsedWrongly};
use crate::protocol::{Answer, NewName, Refusal};
use crate::record::DeviceRecord;

/// Smallest RAM disk: one region with labels and map has room.
const RAM_MIN: u64 = 64 << 10;
/// Largest one. Memory is taken when it is written to.
const RAM_MAX: u64 = 1 << 40;

/// Files, block devices and RAM disks of a host, and the other names of what it has.
#[derive(Clone)]
pub(crate) struct HostDevices {
    registry: Arc<Registry>,
}

impl HostDevices {
    pub fn new(registry: &Arc<Registry>) -> HostDevices {
        HostDevices { registry: Arc::clone(registry) }
    }

    /// Opens a file or block device.
    pub(super) fn open_device(&self, name: &str, record: &DeviceRecord) -> DeviceSlot {
        match open_path(&record.path) {
            Ok(device) => {
                let endpoint = Endpoint::new(name, self.registry.number(), device, record.volatile);
                DeviceSlot { endpoint: Some(endpoint), ..DeviceSlot::default() }
            }
            Err(e) => DeviceSlot { problem: Some(e.to_string()), ..DeviceSlot::default() },
        }
    }

    /// A blank RAM disk.
    pub(super) fn open_ramdisk(&self, name: &str, bytes: u64) -> DeviceSlot {
        let ram = Ram::new(name, bytes);
        let endpoint = Endpoint::new(name, self.registry.number(), Arc::new(ram), true);
        DeviceSlot { endpoint: Some(endpoint), problem: None }
    }

    pub(super) fn create_ramdisk(&self, name: &str, bytes: u64) -> Result<Answer> {
        let _one = self.registry.one_change();
        self.registry.check_new_name(name)?;
        if !(RAM_MIN..=RAM_MAX).contains(&bytes) || !bytes.is_multiple_of(512) {
            let what = format!("{bytes} bytes: a RAM disk has whole blocks of 512, 64k to 1t");
            return Err(UsedWrongly.about(name, what));
        }
        let system = rustix::system::sysinfo();
        let memory = system.totalram.saturating_mul(u64::from(system.mem_unit));
        if bytes > memory {
            let what = format!("{bytes} bytes: the machine has {memory} bytes of memory");
            return Err(Refused.about(name, what));
        }
        self.registry.remember(|records| {
            records.ramdisks.insert(name.to_owned(), bytes);
            records.removed.remove(name);
        })?;
        let opened = self.open_ramdisk(name, bytes);
        self.registry.lock().devices.insert(name.to_owned(), opened);
        tracing::info!("{name}: a RAM disk of {bytes} bytes");
        Ok(Answer { bytes: Some(bytes), ..Answer::default() })
    }

    pub(super) fn delete_ramdisk(&self, name: &str) -> Result<Answer> {
        self.drop_device(name, true)
    }

    pub(super) fn remove_device(&self, name: &str) -> Result<Answer> {
        self.drop_device(name, false)
    }

    fn drop_device(&self, name: &str, is_ram: bool) -> Result<Answer> {
        let _one = self.registry.one_change();
        let (name, _claim) = {
            let inner = self.registry.lock();
            let name = inner.records.resolved(name).to_owned();
            let there = match is_ram {
                true => inner.records.ramdisks.contains_key(&name),
                false => inner.records.devices.contains_key(&name),
            };
            if !there {
                let what = if is_ram { "there is no such RAM disk" } else { "no such device" };
                return Err(NotFound.about(&name, what));
            }
            inner.check_unused(&name)?;
            let claim = self.registry.claim(&inner, [&name]);
            (name, claim)
        };
        self.registry.remember(|records| {
            records.ramdisks.remove(&name);
            records.devices.remove(&name);
            records.aliases.retain(|_, target| *target != name);
            records.removed.insert(name.clone());
            records.forget_retired(&name);
        })?;
        self.registry.lock().devices.remove(&name);
        Ok(Answer::default())
    }

    pub(super) fn add_device(&self, new: &NewName) -> Result<Answer> {
        let _one = self.registry.one_change();
        let name = &new.name;
        self.registry.check_new_name(name)?;
        let path = Path::new(&new.target);
        if !path.is_absolute() {
            let what = format!("{}: the path of a device is absolute", new.target);
            return Err(UsedWrongly.because(what));
        }
        let record = DeviceRecord { path: path.to_path_buf(), volatile: new.volatile };
        let device = open_path(path)
            .map_err(|e| Refusal { about: Some(name.clone()), ..Refused.because(e.to_string()) })?;
        let endpoint = Endpoint::new(name, self.registry.number(), device, new.volatile);
        let bytes = endpoint.info().size;
        self.registry.remember(|records| {
            records.devices.insert(name.clone(), record);
            records.removed.remove(name);
        })?;
        let opened = DeviceSlot { endpoint: Some(endpoint), ..DeviceSlot::default() };
        self.registry.lock().devices.insert(name.clone(), opened);
        Ok(Answer { bytes: Some(bytes), ..Answer::default() })
    }

    /// Gives something another name. Said again, it is what it is already.
    pub fn add_alias(&self, name: &str, target: &str) -> Result<Answer> {
        let _one = self.registry.one_change();
        let target = {
            let inner = self.registry.lock();
            let target = inner.records.resolved(target).to_owned();
            if !inner.records.has(&target) {
                return Err(NotFound.about(&target, "there is no such device"));
            }
            if inner.records.aliases.get(name) == Some(&target) {
                return Ok(Answer::default());
            }
            target
        };
        self.registry.check_new_name(name)?;
        self.registry.remember(|records| {
            records.aliases.insert(name.to_owned(), target);
        })?;
        let number = self.registry.number();
        self.registry.lock().aliases.insert(name.to_owned(), number);
        Ok(Answer::default())
    }

    /// Removes an alias.
    pub fn remove_alias(&self, name: &str) -> Result<Answer> {
        let _one = self.registry.one_change();
        if !self.registry.lock().records.aliases.contains_key(name) {
            return Err(NotFound.about(name, "there is no such alias"));
        }
        self.registry.remember(|records| {
            records.aliases.remove(name);
        })?;
        self.registry.lock().aliases.remove(name);
        Ok(Answer::default())
    }
}

/// Opens a file or block device, which its name stands for as it is.
pub(super) fn open_path(path: &Path) -> std::result::Result<Device, SetupError> {
    let opened = path::open_file(path, PathOptions { as_it_is: true, ..PathOptions::default() })?;
    opened.notes.iter().for_each(|note| tracing::debug!("{note}"));
    Ok(opened.device)
}
