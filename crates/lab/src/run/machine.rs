//! A machine of modelled devices with Steadfast's own file system: recorded, and built anew after
//! each cut.

use std::sync::Arc;
use std::time::Duration;

use steadfast_block::{BlockDevice, Persistence};
use steadfast_crash::CrashError;
use steadfast_crash::explore::{Booted, Machine};
use steadfast_devices::filter::record::{Durability, Record, RecordLog};
use steadfast_devices::model::Model;
use steadfast_devices::store::Store;
use steadfast_ext4::Ext4;

use crate::VariantError;
use crate::scenario::{Scenario, Variant};
use crate::stack::{Blocks, Devices, Volumes, contents_of, mount_options};

/// A lying cache writes its contents out in the background; after this time a write is safe.
const LYING_DRAINS_WITHIN: Duration = Duration::from_secs(1);

/// A variant of a scenario.
pub(super) struct Modelled {
    pub scenario: Scenario,
    pub variant: Variant,
    /// Of the page cache, in bytes.
    pub memory: u64,
}

impl Modelled {
    pub fn mount(&self, devices: &Blocks) -> Result<Arc<Ext4>, VariantError> {
        let mut options = mount_options(&self.variant.mount)?;
        options.journal_device = devices.journal.clone();
        self.scenario.machine_of(&self.variant).apply(self.memory, &mut options);
        #[cfg(feature = "planted-bugs")]
        if let Some(bug) = self.variant.planted {
            bug.into_options(&mut options);
        }
        Ok(Ext4::mount(Arc::clone(&devices.disk), options)?)
    }

    fn durability(&self, name: &str, device: &dyn Model) -> Durability {
        let params = &self.scenario.devices[name];
        if !self.variant.loses_cache(params) {
            return Durability::OnCompletion;
        }
        match params.lying_cache_bytes() {
            Some(cache_bytes) => {
                Durability::Lying { cache_bytes, drains_within: LYING_DRAINS_WITHIN }
            }
            None if device.saves_caches() => Durability::OnStore,
            None => Durability::of(&device.info()),
        }
    }

    /// Puts a recording over each device, below the volumes and the scheduler: what waits there
    /// when the power goes has not reached the device.
    pub fn recorded(
        &self,
        devices: &Devices,
        volumes: Volumes,
        log: &RecordLog,
    ) -> Result<Blocks, VariantError> {
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
        Arc::new(Record::with_durability(Arc::clone(model) as Arc<_>, log, durability))
    }
}

impl Modelled {
    fn boot(&self, contents: Vec<Store>, log: Option<&RecordLog>) -> Result<Booted, VariantError> {
        let devices = Devices::build(&self.scenario, &self.variant)?;
        let keeps = |d: &dyn Model| d.info().persistence == Persistence::Persistent;
        for (device, contents) in devices.all().zip(contents) {
            // Whatever happened to the machine, its memory is blank.
            if keeps(&**device) || !devices.has_volumes() {
                device.set_contents(contents)?;
            }
        }
        let blocks = match log {
            Some(log) => self.recorded(&devices, Volumes::Found, log)?,
            None => devices.blocks_over(Volumes::Found, &mut |_, m| Arc::clone(m) as Arc<_>)?,
        };
        let fs = self.mount(&blocks)?;
        let mounted = Arc::clone(&fs);
        Ok(Booted {
            fs,
            shut_down: Box::new(move || {
                mounted.unmount().map_err(|e| e.to_string())?;
                if devices.are_seen_as_they_are() {
                    return Ok(devices.all().map(|d| d.contents()).collect());
                }
                let both = std::iter::once(&blocks.disk).chain(&blocks.journal);
                let contents = both.map(contents_of).collect::<Result<_, _>>();
                contents
                    .and_then(|contents| blocks.close().map(|()| contents))
                    .map_err(|e| e.to_string().into())
            }),
        })
    }
}

impl Machine for Modelled {
    fn power_on(
        &self,
        contents: Vec<Store>,
        log: Option<&RecordLog>,
    ) -> steadfast_crash::Result<Booted> {
        self.boot(contents, log).map_err(|e| CrashError::Run(e.to_string()))
    }

    fn journal(&self) -> Option<usize> {
        self.variant.journal.as_ref().map(|_| 1)
    }
}
