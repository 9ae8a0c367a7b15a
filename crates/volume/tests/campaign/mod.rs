//! Seeded runs of a mirror in virtual time: tasks write, flush, discard and read; legs come, go and
//! fail; the power is cut; the mirror is assembled again from what is left, and everything that was
//! promised must be there, the same on every leg.

pub mod media;
pub mod rot;
pub mod truth;
pub mod work;

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use steadfast_block::BlockDevice;
use steadfast_block::planted::BugSwitch;
use steadfast_block::rng::Rng;
use steadfast_devices::store::Store;
use steadfast_runtime::{Mutex, Sim, sleep};
use steadfast_volume::member::read_label;
use steadfast_volume::ondisk::label::Label;
use steadfast_volume::planted::Bug;
use steadfast_volume::{
    AssembleOptions, LegState, LegStatus, Mirror, MirrorOptions, NewLeg, Policies, ReadPolicy,
    ResyncThrottle, WritePolicy, assemble, create_mirror,
};

use media::{LEG_BYTES, Medium, Plugged};
use rot::Rot;
use truth::{BLOCK, Truth};

const REGION: u64 = 64 << 10;

/// What runs did, to see that they do what they are for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Tally {
    pub cuts: u64,
    pub writes: u64,
    pub flushes: u64,
    pub refused: u64,
    pub degraded: u64,
    pub stale: u64,
    pub blank: u64,
    pub attached: u64,
    pub replaced: u64,
    pub offline: u64,
    pub online: u64,
    pub dropped: u64,
    pub resynced: u64,
    pub failed: u64,
    pub old_online: u64,
    pub missing_online: u64,
    pub dropped_in_resync: u64,
    pub grown: u64,
    pub closed: u64,
    pub unseen: u64,
    pub scrubbed: u64,
    /// Reads that a partial leg answered.
    pub partial_reads: u64,
    pub rotten: u64,
    pub noticed: u64,
    /// Times that all legs began to fail, and legs that were good again after it.
    pub together: u64,
    pub forgiven: u64,
    /// Cuts soon after all legs failed.
    pub cut_together: u64,
}

impl Tally {
    pub fn add(&mut self, other: &Tally) {
        self.cuts += other.cuts;
        self.writes += other.writes;
        self.flushes += other.flushes;
        self.refused += other.refused;
        self.degraded += other.degraded;
        self.stale += other.stale;
        self.blank += other.blank;
        self.attached += other.attached;
        self.replaced += other.replaced;
        self.offline += other.offline;
        self.online += other.online;
        self.dropped += other.dropped;
        self.resynced += other.resynced;
        self.failed += other.failed;
        self.old_online += other.old_online;
        self.missing_online += other.missing_online;
        self.dropped_in_resync += other.dropped_in_resync;
        self.grown += other.grown;
        self.closed += other.closed;
        self.unseen += other.unseen;
        self.scrubbed += other.scrubbed;
        self.partial_reads += other.partial_reads;
        self.rotten += other.rotten;
        self.noticed += other.noticed;
        self.together += other.together;
        self.forgiven += other.forgiven;
        self.cut_together += other.cut_together;
    }
}

/// A medium, its handle of this boot, and an old copy of it.
pub struct Disk {
    pub medium: Medium,
    pub plugged: Plugged,
    old: Option<Store>,
    /// An old copy was put in its place: the generation of that copy's label.
    copy_of: Option<u64>,
    /// It was not given to the assembly.
    absent: bool,
}

impl Disk {
    /// Whether it is an old copy that no assembly has taken up since. By itself nothing
    /// distinguishes it from the volume as it was then.
    fn is_old_copy(&self) -> bool {
        self.copy_of.is_some() && label_of(&self.medium).map(|l| l.generation) == self.copy_of
    }

    /// Puts this old copy in its place.
    pub fn put_in(&mut self, copy: Medium) {
        self.copy_of = label_of(&copy).map(|label| label.generation);
        self.medium = copy;
    }
}

/// Everything that tasks of a run share.
pub struct World {
    pub truth: Mutex<Truth>,
    pub tally: Mutex<Tally>,
    pub wrong: Mutex<Option<String>>,
    pub stop: Mutex<bool>,
    /// What goes bad, where the mirror has checksums.
    pub rot: Option<Mutex<Rot>>,
    /// Where requests fail on all legs at once: what that comes from.
    pub together: Option<Mutex<Rng>>,
    /// Legs that held all that was flushed when all began to fail, if nothing else has happened
    /// since: whatever the mirror says of them, those that it has in use hold it still.
    pub held_before: Mutex<Option<Vec<String>>>,
    /// What people began and is not done.
    pub begun: Mutex<u64>,
}

