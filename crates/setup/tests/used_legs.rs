//! A mirror made on devices that hold something, each something else: the power is cut at each
//! point from before it is made until it is closed, and it is assembled from what that leaves.

use std::fs;
use std::sync::Arc;
use std::time::Duration;

use steadfast_block::BlockDevice;
use steadfast_block::rng::Rng;
use steadfast_devices::filter::record::{DeviceId, Record, RecordLog};
use steadfast_devices::model::Model;
use steadfast_devices::store::Store;
use steadfast_runtime::sleep;
use steadfast_setup::{Devices, Overwrite, Setup, SetupError, Volumes, path};
use steadfast_volume::{AssembleOptions, LegState, Mirror, Policies, ReadPolicy, ResyncThrottle};

const BLOCK: u64 = 4096;
const SECTOR: usize = 512;
const LEG: u64 = 2 << 20;

/// What is done with the mirror. Each write has a tag of its own: its place here.
#[derive(Clone, Copy)]
enum Step {
    Write(u64),
    Flush,
    /// Until regions have become clean.
    Rest,
}

const STEPS: [Step; 12] = [
    Step::Write(0),
    Step::Write(17),
    Step::Flush,
    Step::Write(0),
    Step::Rest,
    Step::Write(1),
    Step::Write(33),
    Step::Flush,
    Step::Rest,
    Step::Write(17),
    Step::Write(50),
    Step::Flush,
];

fn setup(a: &str, b: &str) -> Setup {
    let text = format!(
        "[stack]\ndisk = 'both'\n[volume.both]\nkind = 'mirror'\nmembers = ['a', 'b']\n\
         size = '512k'\nregion_kb = 64\n[device.a]\n{a}\n[device.b]\n{b}\n"
    );
    Setup::parse(&text, "s.toml").unwrap_or_else(|e| panic!("{e}"))
}

/// What a leg held before.
fn junk(leg: u64) -> Vec<u8> {
    let mut rng = Rng::new(leg);
    (0..LEG).map(|_| 128 | rng.bits() as u8).collect()
}

fn tag(step: usize) -> u8 {
    step as u8 + 1
}

fn step(disk: &Arc<dyn BlockDevice>, n: usize) {
    match STEPS[n] {
        Step::Write(block) => {
            disk.write(block * BLOCK, vec![tag(n); BLOCK as usize].into()).unwrap();
        }
        Step::Flush => disk.flush().unwrap(),
        Step::Rest => sleep(Duration::from_secs(5)),
    }
}

/// What a block may hold where so many steps have begun, and so many are done.
fn allowed(block: u64, begun: usize, done: usize) -> Vec<u8> {
    let flushed = (0..done).rev().find(|n| matches!(STEPS[*n], Step::Flush)).unwrap_or(0);
    let writes = |n: &usize| matches!(STEPS[*n], Step::Write(at) if at == block);
    let promised = (0..flushed).rev().find(writes).map_or(0, tag);
    std::iter::once(promised).chain((flushed..begun).filter(writes).map(tag)).collect()
}

fn contents(mirror: &Mirror, slot: usize) -> Vec<u8> {
    let read = ReadPolicy::Preferred(slot);
    mirror.set_policies(Policies { read, ..Policies::default() }).unwrap();
    mirror.read(0, mirror.info().size).unwrap().to_vec()
}

/// What is read is what was promised, or was written since; the same from each leg, before the
/// resync and after it, when the legs hold the same.
fn judge(mirror: &Mirror, begun: usize, done: usize) {
    let first = contents(mirror, 0);
    for (block, data) in (0..).zip(first.chunks(BLOCK as usize)) {
        let may = allowed(block, begun, done);
        let is_one =
            |sector: &[u8]| may.contains(&sector[0]) && sector.iter().all(|b| *b == sector[0]);
        assert!(data.chunks(SECTOR).all(is_one), "block {block} is none of {may:?}");
    }
    assert!(contents(mirror, 1) == first, "the legs are read differently");
    mirror.resync(ResyncThrottle::default()).unwrap();
    assert!((0..2).all(|slot| contents(mirror, slot) == first), "a resync changed something");
    let scrubbed = mirror.scrub(false, ResyncThrottle::default()).unwrap();
    assert!(scrubbed.clean && scrubbed.complete, "{scrubbed:?}");
    assert!(mirror.status().legs.iter().all(|leg| leg.state == LegState::Okay));
}

