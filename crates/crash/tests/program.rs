//! Programs under power cuts, without a mount: calls made in a simulation, watched, cut, judged by
//! what every program may expect.

use std::cell::Cell;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use steadfast_block::BlockDevice;
use steadfast_crash::explore::{OnRam, Plan, RebootTarget};
use steadfast_crash::program::explore::{
    Exploration, ExplorationReport, ExplorationSum, InstantsReport, Wrong,
};
use steadfast_crash::program::exposure::{exposure, summary};
use steadfast_crash::program::{ProgramRun, WatchedFs, file};
use steadfast_crash::states::{Choice, CrashPoints, StateBound};
use steadfast_devices::filter::record::{Record, RecordLog};
use steadfast_devices::source::Ram;
use steadfast_devices::store::Store;
use steadfast_ext4::{DataMode, Ext4, MountOptions};
use steadfast_ext4_mkfs::{JournalChoice, Options, make};
use steadfast_runtime::{Sim, sleep};
use steadfast_vfs::{FileSystem, Ino, NewNode, OpenFlags, RenameFlags};

const DISK: u64 = 16 << 20;
const MODES: [DataMode; 4] =
    [DataMode::Ordered, DataMode::Writeback, DataMode::Journal, DataMode::Transact];

fn options(data: DataMode, auto_da_alloc: bool) -> MountOptions {
    MountOptions { data, auto_da_alloc, ..MountOptions::default() }
}

/// A file system with the file "config".
fn base(options: &MountOptions) -> Store {
    let ram = Ram::new("disk", DISK).persistent();
    let device: Arc<dyn BlockDevice> = Arc::new(ram.clone());
    let mut made = Options::random(1_704_067_200);
    made.block_size = Some(4096);
    made.journal = JournalChoice::InternalOf(1024);
    make(&device, &made).unwrap();
    let fs = Ext4::mount(device, options.clone()).unwrap();
    write(&*fs, b"config", b"old", false);
    fs.unmount().unwrap();
    ram.store()
}

fn write(fs: &dyn FileSystem, name: &[u8], text: &'static [u8], sync: bool) {
    let (_, fh) = fs.create(fs.root(), name, NewNode::default(), OpenFlags::WRITE).unwrap();
    fs.write(fh, 0, Bytes::from_static(text)).unwrap();
    if sync {
        fs.fsync(fh, false).unwrap();
    }
    fs.release(fh).unwrap();
}

/// Writes "config" anew and renames it; something else is synced then.
fn run(options: &MountOptions, sync: bool) -> ProgramRun {
    let options = options.clone();
    let work = move || {
        let base = base(&options);
        let ram = Ram::from_store("disk", base.clone()).persistent().with_volatile_cache();
        let log = RecordLog::new();
        let disk: Arc<dyn BlockDevice> = Arc::new(Record::new(Arc::new(ram), &log));
        let fs = Ext4::mount(disk, options).unwrap();
        let watched = WatchedFs::new(Arc::clone(&fs) as Arc<dyn FileSystem>, &log);
        let root = watched.root();
        write(&watched, b"config.new", b"new text", sync);
        watched.rename((root, b"config.new"), (root, b"config"), RenameFlags::empty()).unwrap();
        write(&watched, b"log", b"replaced", true);
        watched.fsyncdir(root).unwrap();
        sleep(Duration::from_secs(12));
        let recording = log.take();
        let calls = watched.calls();
        fs.unmount().unwrap();
        ProgramRun::new(
            [("by".into(), "a test".into())].into(),
            vec![base],
            recording,
            vec![],
            calls,
        )
    };
    Sim::new(3).run(work).unwrap()
}

fn choice(places: CrashPoints) -> Choice {
    Choice { places, bound: StateBound { states: 16, ..StateBound::default() }, seed: 1 }
}

/// How it is mounted, and what mounts it.
struct Own {
    options: MountOptions,
    machine: Arc<dyn RebootTarget>,
}

fn own(data: DataMode, auto_da_alloc: bool) -> Own {
    let options = options(data, auto_da_alloc);
    Own { machine: OnRam::new(options.clone()).shared(), options }
}