impl World {
    pub fn wrong(&self, what: String) {
        self.wrong.lock().get_or_insert(what);
    }

    pub fn stopped(&self) -> bool {
        *self.stop.lock()
    }
}

/// One run; what was wrong, if anything. Of four runs one is of a mirror with checksums.
pub fn run(seed: u64, planted: BugSwitch<Bug>) -> Result<Tally, String> {
    run_with(seed, planted, seed % 4 == 1)
}

/// A run of a mirror with checksums, of which legs return something else than was written.
pub fn run_checked(seed: u64, planted: BugSwitch<Bug>) -> Result<Tally, String> {
    run_with(seed, planted, true)
}

fn run_with(seed: u64, planted: BugSwitch<Bug>, checksums: bool) -> Result<Tally, String> {
    let outcome = Sim::new(seed).run(move || simulated(seed, planted, checksums));
    outcome.map_err(|e| format!("seed {seed}: {e}"))?.map_err(|e| format!("seed {seed}: {e}"))
}

fn simulated(seed: u64, planted: BugSwitch<Bug>, checksums: bool) -> Result<Tally, String> {
    let mut rng = Rng::new(seed ^ 0x6d69_7272_6f72);
    let durable = 2 + rng.below(2);
    let mut disks: Vec<Disk> = Vec::new();
    for n in 0..durable + rng.below(2) {
        let medium = Medium::any(&format!("leg{n}"), n >= durable, &mut rng);
        disks.push(plugged(medium, &mut rng));
    }
    let legs: Vec<NewLeg> = disks.iter().map(|d| d.medium.leg(&d.plugged)).collect();
    let options = MirrorOptions {
        size: Some(768 << 10),
        region_bytes: Some(64 << 10),
        policies: policies(&mut rng),
        planted,
        checksums,
        checksum_memory: memory(seed),
        ..MirrorOptions::default()
    };
    let mirror = create_mirror("m", &legs, &options).map_err(|e| format!("create: {e}"))?;
    let world = Arc::new(World {
        truth: Mutex::new(Truth::new(mirror.info().size / BLOCK)),
        tally: Mutex::default(),
        wrong: Mutex::new(None),
        stop: Mutex::new(false),
        rot: checksums.then(|| Mutex::new(Rot::new(seed))),
        together: (seed % 8 % 2 == 1 && seed % 8 != 7).then(|| Mutex::new(Rng::new(!seed))),
        held_before: Mutex::new(None),
        begun: Mutex::new(0),
    });
    let mut mirror = mirror;
    for boot in 0..2 + rng.below(3) {
        *world.stop.lock() = false;
        if let Some(rot) = &world.rot {
            rot.lock().begins();
        }
        let mut busy = work::begin(&world, &mirror, rng.bits());
        let until = Duration::from_micros(300 + rng.below(6_000));
        let admin = work::Admin::new(&world, &mirror, rng.bits());
        admin.run(&mut disks, until, boot);
        let ended = rng.percent(10) && mirror.close().is_ok();
        let sound = cut(&world, &mirror, &mut disks, &mut rng);
        drop(mirror);
        busy.drain(..).for_each(|task| drop(task.join()));
        if ended {
            world.tally.lock().closed += 1;
            world.truth.lock().closed();
        }
        if let Some(wrong) = world.wrong.lock().take() {
            return Err(format!("boot {boot}: {wrong}"));
        }
        let options =
            AssembleOptions { planted, checksum_memory: memory(seed), ..Default::default() };
        let again = reboot(&world, &mut disks, &sound, &mut rng, &options);
        mirror = again.map_err(|e| format!("boot {boot}: {e}"))?;
        if let Some(rot) = &world.rot {
            let placed = rot.lock().while_off(&mirror, &disks);
            world.tally.lock().rotten += placed;
        }
        let absent = disks.iter().any(|disk| disk.absent);
        recovered(&world, &mirror, absent, &mut rng).map_err(|e| format!("boot {boot}: {e}"))?;
    }
    let tally = *world.tally.lock();
    Ok(tally)
}

fn plugged(medium: Medium, rng: &mut Rng) -> Disk {
    let plugged = medium.plug(micros(rng));
    Disk { medium, plugged, old: None, copy_of: None, absent: false }
}

/// Of two runs with checksums one has memory for those of a few regions only.
fn memory(seed: u64) -> Option<usize> {
    (seed / 4 % 2 == 1).then_some(1000)
}

/// Most legs are fast, some are slow.
fn micros(rng: &mut Rng) -> u64 {
    if rng.percent(20) { 400 } else { 5 + rng.below(60) }
}

