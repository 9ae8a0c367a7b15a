//! What the children do, in virtual time.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use proptest::prelude::*;
use steadfast_bench::iozone::{
    Action, Call, IozoneResults, Observer, Options, RunError, Surroundings, Test, TestResult,
    matrix, report, run,
};
use steadfast_block::pattern;
use steadfast_runtime::{Mutex, Nanos, Sim};
use steadfast_vfs::{FileSystem, FsError, OpenFlags, path};

use crate::memory::{Behaviour, MemoryFs};
use crate::options;

fn millis(read: u64, write: u64, fsync: u64) -> Behaviour {
    Behaviour {
        read: Duration::from_millis(read),
        write: Duration::from_millis(write),
        fsync: Duration::from_millis(fsync),
        ..Behaviour::default()
    }
}

fn simulate(options: &Options, fs: &Arc<MemoryFs>) -> Result<IozoneResults, RunError> {
    let (options, fs) = (options.clone(), Arc::clone(fs));
    Sim::new(1).run(move || run(fs, "", &options, &Surroundings::default(), None)).unwrap()
}

fn only(results: &IozoneResults, test: Test) -> &TestResult {
    results.of(test).next().unwrap()
}

#[test]
fn the_same_run_twice_is_the_same_to_the_byte() {
    let o = options("-C -R -t 3 -s 1m -r 64k -e -c");
    let behaviour = Behaviour { slow: Some(".1"), ..millis(1, 2, 3) };
    let runs = [0, 1].map(|_| simulate(&o, &MemoryFs::new(behaviour.clone())).unwrap());
    assert_eq!(report::text(&runs[0]), report::text(&runs[1]));
    assert_eq!(runs[0].to_json().unwrap(), runs[1].to_json().unwrap());
}

/// Two children write 16 records; one takes 2 ms a record, the other 6. The fast one puts the
/// wall up at 32 ms, then syncs for 10. The slow one has five records by then (30 ms), completes
/// the sixth at 36 ms uncounted, syncs at 36 for 30 ms and has its time frozen at 66 ms.
#[test]
fn the_stonewall_freezes_a_slow_writer_and_lets_it_finish() {
    let o = options("-e -t 2 -s 1m -r 64k -i 0 -+n -w");
    let fs = MemoryFs::new(Behaviour { slow: Some(".1"), ..millis(1, 2, 10) });
    let results = simulate(&o, &fs).unwrap();
    let write = only(&results, Test::InitialWrite);
    let [fast, slow] = &write.children[..] else { panic!() };
    let us = |ns: u64| ns / 1000;
    // A microsecond of processor time a call.
    assert_eq!((fast.bytes, us(fast.elapsed_ns), fast.stopped), (1 << 20, 42_017, false));
    assert_eq!((slow.bytes, us(slow.elapsed_ns), slow.stopped), (5 << 16, 66_007, true));
    // The tail is in the parent's time: the other ten records, fsync, and, without -c, another
    // with the close.
    assert_eq!(us(write.parent_ns), 66_007 + 10 * 6_001 + 2 * 30_001 + 1);
    let whole = |name: &[u8]| fs.lookup(fs.root(), name).unwrap().size;
    assert_eq!((whole(b"iozone.DUMMY.0"), whole(b"iozone.DUMMY.1")), (1 << 20, 1 << 20));
}

#[test]
fn readers_and_rewriters_stop_at_the_wall() {
    let o = options("-t 2 -s 1m -r 64k -i 0 -i 1");
    let fs = MemoryFs::new(Behaviour { slow: Some(".1"), ..millis(2, 2, 1) });
    let results = simulate(&o, &fs).unwrap();
    for test in [Test::Rewrite, Test::Read, Test::Reread] {
        let slow = &only(&results, test).children[1];
        assert!(slow.stopped, "{test:?}");
        assert_eq!(slow.bytes, 5 << 16, "{test:?}");
    }
}

