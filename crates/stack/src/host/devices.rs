//! Files, block devices, RAM disks and aliases.

use std::path::Path;
use std::sync::Arc;

use steadfast_block::BlockDevice;
use steadfast_devices::source::{FileDevice, FileOptions, OpenError, Ram};

use super::{Device, DeviceSlot, Host, Result};
use crate::config::check_name;
use crate::endpoint::Endpoint;
use crate::protocol::{Answer, NewName, Refusal, RefusalKind};
use crate::record::DeviceRecord;

/// Smallest RAM disk: one region with labels and map has room.
const RAM_MIN: u64 = 64 << 10;
/// Largest one. Memory is taken when it is written to.
const RAM_MAX: u64 = 1 << 40;

impl Host {
    /// Opens a file or block device.
    pub(super) fn open_device(&self, name: &str, record: &DeviceRecord) -> DeviceSlot {
        match FileDevice::open(&record.path, &FileOptions::default()) {
            Ok(device) => {
                for note in device.notes() {
                    tracing::debug!("{name}: {note}");
                }
                let device: Device = Arc::new(device);
                let endpoint = Endpoint::new(name, self.number(), device, record.volatile);
                DeviceSlot { endpoint: Some(endpoint), ..DeviceSlot::default() }
            }
            Err(e) => DeviceSlot { problem: Some(e.to_string()), ..DeviceSlot::default() },
        }
    }

    /// A blank RAM disk.
    pub(super) fn open_ramdisk(&self, name: &str, bytes: u64) -> DeviceSlot {
        let ram = Ram::new(name, bytes);
        let endpoint = Endpoint::new(name, self.number(), Arc::new(ram), true);
        DeviceSlot { endpoint: Some(endpoint), problem: None }
    }

    fn check_new_name(&self, name: &str) -> Result<()> {
        check_name(name)
            .map_err(|what| Refusal::new(RefusalKind::UsedWrongly, what.to_string()))?;
        match self.lock().records.what_is(name) {
            Some(what) => {
                let what = format!("is the name of {what} already: choose another one");
                Err(Refusal::about(RefusalKind::Busy, name, what))
            }
            None => Ok(()),
        }
    }

    /// The same, for who makes volumes.
    pub(super) fn check_volume_name(&self, name: &str) -> Result<()> {
        self.check_new_name(name)
    }

    pub(super) fn create_ramdisk(&self, name: &str, bytes: u64) -> Result<Answer> {
        let _one = self.one_change();
        self.check_new_name(name)?;
        if !(RAM_MIN..=RAM_MAX).contains(&bytes) || !bytes.is_multiple_of(512) {
            let what = format!("{bytes} bytes: a RAM disk has whole blocks of 512, 64k to 1t");
            return Err(Refusal::about(RefusalKind::UsedWrongly, name, what));
        }
        let system = rustix::system::sysinfo();
        let memory = system.totalram.saturating_mul(u64::from(system.mem_unit));
        if bytes > memory {
            let what = format!("{bytes} bytes: the machine has {memory} bytes of memory");
            return Err(Refusal::about(RefusalKind::Refused, name, what));
        }
        self.remember(|records| {
            records.ramdisks.insert(name.to_owned(), bytes);
            records.removed.remove(name);
        })?;
        let opened = self.open_ramdisk(name, bytes);
        self.lock().devices.insert(name.to_owned(), opened);
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
        let _one = self.one_change();
        let (name, _claim) = {
            let inner = self.lock();
            let name = inner.records.resolved(name).to_owned();
            let there = match is_ram {
                true => inner.records.ramdisks.contains_key(&name),
                false => inner.records.devices.contains_key(&name),
            };
            if !there {
                let what = if is_ram { "there is no such RAM disk" } else { "no such device" };
                return Err(Refusal::about(RefusalKind::NotFound, &name, what));
            }
            inner.check_unused(&name)?;
            let claim = self.claim(&inner, [&name]);
            (name, claim)
        };
        self.remember(|records| {
            records.ramdisks.remove(&name);
            records.devices.remove(&name);
            records.aliases.retain(|_, target| *target != name);
            records.removed.insert(name.clone());
            records.forget_retired(&name);
        })?;
        self.lock().devices.remove(&name);
        Ok(Answer::default())
    }

    pub(super) fn add_device(&self, new: &NewName) -> Result<Answer> {
        let _one = self.one_change();
        let name = &new.name;
        self.check_new_name(name)?;
        let path = Path::new(&new.target);
        if !path.is_absolute() {
            let what = format!("{}: the path of a device is absolute", new.target);
            return Err(Refusal::new(RefusalKind::UsedWrongly, what));
        }
        let record = DeviceRecord { path: path.to_path_buf(), volatile: new.volatile };
        let opened = FileDevice::open(path, &FileOptions::default());
        let device = opened.map_err(|e| wrong_file(name, &e))?;
        let endpoint = Endpoint::new(name, self.number(), Arc::new(device), new.volatile);
        let bytes = endpoint.info().size;
        self.remember(|records| {
            records.devices.insert(name.clone(), record);
            records.removed.remove(name);
        })?;
        let opened = DeviceSlot { endpoint: Some(endpoint), ..DeviceSlot::default() };
        self.lock().devices.insert(name.clone(), opened);
        Ok(Answer { bytes: Some(bytes), ..Answer::default() })
    }

    /// Gives something another name. Said again, it is what it is already.
    pub(crate) fn add_alias(&self, name: &str, target: &str) -> Result<Answer> {
        let _one = self.one_change();
        let target = {
            let inner = self.lock();
            let target = inner.records.resolved(target).to_owned();
            if !inner.records.has(&target) {
                return Err(Refusal::about(
                    RefusalKind::NotFound,
                    &target,
                    "there is no such device",
                ));
            }
            if inner.records.aliases.get(name) == Some(&target) {
                return Ok(Answer::default());
            }
            target
        };
        self.check_new_name(name)?;
        self.remember(|records| {
            records.aliases.insert(name.to_owned(), target);
        })?;
        let number = self.number();
        self.lock().aliases.insert(name.to_owned(), number);
        Ok(Answer::default())
    }

    /// Removes an alias.
    pub(crate) fn remove_alias(&self, name: &str) -> Result<Answer> {
        let _one = self.one_change();
        if !self.lock().records.aliases.contains_key(name) {
            return Err(Refusal::about(RefusalKind::NotFound, name, "there is no such alias"));
        }
        self.remember(|records| {
            records.aliases.remove(name);
        })?;
        self.lock().aliases.remove(name);
        Ok(Answer::default())
    }
}

/// A path that cannot be opened.
fn wrong_file(name: &str, error: &OpenError) -> Refusal {
    Refusal { kind: RefusalKind::Refused, error: error.to_string(), about: Some(name.to_owned()) }
}
