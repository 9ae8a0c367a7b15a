//! Long explorations as sweeps: whatever runs the shards, what is merged is what one machine finds;
//! a planted bug is found, and recorded with what shows it again.
//!
//! With `STEADFAST_SOAK` HyperQueue runs one too, from Python's package index.

// What is skipped is said aloud.
#![allow(clippy::print_stdout)]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::Duration;

#[cfg(feature = "planted-bugs")]
use serde_json::Value;

const LIMIT: Duration = Duration::from_secs(600);
/// Two cases of schedules, on one set-up.
const SCHEDULES: &str = "schedules ordered internal preemptions=1 every=170";

/// A folder in which the program runs, without the environment of any engine.
struct Desk {
    folder: tempfile::TempDir,
}

impl Desk {
    fn new() -> Desk {
        Desk { folder: tempfile::tempdir().unwrap() }
    }

    fn path(&self) -> &Path {
        self.folder.path()
    }

    fn command(&self, line: &str) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_soak"));
        command.args(line.split_whitespace()).current_dir(self.path());
        for (name, _) in steadfast_sweep::SHARD_VARIABLES {
            command.env_remove(name);
        }
        command
    }

    fn run(&self, line: &str) -> Output {
        steadfast_suite::output(LIMIT, &mut self.command(line)).unwrap()
    }

    /// Runs a command that must end with this status; its output, and what it says beside that.
    fn ends(&self, line: &str, status: i32) -> (String, String) {
        ended(line, self.run(line), status)
    }

    fn plan(&self, words: &str, shards: u32, name: &str) {
        let (plan, _) = self.ends(&format!("plan {words} --shards {shards} --commit c0ffee"), 0);
        fs::write(self.path().join(name), plan).unwrap();
    }

    /// The lines of a record of failures.
    #[cfg(feature = "planted-bugs")]
    fn lines(&self, name: &str) -> Vec<Value> {
        let text = fs::read_to_string(self.path().join(name)).unwrap();
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }
}

fn ended(line: &str, out: Output, status: i32) -> (String, String) {
    let said = String::from_utf8_lossy(&out.stderr).into_owned();
    assert_eq!(out.status.code(), Some(status), "{line}: {said}");
    (String::from_utf8(out.stdout).unwrap(), said)
}

#[test]
fn what_is_merged_is_what_one_machine_finds() {
    let desk = Desk::new();
    desk.plan(SCHEDULES, 1, "one.json");
    desk.ends("run --plan one.json -o one", 0);
    let (one, _) = desk.ends("merge one.json one", 0);
    assert!(one.contains("| ordered-internal | 2 | 40 |"), "{one}");
    assert!(one.ends_with("\nNothing wrong was found.\n"), "{one}");
    desk.plan(SCHEDULES, 2, "two.json");
    desk.ends("run --plan two.json --shard 1 -o two", 0);
    let (missing, said) = desk.ends("merge two.json two", 1);
    assert!(missing.is_empty() && said.contains("shard 0 of 2 is missing"), "{said}");
    assert!(said.contains("run it: cargo xtask soak run --plan two.json --shard 0"), "{said}");
    let mut task = desk.command("run --plan two.json -o two");
    let ran = steadfast_suite::output(LIMIT, task.env("HQ_TASK_ID", "0")).unwrap();
    ended("HQ_TASK_ID=0", ran, 0);
    let (status, _) = desk.ends("status two.json two", 0);
    assert!(status.starts_with("2 of 2 cases (0 failed)"), "{status}");
    assert_eq!(desk.ends("merge two.json two", 0).0, one);
    // Nor are results taken for another plan's.
    let (_, said) = desk.ends("merge one.json two", 1);
    assert!(said.contains("it is of another plan"), "{said}");
}

#[test]
fn the_corpus_and_sequences_are_spaces_too() {
    let desk = Desk::new();
    for (words, row) in [
        ("corpus known fs=ext4", "| ext4, known | 2 | 26 | 107 | 963 | 0 |"),
        ("sequences part=going every=100", "| journal, internal, going round | 1 | "),
    ] {
        desk.plan(words, 1, "plan.json");
        desk.ends("run --plan plan.json -o results --budget 1h", 0);
        let (table, _) = desk.ends("merge plan.json results", 0);
        assert!(table.contains(row), "{words}: {table}");
        fs::remove_dir_all(desk.path().join("results")).unwrap();
    }
}

#[test]
fn what_is_wrong_is_said_with_what_to_do() {
    let desk = Desk::new();
    let said = |line: &str, words: &str| {
        let (_, said) = desk.ends(line, 2);
        let joined = said.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(joined.contains(words), "{line}: {said}");
    };
    said("plan everything --shards 1", "'everything': can be explored: schedules, sequences, cor");
    said("plan schedules lock --shards 1", "'lock' is not known; soak plan --help has the words");
    said("plan schedules preemptions=0 --shards 1", "must be a whole number from 1 on");
    said("plan schedules bug=none --shards 1", "none: no such bug");
    said("plan corpus fs=ext5 --shards 1", "ext5: not ext4 or ext2");
    said("plan sequences part=nowhere --shards 1", "no part has that in its name");
    desk.plan(SCHEDULES, 2, "plan.json");
    said("run --plan plan.json", "has 2 shards, and nothing says which one to run: give --shard");
    said("run --plan plan.json --budget 8", "a time is as 90s, 30m, 8h or 2d");
    said("case schedules --case nobody", "there is no case 'nobody'; one is 'ordered-internal/");
    fs::write(desk.path().join("failures.jsonl"), "{}\n").unwrap();
    said("run --plan plan.json --budget 0s", "failures.jsonl, line 1: it is no failure");
}

