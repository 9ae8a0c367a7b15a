//! Builds the volumes of a setup over its devices: new ones, or those that a cut left.

use std::sync::Arc;
use std::time::Duration;

use steadfast_block::{BlockDevice, Persistence};
use steadfast_volume::{
    AssembleOptions, AssemblyReport, Contents, LegState, Mirror, MirrorOptions, NewLeg, Policies,
    ResyncThrottle, assemble,
};

use crate::SetupError;
use crate::description::{Topology, VolumeSpec};
use crate::mirrors::{Arrangement, Leg, Setup};
use crate::new_volume::NewVolume;

type Device = Arc<dyn BlockDevice>;

/// How often a mirror looks which regions have become clean, and a cache in memory what it has to
/// write back.
const UPKEEP_EVERY: Duration = Duration::from_secs(1);

/// What a name stands for: a device, or a volume of such.
#[derive(Clone)]
pub(crate) enum Tree {
    /// A device, by its place among those of the setup.
    Leaf(usize),
    /// A volume.
    Volume { name: String, spec: VolumeSpec, members: Vec<Tree> },
}

/// What the volumes of a machine are when it is switched on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Volumes {
    /// Not made: they describe themselves, and nothing is written.
    Planned,
    /// New, on devices that read as zeros.
    New,
    /// New, on devices that hold something.
    NewOnUsed,
    /// Those that are there: assembled. What memory held is gone, and is filled again.
    Found,
}

/// The volumes of a machine that is up, members before what they are members of.
#[derive(Clone, Default)]
pub struct OpenVolumes {
    mirrors: Vec<Mirror>,
    assembled: Option<AssemblyReport>,
}

impl Tree {
    /// What a name stands for; `leaves` numbers the devices.
    pub fn of(topology: &Topology, name: &str, leaves: &mut Vec<String>) -> Tree {
        match topology.volumes.get(name) {
            None => {
                leaves.push(name.to_owned());
                Tree::Leaf(leaves.len() - 1)
            }
            Some(spec) => {
                let members = spec.members.iter().map(|m| Tree::of(topology, m, leaves));
                let members = members.collect();
                Tree::Volume { name: name.to_owned(), spec: spec.clone(), members }
            }
        }
    }

    /// Builds it over these devices.
    pub fn open(
        &self,
        devices: &[Device],
        state: Volumes,
        open: &mut OpenVolumes,
    ) -> Result<Device, SetupError> {
        match self {
            Tree::Leaf(n) => Ok(Arc::clone(&devices[*n])),
            Tree::Volume {
                spec: spec @ VolumeSpec { model: Some(model), .. }, members, ..
            } => modelled(*model, spec, members, (devices, state)),
            Tree::Volume { name, spec, members } if state == Volumes::Found => {
                // Only where there are volumes: it reads the devices, which takes time.
                open.assembled
                    .get_or_insert_with(|| assemble(devices, &AssembleOptions::default()));
                open.found(self, name, spec, members, devices)
            }
            Tree::Volume { name, spec, members } => {
                let each = members.iter().map(|m| m.open(devices, state, open));
                let each = each.collect::<Result<Vec<_>, SetupError>>()?;
                open.create(name, spec, each, state)
            }
        }
    }

    /// Whether all that it is made of loses its contents with the power.
    fn is_volatile(&self, devices: &[Device]) -> bool {
        match self {
            Tree::Leaf(n) => devices[*n].info().persistence != Persistence::Persistent,
            Tree::Volume { members, .. } => members.iter().all(|m| m.is_volatile(devices)),
        }
    }
}

/// A model of somebody else's: of devices only, as the check of the description found.
fn modelled(
    model: Arrangement,
    spec: &VolumeSpec,
    members: &[Tree],
    (devices, state): (&[Device], Volumes),
) -> Result<Device, SetupError> {
    let leaf = |member: &Tree| match member {
        Tree::Leaf(n) => Some(Arc::clone(&devices[*n])),
        Tree::Volume { .. } => None,
    };
    let own: Vec<Device> = members.iter().filter_map(leaf).collect();
    if let (Volumes::Planned, Some(first)) = (state, own.first()) {
        // It refuses nothing, and is about as large.
        return Ok(Arc::clone(first));
    }
    let legs = own.iter().map(|device| Leg {
        device: Some(Arc::clone(device)),
        in_memory: device.info().persistence != Persistence::Persistent,
    });
    let (legs, setup) = (legs.collect(), peer_setup(spec, &own));
    let up = match state {
        Volumes::Found => model.boot(legs, setup)?,
        _ => model.create(legs, setup),
    };
    Ok(up.volume)
}

