//! Every workload gets every kind of crash: second cuts, torn words, lost devices, flushes that are
//! omitted or ignored, recovery by the kernel, and the file system used after it. Here: the mixed
//! workload, and a program.

// A skipped test says why.
#![allow(clippy::print_stdout)]

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use steadfast_crash::explore::{
    CrashPoints, CutSource, OnRam, Plan, RebootTarget, SecondCuts, explore,
};
use steadfast_crash::figures::{Figures, StateFigures};
use steadfast_crash::kernel::Kernel;
use steadfast_crash::opinion::Opinion;
use steadfast_crash::program::inside::{InProcessRun, Program};
use steadfast_crash::states::StateBound;
use steadfast_devices::filter::record::Media;
use steadfast_devices::model::{ModelParams, NvramParams, SsdParams};
use steadfast_ext4::MountOptions;
use steadfast_selftest::losses::{LosingMachine, Loss};
use steadfast_selftest::mixed::{MixedMachine, Setup};
use steadfast_vfs::{NewNode, OpenFlags};

const DISK: u64 = 24 << 20;
/// Index of the journal's device.
const CARD: usize = 1;
const TRIALS: Plan = Plan::trials(CrashPoints::Spread(24), 3);
/// The dangerous instants.
const AROUND: Plan = Plan::trials(CrashPoints::Boundaries(24), 3);

/// A workload that was recorded with its journal on another device, and what recovers it.
struct Ran {
    name: &'static str,
    machine: Arc<dyn RebootTarget>,
    /// What boots from the disk alone.
    without: Arc<dyn RebootTarget>,
    recorded: CutSource,
}

fn mixed() -> Ran {
    let setup = Setup { external: true, ..Setup::PLAIN };
    let machine = MixedMachine { setup, disk_bytes: DISK };
    let recorded = machine.record(1, 2, 40).unwrap();
    let without = MixedMachine { setup: Setup::PLAIN, ..machine };
    Ran { name: "mixed", machine: Arc::new(machine), without: Arc::new(without), recorded }
}

fn program() -> Ran {
    let options = MountOptions::default();
    let card = NvramParams { size_mib: 16, initialised: true, ..NvramParams::default() };
    let inside = InProcessRun {
        options: options.clone(),
        disk: ModelParams::Ssd(SsdParams::default()).test_disk(DISK),
        journal: Some(ModelParams::Nvram(card)),
        lying: false,
        seed: 1,
        linger: Duration::from_secs(1),
    };
    let prepare: Program = Box::new(|_, _| Ok(()));
    let work: Program = Box::new(|fs, _| {
        let words = |e: steadfast_vfs::FsError| e.to_string();
        for n in 0..12 {
            let name = format!("file{n}");
            let made = fs.create(fs.root(), name.as_bytes(), NewNode::default(), OpenFlags::WRITE);
            let (_, fh) = made.map_err(words)?;
            fs.write(fh, 0, Bytes::from(vec![n; 9000])).map_err(words)?;
            fs.fsync(fh, false).map_err(words)?;
            fs.release(fh).map_err(words)?;
            fs.fsyncdir(fs.root()).map_err(words)?;
        }
        Ok(())
    });
    let run = inside.record(prepare, work).unwrap();
    let machine = OnRam::new(options).shared();
    let recorded = run.recorded(&machine).unwrap();
    Ran { name: "program", without: Arc::clone(&machine), machine, recorded }
}

impl Ran {
    fn again(&self) -> CutSource {
        self.recorded.on_media(0, Media::Sectors)
    }

    fn losing(&self, loss: Loss) -> Arc<LosingMachine> {
        let last = self.recorded.recording.last_crash_point();
        let machines = (&self.machine, &self.without);
        LosingMachine::new(machines, &self.recorded, last, (CARD, loss))
    }

    fn explore(&self, recorded: CutSource, plan: &Plan) -> Figures {
        let figures = explore(&self.machine, recorded, plan, &|_| ());
        assert_eq!(figures.not_judged, None, "{}: {plan:?}", self.name);
        figures
    }

