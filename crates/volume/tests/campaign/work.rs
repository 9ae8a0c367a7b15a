//! What goes on in a run until the power is cut.

use std::sync::Arc;
use std::time::Duration;

use steadfast_block::rng::Rng;
use steadfast_block::{BlockDevice, Request};
use steadfast_devices::filter::fault::{Effect, FaultRule, Ops};
use steadfast_runtime::{JoinHandle, now, sleep, spawn};
use steadfast_volume::{LegState, Mirror, ResyncThrottle};

use super::media::{LEG_BYTES, Medium};
use super::truth::{BLOCK, bytes_of};
use super::{Disk, World, is_recognized, micros, newest_label, plugged, policies};

const TASKS: u64 = 3;
/// Blocks of a region.
const REGION: u64 = 16;
/// Where a leg's data begins; its second label is in the last bytes.
const DATA: u64 = 64 << 10;

/// Starts the tasks that use the volume.
pub fn begin(world: &Arc<World>, mirror: &Mirror, seed: u64) -> Vec<JoinHandle<()>> {
    let user = |task| {
        let (world, mirror) = (Arc::clone(world), mirror.clone());
        let body = move || user(&world, &mirror, task, Rng::new(seed ^ task));
        spawn(format!("user {task}"), body)
    };
    // Two that only flush: one flush is in flight while another begins.
    let flusher = |task| {
        let (world, mirror) = (Arc::clone(world), mirror.clone());
        let mut rng = Rng::new(seed ^ task);
        spawn("flusher", move || {
            while !world.stopped() {
                sleep(Duration::from_micros(rng.below(500)));
                flush(&world, &mirror);
            }
        })
    };
    (0..TASKS).map(user).chain((TASKS..TASKS + 2).map(flusher)).collect()
}

/// Whose a block is: every other region belongs to one task, of the others each task has every
/// third run of four blocks.
fn owner(block: u64) -> u64 {
    let region = block / REGION;
    match region.is_multiple_of(2) {
        true => block / 4 % TASKS,
        false => region / 2 % TASKS,
    }
}

/// Blocks that are a task's own; whether they are a whole region.
fn own(task: u64, blocks: u64, rng: &mut Rng) -> (u64, u64, bool) {
    loop {
        let block = rng.below(blocks);
        if owner(block) != task {
            continue;
        }
        let region = block / REGION * REGION;
        let mine = |b: &u64| *b < blocks && owner(*b) == task;
        if (region..region + REGION).all(|b| mine(&b)) && rng.percent(30) {
            return (region, REGION, true);
        }
        // Over the end of a region too, where the next one is its own.
        let longest = (block..block + 20).take_while(mine).count() as u64;
        return (block, 1 + rng.below(longest), false);
    }
}

fn user(world: &World, mirror: &Mirror, task: u64, mut rng: Rng) {
    while !world.stopped() {
        let blocks = world.truth.lock().blocks();
        let (first, count, whole) = own(task, blocks, &mut rng);
        match rng.below(20) {
            0..=1 => flush(world, mirror),
            2 if whole => change(world, mirror, first, count, Change::Discard),
            3..=6 => read(world, mirror, first, count),
            7 => change(world, mirror, first, count, Change::Durable),
            _ => change(world, mirror, first, count, Change::Write),
        }
        sleep(Duration::from_micros(rng.below(40)));
    }
}

#[derive(Clone, Copy, PartialEq)]
enum Change {
    Write,
    Durable,
    Discard,
}

fn change(world: &World, mirror: &Mirror, first: u64, count: u64, how: Change) {
    let tag = world.truth.lock().begin(first, count, how == Change::Discard);
    let (offset, len) = (first * BLOCK, count * BLOCK);
    let request = match how {
        Change::Discard => Request::Discard { offset, len },
        _ => {
            let data: Vec<u8> = (first..first + count).flat_map(|b| bytes_of(tag, b)).collect();
            Request::Write { offset, data: data.into(), fua: how == Change::Durable }
        }
    };
    let answer = mirror.submit(request).wait();
    if answer.is_ok() && !world.stopped() {
        world.tally.lock().writes += 1;
        world.truth.lock().done(first, count, how == Change::Durable);
    }
}

