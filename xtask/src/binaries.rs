//! The test binaries that `cargo test` builds, run side by side.
//!
//! `cargo test` itself runs one binary after the other, and waits at the end of each for its last
//! test. Here each binary is one process that runs its tests one after the other, and there are
//! about as many processes at a time as processors. So the time between two results is the time of
//! a test, and no processor waits while there are binaries left.
//!
//! A binary gets what cargo gives it: the package's folder to work in, `CARGO` and
//! `CARGO_MANIFEST_DIR`. Two tests of one binary never run at once, those of different binaries do.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use serde_json::Value;
use steadfast_host::Folder;

use crate::step;
use crate::tally::Tally;

/// Begun before all others, those that take longest first: begun last they would run on alone.
const LONG: [&str; 11] = [
    "crates/steadfast/tests/mutated/main.rs",
    "crates/steadfast/tests/judges/main.rs",
    "crates/selftest/tests/planted/main.rs",
    "crates/selftest/tests/schedules.rs",
    "crates/ext4/tests/power_cut.rs",
    "crates/ext4/tests/roundtrip/main.rs",
    "crates/lab/tests/experiments/main.rs",
    "crates/ext4/tests/flips/main.rs",
    "crates/selftest/tests/small.rs",
    "crates/journal/tests/journal/main.rs",
    DOC_TESTS,
];
/// They wait most of the time: for processes, mounts and deadlines. Beside what computes there is a
/// place for one of them more.
const WAITS: [&str; 7] = [
    "crates/steadfast/tests/serve.rs",
    "crates/steadfast/tests/mount.rs",
    "crates/steadfast/tests/cli.rs",
    "crates/steadfast/tests/crash.rs",
    "crates/host/src/lib.rs",
    "crates/pagecache/tests/cache/main.rs",
    "crates/peers/tests/kernel.rs",
];
/// Their images are only what mke2fs, e2fsck, the kernel, programs on a mount and we read and
/// write, so they are made in memory where there is such a folder. What a disk of this machine does
/// below a file is tested by others: `devices`, `stack`, and the mounts of `steadfast`.
const IN_MEMORY: [&str; 10] = [
    "crates/selftest/tests/planted/main.rs",
    "crates/selftest/tests/schedules.rs",
    "crates/selftest/tests/small.rs",
    "crates/ext4/tests/power_cut.rs",
    "crates/ext4/tests/roundtrip/main.rs",
    "crates/ext4-tune/tests/tune/main.rs",
    "crates/journal/tests/journal/main.rs",
    "crates/lab/tests/experiments/main.rs",
    "crates/steadfast/tests/judges/main.rs",
    "crates/steadfast/tests/mutated/main.rs",
];
/// Where files are in memory (tmpfs), on Linux.
const MEMORY: &str = "/dev/shm";
/// What statfs(2) calls such a file system.
const TMPFS_MAGIC: u64 = 0x0102_1994;
/// Bytes that must be free there and in memory: several times what the images of a few binaries
/// take at once. Containers have 64 MiB there.
const MEMORY_ROOM: u64 = 6 << 30;

/// Longest that a binary may take: several times what the longest one takes on a busy machine, and
/// short enough that the run ends and says which test it was before CI gives up.
const LIMIT: Duration = Duration::from_secs(25 * 60);

/// The name of the job that runs all examples in documentation.
const DOC_TESTS: &str = "examples in documentation";
/// Cargo builds test binaries into folders `deps`, rustdoc elsewhere. What is not run here has no
/// tests.
const EXAMPLES_ONLY: &str = "target.'cfg(all())'.runner = ['sh', '-c', 'case \"$0\" in \
    */deps/*) echo \"test result: ok. 0 passed\" ;; *) exec \"$0\" \"$@\" ;; esac']";

/// What is tested, of the whole workspace.
#[derive(Debug, Clone, Copy)]
pub struct TestSelection<'a> {
    /// Features beside the default ones: `package/feature`, with commas.
    pub features: &'a str,
    /// Optimised as a release is.
    pub release: bool,
    /// Only tests whose name contains this.
    pub filter: Option<&'a str>,
    /// Only these binaries, and no examples in documentation.
    pub only: Option<&'a [&'a str]>,
    /// Variables of the environment of the tests.
    pub environment: &'a [(&'a str, String)],
    /// The longest that a binary may take.
    pub limit: Duration,
    /// A test that takes longer is printed when it ends, before its binary does.
    pub long: Duration,
}

