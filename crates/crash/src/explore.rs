//! Cuts the power of a recorded run, lets the machine recover, and judges what is left.

mod instants;

use std::sync::Arc;

use steadfast_block::BlockDevice;
use steadfast_block::rng::Rng;
use steadfast_devices::filter::record::{DeviceId, Fate, Moment, RecordLog, Recording};
use steadfast_devices::source::Ram;
use steadfast_devices::store::Store;
use steadfast_runtime::{Sim, now};
use steadfast_vfs::path::resolve;
use steadfast_vfs::{FileSystem, FileType, FsError, OpenFlags};

use crate::e2fsck::E2fsck;
use crate::figures::{Cut, Figures};
use crate::judge::{Judge, judge};
use crate::kernel::Kernel;
use crate::ledger::{Action, Ledger, Operation};
use crate::program::{Call, Kind};

pub use instants::ActiveTime;
use instants::instants;

/// A machine whose power can be cut and returned: it knows how to build its devices around given
/// contents and to mount the file system on them.
pub trait Machine: Send + Sync {
    /// Power on with these contents, one for each recorded device in order: builds the devices and
    /// mounts, which recovers. Runs inside a simulation. An error is a refused mount, in words.
    /// With a log, the devices are recorded in it.
    fn power_on(&self, contents: Vec<Store>, log: Option<&RecordLog>) -> Result<Booted, String>;

    /// Index of the device that holds the file system.
    fn disk(&self) -> usize {
        0
    }

    /// Index of the device that holds an external journal.
    fn journal(&self) -> Option<usize> {
        None
    }
}

/// A machine that is up.
pub struct Booted {
    /// The mounted file system.
    pub fs: Arc<dyn FileSystem>,
    /// Unmounts and returns the devices' contents.
    pub shut_down: Box<dyn FnOnce() -> Result<Vec<Store>, String>>,
}

/// A recorded run, ready to be cut.
pub struct Recorded {
    /// Contents of each device when recording began, in the machine's order.
    pub bases: Vec<Store>,
    /// What the devices were asked.
    pub recording: Recording,
    /// Knows what the workload did and was promised.
    pub judge: Arc<dyn Judge>,
}

/// Where a run is cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Places {
    /// Every second cut evenly over the time without its pauses ([`ActiveTime`]), the others evenly
    /// over what happened.
    Spread,
    /// Around what makes something durable (see [`Recording::boundaries`]), evenly over those
    /// places: just before a flush has ended, and just after a write that is durable by itself.
    /// There the most is in doubt, and what relies on an order that was not kept is seen.
    Boundaries,
    /// While something was acknowledged and not promised (see [`Judge::unsynced`]): every second
    /// cut evenly over that time without its pauses, the others evenly over what happened in it. No
    /// cut, if that was never so.
    Unsynced,
}

/// How to cut.
#[derive(Debug, Clone)]
pub struct Plan {
    /// How many cuts.
    pub cuts: u64,
    /// Where.
    pub places: Places,
    /// Seed of the instants and of what survives.
    pub seed: u64,
    /// Judge every n-th recovered image with e2fsck too, where it is installed; 0: never.
    pub e2fsck_every: u64,
    /// After so many cuts in a hundred the power goes again, during recovery or just after it.
    pub again_percent: u64,
    /// Let the kernel recover every n-th state too, where it can be asked (root); 0: never.
    pub kernel_every: u64,
}

/// Makes the cuts in the order of time and counts what each takes. `progress` is told after each
/// how many are done.
pub fn explore(
    machine: &Arc<dyn Machine>,
    recorded: Recorded,
    plan: &Plan,
    progress: &dyn Fn(u64),
) -> Figures {
    let mut figures = Figures::default();
    each_cut(machine, &recorded, plan, &mut |cut, _| {
        let done = cut.number + 1;
        figures.add(cut);
        progress(done);
        true
    });
    figures
}

/// What decided a cut's outcome, so that it can be made again.
#[derive(Debug, Clone)]
pub struct Survival {
    /// Of each device's atomic units in doubt, in order: whether it was there.
    pub kept: Vec<Vec<bool>>,
    /// Whether the power goes again, when, and what survives that.
    pub(crate) choices: Rng,
}

