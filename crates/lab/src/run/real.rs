//! Runs in real time: the kernel's file systems, and ours beside them for the speed.
//!
//! A run in virtual time is not charged for what its code takes, and the kernel's is. So where a
//! scenario has file systems of the kernel and they can be run, Steadfast's speed is taken in real
//! time too, on the same modelled devices behind the same loop devices: in process, and mounted,
//! by system calls as the kernel's. Each is run several times by turns, one at a time, beginning
//! with another each time, so that what else the machine does meets all of them. Then the kernel's,
//! and those of ours that are mounted by FUSE for their cuts, are run once more, at full length, to
//! be cut.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use steadfast_block::BlockDevice;
use steadfast_crash::CrashError;
use steadfast_crash::risk::{Speed, old_contents};
use steadfast_devices::filter::record::{Record, RecordLog};
use steadfast_devices::model::{Model, ModelParams};
use steadfast_devices::source::file::{Direct, FileDevice, FileOptions};
use steadfast_devices::store::Store;
use steadfast_ext4_mkfs::Contents;
use steadfast_peers::{Begin, FolderMount, LoopExport, Peer, PeerRecording, fuse_options};
use steadfast_setup::Blocks;
use steadfast_statistics::load::Load;
use steadfast_vfs::{FileSystem, HostFs};

use super::on_stack::kernel_fs;
use super::reals::{MEMORY, Real, Reals, TakenAway};
use super::setting::{Setting, Watch};
use super::workload::RealRuns;
use crate::results::{FailureRow, MachineLoad, Path};
use crate::scenario::{Scenario, Variant};
use crate::{LabError, Result, VariantError};

