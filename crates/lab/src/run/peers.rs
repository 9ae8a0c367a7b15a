//! The kernel's ext4 under the scenario's benchmark, and ours beside it: in real time, on the same
//! modelled devices.
//!
//! The main comparison is in virtual time, where the kernel cannot be. Here both are mounted, the
//! kernel's on a loop device over the model, ours by FUSE on the same kind of loop device, and run
//! by turns, beginning with another each time. The files are small and the disks scaled down, or it
//! would take hours; and IOzone does not pause for two seconds after each test.

use std::collections::BTreeMap;
use std::sync::Arc;

use steadfast_bench::iozone::{self, Surroundings};
use steadfast_crash::CrashError;
use steadfast_devices::filter::record::RecordLog;
use steadfast_devices::model::ModelParams;
use steadfast_peers::{Begin, KernelFs};
use steadfast_setup::DeviceSpec;
use steadfast_statistics::load::Load;
use steadfast_vfs::FileSystem;

use super::measured;
use super::real::{DiskContents, Turns, by_turns, kernels, ours};
use super::reals::TakenAway;
use super::setting::{Setting, Watch};
use crate::results::{FailureRow, MachineLoad, Note, Path, PeerRow, SpeedRow, Spread, distinct};
use crate::scenario::{RunKind, Scenario, Variant, iozone_options, matrix_options};
use crate::{LabError, OptionError, Result, ScenarioError};

/// How long IOzone pauses after each test, instead of two seconds.
const SETTLE_MS: u64 = 100;

/// What the runs of the peers brought.
#[derive(Default)]
pub(super) struct Peers {
    pub rows: Vec<PeerRow>,
    pub failures: Vec<FailureRow>,
    pub load: Option<MachineLoad>,
    pub notes: Vec<Note>,
}

/// Looks whether this machine can run the kernel's file systems of a scenario.
pub(super) fn available(scenario: &Scenario, option: &'static str) -> Result<(), LabError> {
    for kernel in scenario.variants.iter().filter_map(|v| v.kernel.as_deref()) {
        let unknown = || OptionError::UnknownKernel(kernel.to_owned());
        let fs = KernelFs::of_name(kernel).ok_or_else(unknown);
        fs.and_then(|fs| Ok(fs.available()?)).map_err(|why| why.of(option))?;
    }
    Ok(())
}

/// Looks whether the peers that were asked for can be run.
pub(super) fn check(scenario: &Scenario) -> Result<(), LabError> {
    let wrong = |why: OptionError| why.of("--peers");
    if !scenario.variants.iter().any(|v| v.run == RunKind::Peer) {
        return Err(wrong(OptionError::NoPeers));
    }
    available(scenario, "--peers")?;
    for (name, device) in scaled(scenario).topology.devices {
        let scale = scenario.workload.peers_scale;
        let of = |why| wrong(OptionError::Device { device: name, scale, why });
        device.model().map_or(Ok(()), ModelParams::check).map_err(of)?;
    }
    Ok(())
}

/// Runs the kernel's variants, and those of ours that have the same devices and mount options, by
/// turns. Whoever watches may stop it between two runs.
pub(super) fn run_all(setting: &Setting, watch: &Watch<'_>) -> Result<Peers, LabError> {
    if !setting.options.peers {
        return Ok(Peers::default());
    }
    let scenario = scaled(&setting.scenario);
    let sides = sides(&scenario);
    let lines = sides.iter().map(|v| workload(&scenario, v)).collect::<Result<Vec<_>, _>>()?;
    let before = Load::now();
    let runs = scenario.workload.speed_runs as usize;
    let on: Vec<(&Variant, Path)> = sides.iter().map(|v| (*v, path_of(v))).collect();
    let run = |side: usize| one(setting, &scenario, &lines[side], sides[side]);
    let Turns { rows, failures } = by_turns(&on, runs, watch, run)?;
    let mut commands: Vec<&str> = lines.iter().map(|o| o.command_line.as_str()).collect();
    commands.dedup();
    let load = MachineLoad::of(before, Load::now());
    let note = format!(
        "Peers: {runs} runs of each by turns, in real time, all mounted: `{}` with a rest of \
         {SETTLE_MS} ms after each test, on disks of 1/{} of their capacity. {load}",
        commands.join("` and `"),
        scenario.workload.peers_scale,
    );
    let rows = peer_rows(&sides, runs, &rows);
    Ok(Peers { rows, failures, load: Some(load), notes: vec![Note::remark(note)] })
}