fn flush(world: &World, mirror: &Mirror) {
    let promised = world.truth.lock().flush_begins();
    if mirror.submit(Request::Flush).wait().is_ok() && !world.stopped() {
        world.tally.lock().flushes += 1;
        world.truth.lock().flush_done(&promised);
    }
}

fn read(world: &World, mirror: &Mirror, first: u64, count: u64) {
    let answer = mirror.submit(Request::Read { offset: first * BLOCK, len: count * BLOCK }).wait();
    let Ok(bytes) = answer else { return };
    if world.stopped() {
        return;
    }
    let truth = world.truth.lock();
    for (block, bytes) in (first..).zip(bytes.chunks(BLOCK as usize)) {
        if let Err(wrong) = truth.check_live(block, bytes) {
            world.wrong(wrong);
        }
    }
}

/// Whoever looks after the mirror.
pub struct Admin {
    world: Arc<World>,
    mirror: Mirror,
    rng: Rng,
}

impl Admin {
    pub fn new(world: &Arc<World>, mirror: &Mirror, seed: u64) -> Admin {
        Admin { world: Arc::clone(world), mirror: mirror.clone(), rng: Rng::new(seed) }
    }

    /// Does this and that until the time is over. What takes long goes on by itself, so that the
    /// cut comes in the middle of it.
    pub fn run(mut self, disks: &mut Vec<Disk>, until: Duration, boot: u64) {
        let end = now() + until;
        while now() < end {
            let pause = Duration::from_micros(50 + self.rng.below(800));
            sleep(pause.min(end - now()));
            if now() >= end {
                break;
            }
            if self.all_at_once(disks) {
                return;
            }
            self.something(disks, boot);
        }
    }

    fn leg(&mut self, state: impl Fn(LegState) -> bool, volatile: bool) -> Option<(usize, String)> {
        let legs = self.mirror.status().legs;
        let fits: Vec<_> =
            legs.iter().filter(|l| state(l.state) && (volatile || !l.volatile)).collect();
        let leg = fits.get(self.rng.below(fits.len() as u64) as usize)?;
        Some((leg.slot, leg.name.clone()))
    }

    fn in_background(&self, what: impl FnOnce(&Mirror) -> bool + Send + 'static, count: Count) {
        let (mirror, world) = (self.mirror.clone(), Arc::clone(&self.world));
        *self.world.begun.lock() += 1;
        spawn("admin", move || {
            if what(&mirror) {
                *count(&mut world.tally.lock()) += 1;
            }
            *world.begun.lock() -= 1;
        });
    }

    /// One request of each durable leg fails, on some of them after it was carried out: a cable or
    /// a controller that all share. Whether the power is to go soon after it.
    fn all_at_once(&self, disks: &[Disk]) -> bool {
        let Some(mut rng) = self.world.together.as_ref().map(|rng| rng.lock()) else {
            return false;
        };
        if !rng.percent(10) {
            return false;
        }
        let before = self.mirror.status();
        let durable = before.legs.iter().filter(|leg| !leg.volatile);
        let all_hold = before.failed.is_none() && durable.clone().all(|leg| leg.holds_flushed);
        let ops = if rng.percent(85) { Ops::WRITE } else { Ops::FLUSH };
        for disk in disks.iter().filter(|disk| !disk.medium.volatile) {
            let text = "injected in all".to_owned();
            let effect = if rng.percent(40) { Effect::FailAfter(text) } else { Effect::Fail(text) };
            // Where labels and map fail the mirror is at its end.
            let rule = FaultRule::new(ops, effect).within(DATA..LEG_BYTES - DATA).nth(1);
            disk.plugged.with(Some(rule), micros(&mut rng));
        }
        self.world.tally.lock().together += 1;
        let pause = Duration::from_micros(rng.below(600));
        if all_hold && *self.world.begun.lock() == 0 && rng.percent(50) {
            *self.world.held_before.lock() = Some(durable.map(|leg| leg.name.clone()).collect());
            drop(rng);
            sleep(pause);
            return true;
        }
        let (mirror, world) = (self.mirror.clone(), Arc::clone(&self.world));
        let forgive = rng.percent(60);
        drop(rng);
        *self.world.begun.lock() += 1;
        spawn("forgive", move || {
            sleep(pause);
            let legs = mirror.status().legs;
            for leg in legs.iter().filter(|leg| forgive && leg.state == LegState::LastErred) {
                world.tally.lock().forgiven += u64::from(mirror.online(leg.slot, None).is_ok());
            }
            *world.begun.lock() -= 1;
        });
        false
    }

