//! CrashMonkey's known bugs and ACE's workloads on our file systems and the kernel's: a row for
//! each, and what failed. README.md of this crate has the results.
//!
//! ```sh
//! cargo run --release -p steadfast-selftest --example corpus -- [OPTION...]
//! ```
//!
//! `--fs FS,...`: ext4, ext2 (ours; mount options follow after colons, as in
//! `ext4:data=journal:nodelalloc`), kernel-ext4, kernel-xfs, kernel-btrfs ... (the kernel's, as
//! root). `--space known|seq-1|seq-2`: which workloads; `--every N`: every N-th of them. `--states
//! N`: states at each cut, at most. `--everywhere`: cut after everything that was recorded, not
//! only around flushes. `--seed S`. `--lying`: our disk ignores flushes, the control. `--list`
//! prints the workloads.
//!
//! Exit status: 0 nothing failed, 1 a workload failed, 2 used wrongly, or the test itself failed.

// It is for people.
#![allow(clippy::print_stdout)]

use std::process::ExitCode;
use std::time::Duration;

use steadfast_crash::explore::Plan;
use steadfast_crash::states::{CrashPoints, StateBound};
use steadfast_peers::KernelFs;
use steadfast_selftest::corpus::{
    InCorpus, KNOWN, Own, Subject, Workload, WorkloadReport, ace, try_out,
};

type Result<T> = std::result::Result<T, String>;

struct Words {
    fs: String,
    space: String,
    every: usize,
    states: Option<u64>,
    everywhere: bool,
    seed: u64,
    lying: bool,
    list: bool,
}

fn main() -> ExitCode {
    match words(std::env::args().skip(1)).and_then(|words| run(&words)) {
        Ok(failed) => ExitCode::from(u8::from(failed)),
        Err(why) => {
            println!("{why}");
            ExitCode::from(2)
        }
    }
}

fn words(mut given: impl Iterator<Item = String>) -> Result<Words> {
    let (fs, space) = ("ext4".to_owned(), "known".to_owned());
    let (everywhere, lying, list) = (false, false, false);
    let mut words = Words { fs, space, every: 1, states: None, everywhere, seed: 1, lying, list };
    while let Some(word) = given.next() {
        let mut value = || given.next().ok_or_else(|| format!("{word} needs a value"));
        let number = |text: String| text.parse::<u64>().map_err(|e| format!("{word} {text}: {e}"));
        match word.as_str() {
            "--fs" => words.fs = value()?,
            "--space" => words.space = value()?,
            "--every" => words.every = number(value()?)?.max(1) as usize,
            "--states" => words.states = Some(number(value()?)?),
            "--seed" => words.seed = number(value()?)?,
            "--everywhere" => words.everywhere = true,
            "--lying" => words.lying = true,
            "--list" => words.list = true,
            _ => return Err(format!("{word}: unknown; the head of the example has the words")),
        }
    }
    Ok(words)
}

/// Whether a workload failed.
fn run(words: &Words) -> Result<bool> {
    if words.list {
        workloads(words)?.for_each(|workload| println!("{workload}"));
        return Ok(false);
    }
    println!("| file system | workloads | failed | cuts | states | wrong | refused |");
    println!("|---|--:|--:|--:|--:|--:|--:|");
    let mut failures = Vec::new();
    for name in words.fs.split(',') {
        let (subject, states) = subject(name, words)?;
        let places = if words.everywhere { CrashPoints::All } else { CrashPoints::Flushes };
        let states = words.states.unwrap_or(states);
        let bound = StateBound { states, drawn: 4, ..StateBound::default() };
        let plan = Plan { places, bound, seed: words.seed, use_it: true, ..Plan::EVERYWHERE };
        let (mut all, mut sum, mut failed) = (0, WorkloadReport::default(), 0);
        for workload in workloads(words)? {
            let outcome = try_out(&*subject, &workload, &plan)
                .map_err(|e| format!("{name}: {workload}: {e}"))?;
            all += 1;
            sum.cuts += outcome.cuts;
            sum.states += outcome.states;
            sum.wrong += outcome.wrong;
            sum.refused += outcome.refused;
            if let Some((state, wrong)) = outcome.first {
                failed += 1;
                failures.push(format!("{name}: {workload}: state {state}: {}", wrong.join("; ")));
            }
        }
        let WorkloadReport { cuts, states, wrong, refused, .. } = sum;
        let name = subject.name();
        println!("| {name} | {all} | {failed} | {cuts} | {states} | {wrong} | {refused} |");
    }
    failures.iter().for_each(|failure| println!("\n{failure}"));
    Ok(!failures.is_empty())
}

fn workloads(words: &Words) -> Result<Box<dyn Iterator<Item = Workload>>> {
    let every = words.every;
    Ok(match words.space.as_str() {
        "known" => Box::new(KNOWN.iter().map(|known| known.workload()).step_by(every)),
        "seq-1" => Box::new(ace::seq1().step_by(every)),
        "seq-2" => Box::new(ace::seq2(0, every)),
        other => return Err(format!("--space {other}: not known, seq-1 or seq-2")),
    })
}

/// A file system, and how many states of each cut are judged if nobody says otherwise: the kernel
/// takes a hundred times as long to recover.
fn subject(name: &str, words: &Words) -> Result<(Box<dyn Subject>, u64)> {
    let mut parts = name.split(':');
    let fs = parts.next().unwrap_or_default();
    if let Some(kernel) = fs.strip_prefix("kernel-").and_then(KernelFs::of_name) {
        if words.lying || parts.next().is_some() {
            return Err(format!("{name}: mount options and --lying are of our own file systems"));
        }
        return Ok((Box::new(InCorpus::new(kernel).map_err(|e| e.to_string())?), 4));
    }
    let own = Own::of_words(name, Duration::ZERO).map_err(|e| e.to_string())?;
    let own = if words.lying { own.on_a_lying_disk() } else { own };
    Ok((Box::new(own), 24))
}
