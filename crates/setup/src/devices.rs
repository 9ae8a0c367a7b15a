//! A setup's devices: built, and opened as its file system sees them.

use std::path::PathBuf;
use std::sync::Arc;

use steadfast_block::{BlockDevice, is_zero};
use steadfast_devices::filter::{Fault, FaultRule, Faults, Scheduler, schedule};
use steadfast_devices::model::Model;
use steadfast_devices::store::Store;
use steadfast_runtime::{Nanos, now};
use steadfast_volume::member::{read_label, wipe_label};
use steadfast_volume::{Mirror, VolumeError};

use crate::description::{DeviceSource, Setup, Topology};
use crate::driver::{Driver, DriverCost};
use crate::error::SetupError;
use crate::namespace::Namespace;
use crate::path::{self, OpenPath};
use crate::volumes::{OpenVolumes, Tree, Volumes};

/// A setup's devices, and what its disk and its journal are made of.
#[derive(Clone)]
pub struct Devices {
    /// Those of the disk, then those of the journal.
    leaves: Vec<LeafDevice>,
    disk: Tree,
    journal: Option<Tree>,
    scheduler: Option<schedule::SchedulerSettings>,
}

/// What is put over a device, which has this name: a recording, or nothing.
pub type DeviceWrapper<'a> = dyn FnMut(&str, &Arc<dyn Model>) -> Arc<dyn BlockDevice> + 'a;

/// A device of a setup.
#[derive(Clone)]
struct LeafDevice {
    name: String,
    source: Source,
    namespace: Namespace,
    driver: DriverCost,
    faults: Vec<FaultRule>,
}

/// What a device is.
#[derive(Clone)]
enum Source {
    Model(Arc<dyn Model>),
    /// Of this machine.
    Opened(Arc<OpenPath>),
}

/// What may be done to the devices of this machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Overwrite {
    /// Those that hold nothing are used.
    #[default]
    Blank,
    /// What is on them is lost.
    Anything,
}

/// A setup's devices as its file system sees them.
#[derive(Clone)]
pub struct Blocks {
    /// The disk, behind its scheduler where it has one.
    pub disk: Arc<dyn BlockDevice>,
    /// The journal's device.
    pub journal: Option<Arc<dyn BlockDevice>>,
    /// That device's number as the kernel has it; 0: none.
    pub journal_number: u32,
    /// The scheduler.
    pub queue: Option<Arc<Scheduler>>,
    /// The volumes of both.
    pub volumes: OpenVolumes,
    /// Filters over the devices, and what each is to do.
    pub faults: Vec<(Faults, Vec<FaultRule>)>,
    /// They hold something, whatever it is.
    pub is_used: bool,
    /// Those of this machine.
    pub opened: Vec<Arc<OpenPath>>,
}

impl Overwrite {
    /// As `--destroy` says.
    pub fn of(destroy: bool) -> Overwrite {
        if destroy { Overwrite::Anything } else { Overwrite::Blank }
    }
}

impl Devices {
    /// Builds a setup's devices, all of them models, full of zeros. Nothing of this machine is
    /// opened.
    ///
    /// # Errors
    /// A model refuses its parameters. A device is a path.
    pub fn build(setup: &Setup) -> Result<Devices, SetupError> {
        Devices::of_setup(setup, None)
    }

    /// The same; those of this machine are opened, in real time only, each by nobody else. Nothing
    /// is written before [`blocks`](Self::blocks), and what would be refused then, is here.
    ///
    /// # Errors
    /// A model refuses its parameters. A path cannot be opened, is in use, or holds something that
    /// may not be overwritten. Volumes or file system cannot be made on them.
    pub fn open(setup: &Setup, overwrite: Overwrite) -> Result<Devices, SetupError> {
        let devices = Devices::of_setup(setup, Some(overwrite))?;
        if devices.of_this_machine().is_some() {
            devices.blocks_in(Volumes::Planned)?.look(setup)?;
        }
        Ok(devices)
    }

    fn of_setup(setup: &Setup, overwrite: Option<Overwrite>) -> Result<Devices, SetupError> {
        let both = (setup.disk.as_str(), setup.journal.as_deref());
        Devices::of(&setup.topology, both, setup.scheduler.clone(), overwrite)
    }