    fn something(&mut self, disks: &mut Vec<Disk>, boot: u64) {
        if let Some(rot) = &self.world.rot {
            let placed = rot.lock().while_on(&self.mirror, disks);
            self.world.tally.lock().rotten += placed;
        }
        match self.rng.below(24) {
            23 => {
                // Nothing here goes bad by itself: legs that hold a region hold the same.
                let world = Arc::clone(&self.world);
                let repair = self.world.rot.is_some() && self.rng.percent(50);
                let scrub = move |m: &Mirror| match m.scrub(repair, ResyncThrottle::default()) {
                    Ok(found) if found.differing > 0 && !world.stopped() && !is_rotten(&world) => {
                        world.wrong(format!("legs differ while they are used: {found:?}"));
                        true
                    }
                    Ok(found) => found.complete,
                    Err(_) => false,
                };
                self.in_background(scrub, |t| &mut t.scrubbed);
            }
            22 => {
                // Somebody makes a copy of a leg, in the middle of it all.
                let which = self.rng.below(disks.len() as u64) as usize;
                let disk = &mut disks[which];
                disk.old = Some(disk.medium.contents());
            }
            16 => self.old_copy_online(disks),
            17 => self.missing_online(disks),
            18 => self.drop_in_resync(disks),
            19 => self.grow(),
            20..=21 => {
                // All that is quiet becomes clean.
                self.in_background(|m| (0..4).any(|_| m.tick().is_err()), |t| &mut t.failed);
            }
            0..=2 => self.in_background(|m| m.tick().is_err(), |t| &mut t.failed),
            3..=5 => {
                let throttle = ResyncThrottle { regions: Some(4), ..ResyncThrottle::default() };
                let throttle =
                    if self.rng.percent(50) { throttle } else { ResyncThrottle::default() };
                let resync = move |m: &Mirror| m.resync(throttle).is_ok_and(|r| r.regions > 0);
                self.in_background(resync, |t| &mut t.resynced);
            }
            6 => {
                let policies = policies(&mut self.rng);
                self.in_background(move |m| m.set_policies(policies).is_err(), |t| &mut t.failed);
            }
            7 => {
                if let Some((slot, _)) = self.leg(|s| s == LegState::Okay, true) {
                    self.in_background(move |m| m.offline(slot).is_ok(), |t| &mut t.offline);
                }
            }
            8..=9 => {
                let away = |s| matches!(s, LegState::Offline | LegState::NeedsMaintenance);
                if let Some((slot, name)) = self.leg(away, true) {
                    repair(disks, &name, &mut self.rng);
                    self.in_background(move |m| m.online(slot, None).is_ok(), |t| &mut t.online);
                }
            }
            10 => {
                if let Some((slot, name)) = self.leg(|s| s != LegState::Unavailable, true) {
                    repair(disks, &name, &mut self.rng);
                    self.in_background(move |m| m.replace(slot, None).is_ok(), |t| &mut t.replaced);
                }
            }
            11 if disks.len() < 5 => {
                let name = format!("new{boot}.{}", disks.len());
                let volatile = self.rng.percent(30);
                let medium = Medium::any(&name, volatile, &mut self.rng);
                let disk = plugged(medium, &mut self.rng);
                let new = disk.medium.leg(&disk.plugged);
                disks.push(disk);
                self.in_background(move |m| m.attach(&new).is_ok(), |t| &mut t.attached);
            }
            12 => {
                // Not one that is missing: it may alone hold something.
                if let Some((slot, _)) = self.leg(|s| s != LegState::Unavailable, true) {
                    self.in_background(move |m| m.detach(slot).is_ok(), |t| &mut t.dropped);
                }
            }
            _ => self.fault(disks),
        }
    }

