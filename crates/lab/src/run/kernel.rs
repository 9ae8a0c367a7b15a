//! One of the kernel's file systems under the workload of files: in real time, on the same modelled
//! device, cut and judged as ours is.

use std::sync::{Mutex, PoisonError};

use steadfast_crash::risk::{FilesWorkload, Peer, PeerKind, PeerSpec, explore_peer, old_contents};
use steadfast_peers::{AtRisk, KernelFs};

use super::files::cut_honest_and_lying;
use super::{Outcome, Report, Setting};
use crate::scenario::Variant;

/// Held while a peer is measured: two at a time would measure each other. Of the world outside: the
/// measured peer is in real time.
static MEASURED: Mutex<()> = Mutex::new(());

/// Runs the workload on the kernel's file system `kernel`, cuts it, and counts what the cuts take.
/// Left out where this machine cannot run it.
pub(super) fn run(
    setting: &Setting,
    workload: &FilesWorkload,
    variant: &Variant,
    kernel: &str,
    report: &Report,
) -> Result<Outcome, String> {
    // Both are checked where the scenario is read.
    let kind = PeerKind::of(kernel).ok_or_else(|| format!("kernel = '{kernel}' is not known"))?;
    let disk = setting.scenario.devices[&variant.disk].model();
    let disk = disk.ok_or("a variant with 'kernel' needs a modelled disk")?;
    if let Err(why) = KernelFs::from(kind).available() {
        return Ok(Outcome::LeftOut(why.to_string()));
    }
    let bytes = disk.build(&variant.disk).map_err(|e| e.to_string())?.info().size;
    let peer = AtRisk::new(&PeerSpec {
        kind,
        mkfs: variant.mkfs.clone(),
        mount: variant.mount.clone(),
        disk,
        old_contents: old_contents(bytes),
    });
    let ran = {
        let _alone = MEASURED.lock().unwrap_or_else(PoisonError::into_inner);
        peer.record(workload)?
    };
    Ok(cut_honest_and_lying(setting, variant, ran, report, &|recorded, plan, progress| {
        explore_peer(&peer, &recorded, plan, progress)
    }))
}
