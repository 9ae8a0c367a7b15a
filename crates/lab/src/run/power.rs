//! One variant's power cuts: a recorded run in one simulation, each recovery in another.

use std::sync::Arc;
use std::time::Duration;

use steadfast_bench::iozone::{self, Action, Call, Observer, Surroundings};
use steadfast_block::BlockDevice;
use steadfast_crash::explore::{Booted, Machine, Places, Plan, Recorded, explore};
use steadfast_crash::figures::{Cut, Figures};
use steadfast_crash::ledger::{self, Ledger, Started};
use steadfast_devices::filter::record::{Durability, Record, RecordLog};
use steadfast_devices::store::Store;
use steadfast_ext4::fs::Ext4;
use steadfast_pagecache::Settings;
use steadfast_runtime::{Mutex, Nanos, Sim};
use steadfast_vfs::FileSystem;

use super::{Report, Setting};
use crate::results::{Percentiles, RiskRow};
use crate::scenario::{DeviceSpec, Scenario, Variant};
use crate::stack::{Device, Devices, make, mount_options};

/// Every so many cuts the recovered image is also judged by e2fsck, where it is installed.
const E2FSCK_EVERY: u64 = 10;

/// A lying cache writes its contents out in the background; after this time a write is safe.
const LYING_DRAINS_WITHIN: Duration = Duration::from_secs(1);

/// Records the variant's run, cuts it, and counts what the cuts take.
pub(super) fn run(
    setting: &Setting,
    variant: &Variant,
    report: &Report,
) -> Result<RiskRow, String> {
    let memory = setting.page_cache_bytes(&setting.risk);
    let machine =
        Arc::new(Modelled { scenario: setting.scenario.clone(), variant: variant.clone(), memory });
    let (inner, iozone) = (Arc::clone(&machine), setting.risk.clone());
    let sim = Sim::new(setting.options.seed).cpus(setting.scenario.machine.cpus);
    let recorded = sim.run(move || inner.record(&iozone)).map_err(|e| e.to_string())??;
    let plan = Plan {
        cuts: setting.cuts,
        places: Places::Spread,
        seed: setting.options.seed,
        e2fsck_every: E2FSCK_EVERY,
        again_percent: 0,
        kernel_every: 0,
    };
    let cuts = plan.cuts.max(1) as f64;
    let machine: Arc<dyn Machine> = machine;
    let figures = explore(&machine, recorded, &plan, &|done| report(done as f64 / cuts));
    Ok(row(variant, figures))
}

/// A machine of modelled devices.
struct Modelled {
    scenario: Scenario,
    variant: Variant,
    memory: u64,
}

impl Modelled {
    fn mount(
        &self,
        disk: Arc<dyn BlockDevice>,
        journal: Option<Arc<dyn BlockDevice>>,
    ) -> Result<Arc<Ext4>, String> {
        let mut options = mount_options(&self.variant.mount)?;
        options.journal_device = journal;
        options.page_cache = Settings { memory_bytes: self.memory, ..options.page_cache };
        Ext4::mount(disk, options).map_err(|e| e.to_string())
    }

    fn durability(&self, name: &str, device: &Device) -> Durability {
        match &self.scenario.devices[name] {
            DeviceSpec::Hdd(p) if device.lies() => Durability::Lying {
                cache_bytes: u64::from(p.write_buffer_kb) << 10,
                drains_within: LYING_DRAINS_WITHIN,
            },
            _ => Durability::of(&device.block().info()),
        }
    }

