//! A machine of modelled devices with Steadfast's own file system: recorded, and built anew after
//! each cut.

use std::sync::Arc;
use std::time::Duration;

use steadfast_block::BlockDevice;
use steadfast_crash::explore::{Booted, Machine};
use steadfast_devices::filter::record::{Durability, Record, RecordLog};
use steadfast_devices::model::Model;
use steadfast_devices::store::Store;
use steadfast_ext4::fs::Ext4;

use crate::scenario::{Scenario, Variant};
use crate::stack::{Blocks, Devices, mount_options};

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
    pub fn mount(&self, devices: &Blocks) -> Result<Arc<Ext4>, String> {
        let mut options = mount_options(&self.variant.mount)?;
        options.journal_device = devices.journal.clone();
        self.scenario.machine_of(&self.variant).apply(self.memory, &mut options);
        Ext4::mount(Arc::clone(&devices.disk), options).map_err(|e| e.to_string())
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
            None => Durability::of(&device.info()),
        }
    }

    /// Puts a recording over each device, below the scheduler: what waits there when the power
    /// goes has not reached the device.
    pub fn recorded(&self, devices: &Devices, log: &RecordLog) -> Blocks {
        let filter = |name: &str, d: &Arc<dyn Model>| -> Arc<dyn BlockDevice> {
            let durability = self.durability(name, &**d);
            Arc::new(Record::with_durability(Arc::clone(d) as Arc<_>, log, durability))
        };
        let names = devices.journal.as_ref().zip(self.variant.journal.as_ref());
        // In the order of `Devices::all`: the recording numbers them so.
        let disk = filter(&self.variant.disk, &devices.disk);
        let journal = names.map(|(d, name)| filter(name, d));
        Blocks::new(disk, journal, devices.scheduler.as_ref())
    }
}

impl Machine for Modelled {
    fn power_on(&self, contents: Vec<Store>, log: Option<&RecordLog>) -> Result<Booted, String> {
        let devices = Devices::build(&self.scenario, &self.variant)?;
        for (device, contents) in devices.all().zip(contents) {
            device.set_contents(contents).map_err(|e| e.to_string())?;
        }
        let recorded = match log {
            Some(log) => self.recorded(&devices, log),
            None => devices.blocks(),
        };
        let fs = self.mount(&recorded)?;
        let mounted = Arc::clone(&fs);
        Ok(Booted {
            fs,
            shut_down: Box::new(move || {
                mounted.unmount().map_err(|e| e.to_string())?;
                Ok(devices.all().map(|d| d.contents()).collect())
            }),
        })
    }

    fn journal(&self) -> Option<usize> {
        self.variant.journal.as_ref().map(|_| 1)
    }
}