#[test]
fn without_stonewall_and_in_stdio_all_is_counted() {
    let fs = || MemoryFs::new(Behaviour { slow: Some(".1"), ..millis(2, 2, 1) });
    let results = simulate(&options("-x -t 2 -s 1m -r 64k -i 0 -i 1"), &fs()).unwrap();
    let all = |t: &TestResult| t.children.iter().all(|c| c.bytes == 1 << 20 && !c.stopped);
    assert!(results.runs[0].tests.iter().all(all));
    let results = simulate(&options("-t 2 -s 1m -r 64k -i 0 -i 6 -i 7"), &fs()).unwrap();
    assert!(all(only(&results, Test::Fwrite)) && all(only(&results, Test::Fread)));
}

#[test]
fn the_mixed_test_reads_and_writes() {
    let results =
        simulate(&options("-t 3 -s 1m -r 64k -i 0 -i 8"), &MemoryFs::new(millis(1, 2, 1)));
    let results = results.unwrap();
    let roles: Vec<_> = only(&results, Test::Mixed).children.iter().map(|c| c.role).collect();
    assert_eq!(roles, ["random_read", "random_write", "random_read"]);
}

#[test]
fn flags_follow_the_options_and_stdio_ignores_them() {
    let fs = MemoryFs::new(millis(0, 0, 0));
    simulate(&options("-o -I -t 1 -s 128k -r 64k -i 0 -i 1 -i 6 -i 9"), &fs).unwrap();
    let (r, w) = (OpenFlags::READ, OpenFlags::READ | OpenFlags::WRITE);
    let strict = OpenFlags::SYNC | OpenFlags::DIRECT;
    let emptied = OpenFlags::WRITE | OpenFlags::TRUNCATE;
    let flags: Vec<_> = fs.opened().into_iter().map(|(_, flags)| flags).collect();
    assert_eq!(flags, [w | strict, w | strict, r | strict, r | strict, emptied, w | strict, w]);
    assert!(fs.names().is_empty(), "the file is removed at the end");
}

#[test]
fn latencies_are_of_the_counted_calls() {
    let fs = MemoryFs::new(millis(1, 2, 10));
    let results = simulate(&options("-e -c -t 2 -s 1m -r 64k -i 0 -+n"), &fs).unwrap();
    let [write, fsync, close] = &only(&results, Test::InitialWrite).latency[..] else { panic!() };
    assert_eq!((write.count, fsync.count, close.count), (32, 2, 2));
    assert!((2_000_000..2_010_000).contains(&write.p50_ns), "{}", write.p50_ns);
    assert!((10_000_000..10_020_000).contains(&fsync.max_ns), "{}", fsync.max_ns);
}

#[test]
fn pwritev_writes_sixteen_records_a_call() {
    let fs = MemoryFs::new(millis(1, 1, 1));
    let results = simulate(&options("-t 1 -s 2560k -r 64k -i 11 -i 12 -w -+d"), &fs).unwrap();
    for (test, calls) in [(Test::Pwritev, 3), (Test::Preadv, 3)] {
        assert_eq!(only(&results, test).latency[0].count, calls, "{test:?}");
        assert_eq!(only(&results, test).children[0].bytes, 2560 << 10);
    }
}

#[test]
fn reading_what_is_not_there_says_what_to_do() {
    let e = simulate(&options("-t 2 -s 1m -r 64k -i 1"), &MemoryFs::new(millis(1, 1, 1)));
    let e = e.unwrap_err();
    assert_eq!(e.source, Some(FsError::NotFound));
    let text = e.to_string();
    assert!(text.starts_with("Read: iozone.DUMMY.0: child 0: looking for the file"), "{text}");
    assert!(text.contains("-i 0"), "{text}");
}

#[test]
fn a_full_disk_ends_the_run_and_leaves_nothing() {
    let fs = MemoryFs::new(Behaviour { capacity: Some(700_000), ..millis(1, 1, 1) });
    let e = simulate(&options("-t 3 -s 1m -r 64k -i 0"), &fs).unwrap_err();
    assert_eq!(e.source, Some(FsError::NoSpace { what: "blocks" }));
    assert!(e.to_string().contains("writing 65536 bytes at 700000"), "{e}");
    assert!(fs.names().is_empty());
}

#[test]
fn verification_finds_one_changed_byte() {
    let line = "-+d -t 2 -s 1m -r 64k -i 0 -i 1 -i 2 -i 5 -i 7";
    simulate(&options(line), &MemoryFs::new(millis(1, 1, 1))).unwrap();
    let bad = Behaviour { corrupt_at: Some(300_000), ..millis(1, 1, 1) };
    let e = simulate(&options(line), &MemoryFs::new(bad)).unwrap_err();
    assert_eq!(e.source, None);
    assert!(e.to_string().contains("wrong data at 299520"), "{e}");
}

