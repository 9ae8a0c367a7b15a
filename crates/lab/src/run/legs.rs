//! What cuts take from a volume itself, without a file system: flushed data, and copies that agree.
//!
//! Some tasks write blocks of it, each its own, and flush. The run is recorded, as others are, and
//! cut: the power goes, of all legs or of all and one disk does not come back. What is in memory is
//! blank then. Beside that the machine goes on and only the RAM disk is lost, in runs of their own.
//! The volume is assembled again, resynced, and read: as a whole, and each leg by itself.

mod boot;
mod judge;
mod notes;

use std::sync::Arc;
use std::time::Duration;

use steadfast_block::rng::Rng;
use steadfast_block::{BlockDevice, Persistence, pattern};
use steadfast_crash::account::{Account, Call};
use steadfast_crash::explore::StackMachine;
use steadfast_crash::states::contents_where;
use steadfast_devices::filter::record::{RecordLog, Recording};
use steadfast_devices::filter::{Fault, Faults};
use steadfast_devices::store::Store;
use steadfast_runtime::{Sim, random_u64, sleep, spawn};
use steadfast_setup::{Devices, Volumes};

use super::setting::{Part, Report, Subject};
use super::workload::{JobResult, Workload};
use crate::results::{LegRow, Percentiles, Rate};
use crate::scenario::{LegsSpec, Variant};
use crate::{Result, VariantError};
use boot::boot;
use judge::{BLOCK, BlockRun, LostBytes, judge, object};
pub(super) use notes::notes;

/// The workload of blocks as what is cut.
pub(super) struct LegsLoad(pub LegsSpec);

/// What is cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LossKind {
    /// The power of all.
    Power,
    /// The power of all, and a disk does not come back.
    OneDisk,
    /// Nothing but the RAM disk, while the machine goes on.
    Memory,
}

impl LossKind {
    fn name(self) -> &'static str {
        match self {
            LossKind::Power => "the power goes",
            LossKind::OneDisk => "the power goes, and a disk with it",
            LossKind::Memory => "the RAM disk is lost, the machine goes on",
        }
    }
}

impl Workload for LegsLoad {
    fn risk_command(&self) -> Option<String> {
        Some(self.0.description())
    }

    fn parts(&self, of: Subject<'_>) -> Vec<Part> {
        let takes_part = of.is_cut() && of.variant.kernel.is_none();
        takes_part.then_some(Part::Risk).into_iter().collect()
    }

    fn run(&self, of: Subject<'_>, _: Part, report: Report) -> Result<JobResult> {
        let Subject { setting, variant } = of;
        let machine = Arc::new(setting.scenario.stack_machine(variant, 0));
        let cuts = setting.cuts_of(variant);
        let seed = setting.options.seed;
        let run = simulated(seed, &machine, &self.0, None)?;
        let mut rows = Vec::new();
        for (part, kind) in [LossKind::Power, LossKind::OneDisk].into_iter().enumerate() {
            let progress = |done: u64| report((part as f64 + done as f64 / cuts as f64) / 3.0);
            let each = cut_all(&machine, &run, (kind, cuts, seed), &progress)?;
            rows.push(row(variant, kind, &each, setting.scenario.is_model(variant)));
        }
        if run.has_memory {
            // Each is a run of its own: fewer.
            let runs = cuts.div_ceil(RUNS_LESS);
            let mut each = Vec::new();
            for n in 0..runs {
                let at = Some((n, runs));
                let lost = simulated(seed.wrapping_add(n << 32), &machine, &self.0, at)?.lost;
                each.push(CutLoss { lost, by_hand: false, refused: false });
                report((2.0 + n as f64 / runs as f64) / 3.0);
            }
            rows.push(row(variant, LossKind::Memory, &each, setting.scenario.is_model(variant)));
        }
        Ok(JobResult::of(rows))
    }
}

/// For so many cuts of the power one run in which only the RAM disk is lost.
const RUNS_LESS: u64 = 8;

