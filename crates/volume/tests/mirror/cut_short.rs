//! A leg that is a file of this machine, which somebody cuts short while the mirror is used, and
//! then a power cut at each request.

use std::fs::{self, File};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use steadfast_block::rng::Rng;
use steadfast_block::{BlockDevice, Completion, DeviceInfo, Persistence, Request};
use steadfast_devices::filter::Fault;
use steadfast_devices::source::{FileDevice, FileOptions};
use steadfast_runtime::{Mutex, Sim, sleep, spawn};
use steadfast_volume::{
    AssembleOptions, Mirror, MirrorOptions, NewLeg, Policies, ReadPolicy, ResyncThrottle, assemble,
    create_mirror,
};

use crate::bench::{BLOCK, DATA, Device, degraded, options, plain};
use crate::campaign::media::{LEG_BYTES, Medium};
use crate::campaign::truth::{Truth, bytes_of};
use crate::gate::Gate;

/// What is done with the mirror.
#[derive(Clone, Copy)]
enum Step {
    Write(u64, bool),
    Flush,
    /// The labels are written, one of them at the end of each leg.
    Relabel,
}
use Step::{Flush, Relabel, Write};

const STEPS: [Step; 12] = [
    Write(0, false),
    Write(20, false),
    Flush,
    Relabel,
    Write(63, false),
    Write(0, true),
    Flush,
    Relabel,
    Write(21, false),
    Flush,
    // Of a region that is dirty: nothing but the data is written.
    Write(21, false),
    Flush,
];

/// Where the file ends from then on: nothing is left, the labels, some data in the middle of a
/// block, all but the label at the end.
const LEFT: [u64; 4] = [0, 8192, DATA + 20 * BLOCK + 512, LEG_BYTES - 8192];

/// What was done before the power went.
#[derive(Default)]
struct Done {
    truth: Option<Truth>,
    is_short: bool,
    /// A flush was acknowledged after the file was cut short.
    flushed_since: bool,
}

/// A file that counts as durable wherever it is: in memory a flush takes no time.
struct Durable(FileDevice);

impl BlockDevice for Durable {
    fn info(&self) -> DeviceInfo {
        DeviceInfo { persistence: Persistence::Persistent, ..self.0.info() }
    }

    fn submit(&self, request: Request) -> Completion {
        self.0.submit(request)
    }
}

fn open(file: &Path) -> Option<Device> {
    Some(Arc::new(Durable(FileDevice::open(file, &FileOptions::default()).ok()?)))
}