#[test]
fn notes_say_what_the_figures_are_not() {
    let o = options("-t 1 -s 1m -r 64k -i 0 -i 1");
    let surroundings = Surroundings { memory_bytes: Some(1 << 30), ..Surroundings::default() };
    let fs = MemoryFs::new(millis(1, 1, 1));
    let results = Sim::new(1).run(move || run(fs, "", &o, &surroundings, None).unwrap()).unwrap();
    let text = results.notes.join("\n");
    for part in ["page cache", "-e, -o", "less than 100 ms"] {
        assert!(text.contains(part), "{text}");
    }
}

/// An account of every change and promise, as a crash judge keeps it.
#[derive(Default)]
struct Account(Mutex<AccountState>);

#[derive(Default)]
struct AccountState {
    /// Of each file: offset -> tag, as the calls say.
    contents: BTreeMap<String, BTreeMap<u64, u64>>,
    running: BTreeMap<String, Nanos>,
    /// Of all writes: no two have the same.
    tags: BTreeSet<u64>,
    durable: u32,
    undurable: u32,
    syncs: u32,
    removed: u32,
    tests: Vec<Test>,
}

impl Observer for Account {
    fn started(&self, call: &Call<'_>) {
        if let Action::Write { tag, .. } = call.action {
            assert!(self.0.lock().tags.insert(tag), "{tag:#x} twice: {call:?}");
        }
        let before = self.0.lock().running.insert(call.file.into(), call.started);
        assert_eq!(before, None, "one call at a time for each file");
    }

    fn finished(&self, call: &Call<'_>, at: Nanos, durable: bool) {
        let mut state = self.0.lock();
        assert_eq!(state.running.remove(call.file), Some(call.started));
        assert!(at >= call.started);
        let contents = state.contents.entry(call.file.into()).or_default();
        match call.action {
            Action::Write { offset, len, tag } => {
                (offset..offset + len).step_by(512).for_each(|at| {
                    contents.insert(at, tag);
                });
                *(if durable { &mut state.durable } else { &mut state.undurable }) += 1;
            }
            Action::Truncate => contents.clear(),
            Action::Remove => state.removed += 1,
        }
    }

    fn synced(&self, _: Option<&str>, started: Nanos, at: Nanos) {
        assert!(started <= at);
        self.0.lock().syncs += 1;
    }

    fn test_finished(&self, result: &TestResult) {
        self.0.lock().tests.push(result.test);
    }
}

fn account(line: &str) -> (Arc<Account>, Arc<MemoryFs>) {
    let account = Arc::new(Account::default());
    let fs = MemoryFs::new(Behaviour { slow: Some(".1"), ..millis(1, 2, 3) });
    let (a, f, o) = (Arc::clone(&account), Arc::clone(&fs), options(line));
    let done = Sim::new(1).run(move || {
        run(f, "", &o, &Surroundings::default(), Some(a)).unwrap();
    });
    done.unwrap();
    (account, fs)
}

#[test]
fn the_observer_knows_every_byte_and_promise() {
    let (account, fs) = account("-o -e -t 2 -s 512k -r 64k -i 0 -i 2 -i 6 -i 8 -i 9 -i 11 -w");
    let state = account.0.lock();
    assert!(state.running.is_empty());
    assert_eq!(state.tests.len(), 8);
    // fwrite: two children, eight records each, without O_SYNC.
    assert_eq!(state.undurable, 16);
    assert!(state.durable > 60 && state.syncs >= 24, "{} {}", state.durable, state.syncs);
    assert_eq!(state.removed, 0);
    holds_what_was_reported(&state, &fs);
}

