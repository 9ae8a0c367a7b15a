//! Makes the cuts of scenarios with each planted bug, one at a time, and prints which of them they
//! show: what the zeros of a run without bugs are worth.
//!
//! ```text
//! cargo run --release -p steadfast-lab --features planted-bugs --example planted -- \
//!     [--scenario NAME] [--variant NAME] [--bug NAME] [--seed S] [--cuts N] [--write]
//! ```
//!
//! `--write` keeps what was found in `crates/lab/planted-bugs.json`, in the place of what was there
//! of the same variants and seeds; the program quotes it.

// For people who look at what was found.
#![allow(clippy::print_stdout, clippy::print_stderr)]

use std::cell::RefCell;
use std::error::Error;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use steadfast_crash::figures::StateFigures;
use steadfast_crash::planted::StackBug;
use steadfast_journal::Bug as InJournal;
use steadfast_lab::results::{PlantedBug, PlantedRun, PlantedRuns, RiskRow};
use steadfast_lab::scenario::{RunKind, Scenario, Variant};
use steadfast_lab::{RunOptions, cut_until, run};

/// Variants whose zeros are worth knowing: where a cache can lose what was not flushed.
const VARIANTS: [(&str, &[&str]); 2] = [
    ("data-at-risk", &["ordered", "external", "journal", "transact"]),
    ("nvram-journal", &["volatile-cache", "volatile-external"]),
];

fn main() -> Result<(), Box<dyn Error>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let value = |name: &str| {
        let at = words.iter().position(|word| word == name)?;
        words.get(at + 1).map(String::as_str)
    };
    let seed: u64 = value("--seed").map_or(Ok(1), str::parse)?;
    let cuts: Option<u64> = value("--cuts").map(str::parse).transpose()?;
    let chosen = |option: &str, name: &str| value(option).is_none_or(|only| only == name);
    let mut found = Vec::new();
    for (name, variants) in VARIANTS.into_iter().filter(|(name, _)| chosen("--scenario", name)) {
        let scenario = Scenario::find(name)?;
        for variant in variants.iter().filter(|v| chosen("--variant", v)) {
            let bugs: Vec<StackBug> =
                StackBug::all().filter(|b| chosen("--bug", b.name())).collect();
            let cuts = cuts.unwrap_or(scenario.workload.cuts);
            let run = with_bugs(&scenario, variant, (seed, cuts), &bugs)?;
            print(&run);
            found.push(run);
        }
    }
    if words.iter().any(|word| word == "--write") {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("planted-bugs.json");
        // Not what the program holds: others were written since it was built.
        let mut kept: PlantedRuns = serde_json::from_str(&std::fs::read_to_string(&path)?)?;
        kept.program = env!("CARGO_PKG_VERSION").to_owned();
        let replaced = |r: &PlantedRun| {
            found
                .iter()
                .any(|f| (&f.scenario, &f.variant, f.seed) == (&r.scenario, &r.variant, r.seed))
        };
        kept.runs.retain(|r| !replaced(r));
        kept.runs.extend(found);
        kept.runs.sort_by(|a, b| (&a.scenario, a.seed).cmp(&(&b.scenario, b.seed)));
        std::fs::write(path, serde_json::to_string_pretty(&kept)? + "\n")?;
    }
    Ok(())
}

/// The scenario with one of its variants, which is cut and not measured.
fn only(scenario: &Scenario, variant: &str) -> Scenario {
    let mut scenario = scenario.clone();
    scenario.variants.retain(|v| v.name == variant);
    for v in &mut scenario.variants {
        if scenario.workload.files.is_none() {
            v.run = RunKind::Risk;
        }
    }
    scenario.workload.lying_cuts_per_4 = 0;
    scenario
}

/// Whether what the bug is in is used in a variant at all.
fn can_occur(bug: StackBug, scenario: &Scenario, variant: &Variant) -> bool {
    let name = bug.name();
    let mounted =
        |word: &str| variant.stack.mount.split(',').any(|w| w.split('=').next() == Some(word));
    let data = |mode: &str| variant.stack.mount.contains(&format!("data={mode}"));
    let ordered = !data("writeback") && !data("journal") && !data("transact");
    let external = variant.stack.journal.is_some();
    let device = variant.stack.journal.as_ref().unwrap_or(&variant.stack.disk);
    let logs_data = data("journal") || data("transact");
    let on_memory = scenario.model(device).unwrap().kind_name() == "nvdimm";
    match bug {
        _ if name.starts_with("dax-") => mounted("dax"),
        _ if name.contains("fast-") => mounted("fast_commit"),
        StackBug::Journal(InJournal::AsyncCommitWithoutChecksum) => mounted("journal_async_commit"),
        StackBug::Journal(InJournal::LogLinesNotWrittenBack) => on_memory,
        // Of metadata none begins with the magic number.
        StackBug::Journal(InJournal::MagicNotRestored) => logs_data,
        // A checkpoint leaves nothing in the log unless a machine says how much.
        StackBug::Journal(InJournal::TailOneTooFar) => scenario.machine.checkpoint_to_percent > 0.0,
        StackBug::Journal(InJournal::OrderedDataNotWaitedFor) => ordered,
        StackBug::Journal(InJournal::FsFlushOmitted) => external && ordered,
        // No program of the workloads calls sync(2), or takes a range out of a file.
        _ if ["sync-without-flush", "collapse-without-flush"].contains(&name) => false,
        _ if name.starts_with("inline-") => false,
        _ => true,
    }
}