/// What one cut took.
struct CutLoss {
    lost: LostBytes,
    by_hand: bool,
    refused: bool,
}

/// A run of the workload.
struct LegsRun {
    bases: Vec<Store>,
    recording: Recording,
    written: Arc<BlockRun>,
    /// Which devices keep their contents.
    keeps: Vec<bool>,
    has_memory: bool,
    /// What was lost at the end of a run whose RAM disk was taken away.
    lost: LostBytes,
}

/// Runs the workload in a simulation; `memory_at`: the RAM disk is lost in that one of so many
/// equal parts of the run.
fn simulated(
    seed: u64,
    machine: &Arc<StackMachine>,
    spec: &LegsSpec,
    memory_at: Option<(u64, u64)>,
) -> Result<LegsRun> {
    let (machine, spec) = (Arc::clone(machine), spec.clone());
    let sim = machine.setup.simulation(seed);
    sim.run(move || workload(&machine, &spec, memory_at))?
}

fn workload(
    machine: &StackMachine,
    spec: &LegsSpec,
    memory_at: Option<(u64, u64)>,
) -> Result<LegsRun> {
    let devices = Devices::build(&machine.setup)?;
    let log = RecordLog::new();
    log.pause(true);
    let mut memory: Vec<Faults> = Vec::new();
    let blocks = devices.blocks_over(Volumes::New, &mut |name, model| {
        let recorded = machine.record_over(name, model, &log);
        if is_kept(&**model) {
            return recorded;
        }
        let fault = Fault::new(recorded);
        memory.push(fault.faults());
        Arc::new(fault)
    })?;
    blocks.flush()?;
    let bases: Vec<Store> = devices.all().map(|d| d.contents()).collect();
    log.pause(false);
    let size = blocks.disk.info().size.min(spec.area_kb << 10);
    let (account, own) = (Arc::new(Account::new(&log)), size / BLOCK / spec.writers);
    if let Some((n, of)) = memory_at {
        let (memory, seconds) = (memory.clone(), spec.seconds);
        let when = Duration::from_secs_f64(seconds * (n as f64 + 0.5) / of as f64);
        spawn("the RAM disk is lost", move || {
            sleep(when);
            memory.iter().for_each(|faults| faults.take_away("it is lost"));
        });
    }
    let tasks: Vec<_> = (0..spec.writers)
        .map(|writer| {
            let (disk, spec) = (Arc::clone(&blocks.disk), spec.clone());
            let account = Arc::clone(&account);
            spawn("writer", move || write(&disk, &account, &spec, (writer, own)))
        })
        .collect();
    for task in tasks {
        let done = task.join().unwrap_or_else(|panicked| panicked.resume());
        // Who cannot do without the RAM disk fails from then on: what it holds is judged.
        done.or_else(|failed| if memory_at.is_some() { Ok(()) } else { Err(failed) })?;
    }
    let written = BlockRun { blocks: size / BLOCK, history: account.take() };
    let mut lost = LostBytes::default();
    if memory_at.is_some() {
        // The machine went on: what was acknowledged is to be read.
        let read = |at| blocks.disk.read(at, BLOCK).ok();
        lost = judge(&written, u64::MAX, true, &read, &[]);
    }
    let recording = log.take();
    let keeps: Vec<bool> = devices.all().map(|d| is_kept(&**d)).collect();
    let has_memory = !memory.is_empty();
    Ok(LegsRun { bases, recording, written: Arc::new(written), keeps, has_memory, lost })
}

pub(super) fn is_kept(device: &dyn BlockDevice) -> bool {
    device.info().persistence == Persistence::Persistent
}

