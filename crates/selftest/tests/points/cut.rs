//! Cutting the power, and what must hold then.

use std::sync::Arc;
use std::time::Duration;

use steadfast_block::rng::Rng;
use steadfast_crash::e2fsck::E2fsck;
use steadfast_crash::explore::{self as crash, CrashPoints, CutSource, Plan, SecondCuts};
use steadfast_crash::figures::StateFigures;
use steadfast_crash::judge::Judge;
use steadfast_crash::kernel::Kernel;
use steadfast_crash::opinion::Opinion;
use steadfast_devices::filter::record::Moment;
use steadfast_ext4::Ext4;
use steadfast_runtime::{Mutex, Sim, sleep, spawn};
use steadfast_selftest::points::{Points, Snapshot};
use steadfast_vfs::{FileSystem, Ino, NewNode};

use crate::machine::{Machine, Setup};
use crate::workload::Worker;

/// Every so many cuts e2fsck judges, too.
const E2FSCK_EVERY: u64 = 5;
/// States of each run that the kernel recovers too.
const KERNEL_MOUNTS: u64 = 8;
/// The age of a run in which a point was finished: begun, and done.
const FINISHED: u64 = 2;

/// One task changes things and makes points in between.
fn run_points(setup: Setup, seed: u64) -> CutSource {
    Sim::new(seed)
        .run(move || {
            let machine = Machine::new(setup);
            let fs = setup.mount(&machine.devices);
            let points = Arc::new(Points::new(&machine.log));
            points.transact(&*fs).unwrap();
            let mut rng = Rng::new(seed);
            let mut unwatched = |_: &Ext4, _, _| ();
            let mut worker = Worker::new(fs.root(), seed, &mut unwatched);
            for _ in 0..40 {
                for _ in 0..rng.below(25) {
                    worker.step(&fs);
                }
                if rng.percent(20) {
                    // Old enough that the page cache writes by itself.
                    sleep(Duration::from_secs(40));
                }
                points.transact(&*fs).unwrap();
            }
            drop(fs);
            machine.recorded(points)
        })
        .unwrap()
}

/// Cuts a run of one task.
pub fn explore_points(setup: Setup, seed: u64, cuts: u64) {
    explore(setup, seed, cuts, run_points(setup, seed));
}

/// After each of a task's calls: what its folder was, and when.
struct Step {
    begun: Moment,
    done: Moment,
    left: Snapshot,
}

/// Steps of each task, and the points: begun, done.
struct History {
    tasks: Vec<Vec<Step>>,
    points: Vec<(Moment, Moment)>,
}

const TASKS: u64 = 3;

/// Cuts a run in which several tasks work while points are made. What is left of each task's
/// folder must be what it was between two calls, and all must be of one point: not earlier
/// than what was done when it was begun, not later than what had begun when it was done.
pub fn explore_tasks(setup: Setup, seed: u64, cuts: u64) {
    explore(setup, seed, cuts, run_tasks(setup, seed));
}

fn folder(task: u64) -> Vec<u8> {
    format!("task{task}").into_bytes()
}

fn run_tasks(setup: Setup, seed: u64) -> CutSource {
    Sim::new(seed)
        .run(move || {
            let machine = Machine::new(setup);
            let fs = setup.mount(&machine.devices);
            let dirs: Vec<_> = (0..TASKS)
                .map(|t| fs.mkdir(fs.root(), &folder(t), NewNode::default()).unwrap().ino)
                .collect();
            let points = Arc::new(Mutex::new(Vec::new()));
            let make_point = {
                let (fs, log, points) = (fs.clone(), machine.log.clone(), points.clone());
                move || {
                    let begun = log.note(0, [0; 3]);
                    fs.transact().unwrap();
                    points.lock().push((begun, log.note(0, [1; 3])));
                }
            };
            make_point();
            let running: Vec<_> = dirs
                .into_iter()
                .zip(1..)
                .map(|(dir, i)| {
                    let (fs, log) = (fs.clone(), machine.log.clone());
                    let seed = seed * 10 + i;
                    spawn("worker", move || run_task(&fs, dir, seed, &|| log.note(0, [2; 3])))
                })
                .collect();
            let mut rng = Rng::new(seed);
            for _ in 0..60 {
                sleep(Duration::from_micros(rng.below(4000)));
                make_point();
            }
            let tasks = running.into_iter().map(|t| t.join().unwrap()).collect();
            make_point();
            drop((fs, make_point));
            let points = std::mem::take(&mut *points.lock());
            machine.recorded(Arc::new(History { tasks, points }))
        })
        .unwrap()
}