pub fn policies(rng: &mut Rng) -> Policies {
    let read = match rng.below(5) {
        0 => ReadPolicy::Geometric,
        1 => ReadPolicy::First,
        2 => ReadPolicy::Preferred(rng.below(4) as usize),
        3 => ReadPolicy::Adaptive,
        _ => ReadPolicy::RoundRobin,
    };
    let write = match rng.below(4) {
        0 => WritePolicy::Serial,
        1 => WritePolicy::WriteBehind,
        _ => WritePolicy::Parallel,
    };
    Policies { read, write, ..Policies::default() }
}

/// Cuts the power of everything at one instant; names of the durable legs that were whole.
fn cut(world: &World, mirror: &Mirror, disks: &mut [Disk], rng: &mut Rng) -> Vec<String> {
    *world.stop.lock() = true;
    disks.iter().for_each(|disk| disk.plugged.unplug());
    let status = mirror.status();
    disks.iter().for_each(|disk| disk.medium.cut(rng.bits()));
    if let Some(rot) = &world.rot {
        rot.lock().undo(disks);
    }
    let mut tally = world.tally.lock();
    tally.cuts += 1;
    tally.cut_together += u64::from(world.held_before.lock().is_some());
    tally.failed += u64::from(status.failed.is_some());
    let partial = status.legs.iter().filter(|l| l.held_bytes.is_some());
    tally.partial_reads += partial.map(|l| l.counters.reads).sum::<u64>();
    let legs = status.legs.iter();
    tally.dropped += legs.clone().filter(|l| l.state == LegState::NeedsMaintenance).count() as u64;
    tally.noticed += legs.map(|l| l.counters.checksum_errors).sum::<u64>();
    let held_before = world.held_before.lock().take();
    let is_used = |s| matches!(s, LegState::Okay | LegState::Resyncing | LegState::LastErred);
    let is_sound = |l: &LegStatus| match (&held_before, &world.together) {
        (Some(before), _) => is_used(l.state) && before.contains(&l.name),
        (None, Some(_)) => l.holds_flushed,
        (None, None) => l.state == LegState::Okay && !l.volatile,
    };
    status.legs.iter().filter(|l| is_sound(l)).map(|l| l.name.clone()).collect()
}

/// The computer is switched on again, perhaps not with all that was there.
fn reboot(
    world: &World,
    disks: &mut [Disk],
    sound: &[String],
    rng: &mut Rng,
    options: &AssembleOptions,
) -> Result<Mirror, String> {
    // While one leg is whole, another may be lost, replaced by nothing or by an old copy of itself.
    let is_sound = |disk: &Disk| sound.contains(&disk.medium.name);
    let durable: Vec<usize> = (0..disks.len()).filter(|n| !disks[*n].medium.volatile).collect();
    let newest = newest_label(disks);
    let victim = durable[rng.below(durable.len() as u64) as usize];
    let another = durable.iter().any(|n| *n != victim && is_sound(&disks[*n]));
    let old_copy = durable.iter().any(|n| *n != victim && disks[*n].is_old_copy());
    let mut absent = None;
    let mut tally = world.tally.lock();
    for (n, disk) in disks.iter_mut().enumerate() {
        if n == victim && !another && rng.percent(15) && !old_copy {
            // It may alone hold something: that is back when it is. An old copy would be the volume
            // as it was, if nobody is there who knows better.
            absent = Some(n);
        }
        if n == victim && another {
            let name = disk.medium.name.clone();
            match rng.below(8) {
                0 => absent = Some(n),
                1 => {
                    disk.medium = Medium::new(&name, false, Store::new(LEG_BYTES));
                    tally.blank += 1;
                }
                2 => {
                    let copy = disk.old.take().map(|old| Medium::new(&name, false, old));
                    if let Some(copy) = copy.filter(|copy| is_recognized(copy, newest.as_ref())) {
                        disk.put_in(copy);
                        tally.stale += 1;
                    }
                }
                _ => {}
            }
        }
        disk.plugged = disk.medium.plug(micros(rng));
        disk.absent = absent == Some(n);
    }
    drop(tally);
    let mirror = match one(&present(disks, rng.below(4) == 0), options) {
        Ok(mirror) => mirror,
        Err(first) => {
            world.tally.lock().refused += 1;
            disks.iter_mut().for_each(|disk| disk.absent = false);
            // What is given up here is on a leg that is whole, or nothing is given up.
            let degraded = AssembleOptions { degraded: another, ..options.clone() };
            world.tally.lock().degraded += u64::from(another);
            one(&present(disks, false), &degraded).map_err(|e| format!("{first}; then: {e}"))?
        }
    };
    for disk in disks.iter_mut() {
        if disk.old.is_none() || rng.percent(30) {
            disk.old = Some(disk.medium.contents());
        }
        let volatile = disk.medium.volatile;
        let place = mirror.status().legs.iter().find(|l| l.name == disk.medium.name).cloned();
        if let Some(leg) = place
            && volatile
            && rng.percent(70)
        {
            // A RAM disk is made again, empty.
            let new = disk.medium.leg(&disk.plugged);
            mirror.replace(leg.slot, Some(&new)).map_err(|e| format!("refilling: {e}"))?;
        }
    }
    Ok(mirror)
}