/// The first cut, in the order of time, that is `wrong`, with what survived it.
pub fn first_wrong(
    machine: &Arc<dyn Machine>,
    recorded: &Recorded,
    plan: &Plan,
    wrong: &dyn Fn(&Cut) -> bool,
) -> Option<(Cut, Survival)> {
    let mut first = None;
    each_cut(machine, recorded, plan, &mut |cut, survival| {
        first = wrong(&cut).then_some((cut, survival));
        first.is_none()
    });
    first
}

/// What a cut left.
pub(crate) struct State {
    /// Which of the plan's cuts.
    pub number: u64,
    /// When.
    pub moment: Moment,
    /// See [`Cut::place`].
    pub place: u64,
    /// What each device holds.
    pub contents: Vec<Store>,
    /// What survived, and the choices that come next.
    pub survival: Survival,
}

/// Makes the plan's cuts in the order of time, until `visit` says that it is enough.
pub(crate) fn each_state(recorded: &Recorded, plan: &Plan, visit: &mut dyn FnMut(State) -> bool) {
    let Recorded { bases, recording, .. } = recorded;
    let mut followed: Vec<Followed> = bases.iter().map(Followed::new).collect();
    let (mut last, mut place) = (Vec::new(), 0);
    for (tick, number) in instants(recorded, plan).into_iter().zip(0u64..) {
        let mut choices = Rng::new(plan.seed ^ (number + 1).wrapping_mul(0xa076_1d64_78bd_642f));
        let (contents, kept) = followed
            .iter_mut()
            .zip(0..)
            .map(|(f, device)| f.cut(recording, DeviceId(device), tick, &mut choices))
            .unzip();
        let devices = followed.iter().zip(0..);
        let outlook = devices.map(|(f, device)| f.outlook(recording, DeviceId(device), tick));
        let outlook: Vec<Outlook> = outlook.collect();
        // What has happened does not un-happen: places that are the same follow one another.
        if outlook != last {
            (last, place) = (outlook, number);
        }
        let moment = Moment { tick, at: recording.time_of(tick) };
        let survival = Survival { kept, choices };
        if !visit(State { number, moment, place, contents, survival }) {
            return;
        }
    }
}

/// Makes the cuts and lets the machine recover from each, until `visit` says that it is enough.
fn each_cut(
    machine: &Arc<dyn Machine>,
    recorded: &Recorded,
    plan: &Plan,
    visit: &mut dyn FnMut(Cut, Survival) -> bool,
) {
    let e2fsck = (plan.e2fsck_every > 0).then(E2fsck::find).flatten();
    let kernel = (plan.kernel_every > 0).then(Kernel::find).and_then(Result::ok);
    each_state(recorded, plan, &mut |state| {
        let State { number, moment, place, contents, survival } = state;
        let sampled = |every: u64| every > 0 && number.is_multiple_of(every);
        let trial = Trial {
            machine,
            judge: &recorded.judge,
            moment,
            again_percent: plan.again_percent,
            e2fsck: e2fsck.as_ref().filter(|_| sampled(plan.e2fsck_every)),
            kernel: kernel.as_ref().filter(|_| sampled(plan.kernel_every)),
        };
        let cut = trial.run(contents, survival.choices.clone());
        visit(Cut { number, place, ..cut }, survival)
    });
}

/// One cut: the machine, when, and who judges.
pub(crate) struct Trial<'a> {
    pub machine: &'a Arc<dyn Machine>,
    pub judge: &'a Arc<dyn Judge>,
    pub moment: Moment,
    pub again_percent: u64,
    pub e2fsck: Option<&'a E2fsck>,
    pub kernel: Option<&'a Kernel>,
}

impl Trial<'_> {
    /// Lets the machine recover from what the cut has left, and judges that.
    pub fn run(&self, contents: Vec<Store>, mut choices: Rng) -> Cut {
        let Trial { machine, judge, moment, e2fsck, kernel, .. } = *self;
        let tick = moment.tick;
        let contents = match choices.percent(self.again_percent) {
            true => match cut_again(machine, contents, &mut choices) {
                Ok(contents) => contents,
                Err(why) => return Cut { tick, ..Cut::unmountable(moment.at, why) },
            },
            false => contents,
        };
        let kernel = kernel.map(|k| {
            let journal = machine.journal().map(|j| &contents[j]);
            k.judge(&contents[machine.disk()], journal, &**judge, moment)
        });
        let cut = one_cut(machine, contents, judge, moment, choices.bits(), e2fsck);
        Cut { tick, kernel, ..cut }
    }
}