    /// Nothing is wrong with it; how many states there were.
    fn is_well(&self, plan: &Plan) -> usize {
        let figures = self.explore(self.again(), plan);
        assert_eq!(
            figures.count(StateFigures::is_wrong),
            0,
            "{}: {plan:?}: {:#?}",
            self.name,
            figures.findings
        );
        figures.cuts.len()
    }
}

fn each(test: impl Fn(&Ran)) {
    [mixed(), program()].iter().for_each(test);
}

#[test]
fn second_cuts() {
    each(|ran| {
        let percent = SecondCuts { percent: 100, ..SecondCuts::NONE };
        assert_eq!(ran.is_well(&Plan { second: percent, ..TRIALS }), 24);
        let every = SecondCuts { every: 4, whole_every: 12, ..SecondCuts::NONE };
        let states = ran.is_well(&Plan { second: every, e2fsck_every: 6, ..TRIALS });
        // One of each of six, and more of two.
        assert!(states > 24 + 6 + 2, "{}: {states}", ran.name);
    });
}

#[test]
fn by_rule_and_version_by_version() {
    each(|ran| {
        for bound in
            [StateBound { states: 6, ..StateBound::default() }, StateBound::exhaustive(4, false, 1)]
        {
            let plan = Plan { bound, places: CrashPoints::Sampled(24), ..TRIALS };
            let states = ran.is_well(&plan);
            assert!(states > 24, "{}: {states}", ran.name);
        }
    });
}

#[test]
fn a_lost_device_is_refused_and_nothing_is_written() {
    each(|ran| {
        for loss in [Loss::Absent, Loss::Zeros, Loss::Noise(1)] {
            let losing = ran.losing(loss);
            let machine = Arc::clone(&losing) as Arc<dyn RebootTarget>;
            let figures = explore(&machine, ran.again(), &AROUND, &|_| ());
            let refused = figures.count(|cut| cut.refused.is_some());
            let found = (figures.not_judged.is_none(), refused, losing.changes());
            assert_eq!(found, (true, 24, 0), "{}: {loss}: {:#?}", ran.name, figures.findings);
        }
        let machine: Arc<dyn RebootTarget> = ran.losing(Loss::None);
        let figures = explore(&machine, ran.again(), &AROUND, &|_| ());
        assert_eq!(figures.not_judged, None, "{}", ran.name);
        assert_eq!(figures.count(StateFigures::is_wrong), 0, "{}: {figures:#?}", ran.name);
    });
}

/// Torn words are more than a disk may do, but the log's checksums detect them.
#[test]
fn torn_words_and_garbage() {
    each(|ran| {
        for media in [Media::Words, Media::Garbage] {
            let figures = ran.explore(ran.recorded.on_media(CARD as u32, media), &AROUND);
            let damaged = figures.count(|cut| cut.refused.is_some() || !cut.damage.is_empty());
            assert_eq!(damaged, 0, "{}: {media}: {:#?}", ran.name, figures.findings);
            let on_disk = ran.explore(ran.recorded.on_media(0, media), &AROUND);
            assert_eq!(on_disk.cuts.len(), 24, "{}: {media}", ran.name);
        }
    });
}

/// The controls: what keeps promises is left out.
#[test]
fn flushes_omitted_and_ignored_break_promises() {
    each(|ran| {
        assert!(ran.recorded.needs_flushes() && ran.recorded.is_honest(), "{}", ran.name);
        let lying = ran.recorded.on_lying_devices(16 << 20, Duration::from_secs(5));
        for recorded in [ran.recorded.without_flushes(), lying] {
            let figures = ran.explore(recorded, &TRIALS);
            assert!(figures.count(StateFigures::is_wrong) > 0, "{}", ran.name);
        }
    });
}

#[test]
fn used_after_recovery() {
    each(|ran| {
        ran.is_well(&Plan { use_it: true, ..TRIALS });
    });
}

#[test]
fn recovered_by_the_kernel() {
    if let Err(why) = Kernel::find() {
        println!("SKIPPED: {why}");
        return;
    }
    each(|ran| {
        let plan = Plan { kernel_every: 6, ..TRIALS };
        let figures = ran.explore(ran.again(), &plan);
        let clean = figures.count(|cut| cut.kernel == Some(Opinion::Clean));
        assert_eq!(clean, 4, "{}: {:#?}", ran.name, figures.findings);
    });
}