/// A task that writes blocks of its own and flushes now and then, until its time is over.
fn write(
    disk: &Arc<dyn BlockDevice>,
    account: &Account,
    spec: &LegsSpec,
    (writer, own): (u64, u64),
) -> Result<()> {
    let until = steadfast_runtime::now() + Duration::from_secs_f64(spec.seconds);
    let mut rng = Rng::new(random_u64());
    let mut since_flush = 0;
    while steadfast_runtime::now() < until && own > 0 {
        sleep(Duration::from_secs_f64(spec.pause_ms / 1e3 * rng.below(2001) as f64 / 1e3));
        // Half of the writes are to an eighth of the blocks: some regions get none for a while.
        let block = match rng.percent(50) {
            true => rng.below(own.div_ceil(8)),
            false => rng.below(own),
        };
        let block = block * spec.writers + writer;
        let begun = account.begin(Call::Write(object(block), block * BLOCK, BLOCK));
        let data = pattern::bytes(begun.tag, block * BLOCK, BLOCK as usize);
        disk.write(block * BLOCK, data.into()).map_err(VariantError::request("writing"))?;
        account.end(&begun);
        since_flush += 1;
        if since_flush >= spec.flush_every {
            let begun = account.begin(Call::SyncAll);
            disk.flush().map_err(VariantError::request("flushing"))?;
            account.end(&begun);
            since_flush = 0;
        }
    }
    Ok(())
}

/// Cuts a run as often as asked, evenly over what happened.
fn cut_all(
    machine: &Arc<StackMachine>,
    run: &LegsRun,
    (kind, cuts, seed): (LossKind, u64, u64),
    progress: &dyn Fn(u64),
) -> Result<Vec<CutLoss>> {
    let (first, last) = (run.recording.first_crash_point(), run.recording.last_crash_point());
    let mut rng = Rng::new(seed ^ 0x6c65_6773);
    let mut ticks: Vec<u64> = (0..cuts)
        .map(|n| {
            let part = (last - first) as f64 / cuts as f64;
            first + (part * n as f64) as u64 + rng.below((part as u64).max(1))
        })
        .collect();
    ticks.dedup();
    let disks: Vec<usize> = (0..run.keeps.len()).filter(|n| run.keeps[*n]).collect();
    let mut judged = Vec::with_capacity(ticks.len());
    for (n, tick) in (0..).zip(ticks) {
        let contents = contents_where(&run.bases, &run.recording, tick, |_| rng.percent(50));
        let away = match kind {
            LossKind::OneDisk if !disks.is_empty() => Some(disks[n as usize % disks.len()]),
            _ => None,
        };
        let (machine, written) = (Arc::clone(machine), Arc::clone(&run.written));
        let sim = Sim::new(seed.wrapping_add(tick));
        let found = sim.run(move || -> Result<CutLoss> {
            let up = boot(&machine, contents, away, written.blocks)?;
            let (refused, by_hand) = (up.is_none(), up.as_ref().is_none_or(|up| up.by_hand));
            let lost = match up {
                Some(up) => judge(&written, tick, false, &*up.read, &up.legs),
                None => judge(&written, tick, false, &|_| None, &[]),
            };
            Ok(CutLoss { lost, by_hand, refused })
        });
        judged.push(found??);
        progress(n + 1);
    }
    Ok(judged)
}

fn row(variant: &Variant, kind: LossKind, each: &[CutLoss], is_model: bool) -> LegRow {
    let of = each.len() as u64;
    let rate = |event: &dyn Fn(&CutLoss) -> bool| {
        Rate::new(each.iter().filter(|j| event(j)).count() as u64, of)
    };
    let kib = |bytes: &dyn Fn(&CutLoss) -> u64| {
        Percentiles::of(each.iter().map(|j| bytes(j) as f64 / 1024.0).collect())
    };
    LegRow {
        test: kind.name().into(),
        variant: variant.name.clone(),
        model: is_model,
        cuts: of,
        lost_flushed: rate(&|j| j.lost.flushed > 0),
        lost_flushed_kb: kib(&|j| j.lost.flushed),
        gone_kb: kib(&|j| j.lost.gone),
        lost_unflushed_kb: kib(&|j| j.lost.unflushed),
        copies_differ: rate(&|j| j.lost.differ > 0),
        by_hand: rate(&|j| j.by_hand),
        refused: rate(&|j| j.refused),
    }
}