/// Makes the runs in real time that the scenario asks for: none where all are cut in virtual time.
/// Whoever watches may stop it between two of them.
pub(super) fn run_all(setting: &Setting, watch: &Watch<'_>) -> Result<Reals, LabError> {
    let (scenario, spec) = (&setting.scenario, &setting.scenario.workload);
    let work = setting.loads.iter().find_map(|load| load.in_real_time(spec));
    let Some(RealRuns { measured, cut }) = work.filter(|_| setting.options.real.is_none()) else {
        return Ok(Reals::default());
    };
    let variants = &scenario.variants;
    let mut reals = BTreeMap::new();
    for v in variants {
        let can_run = match (&v.kernel, &v.fuse) {
            (Some(kernel), _) => kernel_fs(kernel).and_then(|fs| Ok(fs.available()?)),
            (None, Some(_)) => FolderMount::available().map_err(VariantError::from),
            (None, None) => Ok(()),
        };
        if let Err(why) = can_run {
            reals.insert(v.name.clone(), Real::LeftOut(why.to_string()));
        }
    }
    let is_real = |v: &Variant| v.is_cut_in_real_time() && !reals.contains_key(&v.name);
    if !variants.iter().any(is_real) {
        return Ok(Reals { by_variant: Mutex::new(reals), ..Reals::default() });
    }
    let wanted: Vec<&Variant> = variants.iter().filter(|v| !reals.contains_key(&v.name)).collect();
    let before = Load::now();
    let sides: Vec<(&Variant, Path)> = wanted.iter().flat_map(|v| paths(v)).collect();
    let used = (MEMORY, DiskContents::Before);
    let progress = |done: f64, what: &str| (watch.progress)(done * SPEED_SHARE, what);
    let of_speed = Watch { progress: &progress, stop: watch.stop };
    let turns = by_turns(&sides, spec.speed_runs as usize, &of_speed, |side| {
        let (v, path) = sides[side];
        let (ran, taken_away) = match path {
            Path::Kernel => {
                let (_, (.., ran), taken_away) = kernels(scenario, v, used.1, &*measured)?;
                (ran, taken_away)
            }
            Path::InProcess | Path::Fuse => {
                let ((.., ran), taken_away) = ours(scenario, v, path, used, &*measured)?;
                (ran, taken_away)
            }
        };
        let (ran, note) = ran;
        Ok(((ran.speed, note.map(|note| format!("{}: {note}", path.name()))), taken_away))
    });
    let Turns { rows, mut failures } = turns?;
    let mut speeds: BTreeMap<usize, Vec<Speed>> = BTreeMap::new();
    let mut notes = BTreeSet::new();
    for ((side, _), (speed, note)) in rows {
        speeds.entry(side).or_default().push(speed);
        notes.extend(note.map(|note| format!("{}, {note}", sides[side].0.name)));
    }
    let load = Some(MachineLoad::of(before, Load::now()));
    for v in &wanted {
        if watch.stop.load(Ordering::Relaxed) {
            break;
        }
        let mut of = |path: Path| {
            let side = sides.iter().position(|(of, on)| of.name == v.name && *on == path);
            side.and_then(|side| speeds.remove(&side)).unwrap_or_default()
        };
        let real = match &v.kernel {
            None => {
                let (in_process, mounted) = (of(Path::InProcess), of(Path::Fuse));
                let has_failed = mounted.is_empty() && failures.iter().any(|f| f.variant == v.name);
                let cut = (v.fuse.is_some() && !has_failed).then(|| {
                    (watch.progress)(SPEED_SHARE, &format!("{}: recorded in real time", v.name));
                    let ran = ours(scenario, v, Path::Fuse, used, &*cut);
                    let ran = ran.map(|((bases, recording, (ran, _)), taken_away)| {
                        failures.extend(taken_away.err().map(|e| FailureRow::of(v, e)));
                        Box::new((bases, recording, ran).into())
                    });
                    ran.map_err(|e| failures.push(FailureRow::of(v, e))).ok()
                });
                Real::Ours { in_process, mounted, cut: cut.flatten() }
            }
            Some(_) => {
                let speeds = of(Path::Kernel);
                let has_failed = speeds.is_empty() && failures.iter().any(|f| f.variant == v.name);
                if has_failed || !v.run.risk() {
                    Real::Kernel(speeds, None)
                } else {
                    (watch.progress)(SPEED_SHARE, &format!("{}: recorded in real time", v.name));
                    let ran = kernels(scenario, v, DiskContents::Before, &*cut);
                    let ran = ran.map(|(peer, (bases, recording, (ran, _)), taken_away)| {
                        failures.extend(taken_away.err().map(|e| FailureRow::of(v, e)));
                        (peer, Box::new((bases, recording, ran).into()))
                    });
                    let ran = ran.map_err(|e| failures.push(FailureRow::of(v, e)));
                    Real::Kernel(speeds, ran.ok())
                }
            }
        };
        reals.insert(v.name.clone(), real);
    }
    Ok(Reals { by_variant: Mutex::new(reals), load, failures, notes })
}

/// How long the devices may be busy before a run begins.
const REST: Duration = Duration::from_secs(60);

/// About what share of the runs in real time is for the speeds.
const SPEED_SHARE: f64 = 0.7;

/// The paths on which a variant is measured.
fn paths(v: &Variant) -> Vec<(&Variant, Path)> {
    match (&v.kernel, &v.fuse) {
        (Some(_), _) => vec![(v, Path::Kernel)],
        (None, Some(_)) => vec![(v, Path::Fuse)],
        (None, None) => vec![(v, Path::InProcess), (v, Path::Fuse)],
    }
}

/// What runs by turns brought.
pub(super) struct Turns<T> {
    /// By side and turn.
    pub rows: BTreeMap<(usize, usize), T>,
    pub failures: Vec<FailureRow>,
}