/// A device's contents as far as no later cut can doubt them.
struct Followed {
    base: Store,
    settled: usize,
    /// How many of the settled requests were writes and discards.
    changes: usize,
}

/// What a device may hold at a cut: the number of writes and discards that are settled, and each
/// later one, by its tick, with what the cut may do to it. Where that is equal, the states that
/// cuts may leave are the same.
type Outlook = (usize, Vec<(u64, Fate)>);

impl Followed {
    fn new(base: &Store) -> Self {
        Followed { base: base.clone(), settled: 0, changes: 0 }
    }

    /// What the device may hold after the cut that was just made.
    fn outlook(&self, recording: &Recording, device: DeviceId, cut: u64) -> Outlook {
        let open = recording.at(device, cut);
        let open = open.changes(self.settled).map(|(event, fate)| (event.submitted.tick, fate));
        (self.changes, open.collect())
    }

    /// What the device may hold after `cut`, and which units in doubt are there. A third of the
    /// time each: nothing in doubt is there, all of it is, each sector is or is not.
    fn cut(
        &mut self,
        recording: &Recording,
        device: DeviceId,
        cut: u64,
        choices: &mut Rng,
    ) -> (Store, Vec<bool>) {
        let at = recording.at(device, cut);
        let settled = at.settled(self.settled);
        at.advance(&mut self.base, self.settled, settled);
        let newly = at.requests(self.settled, settled).filter(|e| at.fate(e).is_some());
        self.changes += newly.count();
        self.settled = settled;
        let keep_percent = match choices.below(3) {
            0 => 0,
            1 => 100,
            _ => choices.below(101),
        };
        let mut kept = Vec::new();
        let contents = at.contents_where(&self.base, self.settled, |_, _| {
            kept.push(choices.percent(keep_percent));
            kept.last() == Some(&true)
        });
        (contents, kept)
    }
}

/// Lets the machine recover from `contents` and cuts its power again meanwhile, or right after.
pub(crate) fn cut_again(
    machine: &Arc<dyn Machine>,
    contents: Vec<Store>,
    choices: &mut Rng,
) -> Result<Vec<Store>, String> {
    let bases = contents.clone();
    let recording = record_recovery(machine, contents, choices.bits())?;
    let (first, last) = (recording.first_cut(), recording.last_cut());
    let cut = first + choices.below((last - first).max(1));
    let keep_percent = [0, 100, 50][choices.below(3) as usize];
    Ok(left_at(&recording, &bases, cut, keep_percent, choices))
}

/// What a cut leaves; so many of the units in doubt are there.
pub(crate) fn left_at(
    recording: &Recording,
    bases: &[Store],
    cut: u64,
    keep_percent: u64,
    choices: &mut Rng,
) -> Vec<Store> {
    let left = |(base, device): (&Store, u32)| {
        recording.at(DeviceId(device), cut).contents(base, 0, keep_percent, choices)
    };
    bases.iter().zip(0..).map(left).collect()
}

/// Lets the machine recover from `contents` and shuts it down; what that did to its devices.
pub(crate) fn record_recovery(
    machine: &Arc<dyn Machine>,
    contents: Vec<Store>,
    seed: u64,
) -> Result<Recording, String> {
    let inner = Arc::clone(machine);
    let recovery = move || {
        let log = RecordLog::new();
        let booted = inner.power_on(contents, Some(&log))?;
        drop(booted.fs);
        (booted.shut_down)()?;
        Ok::<Recording, String>(log.take())
    };
    let ran = Sim::new(seed).run(recovery);
    ran.map_err(|stuck| format!("recovery stopped: {stuck}"))?
        .map_err(|why| format!("the mount was refused: {why}"))
}

/// What came out of the simulation in which the machine recovered.
pub(crate) struct Recovered {
    pub cut: Cut,
    pub contents: Option<Vec<Store>>,
}

