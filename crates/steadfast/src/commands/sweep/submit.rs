//! `steadfast sweep submit`: plan, run, merge.

use std::fs::{self, File};
use std::io::Write;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use steadfast_sweep::{PlanFile, SweepProgress};

use super::engine::SweepFolder;
use super::error::to_anyhow;
use super::parallel::ParallelTasks;
use super::slurm::SlurmArray;
use super::{kind, merge, plan};
use crate::cli::SweepSubmit;
use crate::commands::lab::run::{INTERRUPTED, stop_on_signals};
use crate::{CommandEnd, terminal};

/// How often the files are looked at, and the queue.
const FILES_EVERY: Duration = Duration::from_millis(500);
const QUEUE_EVERY: Duration = Duration::from_secs(3);
/// A task that has left the queue may have written what another machine does not see yet (NFS
/// keeps what it knows of a folder for up to a minute).
const GRACE: Duration = Duration::from_secs(5);

/// Who runs the shards.
enum SweepEngine {
    Slurm(SlurmArray),
    Parallel(ParallelTasks),
}

/// Plans, runs and merges.
pub fn submit(args: &SweepSubmit, out: &mut dyn Write) -> Result<CommandEnd> {
    let kind = kind::of_file(&args.file)?;
    kind.try_outputs(&args.output)?;
    let folder = SweepFolder::new(&args.folder)?;
    let plan = planned(&*kind, args, &folder)?;
    let results = folder.results();
    let missing = || {
        let whole = |shard: &u32| results.join(format!("shard-{shard:06}.jsonl")).exists();
        (0..plan.shards()).filter(|shard| !whole(shard)).collect::<Vec<u32>>()
    };
    let script = folder.write_script()?;
    let stop = stop_on_signals()?;
    for round in 0..=args.retries {
        let missing = missing();
        if missing.is_empty() {
            break;
        }
        if round > 0 {
            terminal::note(&format!("{} shards did not end; once more", missing.len()));
        }
        let mut engine = match args.slurm {
            true => SweepEngine::Slurm(SlurmArray::submit(args, &folder, &script, &missing)?),
            false => SweepEngine::Parallel(ParallelTasks::start(args, &folder, &script, &missing)?),
        };
        if !wait(&mut engine, &plan, &results, &stop)? {
            return Ok(CommandEnd::Status(INTERRUPTED));
        }
    }
    let logs = folder.path.join("log");
    merge::shown(&plan, &[folder.results()], &args.output, out).with_context(|| {
        format!("the sweep in {} (logs: {})", folder.path.display(), logs.display())
    })
}

/// The plan of the folder, which is made, or is the one that is asked for.
fn planned(
    kind: &dyn kind::SweepKind,
    args: &SweepSubmit,
    folder: &SweepFolder,
) -> Result<PlanFile> {
    let (path, new) = (folder.plan(), folder.path.join("plan.json.new"));
    let cannot = || new.display().to_string();
    let mut file = File::create(&new).with_context(cannot)?;
    let written = plan::write(kind, args.shards, &args.times, &mut file)?;
    file.sync_all().with_context(cannot)?;
    if path.exists() {
        let there = PlanFile::open(&path).map_err(to_anyhow)?;
        fs::remove_file(&new).with_context(cannot)?;
        if there.fingerprint() != written.fingerprint {
            usage!(
                "-o {}: there is the plan {:.16} of another sweep or program, this one is {:.16}: \
                 name another folder",
                args.folder.display(),
                there.fingerprint(),
                written.fingerprint
            );
        }
        return Ok(there);
    }
    fs::rename(&new, &path).with_context(cannot)?;
    terminal::note(&plan::words(&written, args.shards, &args.times));
    PlanFile::open(&path).map_err(to_anyhow)
}

/// Until all shards are whole, or nobody works on them any more. False: a signal has asked to stop.
fn wait(
    engine: &mut SweepEngine,
    plan: &PlanFile,
    results: &Path,
    stop: &AtomicBool,
) -> Result<bool> {
    let bar = terminal::Progress::start();
    let mut progress = SweepProgress::new(plan, results);
    let mut queue_seen = Instant::now();
    let mut gone: Option<Instant> = None;
    loop {
        let done = progress.look().map_err(to_anyhow)?;
        bar.set(done.done as f64 / done.cases.max(1) as f64, &done.to_string());
        if done.shards_done == done.shards || gone.is_some_and(|gone| gone.elapsed() > GRACE) {
            return Ok(true);
        }
        if stop.load(Ordering::Relaxed) {
            bar.finish();
            engine.leave();
            return Ok(false);
        }
        if queue_seen.elapsed() > QUEUE_EVERY {
            queue_seen = Instant::now();
            if !engine.works() {
                gone.get_or_insert(queue_seen);
            }
        }
        std::thread::sleep(FILES_EVERY);
    }
}

impl SweepEngine {
    fn works(&mut self) -> bool {
        match self {
            SweepEngine::Slurm(array) => array.is_queued(),
            SweepEngine::Parallel(tasks) => tasks.is_running(),
        }
    }

    /// Somebody has asked to stop: a cluster's tasks go on, those of this machine end.
    fn leave(&mut self) {
        match self {
            SweepEngine::Slurm(array) => terminal::note(&format!(
                "Slurm's job {} goes on (scancel {} ends it). Once it has ended, the same command \
                 merges, or runs what is missing.",
                array.id(),
                array.id()
            )),
            SweepEngine::Parallel(tasks) => tasks.stop(),
        }
    }
}