    /// The devices of these. Without `overwrite` only models can be among them.
    fn of(
        topology: &Topology,
        (disk, journal): (&str, Option<&str>),
        scheduler: Option<schedule::SchedulerSettings>,
        overwrite: Option<Overwrite>,
    ) -> Result<Devices, SetupError> {
        let mut names = Vec::new();
        let disk = Tree::of(topology, disk, &mut names);
        let journal = journal.map(|j| Tree::of(topology, j, &mut names));
        let (mut of_paths, mut paths): (Vec<&String>, Vec<PathBuf>) = Default::default();
        for name in &names {
            if let Some(DeviceSource::Path(path)) = topology.devices.get(name).map(|d| &d.source) {
                of_paths.push(name);
                paths.push(path.clone());
            }
        }
        let overwrite = overwrite.filter(|_| !steadfast_runtime::is_simulated());
        if let (Some(name), None) = (of_paths.first(), overwrite) {
            let why = "it has no virtual time, and its power cannot be cut";
            return Err(SetupError::Path { name: (*name).clone(), why });
        }
        let opened = path::open_all(&paths, false)?;
        if overwrite == Some(Overwrite::Blank) {
            (of_paths.iter().zip(&opened)).try_for_each(|(name, open)| refuse_used(name, open))?;
        }
        let mut opened = opened.into_iter().map(Arc::new);
        let leaf = |name: String| -> Result<LeafDevice, SetupError> {
            let spec = topology.devices.get(&name);
            let spec = spec.ok_or_else(|| topology.no_device(&name))?;
            let source = match &spec.source {
                DeviceSource::Model(model) => Some(Source::Model(model.build(&name)?)),
                DeviceSource::Path(_) => opened.next().map(Source::Opened),
            };
            // OK to unwrap: each path was opened.
            let source = source.expect("one for each path");
            let (namespace, driver) = (spec.namespace, spec.driver);
            Ok(LeafDevice { name, source, namespace, driver, faults: spec.faults.clone() })
        };
        let leaves = names.into_iter().map(leaf).collect::<Result<_, SetupError>>()?;
        Ok(Devices { leaves, disk, journal, scheduler })
    }

    /// The models: those of the disk first, then those of the journal.
    pub fn all(&self) -> impl Iterator<Item = &Arc<dyn Model>> {
        self.leaves.iter().filter_map(|leaf| match &leaf.source {
            Source::Model(model) => Some(model),
            Source::Opened(_) => None,
        })
    }

    /// The first device that is no model, by its name: nothing is known of what it would lose.
    fn of_this_machine(&self) -> Option<&str> {
        let is_opened = |leaf: &&LeafDevice| matches!(leaf.source, Source::Opened(_));
        self.leaves.iter().find(is_opened).map(|leaf| leaf.name.as_str())
    }

    /// What paths do not promise, or lack: a line each, for people.
    pub fn notes(&self) -> impl Iterator<Item = &String> {
        self.leaves.iter().flat_map(|leaf| match &leaf.source {
            Source::Model(_) => &[][..],
            Source::Opened(open) => &open.notes,
        })
    }

    /// Whether the disk or the journal is a volume.
    pub fn has_volumes(&self) -> bool {
        let is_volume = |tree: &Tree| matches!(tree, Tree::Volume { .. });
        is_volume(&self.disk) || self.journal.as_ref().is_some_and(is_volume)
    }

    /// Whether the file system sees what the devices hold, byte by byte.
    pub fn are_seen_as_they_are(&self) -> bool {
        let moves = |leaf: &LeafDevice| leaf.namespace == Namespace::Sector;
        !self.has_volumes() && !self.leaves.iter().any(moves)
    }

    /// The disk over devices that stand for these.
    ///
    /// # Errors
    /// A volume cannot be made or assembled, with the reason.
    pub fn open_disk(
        &self,
        devices: &[Arc<dyn BlockDevice>],
        state: Volumes,
        open: &mut OpenVolumes,
    ) -> Result<Arc<dyn BlockDevice>, SetupError> {
        self.disk.open(devices, state, open)
    }