/// Runs each side so often, by turns, one at a time, beginning with another each time, until
/// somebody wants to stop. What has failed on a side is not run there again.
pub(super) fn by_turns<T>(
    sides: &[(&Variant, Path)],
    runs: usize,
    watch: &Watch<'_>,
    run: impl Fn(usize) -> Result<(T, TakenAway)>,
) -> Result<Turns<T>, LabError> {
    let mut turns = Turns { rows: BTreeMap::new(), failures: Vec::new() };
    let mut failed = BTreeSet::new();
    let all = runs * sides.len();
    for number in 0..all {
        let (turn, i) = (number / sides.len(), number % sides.len());
        let side = (i + turn) % sides.len();
        if watch.stop.load(Ordering::Relaxed) {
            break;
        }
        if failed.contains(&side) {
            continue;
        }
        let (v, path) = sides[side];
        let what = format!("{}: {} in real time", v.name, path.name());
        (watch.progress)(number as f64 / all as f64, &what);
        match run(side) {
            Ok((row, taken_away)) => {
                turns.rows.insert((side, turn), row);
                turns.failures.extend(taken_away.err().map(|e| FailureRow::of(v, e)));
            }
            // Nothing is lost yet.
            Err(e) if turns.rows.is_empty() => return Err(e.of(v)),
            Err(e) => {
                failed.insert(side);
                turns.failures.push(FailureRow::of(v, e));
            }
        }
    }
    Ok(turns)
}

