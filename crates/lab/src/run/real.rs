//! Runs in real time: the kernel's file systems, and ours beside them for the speed.
//!
//! A run in virtual time is not charged for what its code takes, and the kernel's is. So where a
//! scenario has file systems of the kernel and they can be run, Steadfast's speed is taken in real
//! time too, on the same modelled devices behind the same loop devices: in process, and mounted,
//! by system calls as the kernel's. Each is run several times by turns, one at a time, beginning
//! with another each time, so that what else the machine does meets all of them. Then the kernel's
//! are run once more, at full length, to be cut.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use steadfast_block::BlockDevice;
use steadfast_crash::CrashError;
use steadfast_crash::risk::{FilesWorkload, RecordedRun, Speed, Workload, old_contents};
use steadfast_devices::filter::record::{Record, RecordLog};
use steadfast_devices::model::{Model, ModelParams};
use steadfast_devices::source::file::{Direct, FileDevice, FileOptions};
use steadfast_devices::store::Store;
use steadfast_ext4_mkfs::Contents;
use steadfast_peers::{FolderMount, KernelFs, LoopExport, PeerSpec, RiskVariant};
use steadfast_setup::Blocks;
use steadfast_statistics::load::Load;
use steadfast_vfs::{FileSystem, HostFs};

use super::files::MEMORY;
use super::{Setting, Watch};
use crate::results::{FailureRow, MachineLoad, Path};
use crate::scenario::{Scenario, Variant};
use crate::{LabError, VariantError};

/// What the runs in real time of a variant brought.
pub(super) enum Real {
    /// A file system of the kernel: its speeds, and the run that is to be cut.
    Kernel(Vec<Speed>, Box<RiskVariant>, Box<RecordedRun>),
    /// Ours.
    Ours {
        /// In this process.
        in_process: Vec<Speed>,
        /// By system calls.
        mounted: Vec<Speed>,
    },
    /// A file system of the kernel whose run that was to be cut has failed.
    NotRecorded(Vec<Speed>),
    /// This machine cannot run it, and why.
    LeftOut(String),
}

/// Whether all could be taken away after a run whose results are there.
pub(super) type TakenAway = Result<(), VariantError>;

/// What the runs in real time brought, by variant; each is taken once.
#[derive(Default)]
pub(super) struct Reals {
    by_variant: Mutex<BTreeMap<String, Real>>,
    /// What else the machine did meanwhile.
    pub load: Option<MachineLoad>,
    /// What failed while others brought results.
    pub failures: Vec<FailureRow>,
}

impl Reals {
    pub fn take(&self, variant: &Variant) -> Option<Real> {
        self.by_variant.lock().unwrap_or_else(PoisonError::into_inner).remove(&variant.name)
    }
}

/// Makes the runs in real time that the scenario asks for: none without file systems of the kernel.
/// Whoever watches may stop it between two of them.
pub(super) fn run_all(setting: &Setting, watch: &Watch<'_>) -> Result<Reals, LabError> {
    let files = setting.loads.iter().find_map(|load| load.in_real_time());
    let Some(workload) = files else { return Ok(Reals::default()) };
    let variants = &setting.scenario.variants;
    let mut reals = BTreeMap::new();
    for v in variants {
        if let Some(kernel) = &v.kernel
            && let Err(why) = available(kernel)
        {
            reals.insert(v.name.clone(), Real::LeftOut(why.to_string()));
        }
    }
    let some_kernel = variants.iter().any(|v| v.kernel.is_some() && !reals.contains_key(&v.name));
    if !some_kernel {
        return Ok(Reals { by_variant: Mutex::new(reals), ..Reals::default() });
    }
    let wanted: Vec<&Variant> = variants.iter().filter(|v| !reals.contains_key(&v.name)).collect();
    let before = Load::now();
    let (mut speeds, mut failures) = by_turns(setting, workload, &wanted, watch)?;
    let load = Some(MachineLoad::of(before, Load::now()));
    let scenario = &setting.scenario;
    for v in &wanted {
        if watch.stop.load(Ordering::Relaxed) {
            break;
        }
        let kernels = speeds.contains_key(&(v.name.as_str(), Path::Kernel));
        let has_failed = !kernels && failures.iter().any(|f| f.variant == v.name);
        let mut of = |path: Path| speeds.remove(&(v.name.as_str(), path)).unwrap_or_default();
        let real = match &v.kernel {
            None => Real::Ours { in_process: of(Path::InProcess), mounted: of(Path::Fuse) },
            Some(_) if has_failed => Real::NotRecorded(Vec::new()),
            Some(_) => {
                (watch.progress)(SPEED_SHARE, &format!("{}: recorded in real time", v.name));
                let ran = peer(scenario, v, DiskContents::Before)
                    .and_then(|peer| recorded(&peer, workload).map(|ran| (peer, ran)));
                match ran {
                    Ok((peer, (ran, taken_away))) => {
                        failures.extend(taken_away.err().map(|e| FailureRow::of(v, e)));
                        Real::Kernel(of(Path::Kernel), Box::new(peer), Box::new(ran))
                    }
                    Err(e) => {
                        failures.push(FailureRow::of(v, e));
                        Real::NotRecorded(of(Path::Kernel))
                    }
                }
            }
        };
        reals.insert(v.name.clone(), real);
    }
    Ok(Reals { by_variant: Mutex::new(reals), load, failures })
}