/// The scenario with its disks scaled down.
fn scaled(scenario: &Scenario) -> Scenario {
    let mut scaled = scenario.clone();
    for device in scaled.topology.devices.values_mut().filter_map(DeviceSpec::model_mut) {
        *device = device.scaled(1, scenario.workload.peers_scale);
    }
    scaled
}

/// The benchmark at the size of the peers.
fn workload(scenario: &Scenario, variant: &Variant) -> Result<iozone::Options, LabError> {
    let wrong = |why: ScenarioError| why.of(scenario);
    if let Some(lines) = scenario.workload.lines_of(variant) {
        let line = lines.peers.ok_or_else(|| wrong(ScenarioError::NoPeersLine))?;
        return matrix_options(line).map_err(|e| wrong(e.into()));
    }
    let line = scenario.workload.iozone.as_deref().unwrap_or_default();
    let size = scenario.workload.peers_size.as_deref();
    let mut options = iozone_options(line, size).map_err(|e| wrong(e.into()))?;
    options.settle_ms = SETTLE_MS;
    Ok(options)
}

/// The variants of the kernel's, each after ours on the same devices with the same options.
fn sides(scenario: &Scenario) -> Vec<&Variant> {
    let variants = || scenario.variants.iter();
    let same = |a: &Variant, b: &Variant| {
        let of = |v: &Variant| {
            let on = v.stack.clone();
            (on.disk, on.journal, on.mount, v.configuration.clone())
        };
        of(a) == of(b)
    };
    let kernels: Vec<&Variant> = variants().filter(|v| v.run == RunKind::Peer).collect();
    let ours = variants().filter(|v| v.run.speed() && kernels.iter().any(|k| same(k, v)));
    ours.chain(kernels.iter().copied()).collect()
}

fn path_of(variant: &Variant) -> Path {
    if variant.kernel.is_some() { Path::Kernel } else { Path::Fuse }
}

/// One run of one variant, and whether all was taken away after it.
fn one(
    setting: &Setting,
    scenario: &Scenario,
    iozone: &iozone::Options,
    variant: &Variant,
) -> Result<(Vec<SpeedRow>, TakenAway)> {
    let surroundings = Surroundings { repeat_data: true, ..Surroundings::default() };
    let run = |fs: &Arc<dyn FileSystem>, log: &RecordLog, _: Begin<'_>| {
        // Nothing of it is cut: what the devices are asked need not be kept.
        log.pause(true);
        let ran = measured::iozone(Arc::clone(fs), iozone, &surroundings, None);
        ran.map_err(CrashError::host)
    };
    let (ran, taken_away) = match variant.kernel {
        Some(_) => {
            let (_, (.., ran), away) = kernels(scenario, variant, DiskContents::Zeros, run)?;
            (ran, away)
        }
        None => {
            let memory = setting.page_cache_bytes(iozone, variant);
            let used = (memory, DiskContents::Zeros);
            let ((.., ran), away) = ours(scenario, variant, Path::Fuse, used, run)?;
            (ran, away)
        }
    };
    Ok((ran.rows(scenario, variant), taken_away))
}

/// A row a test and variant: the speed over the runs, and run by run that over the first variant of
/// the same file system.
fn peer_rows(
    sides: &[&Variant],
    runs: usize,
    rows: &BTreeMap<(usize, usize), Vec<SpeedRow>>,
) -> Vec<PeerRow> {
    let of = |side: usize, turn: usize, test: &str| -> Option<f64> {
        let rows = rows.get(&(side, turn))?;
        rows.iter().find(|r| r.test == test).map(|r| r.kb_per_s)
    };
    let mut peer_rows = Vec::new();
    for (test, figure) in distinct(rows.values().flatten().map(|r| (&r.test, r.figure))) {
        for (side, v) in sides.iter().enumerate() {
            let first = sides.iter().position(|s| s.kernel.is_some() == v.kernel.is_some());
            let first = first.unwrap_or(side);
            let speeds: Vec<f64> = (0..runs).filter_map(|turn| of(side, turn, test)).collect();
            let ratios: Vec<f64> = (0..runs)
                .filter_map(|turn| Some(of(side, turn, test)? / of(first, turn, test)?))
                .collect();
            peer_rows.push(PeerRow {
                test: test.clone(),
                variant: v.name.clone(),
                figure,
                path: path_of(v),
                kb_per_s: Spread::of(&speeds),
                baseline: sides[first].name.clone(),
                ratio: (first != side).then(|| Spread::of(&ratios)),
            });
        }
    }
    peer_rows
}