/// How a model of somebody else's mirror is set up on these devices.
pub fn peer_setup(spec: &VolumeSpec, devices: &[Device]) -> Setup {
    // Before the data each leg has a map of 64 KiB.
    const MAP: u64 = 64 << 10;
    let least = devices.iter().map(|d| d.info().size).min().unwrap_or(0).saturating_sub(MAP);
    let region_bytes = u64::from(spec.region_bytes.unwrap_or(64 << 10));
    Setup { size: least - least % region_bytes, region_bytes, upkeep: UPKEEP_EVERY }
}

impl OpenVolumes {
    /// Of volumes that were assembled already.
    pub fn with(assembled: AssemblyReport) -> OpenVolumes {
        OpenVolumes { mirrors: Vec::new(), assembled: Some(assembled) }
    }

    /// The mirrors, members before what they are members of.
    pub fn mirrors(&self) -> impl Iterator<Item = &Mirror> + Clone {
        self.mirrors.iter()
    }

    /// The outermost mirror.
    pub fn last_mirror(&self) -> Option<Mirror> {
        self.mirrors.last().cloned()
    }

    fn create(
        &mut self,
        name: &str,
        spec: &VolumeSpec,
        members: Vec<Device>,
        state: Volumes,
    ) -> Result<Device, SetupError> {
        let legs = members.into_iter().zip(&spec.members).map(|(d, m)| leg(spec, m, d));
        let new = NewVolume {
            name,
            kind: spec.kind,
            members: legs.collect(),
            interlace: Some(spec.interlace_bytes),
            mirror: MirrorOptions {
                size: spec.size,
                region_bytes: spec.region_bytes,
                policies: Policies { read: spec.read, write: spec.write, ..Policies::default() },
                contents: match state {
                    Volumes::New => Contents::Same,
                    _ => Contents::Anything,
                },
                ..MirrorOptions::default()
            },
        };
        if state == Volumes::Planned {
            return Ok(new.look()?);
        }
        let made = new.make()?;
        Ok(made.mirror.map_or(made.device, |mirror| self.keep(mirror)))
    }

    /// Looks after a mirror as a host does.
    fn keep(&mut self, mirror: Mirror) -> Device {
        mirror.keep(UPKEEP_EVERY, ResyncThrottle::default());
        self.mirrors.push(mirror.clone());
        Arc::new(mirror)
    }

    /// The volume as it was found, with its legs of memory recreated. One that was all in memory
    /// is new.
    fn found(
        &mut self,
        tree: &Tree,
        name: &str,
        spec: &VolumeSpec,
        members: &[Tree],
        devices: &[Device],
    ) -> Result<Device, SetupError> {
        let assembled = self.assembled.as_ref();
        let volume = assembled.and_then(|a| a.volumes.iter().find(|v| v.name == name)).cloned();
        let Some(volume) = volume else {
            if tree.is_volatile(devices) {
                let each = members.iter().map(|m| m.open(devices, Volumes::New, self));
                let each = each.collect::<Result<Vec<_>, SetupError>>()?;
                return self.create(name, spec, each, Volumes::New);
            }
            let problems = assembled.map_or(&[][..], |a| &a.problems);
            let why = problems.iter().find(|(of, _)| of == name);
            let why = why.map(|(_, e)| e.clone());
            return Err(SetupError::VolumeMissing { name: name.to_owned(), why });
        };
        let Some(mirror) = volume.mirror else { return Ok(volume.device) };
        for (slot, member) in members.iter().enumerate() {
            let legs = mirror.status().legs;
            let gone = |l: &&steadfast_volume::LegStatus| {
                l.slot == slot && l.volatile && l.state == LegState::Unavailable
            };
            if legs.iter().any(|l| gone(&l)) && member.is_volatile(devices) {
                let device = member.open(devices, Volumes::New, self)?;
                let new = NewLeg { force: true, ..leg(spec, &spec.members[slot], device) };
                mirror.replace(slot, Some(&new))?;
            }
        }
        Ok(self.keep(mirror))
    }

    /// Closes all of them, outer ones first.
    pub fn close(&self) -> Result<(), SetupError> {
        let each = self.mirrors.iter().rev().map(Mirror::close);
        Ok(each.fold(Ok(()), Result::and)?)
    }
}

fn leg(spec: &VolumeSpec, name: &String, device: Device) -> NewLeg {
    let mut leg = NewLeg::new(device);
    leg.volatile = spec.volatile.contains(name);
    leg.partial = spec.partial.contains(name);
    // What the devices held before is nobody's.
    leg.force = true;
    leg
}