    /// An old copy of a leg that is out of use comes in its place.
    fn old_copy_online(&mut self, disks: &mut [Disk]) {
        let away = |s| matches!(s, LegState::Offline | LegState::NeedsMaintenance);
        let Some((slot, name)) = self.leg(away, false) else { return };
        let newest = newest_label(disks);
        let Some(disk) = disks.iter_mut().find(|d| d.medium.name == name) else { return };
        let Some(old) = disk.old.take() else { return };
        let copy = Medium::new(&name, false, old.snapshot());
        if !is_recognized(&copy, newest.as_ref()) {
            return;
        }
        disk.plugged.unplug();
        disk.put_in(Medium::new(&name, false, old));
        disk.plugged = disk.medium.plug(micros(&mut self.rng));
        let device = Arc::clone(&disk.plugged.device);
        self.in_background(move |m| m.online(slot, Some(device)).is_ok(), |t| &mut t.old_online);
    }

    /// A leg that was not there when the mirror was assembled is plugged in.
    fn missing_online(&mut self, disks: &mut [Disk]) {
        let Some(disk) = disks.iter_mut().find(|disk| disk.absent) else { return };
        let name = disk.medium.name.clone();
        let Some((slot, _)) = self.mirror.status().legs.iter().find_map(|leg| {
            (leg.name == name && leg.state == LegState::Unavailable).then_some((leg.slot, ()))
        }) else {
            return;
        };
        disk.absent = false;
        let device = Arc::clone(&disk.plugged.device);
        self.in_background(
            move |m| m.online(slot, Some(device)).is_ok(),
            |t| &mut t.missing_online,
        );
    }

    /// A leg fails a flush while it is given what it lacks, and comes back at once.
    fn drop_in_resync(&mut self, disks: &[Disk]) {
        let Some((slot, name)) = self.leg(|s| s == LegState::Resyncing, false) else { return };
        let Some(disk) = disks.iter().find(|d| d.medium.name == name) else { return };
        self.in_background(|m| m.resync(ResyncThrottle::default()).is_ok(), |t| &mut t.resynced);
        sleep(Duration::from_micros(self.rng.below(200)));
        let failing = FaultRule::new(Ops::FLUSH, Effect::Fail("injected".into())).nth(1);
        disk.plugged.with(Some(failing), micros(&mut self.rng));
        self.in_background(
            move |m| m.flush().is_ok() && m.online(slot, None).is_ok(),
            |t| &mut t.dropped_in_resync,
        );
    }

    /// The volume becomes a region or two larger.
    fn grow(&mut self) {
        let size = self.mirror.info().size + (1 + self.rng.below(2)) * REGION * BLOCK;
        let (mirror, world) = (self.mirror.clone(), Arc::clone(&self.world));
        spawn("grow", move || {
            if size <= 1200 << 10 && mirror.grow(Some(size)).is_ok() && !world.stopped() {
                world.truth.lock().grow(size / BLOCK);
                world.tally.lock().grown += 1;
            }
        });
    }

    /// One leg begins to fail, or stops failing.
    fn fault(&mut self, disks: &[Disk]) {
        let disk = &disks[self.rng.below(disks.len() as u64) as usize];
        let text = || "injected".to_owned();
        let ops = [Ops::WRITE, Ops::FLUSH, Ops::READ, Ops::ALL][self.rng.below(4) as usize];
        let nth = 1 + self.rng.below(6);
        let rule = match self.rng.below(6) {
            0 => Some(FaultRule::new(ops, Effect::Fail(text())).nth(nth)),
            1 => Some(FaultRule::new(ops, Effect::Fail(text()))),
            2 => Some(FaultRule::new(Ops::WRITE, Effect::Torn(4096)).nth(nth)),
            3 => Some(FaultRule::new(ops, Effect::FailAfter(text())).nth(nth)),
            _ => None,
        };
        let micros = micros(&mut self.rng);
        disk.plugged.with(rule, micros);
    }
}

/// Whether something has gone bad since the mirror was assembled.
fn is_rotten(world: &World) -> bool {
    world.rot.as_ref().is_some_and(|rot| rot.lock().is_there())
}

type Count = fn(&mut super::Tally) -> &mut u64;

/// The leg's own device works again.
fn repair(disks: &[Disk], name: &str, rng: &mut Rng) {
    if let Some(disk) = disks.iter().find(|d| d.medium.name == name) {
        disk.plugged.with(None, micros(rng));
    }
}