impl Default for TestSelection<'_> {
    fn default() -> Self {
        TestSelection {
            features: "",
            release: false,
            filter: None,
            only: None,
            environment: &[],
            limit: LIMIT,
            long: Duration::MAX,
        }
    }
}

/// Something to run that prints as the test harness does.
struct Job {
    name: String,
    command: Command,
    /// Its tests run one after the other.
    in_turn: bool,
}

/// A test, or all of a binary, and how long it has taken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TestTime {
    pub name: String,
    pub time: Duration,
}

/// What the tests have taken.
#[derive(Debug, Default)]
pub struct Times {
    /// By the clock.
    pub tests: Vec<TestTime>,
    /// The processor's.
    pub binaries: Vec<TestTime>,
}

/// Builds the tests; `None` if that fails, and then cargo has said why.
pub fn build(root: &Path, asked: &TestSelection) -> anyhow::Result<Option<Binaries>> {
    let mut command = step::cargo(root, &["test", "--workspace", "--no-run"]);
    command.args(options(asked)).arg("--message-format=json-render-diagnostics");
    let mut messages = Vec::new();
    let ended =
        step::run_stdout_lines(step::LIMIT, &mut command, |line| {
            match serde_json::from_str::<Value>(line) {
                Ok(message) => messages.push(message),
                Err(_) => println!("{line}"),
            }
        })?;
    let mut found: Vec<Binary> = messages.iter().filter_map(|m| binary(root, m)).collect();
    found.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(ended.good.then_some(Binaries(found)))
}

fn options<'a>(asked: &TestSelection<'a>) -> impl Iterator<Item = &'a str> {
    let release = asked.release.then_some("--release");
    let features = (!asked.features.is_empty()).then_some(["--features", asked.features]);
    release.into_iter().chain(features.into_iter().flatten())
}

/// All test binaries of the workspace.
pub struct Binaries(Vec<Binary>);

#[derive(Debug, PartialEq, Eq)]
struct Binary {
    /// The file that it begins with, from the workspace's folder.
    name: String,
    package: PathBuf,
    program: PathBuf,
}

/// The test binary that one of cargo's messages announces.
fn binary(root: &Path, message: &Value) -> Option<Binary> {
    if message["reason"] != "compiler-artifact" || message["profile"]["test"] != true {
        return None;
    }
    let source = Path::new(message["target"]["src_path"].as_str()?);
    let name = source.strip_prefix(root).unwrap_or(source).display().to_string();
    let package = Path::new(message["manifest_path"].as_str()?).parent()?.to_owned();
    Some(Binary { name, package, program: message["executable"].as_str()?.into() })
}

/// Runs the binaries and the examples in documentation, counts and shows what they print; whether
/// all have ended well.
pub fn run(
    root: &Path,
    binaries: &Binaries,
    asked: &TestSelection,
    tally: &mut Tally,
    times: &mut Times,
) -> anyhow::Result<bool> {
    let memory = TmpfsFolder::new();
    let is_asked = |b: &&Binary| asked.only.is_none_or(|only| only.contains(&b.name.as_str()));
    let asked_for = binaries.0.iter().filter(is_asked);
    let mut jobs: Vec<Job> = asked_for.map(|b| job(root, b, asked, &memory)).collect();
    if asked.only.is_none() {
        jobs.push(doc_tests(root, asked));
    }
    // What takes long first; a place that is not in the list is after all that are.
    let place = |job: &Job| LONG.iter().position(|long| *long == job.name).unwrap_or(LONG.len());
    jobs.sort_by_key(place);
    jobs.reverse();
    let slots = std::thread::available_parallelism().map_or(1, usize::from);
    let (idle, busy): (Vec<Job>, Vec<Job>) =
        jobs.into_iter().partition(|job| WAITS.contains(&job.name.as_str()));
    let (idle, busy) = (Mutex::new(idle), Mutex::new(busy));
    let state = Mutex::new((&mut *tally, &mut *times, true));
    std::thread::scope(|scope| {
        for slot in 0..=slots {
            let (idle, busy, state) = (&idle, &busy, &state);
            scope.spawn(move || {
                loop {
                    let next = if slot == slots { None } else { lock(busy).pop() };
                    let Some(job) = next.or_else(|| lock(idle).pop()) else { return };
                    let name = job.name.clone();
                    let done = one(asked.limit, asked.long, job);
                    let (tally, times, good) = &mut *lock(state);
                    *good &= finish(&name, done, tally, times);
                }
            });
        }
    });
    let good = lock(&state).2;
    Ok(good && tally.failed() == 0)
}

