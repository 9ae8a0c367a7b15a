//! Seeded runs of a mirror of which one leg is a mirror itself: the power is cut, members are
//! missing, and everything that was promised must be there.

use std::sync::Arc;
use std::time::Duration;

use steadfast_block::rng::Rng;
use steadfast_block::{BlockDevice, Request};
use steadfast_runtime::{Mutex, Sim, sleep, spawn};
use steadfast_volume::{
    AssembleOptions, AssemblyReport, Mirror, MirrorOptions, NewLeg, ResyncThrottle, assemble,
    create_mirror,
};

use crate::campaign::media::{Medium, Plugged};
use crate::campaign::truth::{BLOCK, Truth};
use crate::campaign::{Tally, World, work};

/// The disks of the inner mirror come first.
const INNER: usize = 2;

fn options(size: u64, checksums: bool) -> MirrorOptions {
    let (size, region_bytes) = (Some(size), Some(64 << 10));
    MirrorOptions { size, region_bytes, checksums, ..MirrorOptions::default() }
}

/// One run; what was wrong, if anything.
pub fn run(seed: u64) -> Result<Tally, String> {
    let outcome = Sim::new(seed).run(move || simulated(seed));
    outcome.map_err(|e| format!("seed {seed}: {e}"))?.map_err(|e| format!("seed {seed}: {e}"))
}

fn simulated(seed: u64) -> Result<Tally, String> {
    let mut rng = Rng::new(seed ^ 0x6e65_7374);
    let media: Vec<Medium> =
        (0..4).map(|n| Medium::used(&format!("disk{n}"), false, &mut rng)).collect();
    // Always the same of the inner ones: when each goes on without the other they are apart.
    let away = [rng.below(2) as usize, 2, 3, 4, 4];
    let mut plugs: Vec<Plugged> = media.iter().map(|m| m.plug(10)).collect();
    let leg = |n: usize| NewLeg::new(Arc::clone(&plugs[n].device));
    let inner = create_mirror("inner", &[leg(0), leg(1)], &options(2 << 20, seed % 4 == 1))
        .map_err(|e| format!("create: {e}"))?;
    let on_inner: Arc<dyn BlockDevice> = Arc::new(inner.clone());
    let legs = [NewLeg::new(on_inner), leg(2), leg(3)];
    let mut outer = create_mirror("outer", &legs, &options(768 << 10, seed % 3 == 1))
        .map_err(|e| format!("create: {e}"))?;
    let mut inner = Some(inner);
    let world = Arc::new(World {
        truth: Mutex::new(Truth::new(outer.info().size / BLOCK)),
        tally: Mutex::default(),
        wrong: Mutex::new(None),
        stop: Mutex::new(false),
        rot: None,
        together: None,
        held_before: Mutex::new(None),
        begun: Mutex::new(0),
    });
    for boot in 0..2 + rng.below(3) {
        let failed = |what: String| format!("boot {boot}: {what}");
        *world.stop.lock() = false;
        let mut busy = work::begin(&world, &outer, rng.bits());
        for mirror in inner.iter().chain([&outer]) {
            let mirror = mirror.clone();
            spawn("upkeep", move || {
                while mirror.tick().is_ok() && mirror.resync(ResyncThrottle::default()).is_ok() {
                    sleep(Duration::from_micros(700));
                }
            });
        }
        sleep(Duration::from_micros(300 + rng.below(4_000)));
        *world.stop.lock() = true;
        plugs.iter().for_each(Plugged::unplug);
        drop((outer, inner.take()));
        busy.drain(..).for_each(|task| drop(task.join()));
        if let Some(wrong) = world.wrong.lock().take() {
            return Err(failed(wrong));
        }
        world.tally.lock().cuts += 1;
        media.iter().for_each(|m| m.cut(rng.bits()));
        plugs = media.iter().map(|m| m.plug(10)).collect();
        // One disk is missing, or none; it is back the next time.
        let missing = away[rng.below(away.len() as u64) as usize];
        let found = reboot(&plugs, missing, &mut rng).map_err(failed)?;
        if missing < media.len() {
            world.tally.lock().degraded += 1;
        }
        let mirror = |name: &str| {
            found.volumes.iter().find(|v| v.name == name).and_then(|v| v.mirror.clone())
        };
        inner = mirror("inner");
        outer = mirror("outer").ok_or_else(|| failed("no outer mirror".into()))?;
        recovered(&world, &outer).map_err(failed)?;
    }
    Ok(*world.tally.lock())
}

fn reboot(plugs: &[Plugged], missing: usize, rng: &mut Rng) -> Result<AssemblyReport, String> {
    let here = plugs.iter().enumerate().filter(|(n, _)| *n != missing);
    let mut devices: Vec<Arc<dyn BlockDevice>> = here.map(|(_, p)| Arc::clone(&p.device)).collect();
    if rng.percent(50) {
        devices.reverse();
    }
    let found = assemble(&devices, &AssembleOptions { degraded: true, ..Default::default() });
    let names: Vec<&str> = found.volumes.iter().map(|v| v.name.as_str()).collect();
    let problems: Vec<String> =
        found.problems.iter().map(|(name, e)| format!("{name}: {e}")).collect();
    if names != ["inner", "outer"] || !problems.is_empty() {
        return Err(format!("without disk {missing}: {names:?}, {problems:?}"));
    }
    // The outer mirror has all legs that there are.
    let legs = found.volumes[1].members.len();
    if legs != 3 - usize::from((INNER..4).contains(&missing)) {
        return Err(format!("without disk {missing} the outer mirror has {legs} legs"));
    }
    Ok(found)
}

fn recovered(world: &World, outer: &Mirror) -> Result<(), String> {
    let mut truth = world.truth.lock();
    let len = truth.blocks() * BLOCK;
    let found = outer
        .submit(Request::Read { offset: 0, len })
        .wait()
        .map_err(|e| format!("reading after the cut: {e}"))?;
    for (block, bytes) in (0..).zip(found.chunks(BLOCK as usize)) {
        truth.check_cut(block, bytes)?;
        truth.settle(block, bytes);
    }
    Ok(())
}