/// About what share of the runs in real time is for the speeds.
const SPEED_SHARE: f64 = 0.7;

/// The speeds of each variant on each of its paths, a run after the other.
type Speeds<'v> = BTreeMap<(&'v str, Path), Vec<Speed>>;

/// Runs every variant on each of its paths, by turns; with what failed. What has failed on a path
/// is not run there again.
fn by_turns<'v>(
    setting: &Setting,
    workload: &FilesWorkload,
    wanted: &[&'v Variant],
    watch: &Watch<'_>,
) -> Result<(Speeds<'v>, Vec<FailureRow>), LabError> {
    let spec = &setting.scenario.workload;
    let short = FilesWorkload {
        run_for: workload.run_for.min(Duration::from_secs_f64(spec.speed_seconds)),
        rounds_least: workload.rounds_least.min(1),
        ..workload.clone()
    };
    let paths = |v: &'v Variant| match v.kernel {
        Some(_) => vec![(v, Path::Kernel)],
        None => vec![(v, Path::InProcess), (v, Path::Fuse)],
    };
    let sides: Vec<(&'v Variant, Path)> = wanted.iter().flat_map(|v| paths(v)).collect();
    let (mut speeds, mut failures) = (Speeds::new(), Vec::new());
    let mut failed = BTreeSet::new();
    let all = sides.len() * spec.speed_runs as usize;
    for turn in 0..spec.speed_runs as usize {
        for i in 0..sides.len() {
            if watch.stop.load(Ordering::Relaxed) {
                return Ok((speeds, failures));
            }
            let (v, path) = sides[(i + turn) % sides.len()];
            if failed.contains(&(&v.name, path)) {
                continue;
            }
            let share = (turn * sides.len() + i) as f64 / all as f64 * SPEED_SHARE;
            (watch.progress)(share, &format!("{}: measured in real time", v.name));
            let ran = match path {
                Path::Kernel => peer(&setting.scenario, v, DiskContents::Before)
                    .and_then(|peer| recorded(&peer, &short))
                    .map(|(ran, taken_away)| (ran.speed, taken_away)),
                Path::InProcess | Path::Fuse => {
                    ours(&setting.scenario, &short, v, path, (MEMORY, DiskContents::Before))
                }
            };
            match ran {
                Ok((speed, taken_away)) => {
                    speeds.entry((&v.name, path)).or_default().push(speed);
                    failures.extend(taken_away.err().map(|e| FailureRow::of(v, e)));
                }
                // Nothing is lost yet.
                Err(e) if speeds.is_empty() => return Err(e.of(v)),
                Err(e) => {
                    failed.insert((&v.name, path));
                    failures.push(FailureRow::of(v, e));
                }
            }
        }
    }
    Ok((speeds, failures))
}

/// A run of the kernel's, recorded.
pub(super) fn recorded(
    peer: &RiskVariant,
    workload: &dyn Workload,
) -> Result<(RecordedRun, TakenAway), VariantError> {
    let (ran, taken_away) = peer.record(workload).map_err(VariantError::Workload)?;
    Ok((ran, taken_away.map_err(VariantError::from)))
}

fn kind_of(kernel: &str) -> Result<KernelFs, VariantError> {
    // Checked where the scenario is read.
    KernelFs::of_name(kernel).ok_or_else(|| VariantError::UnknownKernel(kernel.to_owned()))
}

fn available(kernel: &str) -> Result<(), VariantError> {
    Ok(kind_of(kernel)?.available()?)
}

fn model_of(scenario: &Scenario, device: &str) -> Result<ModelParams, VariantError> {
    let params = scenario.model(device).filter(|model| model.takes_time());
    params.cloned().ok_or_else(|| VariantError::NoModel(device.to_owned()))
}