/// Each user finishes what it does to it, or the tests have no result anyhow.
fn lock<T>(of: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A folder in memory, if there is one. It goes with the run. What a run that was killed has left
/// mounted there, the next one clears.
struct TmpfsFolder(Option<Folder>);

impl TmpfsFolder {
    fn new() -> TmpfsFolder {
        let is_memory = rustix::fs::statfs(MEMORY).is_ok_and(|of| {
            let is_tmpfs = u64::try_from(of.f_type).is_ok_and(|kind| kind == TMPFS_MAGIC);
            let free = u64::try_from(of.f_bsize).unwrap_or(0).saturating_mul(of.f_bavail);
            is_tmpfs && free.min(available()) >= MEMORY_ROOM
        });
        let made = is_memory.then(|| Folder::new_in(Path::new(MEMORY), "steadfast-test-").ok());
        TmpfsFolder(made.flatten())
    }
}

/// Bytes of memory that can be used without swapping; 0 if the system does not say.
fn available() -> u64 {
    let text = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"));
    let kib = line.and_then(|rest| rest.trim().trim_end_matches(" kB").parse::<u64>().ok());
    kib.map_or(0, |kib| kib.saturating_mul(1024))
}

fn job(root: &Path, binary: &Binary, asked: &TestSelection, memory: &TmpfsFolder) -> Job {
    // For the path, and for the limits that the workspace's tools find.
    let cargo = step::cargo(root, &[]);
    let mut command = Command::new(&binary.program);
    command.current_dir(&binary.package).env("CARGO", cargo.get_program());
    command.env("CARGO_MANIFEST_DIR", &binary.package);
    for (name, value) in cargo.get_envs().filter_map(|(name, value)| Some((name, value?))) {
        command.env(name, value);
    }
    command.args(["--test-threads=1", "--show-output"]).args(asked.filter);
    command.envs(asked.environment.iter().map(|(name, value)| (name, value)));
    if let Some(folder) = memory.0.as_ref().filter(|_| IN_MEMORY.contains(&binary.name.as_str())) {
        command.env("TMPDIR", folder.path());
    }
    Job { name: binary.name.clone(), command, in_turn: true }
}

/// Cargo hands these to rustdoc, which builds and runs them.
///
/// Cargo is asked for all tests, with a runner that starts only the examples: asked for these alone
/// (`--doc`), it leaves out packages without a library, selects other features of what the
/// rest depends on, and builds the whole workspace anew.
fn doc_tests(root: &Path, asked: &TestSelection) -> Job {
    let mut command = step::cargo(root, &["test", "--workspace", "--no-fail-fast"]);
    command.args(["--config", EXAMPLES_ONLY]);
    command.args(options(asked)).env("CARGO_TERM_COLOR", "never");
    // Without --show-output, with which rustdoc builds and starts a program for each example
    // instead of one for all of a crate.
    command.arg("--").args(asked.filter);
    command.envs(asked.environment.iter().map(|(name, value)| (name, value)));
    Job { name: DOC_TESTS.to_owned(), command, in_turn: false }
}

/// What a job has left.
struct BinaryResult {
    ended: anyhow::Result<step::ProcessEnd>,
    tally: Tally,
    shown: Vec<String>,
    tests: Vec<TestTime>,
    time: Duration,
}

fn one(limit: Duration, long: Duration, mut job: Job) -> BinaryResult {
    let begun = Instant::now();
    let (mut shown, mut tests) = (Vec::new(), Vec::new());
    let mut tally = if job.in_turn { Tally::of(&job.name) } else { Tally::default() };
    let mut last = begun;
    let ended = step::run_lines(limit, &mut job.command, |line| {
        let read = tally.line(line);
        if let Some(name) = read.ended.filter(|_| job.in_turn) {
            let now = Instant::now();
            let took = TestTime { name: format!("{}: {name}", job.name), time: now - last };
            if took.time > long {
                println!("    {} has ended after {:.0} s", took.name, took.time.as_secs_f64());
            }
            tests.push(took);
            last = now;
        }
        shown.extend(read.show.map(str::to_owned));
    });
    BinaryResult { ended, tally, shown, tests, time: begun.elapsed() }
}

/// Adds up and shows a job; whether it has ended well.
fn finish(name: &str, done: BinaryResult, tally: &mut Tally, times: &mut Times) -> bool {
    let BinaryResult { ended, tally: mut own, shown, tests, time } = done;
    if let Err(error) = &ended {
        let test = own.running().map(|test| format!(" (in the test {test})")).unwrap_or_default();
        println!("    {name}: {error:#}{test}");
    }
    let cpu = ended.as_ref().map_or(Duration::ZERO, |ended| ended.cpu);
    let good = ended.is_ok_and(|ended| ended.good);
    own.finish(good);
    let (passed, failed, skipped) = (own.passed(), own.failed(), own.skipped());
    println!(
        "    {name}: {passed} passed, {failed} failed, {skipped} skipped in {:.1} s ({:.1} s of \
         processor time)",
        time.as_secs_f64(),
        cpu.as_secs_f64()
    );
    for line in shown {
        println!("{line}");
    }
    tally.add_all(own);
    times.tests.extend(tests);
    times.binaries.push(TestTime { name: name.to_owned(), time: cpu });
    good
}

/// The longest, longest first.
pub fn longest(all: &[TestTime], count: usize) -> Vec<&TestTime> {
    let mut sorted: Vec<&TestTime> = all.iter().collect();
    sorted.sort_by(|a, b| b.time.cmp(&a.time).then_with(|| a.name.cmp(&b.name)));
    sorted.truncate(count);
    sorted
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn test_binaries_are_found_in_cargos_messages() {
        let message = serde_json::json!({
            "reason": "compiler-artifact",
            "manifest_path": "/w/crates/a/Cargo.toml",
            "target": { "kind": ["test"], "name": "b", "src_path": "/w/crates/a/tests/b.rs" },
            "profile": { "test": true },
            "executable": "/w/target/debug/deps/b-1",
        });
        let expected = Binary {
            name: "crates/a/tests/b.rs".to_owned(),
            package: "/w/crates/a".into(),
            program: "/w/target/debug/deps/b-1".into(),
        };
        assert_eq!(binary(Path::new("/w"), &message), Some(expected));
        for (key, value) in [("reason", "build-finished".into()), ("executable", Value::Null)] {
            let mut other = message.clone();
            other[key] = value;
            assert_eq!(binary(Path::new("/w"), &other), None);
        }
        let mut example = message.clone();
        example["profile"]["test"] = false.into();
        assert_eq!(binary(Path::new("/w"), &example), None);
    }

    /// What long binaries are called is nowhere else: a file that has moved would lose its place.
    #[test]
    fn the_binaries_that_are_named_are_there() {
        let named = LONG.iter().chain(&WAITS).chain(&IN_MEMORY).filter(|name| **name != DOC_TESTS);
        for name in named {
            assert!(crate::root().join(name).is_file(), "{name}");
        }
    }

    fn script(text: &str) -> Job {
        let mut command = Command::new("sh");
        command.args(["-c", text]);
        Job { name: "a".to_owned(), command, in_turn: true }
    }

    #[test]
    fn tests_are_timed_and_counted_and_a_binary_that_dies_is_a_failure() {
        let (mut tally, mut times) = (Tally::default(), Times::default());
        let good = script(
            "echo; echo 'running 2 tests'; echo 'test short ... ok'; printf 'test long ... '; \
             sleep 0.3; echo ok; echo; \
             echo 'test result: ok. 2 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out'",
        );
        let done = one(step::LIMIT, Duration::MAX, good);
        assert_eq!(done.shown, Vec::<String>::new());
        assert!(finish("a", done, &mut tally, &mut times));
        let slowest = longest(&times.tests, 1)[0];
        assert_eq!(slowest.name, "a: long");
        assert!(slowest.time >= Duration::from_millis(250), "{slowest:?}");
        assert_eq!((tally.passed(), tally.failed(), times.binaries.len()), (2, 0, 1));

        let dies = script("echo 'running 2 tests'; echo 'test one ... ok'; kill -SEGV $$");
        assert!(!finish("b", one(step::LIMIT, Duration::MAX, dies), &mut tally, &mut times));
        assert_eq!((tally.passed(), tally.failed()), (2, 1));
    }
}