fn run_task(fs: &Ext4, dir: Ino, seed: u64, note: &dyn Fn() -> Moment) -> Vec<Step> {
    let took = |dir| Snapshot::take(fs, dir).unwrap();
    // The first is no call: the folder as it was made.
    let mut steps = vec![Step { begun: note(), done: note(), left: took(dir) }];
    let mut begun = None;
    let mut watch = |_: &Ext4, dir: Ino, after: bool| match begun.take() {
        Some(begun) if after => steps.push(Step { begun, done: note(), left: took(dir) }),
        _ => begun = Some(note()),
    };
    let mut worker = Worker::new(dir, seed, &mut watch);
    for _ in 0..120 {
        worker.step(fs);
        sleep(Duration::from_micros(300));
    }
    steps
}

impl History {
    fn compare(&self, left: &Snapshot, cut: u64) -> Result<(), String> {
        let last = self.points.iter().rposition(|(_, done)| done.tick < cut);
        let last = last.ok_or("no point was finished before the cut")?;
        let mut why = String::new();
        for (begun, done) in self.points[last..].iter().filter(|(begun, _)| begun.tick < cut) {
            match self.equals(left, *begun, done.tick.min(cut)) {
                Ok(()) => return Ok(()),
                Err(e) => why = e,
            }
        }
        Err(format!("not transaction point {last}: {why}"))
    }

    fn equals(&self, left: &Snapshot, begun: Moment, until: u64) -> Result<(), String> {
        for (task, steps) in self.tasks.iter().enumerate() {
            let found = left.below(&folder(task as u64));
            let first = steps.iter().rposition(|s| s.done.tick < begun.tick).unwrap_or(0);
            let end = steps.iter().take_while(|s| s.begun.tick < until).count().max(1);
            if !steps[first..end].iter().any(|s| s.left == found) {
                let how = steps[first].left.difference(&found).unwrap_or_default();
                return Err(format!("task {task}, steps {first}..{end}: {how}"));
            }
        }
        Ok(())
    }
}

impl Judge for History {
    fn judge(&self, fs: &dyn FileSystem, at: Moment, cut: &mut StateFigures) {
        let left = Snapshot::take(fs, fs.root()).unwrap();
        if self.age(at.tick) >= FINISHED
            && let Err(why) = self.compare(&left, at.tick)
        {
            cut.broken_promises += 1;
            cut.findings.push(why);
        }
    }

    fn age(&self, tick: u64) -> u64 {
        let before = |moment: &Moment| u64::from(moment.tick < tick);
        self.points.iter().map(|(begun, done)| before(begun) + before(done)).sum()
    }
}

fn explore(setup: Setup, seed: u64, cuts: u64, recorded: CutSource) {
    assert!(E2fsck::find().is_some(), "e2fsck is needed: apt-get install e2fsprogs");
    let judge = Arc::clone(&recorded.judge);
    let second = SecondCuts { every: 4, ..SecondCuts::NONE };
    let kernel_every = if setup.lying { 0 } else { cuts / KERNEL_MOUNTS };
    let plan = Plan {
        e2fsck_every: E2FSCK_EVERY,
        kernel_every,
        second,
        ..Plan::trials(CrashPoints::Spread(cuts), seed)
    };
    let machine: Arc<dyn crash::RebootTarget> = Arc::new(setup);
    let figures = crash::explore(&machine, recorded, &plan, &|_| ());
    assert_eq!(figures.findings, Vec::<String>::new(), "{setup:?}, seed {seed}");
    assert_eq!(figures.count(StateFigures::is_wrong), 0, "{setup:?}, seed {seed}");
    let judged = figures.count(|cut| judge.age(cut.tick) >= FINISHED);
    assert!(judged > cuts * 3 / 4, "{judged} of {cuts} cuts came after a point");
    for opinion in figures.cuts.iter().flat_map(|cut| cut.e2fsck.iter().chain(&cut.kernel)) {
        assert_eq!(*opinion, Opinion::Clean, "{setup:?}, seed {seed}");
    }
    let asked = figures.count(|cut| cut.kernel.is_some());
    match Kernel::find() {
        Ok(_) => assert_eq!(asked > 0, kernel_every > 0, "{setup:?}"),
        Err(why) => println!("SKIPPED: recovery by the kernel: {why}"),
    }
}