    /// As the file system sees them, with new volumes.
    ///
    /// # Errors
    /// A volume cannot be made, with the reason.
    pub fn blocks(&self) -> Result<Blocks, SetupError> {
        self.blocks_in(match self.of_this_machine() {
            Some(_) => Volumes::NewOnUsed,
            None => Volumes::New,
        })
    }

    fn blocks_in(&self, state: Volumes) -> Result<Blocks, SetupError> {
        self.blocks_over(state, &mut |_, model| Arc::clone(model) as Arc<dyn BlockDevice>)
    }

    /// The same, with something over each device: below its driver, the volumes and the scheduler.
    ///
    /// # Errors
    /// A volume cannot be made or assembled, with the reason.
    pub fn blocks_over(
        &self,
        state: Volumes,
        over: &mut DeviceWrapper<'_>,
    ) -> Result<Blocks, SetupError> {
        let mut faults = Vec::new();
        let mut device = |leaf: &LeafDevice| -> Result<Arc<dyn BlockDevice>, SetupError> {
            let mut device = match &leaf.source {
                Source::Model(model) => over(&leaf.name, model),
                Source::Opened(open) => {
                    if state != Volumes::Planned {
                        forget_used(&open.device)?;
                    }
                    Arc::clone(&open.device)
                }
            };
            if !leaf.faults.is_empty() {
                // A recording sees what reaches the device.
                let filter = Fault::new(device);
                faults.push((filter.faults(), leaf.faults.clone()));
                device = Arc::new(filter);
            }
            let device = leaf.namespace.open(device, state)?;
            Ok(match leaf.driver.is_some() {
                true => Arc::new(Driver::new(device, leaf.driver)),
                false => device,
            })
        };
        let devices = self.leaves.iter().map(&mut device).collect::<Result<Vec<_>, _>>()?;
        let mut volumes = OpenVolumes::default();
        let disk = self.disk.open(&devices, state, &mut volumes)?;
        let journal = self.journal.as_ref().map(|j| j.open(&devices, state, &mut volumes));
        let blocks = Blocks::new(disk, journal.transpose()?, self.scheduler.as_ref());
        let is_used = self.of_this_machine().is_some();
        let opened = self.leaves.iter().filter_map(|leaf| match &leaf.source {
            Source::Opened(open) => Some(Arc::clone(open)),
            Source::Model(_) => None,
        });
        Ok(Blocks { volumes, faults, is_used, opened: opened.collect(), ..blocks })
    }
}

impl Blocks {
    /// Those of a file system that is there: its disk, and its journal's device with its number.
    pub fn of(disk: Arc<dyn BlockDevice>, journal: Option<(Arc<dyn BlockDevice>, u32)>) -> Blocks {
        let (journal, number) = journal.unzip();
        Blocks { journal_number: number.unwrap_or(0), ..Blocks::new(disk, journal, None) }
    }

    /// Puts the scheduler, if there is one, before the disk.
    pub fn new(
        disk: Arc<dyn BlockDevice>,
        journal: Option<Arc<dyn BlockDevice>>,
        scheduler: Option<&schedule::SchedulerSettings>,
    ) -> Blocks {
        let queue = scheduler.map(|s| Arc::new(Scheduler::new(Arc::clone(&disk), s.clone())));
        let disk = queue.as_ref().map_or(disk, |q| Arc::clone(q) as Arc<dyn BlockDevice>);
        Blocks {
            disk,
            journal,
            journal_number: 0,
            queue,
            volumes: OpenVolumes::default(),
            faults: Vec::new(),
            is_used: false,
            opened: Vec::new(),
        }
    }

    /// What goes wrong with the devices goes wrong from now on, and is counted anew.
    pub(crate) fn arm_faults(&self) {
        for (faults, rules) in &self.faults {
            faults.clear();
            for rule in rules {
                let from = now() + rule.from.since(Nanos::ZERO);
                faults.add(FaultRule { from, ..rule.clone() });
            }
        }
    }

