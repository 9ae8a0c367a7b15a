//! A machine of a described stack: modelled devices, volumes of them, and Steadfast's file system;
//! recorded, and built anew after each cut.

use std::sync::Arc;

use steadfast_block::{BlockDevice, Persistence};
use steadfast_devices::filter::record::{Durability, Record, RecordLog};
use steadfast_devices::model::Model;
use steadfast_devices::store::Store;
use steadfast_ext4::{Ext4, MountOptions};
use steadfast_setup::{Blocks, Devices, Setup, SetupError, Volumes, contents_of};

use super::ext4::{booted, words};
use super::machine::{BootedMachine, RebootTarget};
use crate::error::Result;
use crate::risk::old_contents;

/// What is changed of the options of each mount.
pub type MountChange = Arc<dyn Fn(&mut MountOptions) + Send + Sync>;

/// A machine with a described stack.
#[derive(Clone)]
pub struct StackMachine {
    /// What it is built of.
    pub setup: Setup,
    /// Bytes of its page cache.
    pub memory_bytes: u64,
    /// A cut is a reset: the machine is reset, and its drives keep their power.
    pub is_reset: bool,
    /// What else is said of mounting.
    pub change: Option<MountChange>,
}

impl StackMachine {
    /// Its devices, which held something before, to be seen by nobody.
    ///
    /// # Errors
    /// A device cannot be built.
    pub fn used_devices(&self) -> Result<Devices, SetupError> {
        let devices = Devices::build(&self.setup)?;
        for device in devices.all() {
            device.set_contents(old_contents(device.info().size))?;
        }
        Ok(devices)
    }

    /// Mounts its file system.
    ///
    /// # Errors
    /// There is none, or it cannot be mounted with its options.
    pub fn mount(&self, devices: &Blocks) -> Result<Arc<Ext4>, SetupError> {
        let mut options = self.setup.mount_options(self.memory_bytes)?;
        if let Some(change) = &self.change {
            change(&mut options);
        }
        Ok(devices.mount(options)?)
    }

    fn durability(&self, name: &str, device: &dyn Model) -> Durability {
        // OK to expect: only models are recorded.
        let params = self.setup.topology.devices[name].model().expect("a model");
        if self.is_reset && !params.forgets_at_reset() {
            return Durability::OnCompletion;
        }
        match params.lying_cache_bytes() {
            Some(cache_bytes) => Durability::lying(cache_bytes),
            None if device.saves_caches() => Durability::OnStore,
            None => Durability::of(&device.info()),
        }
    }

    /// Puts a recording over each device, below the volumes and the scheduler: what waits there
    /// when the power goes has not reached the device.
    ///
    /// # Errors
    /// A volume cannot be made or assembled, with the reason.
    pub fn recorded(
        &self,
        devices: &Devices,
        volumes: Volumes,
        log: &RecordLog,
    ) -> Result<Blocks, SetupError> {
        // In the order of `Devices::all`: the recording numbers them so.
        devices.blocks_over(volumes, &mut |name, model| self.record_over(name, model, log))
    }

    /// Puts a recording over a device.
    pub fn record_over(
        &self,
        name: &str,
        model: &Arc<dyn Model>,
        log: &RecordLog,
    ) -> Arc<dyn BlockDevice> {
        let durability = self.durability(name, &**model);
        let record = Record::with_durability(Arc::clone(model) as Arc<_>, log, durability);
        Arc::new(record.on_media(self.setup.topology.devices[name].media))
    }

    /// Its devices; those that keep theirs hold these contents.
    ///
    /// # Errors
    /// A device cannot be built, or hold that.
    pub fn devices_holding(
        &self,
        contents: Vec<Store>,
        keeps: impl Fn(&dyn Model) -> bool,
    ) -> Result<Devices, SetupError> {
        let devices = Devices::build(&self.setup)?;
        for (device, contents) in devices.all().zip(contents) {
            // Without volumes the machine is only reset, where its disk is memory.
            if keeps(&**device) || !devices.has_volumes() {
                device.set_contents(contents)?;
            }
        }
        Ok(devices)
    }

    fn boot(
        &self,
        contents: Vec<Store>,
        log: Option<&RecordLog>,
    ) -> Result<BootedMachine, SetupError> {
        // What loses its contents with the power is blank.
        let persists = |d: &dyn Model| d.info().persistence == Persistence::Persistent;
        let devices = self.devices_holding(contents, persists)?;
        let blocks = match log {
            Some(log) => self.recorded(&devices, Volumes::Found, log)?,
            None => devices.blocks_over(Volumes::Found, &mut |_, m| Arc::clone(m) as Arc<_>)?,
        };
        Ok(booted(self.mount(&blocks)?, move || {
            if devices.are_seen_as_they_are() {
                return Ok(devices.all().map(|d| d.contents()).collect());
            }
            let both = std::iter::once(&blocks.disk).chain(&blocks.journal);
            let contents = both.map(contents_of).collect::<Result<_, _>>();
            contents.and_then(|contents| blocks.close().map(|()| contents)).map_err(words)
        }))
    }
}

impl RebootTarget for StackMachine {
    fn power_on(&self, contents: Vec<Store>, log: Option<&RecordLog>) -> Result<BootedMachine> {
        self.boot(contents, log).map_err(words)
    }

    fn journal(&self) -> Option<usize> {
        self.setup.journal.as_ref().map(|_| 1)
    }
}
