//! Explores tasks of the smallest workloads side by side, in every schedule with a few preemptions:
//! `cargo run --release -p steadfast-selftest --example schedules -- MODE JOURNAL LIST [WORD...]`.
//!
//! MODE is ordered, journal, transact or writeback; JOURNAL is internal or external. LIST is `two`
//! (all pairs of two operations each, two preemptions), `fsync` (up to two operations beside a
//! write and its fsync, two preemptions), `locks` (one operation, one preemption, at locks too),
//! `three` (three tasks of two operations each: 1000 drawn, 20 schedules of each).
//!
//! Words: `every=N` takes one of N of the list. `parts=N` goes through it in N parts, `part=K/N`
//! does one of them. `done=FILE` writes a line for each part that is done, and leaves out those of
//! which there is one: so it goes on where it was stopped. `compare` cuts nothing, but runs all
//! schedules and those that pruning leaves, and prints whether it loses a recording.
//!
//! A finding is a line of words that begins with the set-up and says `begins=`. Given instead, it
//! is reproduced and shrunk: the fewest operations, with these the fewest preemptions, and of
//! the first state that is wrong the fewest writes that make the difference.

// It is for people.
#![allow(clippy::print_stdout)]

use std::io::Write;
use std::process::ExitCode;
use std::time::Instant;

use steadfast_crash::explore::{Plan, SecondCuts};
use steadfast_crash::states::StateBound;
use steadfast_selftest::mixed::Setup;
use steadfast_selftest::small::{
    ScheduleReport, ScheduledCase, Schedules, SmallMachine, TaskSequences, compare_pruning,
    explore_schedules,
};

const USAGE: &str = "usage: schedules MODE JOURNAL LIST [every=N] [parts=N | part=K/N] [done=FILE]
       schedules MODE JOURNAL LIST [every=N] compare
       schedules CASE";
const PLAN: Plan = Plan {
    bound: StateBound::exhaustive(8, false, 1),
    e2fsck_every: 20_000,
    second: SecondCuts { every: 200, ..SecondCuts::NONE },
    ..Plan::EVERYWHERE
};
/// Of three tasks so many, and of each so many schedules, from a seed.
const THREES: usize = 1000;
const DRAWN: (u64, u64) = (20, 1);

/// What the arguments ask for.
struct Asked {
    /// Set-up and list in words.
    name: String,
    setup: Setup,
    list: Vec<TaskSequences>,
    schedules: Schedules,
    parts: usize,
    /// Only this one, from 1.
    part: Option<usize>,
    done: Option<String>,
    compare: bool,
}

fn asked(args: &[String]) -> Result<Asked, String> {
    let [mode, journal, list, words @ ..] = args else { return Err("too few words".into()) };
    // A case of no tasks is not one, but its set-up is read.
    let of_setup = format!("{mode} {journal} empty: begins=0");
    let setup = of_setup.parse::<ScheduledCase>()?.setup;
    let (mut list, schedules) = match list.as_str() {
        "two" => (TaskSequences::of_two(), Schedules::all(2)),
        "fsync" => (TaskSequences::beside_an_fsync(2), Schedules::all(2)),
        "locks" => {
            (TaskSequences::beside_an_fsync(1), Schedules { locks: true, ..Schedules::all(1) })
        }
        "three" => (
            TaskSequences::of_three(THREES, 1),
            Schedules { drawn: Some(DRAWN), ..Schedules::all(2) },
        ),
        other => return Err(format!("'{other}': the list is two, fsync, locks or three")),
    };
    let (mut parts, mut part, mut done, mut compare) = (1, None, None, false);
    let mut name = args[..3].join(" ");
    for word in words {
        let number = |text: &str| match text.parse() {
            Ok(0) | Err(_) => Err(format!("{word}: not a number from 1 on")),
            Ok(number) => Ok(number),
        };
        match word.split_once('=') {
            Some(("every", every)) => {
                list = list.into_iter().step_by(number(every)?).collect();
                name = format!("{name} {word}");
            }
            Some(("parts", count)) => parts = number(count)?,
            Some(("part", of)) => {
                let (one, all) = of.split_once('/').ok_or(format!("{word}: K/N"))?;
                (part, parts) = (Some(number(one)?), number(all)?);
            }
            Some(("done", file)) => done = Some(file.to_owned()),
            None if word == "compare" => compare = true,
            _ => return Err(format!("'{word}' is not known")),
        }
    }
    Ok(Asked { name, setup, list, schedules, parts, part, done, compare })
}

/// Figures that can be written to a line and added up.
#[derive(Default)]
struct Sum {
    done: ScheduleReport,
    millis: u64,
}