/// The label of a medium, whatever is in the cache above it.
fn label_of(medium: &Medium) -> Option<Label> {
    let device: Arc<dyn BlockDevice> = Arc::new(medium.ram());
    read_label(&device).ok().flatten().map(|found| found.label)
}

pub fn newest_label(disks: &[Disk]) -> Option<Label> {
    let labels = disks.iter().filter_map(|disk| label_of(&disk.medium));
    labels.max_by_key(|label| label.generation)
}

/// Whether a copy of a leg can be distinguished from the leg: it is from before the last change of
/// the labels that is on all of them, and from before the leg left, if it has.
pub fn is_recognized(copy: &Medium, newest: Option<&Label>) -> bool {
    let (Some(then), Some(now)) = (label_of(copy), newest) else { return true };
    let uuid = then.members[then.slot].uuid;
    let left = now.members.iter().filter(|m| m.uuid == uuid).filter_map(|m| m.left);
    then.generation < left.map(|left| left.first).fold(now.base, u64::min)
}

/// The devices that are given to the assembly, in one order or the other.
fn present(disks: &[Disk], in_order: bool) -> Vec<Arc<dyn BlockDevice>> {
    let here = disks.iter().filter(|disk| !disk.absent);
    let mut here: Vec<_> = here.map(|d| Arc::clone(&d.plugged.device)).collect();
    if !in_order {
        here.reverse();
    }
    here
}

fn one(devices: &[Arc<dyn BlockDevice>], options: &AssembleOptions) -> Result<Mirror, String> {
    let mut found = assemble(devices, options);
    match found.volumes.pop().and_then(|v| v.mirror) {
        Some(mirror) if found.problems.is_empty() => Ok(mirror),
        _ => Err(format!(
            "assembly: {:?}",
            found.problems.iter().map(|(n, e)| format!("{n}: {e}")).collect::<Vec<_>>()
        )),
    }
}

/// A region, if it can be read.
fn region(mirror: &Mirror, region: u64) -> Option<Bytes> {
    mirror.read(region * REGION, REGION).ok()
}

/// Everything promised is there; reads stay the same; so do they from every leg once all are whole.
fn recovered(world: &World, mirror: &Mirror, absent: bool, rng: &mut Rng) -> Result<(), String> {
    let mut truth = world.truth.lock();
    let size = mirror.info().size;
    if size < truth.blocks() * BLOCK {
        return Err(format!("the volume has {size} bytes only after the cut"));
    }
    // It may have grown, and the cut came before it was acknowledged.
    truth.grow(size / BLOCK);
    let found: Vec<Option<Bytes>> = (0..size / REGION).map(|r| region(mirror, r)).collect();
    world.tally.lock().unseen += found.iter().filter(|bytes| bytes.is_none()).count() as u64;
    for (at, bytes) in found.iter().enumerate() {
        let blocks = at as u64 * REGION / BLOCK..(at as u64 + 1) * REGION / BLOCK;
        let Some(bytes) = bytes else {
            if absent {
                blocks.for_each(|block| truth.hide(block));
                continue;
            }
            return Err(format!("region {at} cannot be read after the cut"));
        };
        for (block, bytes) in blocks.zip(bytes.chunks(BLOCK as usize)) {
            truth.check_cut(block, bytes)?;
            truth.settle(block, bytes);
        }
    }
    drop(truth);
    let same = |when: String| {
        let differs = |(n, bytes): (u64, &Option<Bytes>)| *bytes != region(mirror, n);
        match (0..).zip(&found).position(differs) {
            None => Ok(()),
            Some(at) => Err(format!("region {at} reads differently {when}")),
        }
    };
    same("the second time".into())?;
    if rng.percent(75) {
        let before = mirror.policies();
        mirror.resync(ResyncThrottle::default()).map_err(|e| format!("resync: {e}"))?;
        for slot in 0..4 {
            let read_policy = ReadPolicy::Preferred(slot);
            let set = mirror.set_policies(Policies { read: read_policy, ..before });
            set.map_err(|e| format!("policy: {e}"))?;
            same(format!("on leg {slot} after the resync"))?;
        }
        mirror.set_policies(before).map_err(|e| format!("policy: {e}"))?;
    }
    sleep(Duration::from_micros(rng.below(50)));
    Ok(())
}