#[test]
fn a_mirror_on_used_devices_survives_a_cut_at_each_point() {
    const RAM: &str = "kind = 'ram'\nsize = '2m'\npersistent = true\nvolatile_cache = true";
    let setup = setup(RAM, RAM);
    let cuts = setup.simulation(3).run(move || {
        let holding = |contents: &[Store]| {
            let devices = Devices::build(&setup).unwrap();
            for (device, store) in devices.all().zip(contents) {
                device.set_contents(store.clone()).unwrap();
            }
            devices
        };
        let bases: Vec<Store> = (1..=2)
            .map(|leg| {
                let mut store = Store::new(LEG);
                store.write_slice(0, &junk(leg));
                store
            })
            .collect();
        let log = RecordLog::new();
        let mut recorded = |_: &str, model: &Arc<dyn Model>| {
            Arc::new(Record::new(Arc::clone(model) as Arc<_>, &log)) as Arc<_>
        };
        let devices = holding(&bases);
        let blocks = devices.blocks_over(Volumes::NewOnUsed, &mut recorded).unwrap();
        let made = log.note(0, [0; 3]).tick;
        let ticks = (0..STEPS.len()).map(|n| {
            let begun = log.note(0, [0; 3]).tick;
            step(&blocks.disk, n);
            (begun, log.note(0, [0; 3]).tick)
        });
        let ticks: Vec<(u64, u64)> = ticks.collect();
        blocks.close().unwrap();
        let recording = log.take();
        let cuts = recording.first_crash_point()..=recording.last_crash_point();
        for cut in cuts.clone() {
            let begun = ticks.iter().filter(|(begun, _)| *begun < cut).count();
            let done = ticks.iter().filter(|(_, done)| *done < cut).count();
            // Of what is in doubt: nothing, all, what one leg has, and something.
            for kept in 0..6 {
                let mut rng = Rng::new(cut * 8 + kept);
                let left = bases.iter().zip(0..).map(|(base, leg)| {
                    let at = recording.at(DeviceId(leg), cut);
                    at.contents_where(base, 0, |_, _| match kept {
                        0..4 => kept >> leg & 1 == 1,
                        _ => rng.percent(50),
                    })
                });
                let left: Vec<Store> = left.collect();
                let mut plain = |_: &str, model: &Arc<dyn Model>| Arc::clone(model) as Arc<_>;
                let booted = match holding(&left).blocks_over(Volumes::Found, &mut plain) {
                    Ok(booted) => booted,
                    // It was not made yet.
                    Err(SetupError::VolumeMissing { .. }) if cut <= made => continue,
                    Err(error) => panic!("cut {cut}, {kept}: {error}"),
                };
                judge(&booted.volumes.last_mirror().unwrap(), begun, done);
            }
        }
        cuts.count()
    });
    let cuts = cuts.unwrap();
    assert!(cuts > 100, "{cuts}");
}

/// The same of files of this machine, which `--destroy` gives to a mirror, after a process that was
/// killed: they hold all that was written.
#[test]
fn a_mirror_of_paths_survives_a_kill_after_each_step() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str| folder.path().join(name);
    let (legs, left) = (["a", "b"].map(file), ["left-a", "left-b"].map(file));
    for (leg, n) in legs.iter().zip(1..) {
        fs::write(leg, junk(n)).unwrap();
    }
    let [a, b] = legs.each_ref().map(|leg| format!("path = '{}'", leg.display()));
    let blocks = setup(&a, &b).topology.open("both", Overwrite::Anything).unwrap();
    for n in (0..STEPS.len()).filter(|n| !matches!(STEPS[*n], Step::Rest)) {
        step(&blocks.disk, n);
        for (leg, left) in legs.iter().zip(&left) {
            fs::copy(leg, left).unwrap();
        }
        let (_, volume) = path::assembled(&left, &AssembleOptions::default(), false)
            .unwrap_or_else(|error| panic!("step {n}: {error}"));
        judge(&volume.mirror.unwrap(), n + 1, n + 1);
    }
    blocks.close().unwrap();
}
