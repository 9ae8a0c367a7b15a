//! Explores the smallest workloads of one set-up and prints figures and speed:
//! `cargo run --release -p steadfast-selftest --example small -- MODE [JOURNAL] [LENGTH] [N]`.
//! JOURNAL is internal or external; LENGTH is that of the longest sequence.
//! MODE is writeback, ordered, journal, transact or transact-asked. With N, only the sequence of
//! that number: findings print it.

// It is for people.
#![allow(clippy::print_stdout)]

use std::process::ExitCode;
use std::time::Instant;

use steadfast_crash::explore::{Plan, SecondCuts};
use steadfast_crash::states::StateBound;
use steadfast_ext4::DataMode;
use steadfast_selftest::mixed::Setup;
use steadfast_selftest::small::{Sequence, SequenceReport, SmallMachine, explore};
use steadfast_vfs::{TransactMask, TransactPolicy};

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let word = |n: usize, default: &str| args.get(n).map_or(default.to_owned(), Clone::clone);
    let plain =
        Setup { block_size: 1024, external: word(1, "internal") == "external", ..Setup::PLAIN };
    let transact = |points| Setup { data: DataMode::Transact, points: Some(points), ..plain };
    let setup = match word(0, "ordered").as_str() {
        "ordered" => plain,
        "writeback" => Setup { data: DataMode::Writeback, ..plain },
        "journal" => Setup { data: DataMode::Journal, ..plain },
        "transact" => transact(TransactPolicy::default().mask),
        "transact-asked" => transact(TransactMask::FSYNC | TransactMask::SYNC),
        other => {
            println!("{other}: not writeback, ordered, journal, transact or transact-asked");
            return ExitCode::from(2);
        }
    };
    let Ok(longest) = word(2, "2").parse() else {
        println!("the length is a number of operations");
        return ExitCode::from(2);
    };
    let mut sequences = Sequence::all(longest);
    if let Some(number) = args.get(3) {
        let one = number.parse().ok().and_then(|n: usize| sequences.get(n).cloned());
        let Some(one) = one else {
            println!("{number}: there are {} sequences", sequences.len());
            return ExitCode::from(2);
        };
        println!("{one}");
        sequences = vec![one];
    }
    println!("{} sequences", sequences.len());
    let bound = StateBound::exhaustive(256, true, 16);
    let plan = Plan {
        bound,
        e2fsck_every: 500,
        second: SecondCuts { every: 20, whole_every: 2000, ..SecondCuts::NONE },
        ..Plan::EVERYWHERE
    };
    let begun = Instant::now();
    let progress = |so_far: &SequenceReport| {
        if so_far.sequences.is_multiple_of(50) {
            println!("{:.0} s: {so_far}", begun.elapsed().as_secs_f64());
        }
    };
    let explored = SmallMachine::new(setup).and_then(|m| explore(&m, &sequences, &plan, &progress));
    let seconds = begun.elapsed().as_secs_f64();
    match explored {
        Ok(explored) => {
            let rate = explored.distinct as f64 / seconds * 60.0;
            println!("{explored}\n{seconds:.1} s, {rate:.0} distinct states a minute");
            explored.findings.iter().for_each(|finding| println!("{finding}"));
            ExitCode::from(u8::from(explored.wrong() > 0))
        }
        Err(why) => {
            println!("{why}");
            ExitCode::from(2)
        }
    }
}
