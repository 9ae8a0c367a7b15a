//! Runs in real time: the kernel's file systems, and ours beside them for the speed.
//!
//! A run in virtual time is not charged for what its code takes, and the kernel's is. So where a
//! scenario has file systems of the kernel and they can be run, Steadfast's speed is taken in real
//! time too: in process, on the same modelled device behind the same loop device. All these runs
//! come first, one at a time in the scenario's order, with nothing of ours beside them.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};

use steadfast_block::BlockDevice;
use steadfast_crash::risk::{
    FilesWorkload, Peer, PeerKind, PeerSpec, RecordedRun, Speed, Workload, old_contents,
};
use steadfast_devices::filter::record::{Record, RecordLog};
use steadfast_devices::model::{Model, ModelParams};
use steadfast_devices::source::file::{Direct, FileDevice, FileOptions};
use steadfast_ext4::fs::Ext4;
use steadfast_ext4::mkfs::Contents;
use steadfast_pagecache::Settings;
use steadfast_peers::{AtRisk, Exported, KernelFs};
use steadfast_vfs::FileSystem;

use super::files::MEMORY;
use super::{Load, Setting, Watch};
use crate::LabError;
use crate::scenario::Variant;
use crate::stack::{make, mount_options};

/// What a run in real time brought.
pub(super) enum Real {
    /// A file system of the kernel: recorded, to be cut.
    Kernel(Box<AtRisk>, RecordedRun),
    /// Ours.
    Ours(Speed),
    /// This machine cannot run it, and why.
    LeftOut(String),
}

/// What the runs in real time brought, by variant; each is taken once.
#[derive(Default)]
pub(super) struct Reals(Mutex<BTreeMap<String, Real>>);

impl Reals {
    pub fn take(&self, variant: &Variant) -> Option<Real> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(&variant.name)
    }
}

/// Makes the runs in real time that the scenario asks for: none without file systems of the kernel.
/// Whoever watches may stop it between two of them.
pub(super) fn run_all(setting: &Setting, watch: &Watch<'_>) -> Result<Reals, LabError> {
    let Load::Files(workload, _) = &setting.load else { return Ok(Reals::default()) };
    let variants = &setting.scenario.variants;
    let mut reals = BTreeMap::new();
    for v in variants {
        if let Some(kernel) = &v.kernel
            && let Err(why) = available(kernel)
        {
            reals.insert(v.name.clone(), Real::LeftOut(why));
        }
    }
    let some_kernel = variants.iter().any(|v| v.kernel.is_some() && !reals.contains_key(&v.name));
    let wanted: Vec<&Variant> =
        variants.iter().filter(|v| some_kernel && !reals.contains_key(&v.name)).collect();
    for (done, v) in wanted.iter().enumerate() {
        if watch.stop.load(Ordering::Relaxed) {
            break;
        }
        let share = done as f64 / wanted.len() as f64;
        (watch.progress)(share, &format!("{}: measured in real time", v.name));
        let ran = match &v.kernel {
            Some(kernel) => kernels(setting, workload, v, kernel),
            None => ours(setting, workload, v).map(Real::Ours),
        };
        let failed = |what| LabError::Variant { variant: v.name.clone(), what };
        reals.insert(v.name.clone(), ran.map_err(failed)?);
    }
    Ok(Reals(Mutex::new(reals)))
}

fn kind_of(kernel: &str) -> Result<PeerKind, String> {
    // Checked where the scenario is read.
    PeerKind::of(kernel).ok_or_else(|| format!("kernel = '{kernel}' is not known"))
}

fn available(kernel: &str) -> Result<(), String> {
    KernelFs::from(kind_of(kernel)?).available().map_err(|e| e.to_string())
}

fn model_of(setting: &Setting, device: &str) -> Result<ModelParams, String> {
    let params = &setting.scenario.devices[device];
    let no_time = || format!("device '{device}' is no model: it has no time of its own");
    params.takes_time().then(|| params.clone()).ok_or_else(no_time)
}

/// Runs the workload on the kernel's file system.
fn kernels(
    setting: &Setting,
    workload: &FilesWorkload,
    variant: &Variant,
    kernel: &str,
) -> Result<Real, String> {
    let disk = model_of(setting, &variant.disk)?;
    let bytes = disk.build(&variant.disk).map_err(|e| e.to_string())?.info().size;
    let peer = AtRisk::new(&PeerSpec {
        kind: kind_of(kernel)?,
        mkfs: variant.mkfs.clone(),
        mount: variant.mount.clone(),
        disk,
        old_contents: old_contents(bytes),
    });
    let ran = peer.record(workload)?;
    Ok(Real::Kernel(Box::new(peer), ran))
}

/// A modelled device where the kernel has those of its file systems.
struct Behind {
    // Let go of in this order.
    device: Arc<dyn BlockDevice>,
    exported: Exported,
}

impl Behind {
    /// Recorded, as the kernel's devices are.
    fn new(setting: &Setting, name: &str, log: &RecordLog) -> Result<Behind, String> {
        let model: Arc<dyn Model> =
            model_of(setting, name)?.build(name).map_err(|e| e.to_string())?;
        model.set_contents(old_contents(model.info().size)).map_err(|e| e.to_string())?;
        let recorded = Record::new(model as Arc<dyn BlockDevice>, log);
        let exported = Exported::new(Arc::new(recorded)).map_err(|e| e.to_string())?;
        let options = FileOptions { direct: Direct::Required, ..FileOptions::default() };
        let device = FileDevice::open(exported.path(), &options).map_err(|e| e.to_string())?;
        Ok(Behind { device: Arc::new(device), exported })
    }

    fn take_away(self) -> Result<(), String> {
        drop(self.device);
        self.exported.take_away().map_err(|e| e.to_string())
    }
}

/// Runs the workload on Steadfast's file system, in process; nothing is cut.
fn ours(setting: &Setting, workload: &FilesWorkload, variant: &Variant) -> Result<Speed, String> {
    let log = RecordLog::new();
    let disk = Behind::new(setting, &variant.disk, &log)?;
    let journal =
        variant.journal.as_ref().map(|name| Behind::new(setting, name, &log)).transpose()?;
    let journal_device = journal.as_ref().map(|j| Arc::clone(&j.device));
    make(&disk.device, journal_device.as_ref(), variant, Contents::UnknownZeroTables)?;
    let mut options = mount_options(&variant.mount)?;
    options.journal_device = journal_device;
    options.page_cache = Settings { memory_bytes: MEMORY, ..options.page_cache };
    let fs = Ext4::mount(Arc::clone(&disk.device), options).map_err(|e| e.to_string())?;
    let shared: Arc<dyn FileSystem> = Arc::clone(&fs) as Arc<dyn FileSystem>;
    let mut begin = || disk.device.flush().map_err(|e| e.to_string());
    let ran = workload.run(&shared, &log, &mut begin);
    drop(shared);
    fs.unmount().map_err(|e| format!("unmounting: {e}"))?;
    drop(fs);
    journal.into_iter().chain([disk]).try_for_each(Behind::take_away)?;
    ran.map(|ran| ran.speed)
}
