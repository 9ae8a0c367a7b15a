//! `soak run` and `soak case`.

use std::fs;
use std::io::Write;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use serde_json::json;
use steadfast_crash::e2fsck::E2fsck;
use steadfast_selftest::soak::{SoakCases, SoakResult};
use steadfast_sweep::{
    CaseOutcome, ChoiceError, PlanFile, ShardEnd, ShardRun, SweepCase, Tools, chosen_shard,
};

use crate::args::{CaseArgs, RunArgs};
use crate::error::{Result, SoakError};
use crate::failures::FailureRecord;
use crate::note;
use crate::plan::{of_args, opened};

/// How often a long run says how far it is.
const SAID_EVERY: Duration = Duration::from_secs(60);

/// Runs a shard, several, or one case.
pub fn run(args: &RunArgs, out: &mut dyn Write) -> Result<bool> {
    let (plan, cases) = opened(&args.plan)?;
    if let Some(name) = &args.case {
        return one(&cases, &plan.find(name)?.case, out);
    }
    let shards = shards(args, &plan)?;
    let folder = &args.output;
    let record = args.record.as_ref().unwrap_or(folder);
    for made in [folder, record] {
        fs::create_dir_all(made).map_err(|e| SoakError::io(made, &e))?;
    }
    let campaign = Campaign {
        plan: &plan,
        cases: &cases,
        args,
        begun: Instant::now(),
        said: Mutex::new(Instant::now()),
        next: Mutex::new(shards),
        record: Mutex::new(FailureRecord::new(&plan, &cases, folder, record.clone())),
        ran: AtomicU64::new(0),
        failing: AtomicU64::new(0),
    };
    let mut ends = Vec::new();
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..args.jobs).map(|_| scope.spawn(|| campaign.work())).collect();
        for worker in workers {
            // A panic of a worker is one of the run.
            ends.extend(worker.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
        }
    });
    for end in ends {
        writeln!(out, "{}", end?)?;
    }
    note(&campaign.words());
    let found = lock(&campaign.record).write()?;
    for line in &found {
        writeln!(out, "FOUND: {line}")?;
    }
    Ok(found.is_empty())
}

/// Which shards are run, the last one first.
fn shards(args: &RunArgs, plan: &PlanFile) -> Result<Vec<u32>> {
    let variable = |name: &str| std::env::var(name).ok();
    match chosen_shard(plan.shards(), args.shard, variable) {
        Ok(chosen) => {
            chosen.touch_status_file()?;
            Ok(vec![chosen.shard])
        }
        Err(ChoiceError::Unsaid { shards }) if args.budget.is_some() => {
            Ok((0..shards).rev().collect())
        }
        Err(e) => Err(SoakError::usage(format!("{}: {e}", args.plan.display()))),
    }
}

/// Shards that are run by some workers.
struct Campaign<'p> {
    plan: &'p PlanFile,
    cases: &'p SoakCases,
    args: &'p RunArgs,
    begun: Instant,
    said: Mutex<Instant>,
    /// Shards that nobody has begun, the next one last.
    next: Mutex<Vec<u32>>,
    record: Mutex<FailureRecord<'p>>,
    ran: AtomicU64,
    failing: AtomicU64,
}