fn one_cut(
    machine: &Arc<dyn Machine>,
    contents: Vec<Store>,
    judge: &Arc<dyn Judge>,
    at: Moment,
    seed: u64,
    e2fsck: Option<&E2fsck>,
) -> Cut {
    let (inner, judge) = (Arc::clone(machine), Arc::clone(judge));
    let ran = Sim::new(seed).run(move || recover(&*inner, contents, &*judge, at));
    let Recovered { mut cut, contents } = match ran {
        Ok(recovered) => recovered,
        Err(deadlock) => {
            return Cut::unmountable(at.at, format!("recovery stopped: {deadlock}"));
        }
    };
    let Some(contents) = contents else { return cut };
    let disk = &contents[machine.disk()];
    cut.damage.extend(structure(disk));
    if let Some(e2fsck) = e2fsck {
        let journal = machine.journal().map(|j| &contents[j]);
        cut.e2fsck = Some(e2fsck.judge(disk, journal));
    }
    cut
}

pub(crate) fn recover(
    machine: &dyn Machine,
    contents: Vec<Store>,
    judge: &dyn Judge,
    at: Moment,
) -> Recovered {
    let power_on = now();
    let booted = match machine.power_on(contents, None) {
        Ok(booted) => booted,
        Err(why) => {
            let mut cut = Cut::unmountable(at.at, format!("the mount was refused: {why}"));
            judge.judge_refused(at, &mut cut);
            return Recovered { cut, contents: None };
        }
    };
    let mut cut = Cut { at: at.at, recovery: now() - power_on, ..Cut::default() };
    judge.judge(&*booted.fs, at, &mut cut);
    let Booted { fs, shut_down } = booted;
    drop(fs);
    match shut_down() {
        Ok(contents) => Recovered { cut, contents: Some(contents) },
        Err(why) => {
            cut.damage.push(format!("the recovered file system could not be unmounted: {why}"));
            Recovered { cut, contents: None }
        }
    }
}

impl Judge for Ledger {
    fn judge(&self, fs: &dyn FileSystem, at: Moment, cut: &mut Cut) {
        for (file, ops) in self.files() {
            match read_file(fs, file.as_bytes()) {
                Ok(held) => cut.add_file(&file, &ops, &judge(&ops, at.tick, held.as_deref())),
                Err(e) => cut.damage.push(format!("{file} cannot be read after recovery: {e}")),
            }
        }
    }

    fn operations(&self) -> Vec<(String, Operation)> {
        let files = self.files().into_iter();
        files.flat_map(|(file, ops)| ops.into_iter().map(move |op| (file.clone(), op))).collect()
    }

    fn calls(&self) -> Vec<Call> {
        let mut calls: Vec<Call> = self
            .files()
            .iter()
            .flat_map(|(file, ops)| {
                ops.iter().map(|op| match op.action {
                    Action::Write { offset, len, tag } => {
                        Call::stamped(file, (offset, len, tag), op.started, op.acknowledged)
                    }
                    Action::Truncate => {
                        Call::plain(Kind::Truncate, file, op.started, op.acknowledged)
                    }
                })
            })
            .collect();
        calls.sort_by_key(|call| call.started.tick);
        calls
    }
}

/// The contents of a file; `None` if there is none.
fn read_file(fs: &dyn FileSystem, path: &[u8]) -> Result<Option<Vec<u8>>, FsError> {
    let attr = match resolve(fs, path, true) {
        Ok(attr) => attr,
        Err(FsError::NotFound) => return Ok(None),
        Err(e) => return Err(e),
    };
    if attr.kind != FileType::Regular {
        return Err(FsError::Invalid { what: "it is no longer a regular file" });
    }
    let fh = fs.open(attr.ino, OpenFlags::READ)?;
    let mut held = Vec::new();
    let outcome = loop {
        match fs.read(fh, held.len() as u64, 1 << 20) {
            Ok(part) if part.is_empty() => break Ok(()),
            Ok(part) => held.extend_from_slice(&part),
            Err(e) => break Err(e),
        }
    };
    fs.release(fh)?;
    outcome.map(|()| Some(held))
}

/// What the structure check finds on the recovered disk, in words.
pub(crate) fn structure(disk: &Store) -> Vec<String> {
    let device: Arc<dyn BlockDevice> = Arc::new(Ram::from_store("recovered disk", disk.snapshot()));
    structure_on(&device)
}

/// The same on the device that holds it.
pub(crate) fn structure_on(device: &Arc<dyn BlockDevice>) -> Vec<String> {
    match steadfast_ext4_check::check(device, None) {
        Ok(report) => report.findings.iter().map(|f| f.to_string()).collect(),
        Err(e) => vec![format!("the structure check failed: {e}")],
    }
}
