//! Explores two tasks of the smallest workloads in every schedule with a few preemptions:
//! `cargo run --release -p steadfast-crash --example schedules -- MODE JOURNAL LIST [N [POINTS]]`.
//! MODE is writeback, ordered, journal or transact; JOURNAL is internal or external. LIST is fsync
//! (up to two operations beside a write and its fsync), locks (one operation, and each lock is a
//! point) or two (all pairs of two operations: days). N is the number of one pair, POINTS the
//! points of one schedule, such as 1,4; findings tell both.

// It is for people.
#![allow(clippy::print_stdout)]

use std::process::ExitCode;
use std::time::Instant;

use steadfast_crash::mixed::Setup;
use steadfast_crash::small::{
    Bound, Pair, Plan, Scheduled, Schedules, SmallMachine, explore_schedules,
};
use steadfast_ext4::DataMode;
use steadfast_vfs::TransactMask;

/// What the arguments ask for.
fn asked(args: &[String]) -> Result<(Setup, Vec<Pair>, Schedules), String> {
    let word = |n: usize| args.get(n).map_or("", String::as_str);
    let external = match word(1) {
        "internal" => false,
        "external" => true,
        other => return Err(format!("'{other}': the journal is internal or external")),
    };
    let plain = Setup { block_size: 1024, external, ..Setup::PLAIN };
    let points = TransactMask::FSYNC | TransactMask::SYNC;
    let setup = match word(0) {
        "ordered" => plain,
        "writeback" => Setup { data: DataMode::Writeback, ..plain },
        "journal" => Setup { data: DataMode::Journal, ..plain },
        "transact" => Setup { data: DataMode::Transact, points: Some(points), ..plain },
        other => return Err(format!("'{other}': not writeback, ordered, journal or transact")),
    };
    let (mut pairs, mut preemptions) = match word(2) {
        "fsync" => (Pair::beside_an_fsync(2), 2),
        "locks" => (Pair::beside_an_fsync(1), 1),
        "two" => (Pair::of_two(1), 2),
        other => return Err(format!("'{other}': the list is fsync, locks or two")),
    };
    if let Some(number) = args.get(3) {
        let one = number.parse().ok().and_then(|n: usize| pairs.get(n).cloned());
        pairs = vec![one.ok_or(format!("{number}: there are {} pairs", pairs.len()))?];
    }
    let mut first = Vec::new();
    if let Some(points) = args.get(4) {
        let numbers = points.split(',').map(|p| p.trim().parse());
        first = numbers.collect::<Result<_, _>>().map_err(|_| format!("{points}: no points"))?;
        preemptions = 0;
    }
    Ok((setup, pairs, Schedules { preemptions, locks: word(2) == "locks", first }))
}

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let (setup, pairs, schedules) = match asked(&args) {
        Ok(asked) => asked,
        Err(why) => {
            println!("{why}\nusage: schedules MODE JOURNAL LIST [N [POINTS]]");
            return ExitCode::from(2);
        }
    };
    let bound = Bound { exhaustive: 64, single_units: true, random: 4 };
    let plan = Plan {
        bound,
        seed: 1,
        e2fsck_every: 500,
        again_every: 50,
        again_whole_every: 0,
        keep_every: 0,
    };
    let begun = Instant::now();
    let progress = |so_far: &Scheduled| {
        if so_far.pairs.is_multiple_of(20) {
            println!("{:.0} s: {so_far}", begun.elapsed().as_secs_f64());
        }
    };
    let done = SmallMachine::new(setup)
        .and_then(|machine| explore_schedules(&machine, &pairs, &schedules, &plan, &progress));
    match done {
        Ok(done) => {
            let seconds = begun.elapsed().as_secs_f64();
            let rate = done.explored.distinct as f64 / seconds * 60.0;
            println!("{done}\n{seconds:.1} s, {rate:.0} distinct states a minute");
            done.explored.findings.iter().for_each(|finding| println!("{finding}"));
            ExitCode::from(u8::from(done.explored.wrong() > 0))
        }
        Err(why) => {
            println!("{why}");
            ExitCode::from(1)
        }
    }
}
