//! How many states a second the models make of a program's calls, before anybody judges them.
//!
//! Three programs are recorded in this process, in virtual time. Of each the states that POSIX
//! allows are put together by one task, as `crash run` does without a judge: the sets of steps are
//! chosen, what cannot be is taken out, the tree is made and looked up. Printed are the median and
//! the least and most of seven rounds, in states a second of processor time.
//!
//! ```sh
//! cargo run --release -p steadfast-selftest --example model_speed
//! ```

#![allow(clippy::print_stdout)]

use std::io;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use rustix::time::{ClockId, clock_gettime};
use steadfast_crash::persistence::Model;
use steadfast_crash::persistence::explore::ModelExploration;
use steadfast_crash::program::inside::{AckLog, InProcessRun, Program};
use steadfast_crash::program::{Judgement, Judges, RecoveredTree, Tree};
use steadfast_devices::model::{ModelParams, SsdParams};
use steadfast_ext4::MountOptions;
use steadfast_vfs::{FileSystem, FsError, NewNode, OpenFlags, RenameFlags};

const ROUNDS: usize = 7;
/// As `crash run` has them.
const CUTS: usize = 400;
const STATES: usize = 96;
const PAGE: usize = 4096;

/// A judge who takes no time.
struct GoodJudge;

impl Judges for GoodJudge {
    fn judge(&self, _: &RecoveredTree<'_>, _: &[u8]) -> io::Result<Judgement> {
        Ok(Judgement { bad: None, output: String::new() })
    }
}

type Ran = Result<(), FsError>;
type Calls = fn(&dyn FileSystem) -> Ran;

/// A file written anew and renamed over the old one, 200 times, without a sync.
fn settings(fs: &dyn FileSystem) -> Ran {
    let root = fs.root();
    for n in 0..200_u8 {
        let (_, fh) = fs.create(root, b"new", NewNode::default(), OpenFlags::WRITE)?;
        fs.write(fh, 0, Bytes::from(vec![n; PAGE]))?;
        fs.release(fh)?;
        fs.rename((root, b"new"), (root, b"settings"), RenameFlags::empty())?;
    }
    Ok(())
}

/// A mail folder: written, synced, renamed, the folder synced, 100 times.
fn mail(fs: &dyn FileSystem) -> Ran {
    let root = fs.root();
    for n in 0..100_u8 {
        let (_, fh) = fs.create(root, b"new", NewNode::default(), OpenFlags::WRITE)?;
        fs.write(fh, 0, Bytes::from(vec![n; 3000]))?;
        fs.fsync(fh, false)?;
        fs.release(fh)?;
        fs.rename((root, b"new"), (root, &[b'a' + n / 26, b'a' + n % 26]), RenameFlags::empty())?;
        fs.fsyncdir(root)?;
    }
    Ok(())
}

/// A table of 4 MiB with a log beside it, as a database has them: 200 transactions of four pages.
fn table(fs: &dyn FileSystem) -> Ran {
    let root = fs.root();
    let (_, table) = fs.create(root, b"table", NewNode::default(), OpenFlags::WRITE)?;
    for at in 0..1024 {
        fs.write(table, at * PAGE as u64, Bytes::from(vec![1; PAGE]))?;
    }
    fs.fsync(table, false)?;
    for n in 0..200_u8 {
        let (_, log) = fs.create(root, b"log", NewNode::default(), OpenFlags::WRITE)?;
        for page in 0..4 {
            fs.write(log, page * PAGE as u64, Bytes::from(vec![n; PAGE]))?;
        }
        fs.fsync(log, false)?;
        fs.release(log)?;
        for page in 0..4 {
            let at = (u64::from(n) * 37 + page * 211) % 1024;
            fs.write(table, at * PAGE as u64, Bytes::from(vec![n; PAGE]))?;
        }
        fs.fsync(table, false)?;
        fs.unlink(root, b"log")?;
    }
    Ok(())
}

fn main() -> ExitCode {
    println!("| program | calls | instants | states | trees | states a second |");
    println!("|---|--:|--:|--:|--:|--:|");
    let programs: [(&str, Calls); 3] = [("settings", settings), ("mail", mail), ("table", table)];
    for (name, program) in programs {
        if let Err(why) = measured(name, program) {
            println!("{name}: {why}");
            return ExitCode::FAILURE;
        }
    }
    ExitCode::SUCCESS
}

fn measured(name: &str, program: Calls) -> Result<(), String> {
    let words = |e: &dyn std::fmt::Display| e.to_string();
    let run = InProcessRun {
        options: MountOptions::default(),
        disk: ModelParams::Ssd(SsdParams { sectors: (256 << 20) / 512, ..SsdParams::default() }),
        journal: None,
        lying: false,
        seed: 1,
        linger: Duration::ZERO,
    };
    let of = |work: Calls| -> Program {
        Box::new(move |fs: Arc<dyn FileSystem>, _: &AckLog| {
            work(&*fs).map_err(|e| e.to_string().into())
        })
    };
    let run = run.record(of(|_| Ok(())), of(program)).map_err(|e| words(&e))?;
    let base = Tree::default();
    let exploration = ModelExploration {
        run: &run,
        base: &base,
        judge: Some(&GoodJudge),
        cuts: CUTS,
        states: STATES,
        seed: 1,
        workers: 1,
    };
    let mut report = exploration.explore(Model::Posix, &[], &|_| true);
    let mut rates = Vec::new();
    for _ in 0..ROUNDS {
        let before = cpu();
        report = exploration.explore(Model::Posix, &[], &|_| true);
        rates.push(report.states as f64 / (cpu() - before).as_secs_f64());
    }
    rates.sort_by(f64::total_cmp);
    println!(
        "| {name} | {} | {} | {} | {} | {:.0} ({:.0} to {:.0}) |",
        run.own_calls(),
        report.cuts,
        report.states,
        report.trees,
        rates[ROUNDS / 2],
        rates[0],
        rates[ROUNDS - 1],
    );
    Ok(())
}

/// Processor time of this process so far.
fn cpu() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}
