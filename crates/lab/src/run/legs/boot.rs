//! A variant's volume after a cut: assembled, its RAM disk recreated, resynced.

use std::sync::Arc;

use bytes::Bytes;
use steadfast_block::BlockDevice;
use steadfast_crash::explore::StackMachine;
use steadfast_devices::source::Ram;
use steadfast_devices::store::Store;
use steadfast_setup::mirrors::Leg as PeerLeg;
use steadfast_setup::{Devices, OpenVolumes, Volumes, peer_setup};
use steadfast_volume::{
    AssembleOptions, LegState, Mirror, Policies, ReadPolicy, ResyncThrottle, assemble,
};

use super::is_kept;
use super::judge::{BLOCK, Leg};
use crate::Result;

type Device = Arc<dyn BlockDevice>;

/// The volume after a boot.
pub struct BootedVolume {
    /// Reads a block of it.
    pub read: Leg,
    /// The same of each leg that keeps its contents and is in use.
    pub legs: Vec<Leg>,
    /// A person had to do something before all legs were in use.
    pub by_hand: bool,
}

/// What a device holds now, block by block.
fn reads(device: &dyn BlockDevice, blocks: u64) -> Leg {
    let all: Vec<Option<Bytes>> =
        (0..blocks).map(|block| device.read(block * BLOCK, BLOCK).ok()).collect();
    Box::new(move |at| all.get((at / BLOCK) as usize).cloned().flatten())
}

/// Boots with these contents, and without the device `away`; of so many blocks is read what is
/// there. `None`: nothing that could be read, and a person must decide.
pub fn boot(
    machine: &StackMachine,
    contents: Vec<Store>,
    away: Option<usize>,
    blocks: u64,
) -> Result<Option<BootedVolume>> {
    let devices = Devices::build(&machine.setup)?;
    for (device, contents) in devices.all().zip(contents) {
        // What is memory is blank.
        if is_kept(&**device) {
            device.set_contents(contents)?;
        }
    }
    let all: Vec<Device> = devices.all().map(|d| Arc::clone(d) as Device).collect();
    let volume = machine.setup.topology.volumes.get(&machine.setup.disk);
    let Some(spec) = volume else {
        let none = Arc::new(Ram::new("away", 512)) as Device;
        let disk = if away == Some(0) { &none } else { &all[0] };
        let read = reads(&**disk, blocks);
        return Ok(Some(BootedVolume { read, legs: Vec::new(), by_hand: false }));
    };
    if let Some(model) = spec.model {
        let leg = |(n, device): (usize, &Device)| PeerLeg {
            device: (away != Some(n)).then(|| Arc::clone(device)),
            in_memory: !is_kept(&**device),
        };
        let legs = all.iter().enumerate().map(leg).collect();
        let setup = peer_setup(spec, &all);
        let Ok(up) = model.boot(legs, setup) else { return Ok(None) };
        let kept = up.legs.into_iter().zip(&all).filter(|(_, device)| is_kept(&***device));
        let legs = kept.filter_map(|(leg, _)| Some(reads(&*leg?, blocks))).collect();
        let read = reads(&*up.volume, blocks);
        return Ok(Some(BootedVolume { read, legs, by_hand: up.by_hand }));
    }
    ours(&devices, &all, away, blocks)
}

/// Our own: as it would be by itself, and where that is refused, as somebody says.
fn ours(
    devices: &Devices,
    all: &[Device],
    away: Option<usize>,
    blocks: u64,
) -> Result<Option<BootedVolume>> {
    let present: Vec<Device> =
        (0..all.len()).filter(|n| away != Some(*n)).map(|n| Arc::clone(&all[n])).collect();
    let mut by_hand = false;
    let mut assembled = assemble(&present, &AssembleOptions::default());
    if !assembled.problems.is_empty() {
        by_hand = true;
        let options = AssembleOptions { degraded: true, ..AssembleOptions::default() };
        assembled = assemble(&present, &options);
    }
    if assembled.volumes.is_empty() {
        return Ok(None);
    }
    // In the place of one that is away: nobody asks it.
    let dead: Device = Arc::new(Ram::new("away", 512));
    let there = |n: usize| if away == Some(n) { Arc::clone(&dead) } else { Arc::clone(&all[n]) };
    let each: Vec<Device> = (0..all.len()).map(there).collect();
    let mut open = OpenVolumes::with(assembled);
    let volume = devices.open_disk(&each, Volumes::Found, &mut open)?;
    let Some(mirror) = open.last_mirror() else {
        let read = reads(&*volume, blocks);
        return Ok(Some(BootedVolume { read, legs: Vec::new(), by_hand }));
    };
    while !mirror.resync(ResyncThrottle::default())?.complete {
        // Another one is under way: the mirror's own upkeep.
        steadfast_runtime::sleep(std::time::Duration::from_millis(10));
    }
    let read = reads(&*volume, blocks);
    let in_use = mirror.status().legs;
    let kept = in_use.iter().filter(|l| !l.volatile && l.state == LegState::Okay);
    let legs = kept.map(|leg| of_leg(&mirror, leg.slot, blocks));
    let legs = legs.collect::<Result<_>>()?;
    Ok(Some(BootedVolume { read, legs, by_hand }))
}

/// A leg as the mirror reads it.
fn of_leg(mirror: &Mirror, slot: usize, blocks: u64) -> Result<Leg> {
    let read = ReadPolicy::Preferred(slot);
    let policies = Policies { read, ..mirror.policies() };
    mirror.set_policies(policies)?;
    Ok(reads(mirror, blocks))
}