impl Sum {
    fn numbers(&mut self) -> [&mut u64; 18] {
        let ScheduleReport { pairs, schedules, pruned, distinct, points_max, explored: e, .. } =
            &mut self.done;
        [
            pairs,
            schedules,
            pruned,
            distinct,
            points_max,
            &mut e.sequences,
            &mut e.cuts,
            &mut e.exhausted,
            &mut e.states,
            &mut e.distinct,
            &mut e.second_cuts,
            &mut e.broken,
            &mut e.stale,
            &mut e.damaged,
            &mut e.e2fsck,
            &mut e.e2fsck_refuted,
            &mut e.e2fsck_unanswered,
            &mut self.millis,
        ]
    }

    fn add(&mut self, mut other: Sum) {
        let most = self.done.points_max.max(other.done.points_max);
        for (sum, number) in self.numbers().into_iter().zip(other.numbers()) {
            *sum += *number;
        }
        self.done.points_max = most;
        self.done.explored.findings.append(&mut other.done.explored.findings);
        self.done.wrong.append(&mut other.done.wrong);
    }

    fn line(&mut self) -> String {
        self.numbers().map(|n| n.to_string()).join(" ")
    }

    fn of_line(line: &str) -> Option<Sum> {
        let mut sum = Sum::default();
        let mut words = line.split_whitespace();
        for number in sum.numbers() {
            *number = words.next()?.parse().ok()?;
        }
        words.next().is_none().then_some(sum)
    }
}

fn explored(asked: &Asked) -> Result<Sum, String> {
    let machine = SmallMachine::new(asked.setup)?;
    let file = |e: std::io::Error| format!("{}: {e}", asked.done.as_deref().unwrap_or_default());
    let before = match &asked.done {
        Some(name) if std::path::Path::new(name).exists() => {
            std::fs::read_to_string(name).map_err(file)?
        }
        _ => String::new(),
    };
    let mut sum = Sum::default();
    let size = asked.list.len().div_ceil(asked.parts).max(1);
    for (number, part) in (1..).zip(asked.list.chunks(size)) {
        if asked.part.is_some_and(|only| only != number) {
            continue;
        }
        let name = format!("{} {number}/{}: ", asked.name, asked.parts);
        if let Some(known) = before.lines().find_map(|line| line.strip_prefix(&name)) {
            sum.add(Sum::of_line(known).ok_or(format!("not figures: {name}{known}"))?);
            continue;
        }
        let begun = Instant::now();
        let progress = |so_far: &ScheduleReport| {
            if so_far.pairs.is_multiple_of(200) {
                println!("{:.0} s: {so_far}", begun.elapsed().as_secs_f64());
            }
        };
        let done = explore_schedules(&machine, part, &asked.schedules, &PLAN, &progress)?;
        done.explored.findings.iter().for_each(|finding| println!("FOUND: {finding}"));
        done.wrong.iter().for_each(|case| println!("{}", case.command()));
        let mut this = Sum { done, millis: begun.elapsed().as_millis() as u64 };
        println!("{name}{}, {:.1} s", this.done, this.millis as f64 / 1000.0);
        if let Some(name_of_file) = &asked.done {
            let mut open = std::fs::OpenOptions::new();
            let mut open = open.create(true).append(true).open(name_of_file).map_err(file)?;
            writeln!(open, "{name}{}", this.line()).map_err(file)?;
        }
        sum.add(this);
    }
    Ok(sum)
}

/// Reproduces a case, and shrinks it.
fn reproduce(case: &ScheduledCase) -> Result<bool, String> {
    let found = case.explore(&PLAN)?;
    println!("{case}\n{found}");
    found.findings.iter().for_each(|finding| println!("FOUND: {finding}"));
    if let Some(shrunk) = case.shrink(&PLAN)? {
        println!("made small: {shrunk}");
    }
    Ok(found.wrong() > 0)
}

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let is_wrong = if args.iter().any(|word| word.starts_with("begins=")) {
        args.join(" ")
            .parse::<ScheduledCase>()
            .map_err(String::from)
            .and_then(|case| reproduce(&case))
    } else {
        asked(&args).and_then(|asked| {
            if asked.compare {
                let machine = SmallMachine::new(asked.setup)?;
                let compared = compare_pruning(&machine, &asked.list, asked.schedules.preemptions)?;
                println!("FIGURES: {}: {compared}", asked.name);
                return Ok(compared.lost > 0);
            }
            let Sum { done, millis } = explored(&asked)?;
            let seconds = millis as f64 / 1000.0;
            let rate = done.explored.distinct as f64 / seconds * 60.0;
            let name = &asked.name;
            println!("FIGURES: {name}: {done}, {seconds:.1} s, {rate:.0} different a minute");
            Ok(done.explored.wrong() > 0)
        })
    };
    match is_wrong {
        Ok(wrong) => ExitCode::from(u8::from(wrong)),
        Err(why) => {
            println!("{why}\n{USAGE}");
            ExitCode::from(2)
        }
    }
}
