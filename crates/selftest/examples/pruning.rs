//! Judges the smallest workloads with pruning and without, state by state: they must agree.
//!
//! ```sh
//! cargo run --release -p steadfast-selftest --example pruning -- [LENGTH [STATES]]
//! ```
//!
//! Sequences of up to LENGTH operations (3), set-up after set-up, until STATES states were compared
//! (1,000,000). Times are this process's.

#![allow(clippy::print_stdout, clippy::print_stderr)]

use std::cell::Cell;
use std::process::ExitCode;
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};
use steadfast_crash::explore::Plan;
use steadfast_crash::states::StateBound;
use steadfast_ext4::DataMode;
use steadfast_selftest::mixed::Setup;
use steadfast_selftest::small::{PruningCheck, Sequence, SmallMachine, explore_twice};

/// Sequences that are explored between two looks at how many states there are.
const PART: usize = 16;

fn cpu() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

fn setups() -> [(&'static str, Setup); 4] {
    let small = Setup { block_size: 1024, ..Setup::PLAIN };
    let external = Setup { external: true, ..small };
    [
        ("data=ordered, internal journal", small),
        ("data=journal, external journal", Setup { data: DataMode::Journal, ..external }),
        ("data=ordered, journal on memory", Setup { memory_journal: true, ..external }),
        ("data=ordered, fast commits", Setup { fast_commits: true, ..small }),
    ]
}

fn row(name: &str, twice: &PruningCheck) {
    let distinct = twice.pruned.distinct as f64;
    let a_minute = |used: Duration| distinct / used.as_secs_f64() * 60.0;
    println!(
        "| {name} | {} | {} | {} | {} | {:.0} | {:.0} |",
        twice.pruned.distinct,
        twice.pruned.pruned,
        twice.agreed,
        twice.differing,
        a_minute(twice.unpruned_time.cpu),
        a_minute(twice.pruned_time.cpu)
    );
}

fn main() -> ExitCode {
    let mut args = std::env::args().skip(1).map(|arg| arg.parse::<u64>());
    let mut number = |default: u64| args.next().unwrap_or(Ok(default));
    let (Ok(longest), Ok(states)) = (number(3), number(1_000_000)) else {
        println!("not a number");
        return ExitCode::from(2);
    };
    let bound = StateBound::exhaustive(256, true, 16);
    let plan = Plan { bound, ..Plan::EVERYWHERE };
    let all = Sequence::all(longest as usize);
    println!("| set-up | states | pruned | agree | differ | a minute a core, unpruned | pruned |");
    println!("|---|--:|--:|--:|--:|--:|--:|");
    let (mut compared, mut good) = (0, true);
    for (name, setup) in setups() {
        if compared >= states {
            break;
        }
        let explored = SmallMachine::new(setup).and_then(|machine| {
            let printed = Cell::new(0);
            explore_twice(&machine, &all, (&plan, 0), &cpu, &|twice| {
                let done = twice.pruned.sequences as usize;
                if done >= printed.get() + PART {
                    printed.set(done);
                    eprintln!("{name}: {done} of {} sequences, {}", all.len(), twice.agreed);
                }
            })
        });
        match explored {
            Ok(twice) => {
                row(name, &twice);
                compared += twice.agreed + twice.differing;
                good &= twice.differing == 0 && twice.pruned.wrong() + twice.unpruned.wrong() == 0;
                for finding in twice.pruned.findings.iter().chain(&twice.unpruned.findings) {
                    println!("{finding}");
                }
            }
            Err(why) => {
                println!("{name}: {why}");
                return ExitCode::FAILURE;
            }
        }
    }
    println!("\n{compared} states were judged twice.");
    if good { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