impl Campaign<'_> {
    fn is_over(&self) -> bool {
        self.args.budget.is_some_and(|budget| self.begun.elapsed() >= budget)
    }

    /// Runs shards until there is none left, or no time.
    fn work(&self) -> Vec<Result<String>> {
        let mut ends = Vec::new();
        while !self.is_over() {
            let Some(shard) = lock(&self.next).pop() else { break };
            let end = self.shard(shard);
            let failed = end.is_err();
            ends.push(end);
            if failed {
                break;
            }
        }
        ends
    }

    fn shard(&self, shard: u32) -> Result<String> {
        let run = ShardRun::new(self.plan, shard, &self.args.output).until(|| self.is_over());
        let run = run.with_tools(tools());
        let mut failed = false;
        let end = run.run(|case| {
            // The line of the case before is written by now.
            if std::mem::take(&mut failed)
                && let Err(e) = lock(&self.record).failed()
            {
                note(&format!("soak: {e}"));
            }
            let outcome = outcome_of(self.cases, case);
            failed = is_failure(&outcome);
            if failed {
                self.failing.fetch_add(1, Ordering::Relaxed);
                note(&format!("FOUND: {}", case.name));
            }
            self.ran.fetch_add(1, Ordering::Relaxed);
            let mut said = lock(&self.said);
            if said.elapsed() > SAID_EVERY {
                *said = Instant::now();
                note(&self.words());
            }
            outcome
        })?;
        let ShardEnd { file, cases, resumed, is_whole, .. } = end;
        let shards = self.plan.shards();
        let before = match resumed {
            0 => String::new(),
            n => format!(", {n} of them from a former run"),
        };
        let stopped = if is_whole { "" } else { "; stopped before its end" };
        let file = file.display();
        Ok(format!("Shard {shard} of {shards}: {cases} cases{before}{stopped}: {file}"))
    }

    /// How far this run is.
    fn words(&self) -> String {
        let ran = self.ran.load(Ordering::Relaxed);
        let failing = self.failing.load(Ordering::Relaxed);
        let (seconds, processor) = (self.begun.elapsed().as_secs_f64(), processor_seconds());
        let rate = ran as f64 / processor.max(f64::MIN_POSITIVE);
        format!(
            "{ran} cases run ({failing} failing) in {seconds:.0} s; {processor:.1} s of processor \
             time, {rate:.3} cases a second of it"
        )
    }
}

fn lock<T>(of: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    of.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

fn outcome_of(cases: &SoakCases, case: &SweepCase) -> CaseOutcome {
    let result = cases.run(case).map_err(|e| e.to_string());
    let result = result.and_then(|result| serde_json::to_value(result).map_err(|e| e.to_string()));
    result.map_or_else(CaseOutcome::Failed, CaseOutcome::Done)
}

fn is_failure(outcome: &CaseOutcome) -> bool {
    match outcome {
        CaseOutcome::Failed(_) => true,
        CaseOutcome::Done(result) => {
            let result: Option<SoakResult> = serde_json::from_value(result.clone()).ok();
            result.is_none_or(|result| !result.findings.is_empty())
        }
    }
}

/// What results depend on beside the program: it is given some of the recovered images.
fn tools() -> Tools {
    let version = E2fsck::find().map(|e2fsck| e2fsck.version().unwrap_or_default());
    version.map(|version| ("e2fsck".to_owned(), version)).into_iter().collect()
}

/// What this process has used, and what it has run and waited for (e2fsck).
fn processor_seconds() -> f64 {
    let stat = fs::read_to_string("/proc/self/stat").unwrap_or_default();
    // proc(5): after the name, `utime`, `stime`, `cutime` and `cstime` are the twelfth to the
    // fifteenth field.
    let fields = stat.rsplit_once(')').map_or("", |(_, fields)| fields);
    let ticks = fields.split_whitespace().skip(11).take(4).filter_map(|f| f.parse::<u64>().ok());
    ticks.sum::<u64>() as f64 / rustix::param::clock_ticks_per_second() as f64
}

/// A case without a plan.
pub fn case(args: &CaseArgs, out: &mut dyn Write) -> Result<bool> {
    let cases = of_args(&args.space, None)?;
    let named = cases.cases().into_iter().find(|case| case.name == args.case);
    let unknown = || {
        let first = cases.cases().into_iter().next().map(|case| case.name).unwrap_or_default();
        SoakError::usage(format!("there is no case '{}'; one is '{first}'", args.case))
    };
    one(&cases, &named.ok_or_else(unknown)?, out)
}

/// Runs one, and prints its result.
fn one(cases: &SoakCases, case: &SweepCase, out: &mut dyn Write) -> Result<bool> {
    let outcome = outcome_of(cases, case);
    let is_good = !is_failure(&outcome);
    let (result, failed) = match outcome {
        CaseOutcome::Done(result) => (result, None),
        CaseOutcome::Failed(why) => (serde_json::Value::Null, Some(why)),
    };
    let body = json!({ "case": case.name, "failed": failed, "result": result });
    writeln!(out, "{}", serde_json::to_string_pretty(&body)?)?;
    Ok(is_good)
}