/// Whether every sector of every file is from the write that the observer saw.
fn holds_what_was_reported(state: &AccountState, fs: &Arc<MemoryFs>) {
    for (file, contents) in &state.contents {
        let attr = path::resolve(&**fs, file.as_bytes(), true).unwrap();
        assert_eq!(contents.len() as u64 * 512, attr.size);
        let fh = fs.open(attr.ino, OpenFlags::READ).unwrap();
        let data = Sim::new(1).run({
            let fs = Arc::clone(fs);
            move || fs.read(fh, 0, 1 << 20).unwrap()
        });
        for (i, sector) in data.unwrap().chunks(512).enumerate() {
            let stamp = pattern::stamp_of(sector).unwrap();
            let at = i as u64 * 512;
            assert_eq!((stamp.position, Some(&stamp.tag)), (at, contents.get(&at)));
        }
    }
}

/// As [`account`], of single and auto mode; the data is to be judged.
fn account_of_matrix(line: &str) -> (Arc<Account>, Arc<MemoryFs>) {
    let account = Arc::new(Account::default());
    let memory = MemoryFs::new(millis(1, 2, 3));
    let (a, f, o) = (Arc::clone(&account), Arc::clone(&memory), options(line));
    let run = move || {
        let judged = Surroundings { judged: true, ..Surroundings::default() };
        let fs: Arc<dyn FileSystem> = f;
        let cells = &mut matrix::SilentWatcher;
        matrix::run(&fs, "", &o, &judged, (&matrix::InProcessTarget, Some(&*a)), cells).unwrap();
    };
    Sim::new(1).run(run).unwrap();
    (account, memory)
}

#[test]
fn the_observer_knows_every_byte_and_promise_of_auto_mode() {
    // Seven tests write: 0 and 6 twice, 2, 4 and, with -E, 9 twice.
    let tests = "-i 0 -i 1 -i 2 -i 4 -i 6 -E -i 9";
    let (account, fs) = account_of_matrix(&format!("-s 256k -s 512k -r 64k -w -+w 40 -e {tests}"));
    let state = account.0.lock();
    assert!(state.running.is_empty());
    // -e: behind each test, reading ones too.
    assert_eq!((state.durable, state.undurable, state.syncs), (0, 8 * (4 + 8), 2 * 11));
    holds_what_was_reported(&state, &fs);

    let (account, fs) = account_of_matrix(&format!("-s 512k -r 64k -w -o -V 85 {tests}"));
    let state = account.0.lock();
    // Through stdio without O_SYNC; behind the time of each test that writes there is an fsync.
    assert_eq!((state.durable, state.undurable, state.syncs), (6 * 8, 2 * 8, 8));
    holds_what_was_reported(&state, &fs);
}

#[test]
fn the_removal_of_each_cell_is_reported() {
    let (account, _) = account_of_matrix("-s 256k -s 512k -r 64k -r 128k -i 0");
    assert_eq!(account.0.lock().removed, 4);
}

#[test]
fn the_removal_is_reported() {
    let (account, _) = account("-t 2 -s 512k -r 64k -i 0");
    assert_eq!(account.0.lock().removed, 2);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    /// Whatever the speeds: nobody counts more than the file, somebody counts all of it, and the
    /// sums are the sums of the children.
    #[test]
    fn the_figures_are_consistent(
        children in 1_usize..5,
        read in 0_u64..4,
        write in 0_u64..4,
        flags in prop::sample::subsequence(vec!["-e", "-c", "-o", "-x", "-+n", "-O"], 0..6),
    ) {
        let line = format!("-t {children} -s 512k -r 32k {}", flags.join(" "));
        let fs = MemoryFs::new(Behaviour { slow: Some(".0"), ..millis(read, write, 1) });
        let results = simulate(&options(&line), &fs).unwrap();
        for test in &results.runs[0].tests {
            let counted: Vec<u64> = test.children.iter().map(|c| c.bytes).collect();
            prop_assert!(counted.iter().all(|b| *b <= 512 << 10));
            prop_assert!(counted.contains(&(512 << 10)), "{:?} {counted:?}", test.test);
            let sum: f64 = test.children.iter().map(|c| c.rate).sum();
            prop_assert!((sum - test.summary.children_see).abs() <= sum * 1e-9);
            prop_assert!(test.summary.min <= test.summary.avg * (1.0 + 1e-9));
            prop_assert!(test.summary.avg <= test.summary.max * (1.0 + 1e-9));
            prop_assert!(test.children.iter().all(|c| c.elapsed_ns <= test.parent_ns.max(1000)));
        }
    }
}