    /// Runs the workload with every device recorded, in the caller's simulation.
    fn record(&self, iozone: &iozone::Options) -> Result<Recorded, String> {
        let devices = Devices::build(&self.scenario, &self.variant)?;
        let log = RecordLog::new();
        log.pause(true);
        let filter = |name: &str, d: &Device| -> Arc<dyn BlockDevice> {
            Arc::new(Record::with_durability(d.block(), &log, self.durability(name, d)))
        };
        let disk = filter(&self.variant.disk, &devices.disk);
        let journal = devices
            .journal
            .as_ref()
            .zip(self.variant.journal.as_ref())
            .map(|(d, name)| filter(name, d));
        make(&disk, journal.as_ref(), &self.variant)?;
        for device in std::iter::once(&disk).chain(&journal) {
            device.flush().map_err(|e| e.to_string())?;
        }
        let bases: Vec<Store> = devices.all().map(Device::contents).collect();
        log.pause(false);
        let fs = self.mount(disk, journal)?;
        let ledger = Arc::new(Ledger::new(&log));
        let observer = Arc::new(Account { ledger: Arc::clone(&ledger), open: Mutex::default() });
        let shared: Arc<dyn FileSystem> = Arc::clone(&fs) as Arc<dyn FileSystem>;
        iozone::run(shared, "", iozone, &Surroundings::default(), Some(observer.clone()))
            .map_err(|e| e.to_string())?;
        let recording = log.take();
        fs.unmount().map_err(|e| format!("unmounting: {e}"))?;
        drop(observer);
        let ledger = Arc::into_inner(ledger).ok_or("the workload still runs")?;
        Ok(Recorded { bases, recording, judge: Arc::new(ledger) })
    }
}

impl Machine for Modelled {
    fn power_on(&self, contents: Vec<Store>, log: Option<&RecordLog>) -> Result<Booted, String> {
        let devices = Devices::build(&self.scenario, &self.variant)?;
        for (device, contents) in devices.all().zip(contents) {
            device.fill(contents)?;
        }
        let recorded = |device: &Device| -> Arc<dyn BlockDevice> {
            match log {
                Some(log) => Arc::new(Record::new(device.block(), log)),
                None => device.block(),
            }
        };
        let disk = recorded(&devices.disk);
        let fs = self.mount(disk, devices.journal.as_ref().map(recorded))?;
        let mounted = Arc::clone(&fs);
        Ok(Booted {
            fs,
            shut_down: Box::new(move || {
                mounted.unmount().map_err(|e| e.to_string())?;
                Ok(devices.all().map(Device::contents).collect())
            }),
        })
    }

    fn journal(&self) -> Option<usize> {
        self.variant.journal.as_ref().map(|_| 1)
    }
}

/// Carries what the benchmark says to the ledger.
struct Account {
    ledger: Arc<Ledger>,
    /// One open call a file: calls on a file come from one task, one after the other.
    open: Mutex<std::collections::BTreeMap<String, Started>>,
}

impl Observer for Account {
    fn started(&self, call: &Call<'_>) {
        let action = match call.action {
            Action::Write { offset, len, tag } => ledger::Action::Write { offset, len, tag },
            // A removed file holds nothing: the same to a judge as an emptied one.
            Action::Truncate | Action::Remove => ledger::Action::Truncate,
        };
        let started = self.ledger.start(call.file, action);
        self.open.lock().insert(call.file.to_owned(), started);
    }

    fn finished(&self, call: &Call<'_>, _at: Nanos, durable: bool) {
        if let Some(started) = self.open.lock().remove(call.file) {
            self.ledger.acknowledge(&started, durable);
        }
    }

    fn synced(&self, file: Option<&str>, started: Nanos, _at: Nanos) {
        self.ledger.synced(file, started);
    }
}

fn row(variant: &Variant, figures: Figures) -> RiskRow {
    let spread = |f: fn(&Cut) -> f64| Percentiles::of(figures.cuts.iter().map(f).collect());
    RiskRow {
        variant: variant.name.clone(),
        cuts: figures.cuts.len() as u64,
        broken_promises: figures.sum(|c| c.broken_promises),
        cuts_with_broken_promises: figures.count(|c| c.broken_promises > 0),
        exposure_bytes: spread(|c| c.lost_bytes as f64),
        exposure_operations: spread(|c| c.lost_operations as f64),
        exposure_ms: spread(|c| c.lost_age.as_secs_f64() * 1e3),
        torn_writes: figures.sum(|c| c.torn_writes),
        foreign_bytes: figures.sum(|c| c.foreign_bytes),
        order_violations: figures.sum(|c| c.order_violations),
        damage: figures.count(|c| !c.damage.is_empty()),
        needs_person: figures.count(|c| c.needs_person),
        e2fsck_checked: figures.count(|c| c.e2fsck.is_some()),
        e2fsck_damage: figures.count(|c| matches!(c.e2fsck, Some(Err(_)))),
        recovery_ms: spread(|c| c.recovery.as_secs_f64() * 1e3),
        findings: figures.findings,
    }
}