/// Cuts the file before a step, and the power before a request; whether there were so many.
fn run((step, left): (usize, u64), power: u64) -> bool {
    let folder = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap();
    let path = |name: &str| folder.path().join(name);
    let [file, kept] = ["leg1", "kept"].map(path);
    File::create(&file).unwrap().set_len(LEG_BYTES).unwrap();

    let medium = Medium::used("leg0", false, &mut Rng::new(1));
    let plug = medium.plug(10);
    let fault = Fault::new(open(&file).unwrap());
    let faults = fault.faults();
    let gates = [Gate::new(plug.device), Gate::new(Arc::new(fault))];
    let legs = gates.each_ref().map(|gate| NewLeg::new(Arc::new(gate.clone())));
    let small = MirrorOptions { size: Some(256 << 10), ..options() };
    let mirror = create_mirror("m", &legs, &small).unwrap();
    drop(legs);
    fs::copy(&file, &kept).unwrap();

    let (seen, over) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicBool::new(false)));
    for gate in &gates {
        let seen = Arc::clone(&seen);
        gate.shut(move |_| seen.fetch_add(1, Ordering::SeqCst) >= power);
    }
    let is_off = move || seen.load(Ordering::SeqCst) > power;
    let truth = Some(Truth::new(mirror.info().size / BLOCK));
    let done = Arc::new(Mutex::new(Done { truth, ..Done::default() }));
    let task = {
        let (mirror, done, over, file) = (mirror.clone(), done.clone(), over.clone(), file.clone());
        spawn("steps", move || {
            steps(&mirror, &done, (&file, &kept), (step, left));
            over.store(true, Ordering::SeqCst);
        })
    };
    while !is_off() && !over.load(Ordering::SeqCst) {
        sleep(Duration::from_micros(5));
    }
    let was_cut = is_off();
    plug.faults.take_away("the power was cut");
    faults.take_away("the power was cut");
    gates.iter().for_each(Gate::open);
    task.join().unwrap();
    drop((mirror, gates));
    medium.cut(power);

    let Done { truth, is_short, flushed_since } = std::mem::take(&mut *done.lock());
    let len = fs::metadata(&file).unwrap().len();
    assert!((len < LEG_BYTES) == is_short, "it was made long again");
    let truth = truth.unwrap();
    // That the file was cut short may be lost with the power, and all that was not flushed.
    for file in [file, path("kept")] {
        let first = Medium::new("leg0", false, medium.contents());
        let devices: Vec<Device> = [first.plug(10).device].into_iter().chain(open(&file)).collect();
        let found = |how: &AssembleOptions| assemble(&devices, how).volumes.pop();
        let alone = found(&plain());
        assert!(alone.is_some() || is_short && !flushed_since, "leg 0 does not know that it may");
        let mirror = alone.or_else(|| found(&degraded())).unwrap().mirror.unwrap();
        let first = contents(&mirror, 0);
        for (block, bytes) in (0..).zip(first.chunks(BLOCK as usize)) {
            truth.check_cut(block, bytes).unwrap();
        }
        assert!(contents(&mirror, 1) == first, "the legs are read differently");
        mirror.resync(ResyncThrottle::default()).unwrap();
        assert!((0..2).all(|slot| contents(&mirror, slot) == first));
        let scrubbed = mirror.scrub(false, ResyncThrottle::default()).unwrap();
        assert!(scrubbed.clean && scrubbed.complete, "{scrubbed:?}");
    }
    was_cut
}

fn steps(
    mirror: &Mirror,
    done: &Mutex<Done>,
    (file, kept): (&Path, &Path),
    (cut_at, left): (usize, u64),
) {
    let with = |of: &mut dyn FnMut(&mut Truth)| done.lock().truth.iter_mut().for_each(of);
    for (n, step) in STEPS.into_iter().enumerate() {
        if n == cut_at {
            File::options().write(true).open(file).unwrap().set_len(left).unwrap();
            done.lock().is_short = true;
        }
        let is_done = match step {
            Relabel => mirror.set_policies(mirror.policies()).is_ok(),
            Flush => {
                let mut promised = Vec::new();
                with(&mut |truth| promised = truth.flush_begins());
                let is_done = mirror.flush().is_ok();
                if is_done {
                    with(&mut |truth| truth.flush_done(&promised));
                    done.lock().flushed_since |= n >= cut_at;
                }
                if is_done && n < cut_at {
                    fs::copy(file, kept).unwrap();
                }
                is_done
            }
            Write(block, fua) => {
                let mut tag = 0;
                with(&mut |truth| tag = truth.begin(block, 1, false));
                let (offset, data) = (block * BLOCK, bytes_of(tag, block).into());
                let write = Request::Write { offset, data, fua };
                let is_done = mirror.submit(write).wait().is_ok();
                if is_done {
                    with(&mut |truth| truth.done(block, 1, fua));
                }
                is_done
            }
        };
        if !is_done {
            return;
        }
    }
}

fn contents(mirror: &Mirror, slot: usize) -> Vec<u8> {
    let read = ReadPolicy::Preferred(slot);
    mirror.set_policies(Policies { read, ..Policies::default() }).unwrap();
    mirror.read(0, mirror.info().size).unwrap().to_vec()
}

/// Nothing that was acknowledged is on the missing part alone: the other leg has all of it, and
/// knows that it does.
#[test]
fn rule_a_file_that_is_cut_short_is_no_leg_after_a_power_cut() {
    for short in [1, 3, 5, 7, 11].into_iter().flat_map(|step| LEFT.map(|left| (step, left))) {
        let cut = |power: &u64| {
            Sim::new(5).run({
                let power = *power;
                move || run(short, power)
            })
        };
        let cuts = (0..).take_while(|power| cut(power).unwrap()).count();
        assert!(cuts > 10, "{short:?}: {cuts}");
    }
}