    /// Waits until everything written is durable.
    ///
    /// # Errors
    /// The first device that fails.
    pub fn flush(&self) -> Result<(), SetupError> {
        Ok(std::iter::once(&self.disk).chain(&self.journal).try_for_each(|d| d.flush())?)
    }

    /// Ends the use of the volumes.
    ///
    /// # Errors
    /// The first that cannot be closed; a leg on a device of this machine has failed, which nobody
    /// has planned.
    pub fn close(&self) -> Result<(), SetupError> {
        let opened = || self.opened.iter().flat_map(|open| open.assembled.iter().rev());
        let of_paths = opened().flat_map(|found| &found.volumes).filter_map(|v| v.mirror.as_ref());
        let mut legs = of_paths.chain(self.volumes.mirrors()).map(check_legs);
        let legs = if self.is_used { legs.find(Result::is_err).unwrap_or(Ok(())) } else { Ok(()) };
        self.volumes.close()?;
        opened().map(|found| found.close()).fold(Ok(()), Result::and)?;
        legs
    }
}

/// The first leg that has failed and is to keep its contents, as an error.
fn check_legs(mirror: &Mirror) -> Result<(), SetupError> {
    let status = mirror.status();
    let mut legs = status.legs.into_iter().filter(|leg| !leg.volatile);
    let Some(leg) = legs.find(|leg| leg.error.is_some()) else { return Ok(()) };
    let (volume, leg, error) = (status.name, leg.name, leg.error.unwrap_or_default());
    Err(SetupError::LegFailed { volume, leg, error })
}

/// Refuses a device of this machine that holds something.
fn refuse_used(name: &str, open: &OpenPath) -> Result<(), SetupError> {
    let device = &open.device;
    let held = match read_label(device) {
        Ok(Some(found)) => Some(format!("a member of the volume '{}'", found.label.name)),
        Ok(None) | Err(VolumeError::Io(_)) => path::occupant(device),
        Err(error) => Some(format!("a label of a volume ({error})")),
    };
    // Data without a signature is somebody's, too.
    let unknown = |at| format!("data of an unknown kind (at byte {at})");
    let Some(held) = held.or(device.first_data()?.map(unknown)) else { return Ok(()) };
    let path = device.info().name;
    let what = format!("device '{name}': {path} holds {held}: --destroy overwrites it");
    Err(SetupError::Refused(what))
}

/// Takes away by what a device of this machine would be taken for what it was.
///
/// # Errors
/// The device's.
pub fn forget_used(device: &Arc<dyn BlockDevice>) -> Result<(), SetupError> {
    // A damaged label is one, too.
    if !matches!(read_label(device), Ok(None)) {
        wipe_label(device)?;
    }
    Ok(path::forget_occupant(device)?)
}

impl Topology {
    /// A device or volume by itself, new.
    ///
    /// # Errors
    /// There is none of this name, or it cannot be built, with the reason.
    pub fn open(&self, name: &str, overwrite: Overwrite) -> Result<Blocks, SetupError> {
        if !self.contains(name) {
            return Err(self.no_device(name));
        }
        let devices = Devices::of(self, (name, None), None, Some(overwrite))?;
        devices.blocks_in(Volumes::Planned)?;
        let blocks = devices.blocks()?;
        blocks.arm_faults();
        Ok(blocks)
    }

    /// Looks whether a device or volume could be opened, and writes nothing.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn look(&self, name: &str, overwrite: Overwrite) -> Result<(), SetupError> {
        let devices = Devices::of(self, (name, None), None, Some(overwrite))?;
        devices.blocks_in(Volumes::Planned).map(drop)
    }
}

/// What a device holds now, read through it: of a volume nobody else knows.
///
/// # Errors
/// The device fails.
pub fn contents_of(device: &Arc<dyn BlockDevice>) -> Result<Store, SetupError> {
    const PIECE: u64 = 1 << 20;
    let size = device.info().size;
    let mut store = Store::new(size);
    let mut at = 0;
    while at < size {
        let data = device.read(at, PIECE.min(size - at))?;
        let len = data.len() as u64;
        if !is_zero(&data) {
            store.write_slice(at, &data);
        }
        at += len;
    }
    Ok(store)
}
