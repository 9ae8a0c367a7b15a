//! The kernel's file systems under the workload of files: in real time, on the same modelled device,
//! cut and judged as ours is.
//!
//! They are measured one after the other while nothing else runs; cut they are later, beside the
//! other set-ups.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use steadfast_crash::risk::{
    FilesWorkload, Peer, PeerKind, PeerSpec, RecordedRun, explore_peer, old_contents,
};
use steadfast_peers::{AtRisk, KernelFs};

use super::files::cut_honest_and_lying;
use super::{Outcome, Report, Setting};
use crate::LabError;
use crate::scenario::{Scenario, Variant};

/// How much of a run's progress measuring the peers is.
const SHARE: f64 = 0.3;

/// A peer that was measured, or why it was not.
enum Measured {
    Ran(Box<(AtRisk, RecordedRun)>),
    LeftOut(String),
}

/// The peers of a scenario by the index of their variant, until they are cut.
#[derive(Default)]
pub(super) struct Peers(Mutex<BTreeMap<usize, Measured>>);

impl Peers {
    /// Measures all of them.
    pub fn measure(
        scenario: &Scenario,
        workload: &FilesWorkload,
        progress: &dyn Fn(f64, &str),
    ) -> Result<Peers, LabError> {
        let variants = scenario.variants.iter().enumerate();
        let kernel = |(i, v): (usize, _)| {
            let v: &Variant = v;
            v.kernel.as_deref().map(|kernel| (i, v, kernel))
        };
        let peers: Vec<_> = variants.filter_map(kernel).collect();
        let mut measured = BTreeMap::new();
        for (done, (i, variant, kernel)) in peers.iter().enumerate() {
            let share = SHARE * done as f64 / peers.len() as f64;
            progress(share, &format!("{}: measured in real time", variant.name));
            let outcome = measure(scenario, workload, variant, kernel);
            let failed = |what| LabError::Variant { variant: variant.name.clone(), what };
            measured.insert(*i, outcome.map_err(failed)?);
        }
        Ok(Peers(Mutex::new(measured)))
    }

    /// The share of a run's progress that is behind it when they have been measured.
    pub fn share(&self) -> f64 {
        if self.lock().is_empty() { 0.0 } else { SHARE }
    }

    // A panic in a job ends the run.
    fn lock(&self) -> std::sync::MutexGuard<'_, BTreeMap<usize, Measured>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Cuts a peer's run and counts what the cuts take. Left out where this machine cannot run it.
    pub fn cut(
        &self,
        setting: &Setting,
        variant: usize,
        report: &Report,
    ) -> Result<Outcome, String> {
        let measured = self.lock().remove(&variant);
        let variant = &setting.scenario.variants[variant];
        match measured.ok_or("it was not measured")? {
            Measured::LeftOut(why) => Ok(Outcome::LeftOut(why)),
            Measured::Ran(peer_and_run) => {
                let (peer, ran) = *peer_and_run;
                Ok(cut_honest_and_lying(setting, variant, ran, report, &|recorded, plan, done| {
                    explore_peer(&peer, &recorded, plan, done)
                }))
            }
        }
    }
}

/// Runs the workload on one of the kernel's file systems.
fn measure(
    scenario: &Scenario,
    workload: &FilesWorkload,
    variant: &Variant,
    kernel: &str,
) -> Result<Measured, String> {
    // Both are checked where the scenario is read.
    let kind = PeerKind::of(kernel).ok_or_else(|| format!("kernel = '{kernel}' is not known"))?;
    let disk = scenario.devices[&variant.disk].model();
    let disk = disk.ok_or("a variant with 'kernel' needs a modelled disk")?;
    if let Err(why) = KernelFs::from(kind).available() {
        return Ok(Measured::LeftOut(why.to_string()));
    }
    let bytes = disk.build(&variant.disk).map_err(|e| e.to_string())?.info().size;
    let peer = AtRisk::new(&PeerSpec {
        kind,
        mkfs: variant.mkfs.clone(),
        mount: variant.mount.clone(),
        disk,
        old_contents: old_contents(bytes),
    });
    let ran = peer.record(workload)?;
    Ok(Measured::Ran(Box::new((peer, ran))))
}
