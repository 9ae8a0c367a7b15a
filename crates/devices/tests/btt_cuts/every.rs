//! All outcomes of all cuts of a short run.

use std::sync::Arc;

use steadfast_block::BlockDevice;
use steadfast_block::planted::BugSwitch;
use steadfast_devices::filter::btt::planted::Bug;
use steadfast_devices::filter::record::DeviceId;
use steadfast_devices::filter::{Record, RecordLog, Recording};
use steadfast_devices::source::Ram;
use steadfast_devices::store::Store;

use super::{BEGUN, DONE, Done, Op, bytes, check, judge, made, open};

/// Most words in doubt that differ; all combinations of them are tried.
const DOUBTS_MAX: usize = 14;

/// What was tried.
#[derive(Debug, Clone, Copy, Default)]
pub struct Tally {
    pub cuts: u64,
    pub states: u64,
    /// States in which a write was finished by opening.
    pub recovered: u64,
    /// Outcomes of second cuts, during that.
    pub again: u64,
}

/// A run.
#[derive(Debug, Clone)]
pub struct Run<'a> {
    /// Bytes of a sector.
    pub sector: u32,
    /// Free blocks.
    pub nfree: u32,
    /// Done before the recording begins, so that the flog is in another state.
    pub before: &'a [Op],
    pub ops: &'a [Op],
}

/// A memory that is recorded.
pub fn recorded(store: Store, log: &RecordLog) -> Arc<dyn BlockDevice> {
    let ram = Ram::from_store("pmem0", store).persistent().with_atomic_words();
    Arc::new(Record::new(Arc::new(ram), log))
}

/// Does it.
pub fn perform(device: &dyn BlockDevice, op: Op, size: u64) -> Result<(), String> {
    let (at, len) = (op.sector * size, op.count * size);
    let done = if op.version == 0 {
        device.discard(at, len)
    } else {
        let sectors = op.sector..op.sector + op.count;
        let data = sectors.flat_map(|sector| bytes(op, sector, size as usize)).collect::<Vec<_>>();
        device.write(at, data.into())
    };
    done.map_err(|error| error.to_string())
}

/// The ops of a recording, by its notes.
pub fn done(recording: &Recording, ops: &[Op]) -> Vec<Done> {
    let tick = |label, n: usize| {
        let mut notes = recording.notes().iter();
        let note = notes.find(|note| note.label == label && note.detail[0] == n as u64);
        note.map_or(u64::MAX, |note| note.moment.tick)
    };
    let ops = ops.iter().enumerate();
    ops.map(|(n, op)| Done { op: *op, begun: tick(BEGUN, n), done: tick(DONE, n) }).collect()
}

/// Tries all, and counts.
///
/// # Errors
/// What was broken first.
pub fn explore(run: &Run, planted: BugSwitch<Bug>, tally: &mut Tally) -> Result<(), String> {
    let size = u64::from(run.sector);
    let ram = Ram::from_store("pmem0", made(run.sector, run.nfree)).persistent();
    let device: Arc<dyn BlockDevice> = Arc::new(ram.clone());
    // Before the bug: it is to be found by a power cut, not by what it leaves here.
    let btt = open(&device, BugSwitch::default())?;
    run.before.iter().try_for_each(|op| perform(&btt, *op, size))?;
    drop(btt);
    let base = ram.store();
    let log = RecordLog::new();
    let device = recorded(base.clone(), &log);
    let btt = open(&device, planted)?;
    for (n, op) in run.ops.iter().enumerate() {
        log.note(BEGUN, [n as u64, 0, 0]);
        perform(&btt, *op, size)?;
        log.note(DONE, [n as u64, 0, 0]);
    }
    let recording = log.take();
    // What was done before is as if it had been done at tick 0; ticks of the recording follow.
    let shift = 2 * run.before.len() as u64 + 1;
    let mut ops: Vec<Done> = Vec::new();
    for (n, op) in run.before.iter().enumerate() {
        ops.push(Done { op: *op, begun: 2 * n as u64, done: 2 * n as u64 + 1 });
    }
    ops.extend(done(&recording, run.ops).into_iter().map(|done| Done {
        begun: done.begun.saturating_add(shift),
        done: done.done.saturating_add(shift),
        ..done
    }));
    let all = ops.iter().map(|done| done.op);
    let sectors = all.map(|op| op.sector + op.count).max().unwrap_or(0) + 1;
    for cut in recording.first_crash_point()..=recording.last_crash_point() {
        tally.cuts += 1;
        for state in outcomes(&recording, &base, cut) {
            tally.states += 1;
            let wrong = |what: String| format!("{run:?}, cut {cut}: {what}");
            after(state, sectors, &ops, cut + shift, planted, tally).map_err(wrong)?;
        }
    }
    Ok(())
}

/// Opens what a power cut has left, judges it, and cuts again while that writes.
fn after(
    state: Store,
    sectors: u64,
    ops: &[Done],
    cut: u64,
    planted: BugSwitch<Bug>,
    tally: &mut Tally,
) -> Result<(), String> {
    let log = RecordLog::new();
    let device = recorded(state.clone(), &log);
    check(&*device).map_err(|what| format!("check before opening: {what}"))?;
    let btt = open(&device, planted)?;
    let recording = log.take();
    let report = check(&*device).map_err(|what| format!("check after opening: {what}"))?;
    if report.interrupted != 0 {
        return Err("opening has not finished an interrupted write".into());
    }
    judge(&btt, sectors, ops, cut)?;
    if recording.events().is_empty() {
        return Ok(());
    }
    tally.recovered += 1;
    for again in recording.first_crash_point()..=recording.last_crash_point() {
        for state in outcomes(&recording, &state, again) {
            tally.again += 1;
            let device: Arc<dyn BlockDevice> = Arc::new(Ram::from_store("pmem0", state));
            let btt = open(&device, planted)?;
            check(&*device).map_err(|what| format!("check after a second cut: {what}"))?;
            judge(&btt, sectors, ops, cut).map_err(|what| format!("second cut: {what}"))?;
        }
    }
    Ok(())
}

/// All contents that a power cut may leave.
pub fn outcomes(recording: &Recording, base: &Store, cut: u64) -> Vec<Store> {
    let at = recording.at(DeviceId(0), cut);
    let mut asked: Vec<(u64, u64)> = Vec::new();
    let none = at.contents_where(base, 0, |event, word| {
        asked.push((event.submitted.tick, word));
        false
    });
    let word_of = |store: &Store, word: u64| store.read(word & !7, 8);
    let changes = |one: (u64, u64)| {
        let only = at.contents_where(base, 0, |event, word| (event.submitted.tick, word) == one);
        word_of(&only, one.1) != word_of(&none, one.1)
    };
    // Of a word that something changes, all that is in doubt counts.
    let changed: Vec<u64> =
        asked.iter().filter(|one| changes(**one)).map(|one| one.1 & !7).collect();
    asked.retain(|(_, word)| changed.contains(&(word & !7)));
    assert!(asked.len() <= DOUBTS_MAX, "{} words in doubt", asked.len());
    let combinations = 0u32..1 << asked.len();
    let contents = |kept: u32| {
        at.contents_where(base, 0, |event, word| {
            let one = (event.submitted.tick, word);
            asked.iter().position(|asked| *asked == one).is_some_and(|n| kept & 1 << n != 0)
        })
    };
    combinations.map(contents).collect()
}