fn model_of(scenario: &Scenario, device: &str) -> Result<ModelParams> {
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

/// A run on the kernel's file system that a variant is, recorded; what recovers it, and whether
/// all could be taken away.
pub(super) fn kernels<T>(
    scenario: &Scenario,
    variant: &Variant,
    used: DiskContents,
    work: impl FnOnce(&Arc<dyn FileSystem>, &RecordLog, Begin<'_>) -> steadfast_crash::Result<T>,
) -> Result<(Peer, PeerRecording<T>, TakenAway)> {
    let disk = model_of(scenario, &variant.stack.disk)?;
    let before = used.contents(disk.build(&variant.stack.disk)?.info().size);
    let mut devices = vec![disk];
    if let Some(journal) = &variant.stack.journal {
        devices.push(model_of(scenario, journal)?);
    }
    let kernel = kernel_fs(variant.kernel.as_deref().unwrap_or_default())?;
    let peer = Peer::on_models(kernel, (&variant.stack.mkfs, &variant.stack.mount), devices);
    let (ran, taken_away) = peer.record(before, work)?;
    Ok((peer, ran, taken_away.map_err(VariantError::from)))
}

/// A modelled device where the kernel has those of its file systems.
struct ExportedDevice {
    // Let go of in this order.
    device: Arc<dyn BlockDevice>,
    exported: LoopExport,
    model: Arc<dyn Model>,
}

impl ExportedDevice {
    /// Recorded, as the kernel's devices are.
    fn new(
        scenario: &Scenario,
        name: &str,
        log: &RecordLog,
        used: DiskContents,
    ) -> Result<ExportedDevice> {
        let model: Arc<dyn Model> = model_of(scenario, name)?.build(name)?;
        model.set_contents(used.contents(model.info().size))?;
        let recorded = Record::new(Arc::clone(&model) as Arc<dyn BlockDevice>, log);
        let exported = LoopExport::new(Arc::new(recorded))?;
        let options = FileOptions { direct: Direct::Required, ..FileOptions::default() };
        let device = FileDevice::open(exported.path(), &options)?;
        Ok(ExportedDevice { device: Arc::new(device), exported, model })
    }

    fn take_away(self) -> Result<()> {
        drop(self.device);
        Ok(self.exported.take_away()?)
    }
}

/// Does something on Steadfast's file system with so much page cache, in process or through its
/// mount, recorded from where it says on. Whether all could be taken away afterwards is beside what
/// it brought.
pub(super) fn ours<T>(
    scenario: &Scenario,
    variant: &Variant,
    path: Path,
    (memory_bytes, used): (u64, DiskContents),
    work: impl FnOnce(&Arc<dyn FileSystem>, &RecordLog, Begin<'_>) -> steadfast_crash::Result<T>,
) -> Result<(PeerRecording<T>, TakenAway)> {
    let log = RecordLog::new();
    let behind = |name: &String| ExportedDevice::new(scenario, name, &log, used);
    let disk = behind(&variant.stack.disk)?;
    let journal = variant.stack.journal.as_ref().map(behind).transpose()?;
    let journal_device = journal.as_ref().map(|j| Arc::clone(&j.device));
    let setup = scenario.setup_of(variant);
    let scheduler = setup.scheduler.as_ref();
    let blocks = Blocks::new(Arc::clone(&disk.device), journal_device, scheduler);
    blocks.make(&setup, Contents::UnknownZeroTables, (0, 0))?;
    let fs = blocks.mount(setup.mount_options(memory_bytes)?)?;
    // It holds the device, which is to be taken away.
    drop(blocks);
    let own: Arc<dyn FileSystem> = Arc::clone(&fs) as Arc<dyn FileSystem>;
    let mut bases = Vec::new();
    let mut begin = |mounted: Option<&std::path::Path>| -> steadfast_crash::Result<()> {
        // sync(2), by which the workload makes its preparation durable, does not reach a mount by
        // FUSE.
        mounted.map_or(Ok(()), sync_each).map_err(CrashError::host)?;
        bases = begin_anew([Some(&disk), journal.as_ref()], &log)?;
        Ok(())
    };
    let (ran, unmounted) = match path {
        Path::Fuse => {
            let options = fuse_options(variant.fuse.as_deref().unwrap_or_default())?;
            let served = FolderMount::with_options(own, &options)?;
            let ran = HostFs::open(served.path()).map_err(VariantError::from).and_then(|host| {
                let host: Arc<dyn FileSystem> = Arc::new(host);
                Ok(work(&host, &log, &mut || begin(Some(served.path())))?)
            });
            (ran, served.take_away().map_err(VariantError::from))
        }
        Path::InProcess | Path::Kernel => {
            let ran = work(&own, &log, &mut || begin(None)).map_err(VariantError::from);
            // It holds the device, which is to be taken away.
            drop(own);
            (ran, Ok(()))
        }
    };
    let recording = log.take();
    let written = fs.unmount().map_err(VariantError::Unmount);
    drop(fs);
    // All are taken away, also after one that could not be.
    let gone: Vec<_> = journal.into_iter().chain([disk]).map(ExportedDevice::take_away).collect();
    let gone = gone.into_iter().collect::<Result<(), _>>();
    ran.map(|ran| ((bases, recording, ran), unmounted.and(written).and(gone)))
}

/// fsync of a folder and all that is in it: those do reach the file system.
fn sync_each(folder: &std::path::Path) -> std::io::Result<()> {
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        match entry.file_type()? {
            kind if kind.is_dir() => sync_each(&entry.path())?,
            kind if kind.is_file() => std::fs::File::open(entry.path())?.sync_all()?,
            _ => {}
        }
    }
    std::fs::File::open(folder)?.sync_all()
}

/// Makes durable what the devices were asked so far: what they hold then, and only what follows is
/// in the record.
fn begin_anew(
    devices: [Option<&ExportedDevice>; 2],
    log: &RecordLog,
) -> steadfast_crash::Result<Vec<Store>> {
    let begun = Instant::now();
    loop {
        let devices = || devices.into_iter().flatten();
        for device in devices() {
            device.device.flush().map_err(CrashError::host)?;
        }
        let contents = || devices().map(|device| device.model.contents()).collect();
        if let Some(bases) = log.begin_anew(contents) {
            return Ok(bases);
        }
        if begun.elapsed() > REST {
            let why = format!("the devices were not at rest within {} s", REST.as_secs());
            return Err(CrashError::host(why));
        }
        std::thread::sleep(Duration::from_millis(10));
    }
}
