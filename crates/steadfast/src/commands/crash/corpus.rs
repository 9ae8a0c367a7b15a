//! `steadfast crash corpus`.

use std::io::Write;
use std::time::Duration;

use anyhow::{Result, anyhow};
use steadfast_crash::corpus::{KNOWN, Own, OwnKind, Plan, Subject, Workload, ace, try_out};
use steadfast_crash::cuts::{Bound, Places};
use steadfast_ext4::MountOptions;
use steadfast_peers::{InCorpus, PeerError};

use super::cli::CrashCorpus;
use super::setup::{Fs, known};
use crate::Outcome as Exit;
use crate::Usage;
use crate::cli::FsKind;
use crate::mount::options;
use crate::terminal::Progress;

/// Failures that are told of each file system.
const TOLD: usize = 20;

/// A file system to be tried.
struct Tried {
    subject: Box<dyn Subject>,
    kernel: bool,
}

/// What became of a space on one file system.
#[derive(Default)]
struct Row {
    workloads: u64,
    cuts: u64,
    states: u64,
    wrong: u64,
    refused: u64,
    failed: Vec<String>,
}

/// Runs the workloads on every file system, and prints a row for each.
pub fn corpus(args: &CrashCorpus, out: &mut dyn Write) -> Result<Exit> {
    if args.every == 0 {
        return Err(Usage("--every 0: 1 is every workload".into()).into());
    }
    let workloads = || workloads(args);
    if args.list {
        for workload in workloads()? {
            writeln!(out, "{workload}")?;
        }
        return Ok(Exit::Good);
    }
    let all = workloads()?.count() as u64;
    let tried = subjects(args)?;
    writeln!(out, "| file system | workloads | failed | cuts | states | wrong | refused |")?;
    writeln!(out, "|---|--:|--:|--:|--:|--:|--:|")?;
    let mut lines = Vec::new();
    for Tried { subject, kernel } in &tried {
        let row = row(&**subject, *kernel, args, workloads()?, all)?;
        let Row { workloads, cuts, states, wrong, refused, failed } = row;
        let name = subject.name();
        writeln!(
            out,
            "| {name} | {workloads} | {} | {cuts} | {states} | {wrong} | {refused} |",
            failed.len()
        )?;
        out.flush()?;
        let more = failed.len().saturating_sub(TOLD);
        lines.extend(failed.into_iter().take(TOLD).map(|line| format!("{name}: {line}")));
        lines.extend((more > 0).then(|| format!("{name}: and {more} more")));
    }
    if lines.is_empty() {
        return Ok(Exit::Good);
    }
    writeln!(out)?;
    lines.iter().try_for_each(|line| writeln!(out, "{line}"))?;
    Ok(Exit::Problem)
}

fn workloads(args: &CrashCorpus) -> Result<Box<dyn Iterator<Item = Workload>>, Usage> {
    let every = args.every;
    Ok(match &args.space[..] {
        "known" => Box::new(KNOWN.iter().map(|known| known.workload()).step_by(every)),
        "seq-1" => Box::new(ace::seq1().step_by(every)),
        "seq-2" => Box::new(ace::seq2(every)),
        other => {
            return Err(Usage(format!("--space {other} is not known; known: known, seq-1, seq-2")));
        }
    })
}

/// The file systems. Mount options have commas too: what is no file system belongs to the one
/// before it.
fn subjects(args: &CrashCorpus) -> Result<Vec<Tried>> {
    let mut names: Vec<String> = Vec::new();
    for word in args.fs.split(',') {
        let name = word.split(':').next().unwrap_or_default();
        match (known(name), names.last_mut()) {
            (Err(_), Some(last)) if last.contains(':') => *last += &format!(",{word}"),
            (Err(e), _) => return Err(e.into()),
            (Ok(_), _) => names.push(word.to_owned()),
        }
    }
    names.iter().map(|name| subject(name, args)).collect()
}

fn subject(name: &str, args: &CrashCorpus) -> Result<Tried> {
    let (fs, words) = name.split_once(':').map_or((name, None), |(fs, words)| (fs, Some(words)));
    match known(fs)? {
        Fs::Own(kind) => {
            let options = match words {
                Some(words) => options::parse(&[words.to_owned()])?.ext4,
                None => MountOptions::default(),
            };
            let kind = match kind {
                FsKind::Ext2 => OwnKind::Ext2,
                FsKind::Ext4 => OwnKind::Ext4,
                FsKind::Ext3 => return Err(Usage("--fs ext3: take ext4 or ext2".into()).into()),
            };
            let own = Own::new(name, kind, options, Duration::ZERO).map_err(|e| anyhow!(e))?;
            let own = if args.lying { own.on_a_lying_disk() } else { own };
            Ok(Tried { subject: Box::new(own), kernel: false })
        }
        Fs::Kernel(kernel) => {
            if words.is_some() || args.lying {
                let what = "mount options and --lying are of Steadfast's own file systems";
                return Err(Usage(format!("--fs {name}: {what}")).into());
            }
            let subject = InCorpus::new(kernel).map_err(|e| match e {
                PeerError::NotRoot | PeerError::NoProgram { .. } | PeerError::NoKernel { .. } => {
                    Usage(e.to_string()).into()
                }
                other => anyhow!(other),
            })?;
            Ok(Tried { subject: Box::new(subject), kernel: true })
        }
    }
}

fn row(
    subject: &dyn Subject,
    kernel: bool,
    args: &CrashCorpus,
    workloads: impl Iterator<Item = Workload>,
    all: u64,
) -> Result<Row> {
    let states = args.states.unwrap_or(if kernel { 4 } else { 24 });
    let places = if args.everywhere { Places::All } else { Places::Flushes };
    let bound = Bound { states, combinations: 16, drawn: 4 };
    let plan = Plan { places, bound, seed: args.seed };
    let (mut row, progress) = (Row::default(), Progress::start());
    for workload in workloads {
        progress.set(row.workloads as f64 / all.max(1) as f64, &subject.name());
        let outcome = try_out(subject, &workload, plan).map_err(|e| anyhow!("{workload}: {e}"))?;
        row.workloads += 1;
        row.cuts += outcome.cuts;
        row.states += outcome.states;
        row.wrong += outcome.wrong;
        row.refused += outcome.refused;
        if let Some((state, wrong)) = outcome.first {
            row.failed.push(format!("{workload}: state {state}: {}", wrong.join("; ")));
        }
    }
    progress.finish();
    Ok(row)
}