/// What the disks hold before a file system is made on them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum DiskContents {
    /// What nobody shall see: they were used before.
    Before,
    /// Nothing: whoever measures only does not look.
    Zeros,
}

impl DiskContents {
    fn contents(self, bytes: u64) -> Store {
        match self {
            DiskContents::Before => old_contents(bytes),
            DiskContents::Zeros => Store::new(bytes),
        }
    }
}

/// The kernel's file system that a variant is.
pub(super) fn peer(
    scenario: &Scenario,
    variant: &Variant,
    used: DiskContents,
) -> Result<RiskVariant, VariantError> {
    let disk = model_of(scenario, &variant.disk)?;
    let bytes = disk.build(&variant.disk)?.info().size;
    let journal = variant.journal.as_ref().map(|name| model_of(scenario, name)).transpose()?;
    Ok(RiskVariant::new(&PeerSpec {
        kind: kind_of(variant.kernel.as_deref().unwrap_or_default())?,
        mkfs: variant.mkfs.clone(),
        mount: variant.mount.clone(),
        disk,
        journal,
        old_contents: used.contents(bytes),
    }))
}

/// A modelled device where the kernel has those of its file systems.
struct ExportedDevice {
    // Let go of in this order.
    device: Arc<dyn BlockDevice>,
    exported: LoopExport,
}

impl ExportedDevice {
    /// Recorded, as the kernel's devices are.
    fn new(
        scenario: &Scenario,
        name: &str,
        log: &RecordLog,
        used: DiskContents,
    ) -> Result<ExportedDevice, VariantError> {
        let model: Arc<dyn Model> = model_of(scenario, name)?.build(name)?;
        model.set_contents(used.contents(model.info().size))?;
        let recorded = Record::new(model as Arc<dyn BlockDevice>, log);
        let exported = LoopExport::new(Arc::new(recorded))?;
        let options = FileOptions { direct: Direct::Required, ..FileOptions::default() };
        let device = FileDevice::open(exported.path(), &options)?;
        Ok(ExportedDevice { device: Arc::new(device), exported })
    }

    fn take_away(self) -> Result<(), VariantError> {
        drop(self.device);
        Ok(self.exported.take_away()?)
    }
}

/// Runs the workload on Steadfast's file system with so much page cache, in process or through its
/// mount; nothing is cut. Whether all could be taken away afterwards is beside what it brought.
pub(super) fn ours(
    scenario: &Scenario,
    workload: &dyn Workload,
    variant: &Variant,
    path: Path,
    (memory_bytes, used): (u64, DiskContents),
) -> Result<(Speed, TakenAway), VariantError> {
    let log = RecordLog::new();
    let behind = |name: &String| ExportedDevice::new(scenario, name, &log, used);
    let disk = behind(&variant.disk)?;
    let journal = variant.journal.as_ref().map(behind).transpose()?;
    let journal_device = journal.as_ref().map(|j| Arc::clone(&j.device));
    let scheduler = scenario.scheduler_of(variant);
    let blocks = Blocks::new(Arc::clone(&disk.device), journal_device, scheduler);
    let setup = scenario.setup_of(variant);
    blocks.make(&setup, Contents::UnknownZeroTables, (0, 0))?;
    let fs = blocks.mount(blocks.mount_options(&setup, memory_bytes)?)?;
    // It holds the device, which is to be taken away.
    drop(blocks);
    let own: Arc<dyn FileSystem> = Arc::clone(&fs) as Arc<dyn FileSystem>;
    let mut begin = || disk.device.flush().map_err(CrashError::host);
    let (ran, unmounted) = match path {
        Path::Fuse => {
            let served = FolderMount::new(own)?;
            let ran = HostFs::open(served.path()).map_err(VariantError::from).and_then(|host| {
                let host: Arc<dyn FileSystem> = Arc::new(host);
                workload.run(&host, &log, &mut begin).map_err(VariantError::Workload)
            });
            (ran, served.take_away().map_err(VariantError::from))
        }
        Path::InProcess | Path::Kernel => {
            let ran = workload.run(&own, &log, &mut begin).map_err(VariantError::Workload);
            // It holds the device, which is to be taken away.
            drop(own);
            (ran, Ok(()))
        }
    };
    let written = fs.unmount().map_err(VariantError::Unmount);
    drop(fs);
    // All are taken away, also after one that could not be.
    let gone: Vec<_> = journal.into_iter().chain([disk]).map(ExportedDevice::take_away).collect();
    let gone = gone.into_iter().collect::<Result<(), _>>();
    ran.map(|ran| (ran.speed, unmounted.and(written).and(gone)))
}