fn with_bugs(
    scenario: &Scenario,
    variant: &str,
    (seed, cuts): (u64, u64),
    bugs: &[StackBug],
) -> Result<PlantedRun, Box<dyn Error>> {
    let scenario = only(scenario, variant);
    let options = RunOptions { cuts: Some(cuts), seed, ..RunOptions::default() };
    let sound = run(&scenario, &RunOptions { cuts: Some(1), ..options.clone() }, &|_, _| ())?;
    let programs = sound.only().of::<RiskRow>().next().and_then(|r| r.programs);
    let of = |v: &Variant| bugs.iter().copied().filter(|b| can_occur(*b, &scenario, v)).collect();
    let wanted: Vec<StackBug> = scenario.variants.first().map(of).unwrap_or_default();
    let todo = Mutex::new(wanted.iter().copied());
    let done: Mutex<Vec<(StackBug, PlantedBug)>> = Mutex::default();
    let next = || todo.lock().unwrap_or_else(PoisonError::into_inner).next();
    let work = || {
        while let Some(bug) = next() {
            let mut planted = scenario.clone();
            planted.variants[0].planted = Some(bug);
            let row = row(bug, &planted, &options);
            eprintln!("{variant}: {row:?}");
            done.lock().unwrap_or_else(PoisonError::into_inner).push((bug, row));
        }
    };
    let workers = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| (0..workers).for_each(|_| drop(scope.spawn(work))));
    let mut done = done.into_inner().unwrap_or_else(PoisonError::into_inner);
    done.sort_by_key(|(bug, _)| wanted.iter().position(|b| b == bug));
    Ok(PlantedRun {
        scenario: scenario.name.clone(),
        variant: variant.to_owned(),
        seed,
        cuts,
        workload: sound.risk_command.unwrap_or(sound.command),
        programs: programs.unwrap_or_default(),
        bugs: done.into_iter().map(|(_, row)| row).collect(),
    })
}

/// Cuts that show a bug, of which no more are looked for.
const ENOUGH: u64 = 5;

fn row(bug: StackBug, scenario: &Scenario, options: &RunOptions) -> PlantedBug {
    let found = RefCell::new((
        0,
        PlantedBug {
            bug: bug.name().to_owned(),
            looked_at: 0,
            broken_promises: 0,
            damage: 0,
            manual_repair: 0,
            stale_bytes: 0,
            failed: None,
        },
    ));
    let enough = |cut: &StateFigures| {
        let (wrong, row) = &mut *found.borrow_mut();
        row.looked_at += 1;
        row.broken_promises += u64::from(cut.broken_promises > 0);
        row.damage += u64::from(!cut.damage.is_empty());
        row.manual_repair += u64::from(cut.manual_repair);
        row.stale_bytes += cut.stale_bytes;
        *wrong += u64::from(cut.is_wrong());
        *wrong == ENOUGH
    };
    let failed = cut_until(scenario, options, &scenario.variants[0].name, &enough).err();
    PlantedBug { failed: failed.map(|e| e.to_string()), ..found.into_inner().1 }
}

fn print(run: &PlantedRun) {
    let PlantedRun { scenario, variant, seed, cuts, bugs, .. } = run;
    let shown = bugs.iter().filter(|b| b.is_shown()).count();
    println!("{scenario}, {variant}, seed {seed}, {cuts} cuts: {shown} of {} shown", bugs.len());
    for b in bugs {
        let PlantedBug {
            bug, looked_at, broken_promises, damage, manual_repair, stale_bytes, ..
        } = b;
        let failed = b.failed.as_deref().unwrap_or_default();
        println!(
            "  {bug:<32} {looked_at:>4} cuts: broken {broken_promises:>4} damage {damage:>4} \
             repair {manual_repair:>4} stale {stale_bytes:>9} {failed}"
        );
    }
}