fn with<T>(run: &ProgramRun, own: &Own, work: impl FnOnce(&Exploration<'_>) -> T) -> T {
    let (system, plan) = (&own.machine, Plan::from(choice(CrashPoints::All)));
    work(&Exploration { run, system, judge: None, plan, by_lines: false, workers: 2 })
}

fn explore(run: &ProgramRun, own: &Own) -> ExplorationReport {
    let outcome = with(run, own, |e| e.explore(&|_, _, _| true).unwrap());
    assert_eq!(outcome.troubles, Vec::<String>::new());
    outcome
}

/// Processes that know nothing of each other each explore some of the instants.
#[test]
fn what_several_processes_find_is_what_one_finds() {
    let own = own(DataMode::Writeback, false);
    let run = run(&own.options, false);
    let whole = explore(&run, &own);
    assert!(!whole.findings.is_empty(), "{whole:?}");
    let text = |report: &InstantsReport| serde_json::to_string(report).unwrap();
    with(&run, &own, |exploration| {
        let all = exploration.instants();
        assert_eq!(all, whole.cuts);
        let mut parts: Vec<(u64, String)> = Vec::new();
        for process in 0..3 {
            let mut divided = exploration.divided().unwrap();
            for instant in (process..all).step_by(3) {
                parts.push((instant, text(&divided.explore(instant..instant + 1))));
            }
            // Once more from the first: it says the same.
            let again = divided.explore(process..process + 1);
            assert!(parts.contains(&(process, text(&again))), "{again:?}");
        }
        parts.sort();
        let mut sum = ExplorationSum::default();
        for (_, part) in &parts {
            sum.take(serde_json::from_str(part).unwrap()).unwrap();
        }
        let joined = sum.report();
        assert_eq!(format!("{joined:?}"), format!("{whole:?}"));
        // A process whose judge says something else of a tree is noticed.
        let mut sum = ExplorationSum::default();
        let bad = parts.iter().find(|(_, part)| part.contains("\"finding\":0")).unwrap();
        let part: serde_json::Value = serde_json::from_str(&bad.1).unwrap();
        let mut good = part.clone();
        good["findings"] = serde_json::json!([]);
        for tree in good["trees"].as_array_mut().unwrap() {
            tree.as_object_mut().unwrap().remove("finding");
        }
        for part in [part, good] {
            sum.take(serde_json::from_value(part).unwrap()).unwrap();
        }
        let troubles = sum.report().troubles;
        assert!(troubles[0].contains("of one and the same tree"), "{troubles:?}");
    });
}

#[test]
fn what_a_program_forgot_is_distinguished_from_what_was_promised() {
    for data in MODES {
        let own = |auto| own(data, auto);
        let synced = explore(&run(&own(false).options, true), &own(false));
        assert!(synced.findings.is_empty(), "{data:?}: {:?}", synced.findings.first());
        assert!(synced.states > 50 && synced.trees >= 3, "{data:?}: {synced:?}");
        let forgot = explore(&run(&own(false).options, false), &own(false));
        let emptied = matches!(data, DataMode::Ordered | DataMode::Writeback);
        assert_eq!(!forgot.findings.is_empty(), emptied, "{data:?}: {:?}", forgot.findings.first());
        for finding in &forgot.findings {
            let [Wrong::Unasked(broken)] = &finding.wrong[..] else { panic!("{finding:?}") };
            let (what, kind) = (&broken.what, &broken.kind);
            assert!(what.starts_with(&format!("{kind}: now empty")), "{what}");
            assert_eq!(kind, "config: replaced by rename without fsync");
        }
        // What the file system does of itself is enough here.
        let helped = explore(&run(&own(true).options, false), &own(true));
        if data == DataMode::Ordered {
            assert!(helped.findings.is_empty(), "{:?}", helped.findings.first());
        }
    }
}

#[test]
fn a_kept_run_gives_the_same_states_and_shrinks() {
    let own = own(DataMode::Writeback, false);
    let run = run(&own.options, false);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run.crash");
    file::save(&run, &path).unwrap();
    let kept = file::load(&path).unwrap();
    let (one, other) = (explore(&run, &own), explore(&kept, &own));
    let first = one.findings[0].state;
    assert_eq!((one.states, first), (other.states, other.findings[0].state));
    with(&kept, &own, |e| {
        let (state, base) = (e.state(first).unwrap(), e.base().unwrap());
        assert!(!e.wrong(state.contents.clone(), &state, &base).unwrap().is_empty());
        let decisive = e.shrink(&state, &base, 100, &|| true).unwrap();
        assert!(decisive.units.len() <= state.in_doubt.len(), "{decisive}");
    });
}

#[test]
fn exposure_is_what_has_returned_and_is_not_there() {
    let own = own(DataMode::Ordered, true);
    let forgot = run(&own.options, false);
    let exposed =
        |go_on: &dyn Fn() -> bool| exposure(&forgot, &own.machine, choice(CrashPoints::All), go_on);
    // Of some cuts alone there are no figures.
    let asked = Cell::new(0);
    assert_eq!(exposed(&|| asked.replace(asked.get() + 1) == 0), None);
    assert_eq!(asked.get(), 2);
    let forgot = exposed(&|| true).unwrap();
    let all = summary(&forgot).unwrap();
    let most = all.max;
    // Both files at the most; the sync of the second one ends it.
    assert!(most.bytes >= 8 && most.bytes <= 16, "{most:?}");
    assert!(most.calls >= 1 && most.calls <= 2, "{most:?}");
    assert_eq!(forgot.last().map(|e| e.calls), Some(0), "twelve seconds are enough");
    assert_eq!((all.n, all.p99.is_some()), (forgot.len() as u64, forgot.len() >= 400));
}

/// The run as it would be on a disk that promises nothing.
fn lying(honest: ProgramRun) -> ProgramRun {
    use steadfast_devices::filter::record::{Durability, Recording};
    let recording = &honest.recording;
    let mut devices = recording.devices().to_vec();
    let drains_within = Duration::from_secs(3600);
    devices[0].durability = Durability::Lying { cache_bytes: 1 << 40, drains_within };
    let (first, times) = recording.times();
    let (events, notes) = (recording.events().to_vec(), recording.notes().to_vec());
    let recording = Recording::rebuild(devices, events, notes, times.to_vec(), first).unwrap();
    ProgramRun { recording, ..honest }
}

/// In another order the states have the same numbers, and all is found.
#[test]
fn by_value_all_is_found_too() {
    let own = own(DataMode::Ordered, false);
    let run = run(&own.options, false);
    let plan = Plan::from(choice(CrashPoints::All));
    // By one thread: which of two states with the same tree comes first is always the same.
    let all = Exploration {
        run: &run,
        system: &own.machine,
        judge: None,
        plan,
        by_lines: false,
        workers: 1,
    };
    let in_order = all.explore(&|_, _, _| true).unwrap();
    let by_value = all.explore_by_value(&|_, _, _| true).unwrap();
    let states = |of: &ExplorationReport| {
        of.findings.iter().map(|f| (f.state, f.states, f.wrong.clone())).collect::<Vec<_>>()
    };
    assert_eq!(states(&by_value), states(&in_order));
    let counts = |of: &ExplorationReport| (of.cuts, of.states, of.trees, of.bad_states);
    assert_eq!(counts(&by_value), counts(&in_order));
    assert_eq!(by_value.not_explored, None);
    // With half of the states judged, that is found, and the rest is counted.
    let few = in_order.states / 2;
    let part = all.explore_by_value(&|_, _, done| done < few).unwrap();
    assert!(!part.findings.is_empty() && part.states <= few, "{part:?}");
    let left = part.not_explored.unwrap();
    assert_eq!(left.states.map(|left| left + part.states), Some(in_order.states));
    assert_eq!(left.instants + part.cuts, in_order.cuts, "{part:?}");
    for finding in &part.findings {
        assert_eq!(all.state(finding.state).unwrap().cut, finding.cut);
    }
}

/// The broken promises, in words.
fn broken(outcome: &ExplorationReport) -> Vec<&str> {
    fn promise(wrong: &Wrong) -> Option<&str> {
        match wrong {
            Wrong::Promise(broken) => Some(&broken.what),
            _ => None,
        }
    }
    outcome.findings.iter().flat_map(|f| f.wrong.iter().filter_map(promise)).collect()
}

/// The control: a disk that promises nothing is found out.
#[test]
fn a_lying_disk_breaks_promises() {
    let own = own(DataMode::Ordered, true);
    let outcome = explore(&lying(run(&own.options, true)), &own);
    assert!(!broken(&outcome).is_empty(), "{outcome:?}");
}

/// A run of `work` on a file system that holds d/5/f and d/5/g, watched.
fn watched(options: &MountOptions, work: fn(&dyn FileSystem)) -> ProgramRun {
    let options = options.clone();
    let work = move || {
        let first = Ram::from_store("disk", base(&options)).persistent();
        let fs = Ext4::mount(Arc::new(first.clone()), options.clone()).unwrap();
        let folder = fs.mkdir(fs.root(), b"d", NewNode::default()).unwrap().ino;
        let folder = fs.mkdir(folder, b"5", NewNode::default()).unwrap().ino;
        for name in [b"f", b"g"] {
            let made = fs.create(folder, name, NewNode::default(), OpenFlags::WRITE);
            fs.release(made.unwrap().1).unwrap();
        }
        fs.unmount().unwrap();
        let base = first.store();
        let ram = Ram::from_store("disk", base.clone()).persistent().with_volatile_cache();
        let log = RecordLog::new();
        let disk: Arc<dyn BlockDevice> = Arc::new(Record::new(Arc::new(ram), &log));
        let fs = Ext4::mount(disk, options).unwrap();
        let watched = WatchedFs::new(Arc::clone(&fs) as Arc<dyn FileSystem>, &log);
        work(&watched);
        let (recording, calls) = (log.take(), watched.calls());
        fs.unmount().unwrap();
        ProgramRun::new(Default::default(), vec![base], recording, vec![], calls)
    };
    Sim::new(3).run(work).unwrap()
}

/// The inode of a name, as a listing has it.
fn listed(fs: &dyn FileSystem, dir: Ino, name: &[u8]) -> Ino {
    let entries = fs.readdir(dir, 0).unwrap();
    entries.iter().find(|entry| entry.name == name).unwrap().ino
}

fn sync_folder(fs: &dyn FileSystem, name: &[u8]) {
    let folder = listed(fs, listed(fs, fs.root(), b"d"), b"5");
    fs.unlink(folder, name).unwrap();
    fs.fsyncdir(folder).unwrap();
}

/// Inodes are known from listings too (readdirplus): nobody need have looked them up.
#[test]
fn names_that_were_only_listed_have_their_places() {
    let own = own(DataMode::Ordered, true);
    let run = watched(&own.options, |fs| sync_folder(fs, b"f"));
    let calls: Vec<String> = run.calls.iter().map(ToString::to_string).collect();
    assert_eq!(calls, ["unlink d/5/f", "fsync of directory d/5"]);
    let outcome = explore(&run, &own);
    assert!(outcome.findings.is_empty(), "{:?}", outcome.findings);
    assert!(outcome.unmeasured.is_empty(), "{:?}", outcome.unmeasured);
    // What was removed and synced is there again: a real loss in the same place.
    let outcome = explore(&lying(run), &own);
    let again = "d/5/f: its folder was synced after unlink, and it is there again";
    assert!(broken(&outcome).contains(&again), "{:?}", outcome.findings);
}

/// A file that nobody has seen under a name is not taken for another.
#[test]
fn what_has_no_known_place_is_not_measured() {
    let own = own(DataMode::Ordered, true);
    let run = watched(&own.options, |fs| {
        // As by a handle: the number comes with no path.
        let folder = Ino(listed(fs, fs.root(), b"config").0 + 2);
        fs.unlink(folder, b"g").unwrap();
        fs.fsyncdir(folder).unwrap();
    });
    assert_eq!(run.calls[0].to_string(), "unlink .../g");
    let outcome = explore(&run, &own);
    assert!(outcome.findings.is_empty(), "{:?}", outcome.findings);
    assert!(!outcome.unmeasured.is_empty());
}

fn durable_writes(fs: &dyn FileSystem) {
    let folder = listed(fs, listed(fs, fs.root(), b"d"), b"5");
    let file = listed(fs, folder, b"f");
    let fh = fs.open(file, OpenFlags::WRITE | OpenFlags::DSYNC).unwrap();
    fs.write(fh, 0, Bytes::from_static(b"promised")).unwrap();
    fs.release(fh).unwrap();
    let fh = fs.open(file, OpenFlags::WRITE).unwrap();
    // Behind the promise, which stands.
    fs.write(fh, 8, Bytes::from_static(b" and not")).unwrap();
    fs.release(fh).unwrap();
}

#[test]
fn a_write_through_o_dsync_is_a_promise() {
    for data in MODES {
        let own = own(data, true);
        let run = watched(&own.options, durable_writes);
        assert!(run.calls[0].promises && !run.calls[1].promises, "{:?}", run.calls);
        let outcome = explore(&run, &own);
        assert!(outcome.findings.is_empty(), "{data:?}: {:?}", outcome.findings);
        assert!(outcome.unmeasured.is_empty(), "{data:?}: {:?}", outcome.unmeasured);
        let outcome = explore(&lying(run), &own);
        let lost = "d/5/f: 8 bytes at 0 were written with O_SYNC or O_DSYNC and are not there";
        let broken = broken(&outcome);
        assert!(broken.iter().any(|what| what.starts_with(lost)), "{data:?}: {broken:?}");
    }
}

#[test]
fn what_was_written_over_a_promise_is_not_measured() {
    let own = own(DataMode::Ordered, true);
    let run = watched(&own.options, |fs| {
        durable_writes(fs);
        let file = listed(fs, listed(fs, listed(fs, fs.root(), b"d"), b"5"), b"f");
        let fh = fs.open(file, OpenFlags::WRITE).unwrap();
        fs.write(fh, 4, Bytes::from_static(b"ot")).unwrap();
        fs.release(fh).unwrap();
    });
    let outcome = explore(&run, &own);
    assert!(outcome.findings.is_empty(), "{:?}", outcome.findings);
    let reason = outcome.unmeasured.first().map(|why| why.starts_with("d/5/f: written again"));
    assert_eq!(reason, Some(true), "{:?}", outcome.unmeasured);
}
