//! Machines in virtual time: modelled devices and Steadfast's file system, in this process.

use std::sync::Arc;

use steadfast_block::BlockDevice;
use steadfast_devices::filter::record::{RecordLog, Recording};
use steadfast_devices::source::Ram;
use steadfast_devices::store::Store;
use steadfast_runtime::{Sim, now};
use steadfast_vfs::FileSystem;

use super::system::{Boot, BootRecovery, System};
use crate::error::Result;

/// A machine whose power can be cut and returned: it knows how to build its devices around given
/// contents and to mount the file system on them.
pub trait RebootTarget: Send + Sync {
    /// Power on with these contents, one for each recorded device in order: builds the devices and
    /// mounts, which recovers. Runs inside a simulation. An error is a refused mount, in words.
    /// With a log, the devices are recorded in it.
    fn power_on(&self, contents: Vec<Store>, log: Option<&RecordLog>) -> Result<BootedMachine>;

    /// What a boot does to the devices before it mounts: for a file system without a journal the
    /// check that repairs what needs nobody. In words, if that was not enough.
    ///
    /// # Errors
    /// Something on this machine failed.
    fn before_mount(&self, contents: Vec<Store>) -> Result<(Vec<Store>, Option<String>)> {
        Ok((contents, None))
    }

    /// Index of the device that holds the file system.
    fn disk(&self) -> usize {
        0
    }

    /// Index of the device that holds an external journal.
    fn journal(&self) -> Option<usize> {
        None
    }

    /// Where its file systems are.
    fn file_systems(&self) -> Vec<FsDevices> {
        vec![FsDevices { disk: self.disk(), journal: self.journal() }]
    }
}

/// The devices of a file system, by their indices.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct FsDevices {
    /// The one that holds it.
    pub disk: usize,
    /// The one that holds its external journal; it need not be there.
    pub journal: Option<usize>,
}

/// A machine that is up.
pub struct BootedMachine {
    /// The mounted file system.
    pub fs: Arc<dyn FileSystem>,
    /// Unmounts and returns the devices' contents.
    pub shut_down: Box<dyn FnOnce() -> Result<Vec<Store>>>,
    /// What the device that holds the file system has now, where that is its disk as it sees it.
    pub disk: Option<Box<dyn Fn() -> Store>>,
}

impl System for Arc<dyn RebootTarget> {
    fn recover(&self, boot: Boot, seed: u64) -> Result<BootRecovery> {
        // OK to index: one for each boot.
        self.recover_all(vec![boot], seed).swap_remove(0)
    }

    /// All in one simulation. Should it stop, each in one of its own.
    fn recover_all(&self, boots: Vec<Boot>, seed: u64) -> Vec<Result<BootRecovery>> {
        let mut ready = Vec::new();
        let mut prepare = |boot: Boot| {
            let (boot, said) = prepared(&**self, boot)?;
            ready.push(boot);
            Ok(said)
        };
        let said: Vec<Result<Option<String>>> = boots.into_iter().map(&mut prepare).collect();
        let mut recovered = simulated(self, ready, seed).into_iter();
        let one = |said: Result<Option<String>>| {
            let mut recovered = said.as_ref().ok().and_then(|_| recovered.next());
            let recovered = recovered.get_or_insert_default();
            recovered.needs_a_person(said?);
            Ok(std::mem::take(recovered))
        };
        said.into_iter().map(one).collect()
    }

    fn record_recovery(&self, contents: Vec<Store>, seed: u64) -> Option<Result<Recording>> {
        let machine = Arc::clone(self);
        let recovery = move || {
            let log = RecordLog::new();
            let booted = machine.power_on(contents, Some(&log))?;
            drop(booted.fs);
            (booted.shut_down)()?;
            Ok::<Recording, crate::CrashError>(log.take())
        };
        let ran = Sim::new(seed).run(recovery);
        Some(match ran {
            Ok(ran) => ran.map_err(|why| format!("the mount was refused: {why}").into()),
            Err(stuck) => Err(format!("recovery stopped: {stuck}").into()),
        })
    }

    fn file_systems(&self) -> Vec<FsDevices> {
        RebootTarget::file_systems(&**self)
    }
}

/// Does what a boot does before it mounts.
fn prepared(machine: &dyn RebootTarget, mut boot: Boot) -> Result<(Boot, Option<String>)> {
    let (contents, said) = machine.before_mount(std::mem::take(&mut boot.contents))?;
    boot.contents = contents;
    Ok((boot, said))
}

/// Boots, in one simulation; if that stops, each in one of its own.
fn simulated(machine: &Arc<dyn RebootTarget>, boots: Vec<Boot>, seed: u64) -> Vec<BootRecovery> {
    let (each, inner) = (boots.clone(), Arc::clone(machine));
    let all = move || boots.into_iter().map(|boot| booted(&*inner, boot)).collect();
    match Sim::new(seed).run(all) {
        Ok(recovered) => recovered,
        Err(stuck) if each.len() == 1 => {
            vec![BootRecovery::refused(format!("recovery stopped: {stuck}"))]
        }
        Err(_) => each.into_iter().flat_map(|boot| simulated(machine, vec![boot], seed)).collect(),
    }
}

/// Boots, in the caller's simulation.
fn booted(machine: &dyn RebootTarget, boot: Boot) -> BootRecovery {
    let Boot { contents, look, then } = boot;
    let power_on = now();
    let BootedMachine { fs, shut_down, disk } = match machine.power_on(contents, None) {
        Ok(up) => up,
        Err(why) => return BootRecovery::refused(format!("the mount was refused: {why}")),
    };
    let mut recovered = BootRecovery { time: now() - power_on, ..BootRecovery::default() };
    look(&*fs, disk.map(|disk| disk()));
    drop(fs);
    match shut_down() {
        Ok(contents) => recovered.contents = Some(contents),
        Err(why) => recovered
            .damage
            .push(format!("the recovered file system could not be unmounted: {why}")),
    }
    if let (Some(then), Some(contents)) = (then, &recovered.contents) {
        match machine.power_on(contents.clone(), None) {
            Ok(BootedMachine { fs, shut_down, .. }) => {
                then(&*fs, None);
                drop(fs);
                // What it leaves is of no interest.
                let _ = shut_down();
            }
            Err(why) => recovered.damage.push(format!("it cannot be mounted again: {why}")),
        }
    }
    recovered
}

/// What the structure check finds on a recovered disk, in words.
pub fn structure(disk: &Store) -> Vec<String> {
    let device: Arc<dyn BlockDevice> = Arc::new(Ram::from_store("recovered disk", disk.snapshot()));
    structure_on(&device)
}

/// The same on the device that holds it.
pub fn structure_on(device: &Arc<dyn BlockDevice>) -> Vec<String> {
    match steadfast_ext4_check::check(device, None) {
        Ok(report) => report.findings.iter().map(|f| f.to_string()).collect(),
        Err(e) => vec![format!("the structure check failed: {e}")],
    }
}