/// A campaign finds a bug of two tasks, and records it; the next one goes on.
#[cfg(feature = "planted-bugs")]
#[test]
fn a_planted_bug_is_found_and_recorded() {
    use steadfast_crash::explore::Plan;
    use steadfast_selftest::small::ScheduledCase;

    let desk = Desk::new();
    let words = "schedules ordered internal preemptions=1 every=85 bug=link-in-two-transactions";
    desk.plan(words, 2, "plan.json");
    // There is no time for a case.
    desk.ends("run --plan plan.json --budget 0s -o results", 0);
    assert!(!desk.path().join("results/failures.jsonl").exists());
    let (found, said) =
        desk.ends("run --plan plan.json --budget 1h --jobs 2 -o results --record record", 1);
    assert!(found.contains("FOUND: ") && said.contains("4 cases run"), "{found}{said}");
    let failures = desk.lines("record/failures.jsonl");
    assert!(!failures.is_empty());
    for failure in &failures {
        assert_eq!((&failure["commit"], &failure["seed"]), (&"c0ffee".into(), &1.into()));
        assert!(failure["seconds"].as_f64() > Some(0.0), "{failure}");
        let case = failure["case"].as_str().unwrap();
        assert!(case.starts_with("ordered-internal-bug=link-in-two-transactions/"), "{case}");
        // What it names shows it again.
        let command = failure["command"].as_str().unwrap();
        let (_, words) = command.split_once("--example schedules -- ").unwrap();
        let again = words.parse::<ScheduledCase>().unwrap().explore(&Plan::EVERYWHERE).unwrap();
        assert!(again.wrong() > 0, "{command}");
    }
    let kept = desk.lines("record/failing.jsonl");
    let newest = failures.iter().map(|failure| failure["at_ms"].as_u64()).max().unwrap();
    assert!(kept.iter().any(|failure| failure["at_ms"].as_u64() == newest), "{kept:#?}");
    // The record outlives the results, and nothing is in it twice.
    let (merged, _) = desk.ends("merge plan.json results", 1);
    assert!(merged.contains("\nFOUND: "), "{merged}");
    fs::remove_dir_all(desk.path().join("results")).unwrap();
    desk.ends("run --plan plan.json --budget 0s -o results --record record", 1);
    desk.ends("run --plan plan.json --budget 1h -o results --record record", 1);
    assert_eq!(desk.lines("record/failures.jsonl").len(), failures.len());
}

/// Python with HyperQueue, in an environment of its own.
fn hyperqueue(folder: &Path) -> Result<PathBuf, String> {
    let environment = folder.join("python");
    let python = environment.join("bin/python3");
    let mut make = Command::new("python3");
    make.args(["-m", "venv"]).arg(&environment);
    let mut install = Command::new(&python);
    install.args(["-m", "pip", "install", "--quiet", "hyperqueue==0.27.0"]);
    for command in [&mut make, &mut install] {
        let ran = steadfast_suite::output(LIMIT, command).map_err(|e| e.to_string())?;
        if !ran.status.success() {
            return Err(String::from_utf8_lossy(&ran.stderr).trim().to_owned());
        }
    }
    Ok(python)
}

#[test]
fn hyperqueue_does_the_same() {
    if std::env::var_os("STEADFAST_SOAK").is_none() {
        return;
    }
    let desk = Desk::new();
    let python = match hyperqueue(desk.path()) {
        Ok(python) => python,
        Err(why) => {
            println!("SKIPPED: a sweep by HyperQueue (python3-venv, pip): {why}");
            return;
        }
    };
    let words = "schedules ordered preemptions=1 every=60";
    desk.plan(words, 1, "one.json");
    desk.ends("run --plan one.json -o one", 0);
    desk.plan(words, 4, "plan.json");
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/sweep_hyperqueue.py");
    let mut run = Command::new(python);
    run.arg(script).arg("4").arg(env!("CARGO_BIN_EXE_soak"));
    run.args(["run", "--plan", "plan.json", "-o", "results"]);
    // It leaves files where temporary ones are.
    run.current_dir(desk.path()).env("TMPDIR", desk.path());
    for (name, _) in steadfast_sweep::SHARD_VARIABLES {
        run.env_remove(name);
    }
    ended("sweep_hyperqueue.py", steadfast_suite::output(LIMIT, &mut run).unwrap(), 0);
    let (merged, _) = desk.ends("merge plan.json results", 0);
    assert_eq!(merged, desk.ends("merge one.json one", 0).0);
}
