//! `steadfast crash corpus`.

use std::io::Write;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use anyhow::Result;
use serde_json::json;
use steadfast_crash::corpus::{KNOWN, Own, OwnKind, Subject, Workload, ace, try_out};
use steadfast_crash::explore::Plan;
use steadfast_crash::states::{Bound, Places};
use steadfast_ext4::MountOptions;
use steadfast_peers::InCorpus;

use super::cli::{CrashCorpus, Looks};
use super::setup::{Fs, known};
use super::stops::{self, Stoppable};
use crate::cli::FsKind;
use crate::mount::options;
use crate::terminal::{Progress, Wrapped};
use crate::{Outcome as Exit, Usage, document};
use steadfast_vfs::foreign::Foreign;

/// Failures that are printed of each file system.
const PRINTED_MAX: usize = 20;

/// What the first signal is answered with.
pub const NOTE: &str = "stopping after this workload; again to stop within it";

/// A file system to be tried.
struct Tried {
    subject: Box<dyn Subject>,
    kernel: bool,
}

/// What became of a space on one file system.
#[derive(Default)]
struct Row {
    name: String,
    workloads: u64,
    cuts: u64,
    states: u64,
    wrong: u64,
    refused: u64,
    failed: Vec<String>,
    /// Not all workloads were run.
    stopped: bool,
}

/// Runs the workloads on every file system, and prints a row for each.
pub fn corpus(args: &CrashCorpus, out: &mut dyn Write) -> Result<Exit> {
    if args.every == 0 {
        return Err(Usage("--every 0: 1 is every workload".into()).into());
    }
    let workloads = || workloads(args);
    if args.list {
        let out = &mut Wrapped::new(out);
        for workload in workloads()? {
            writeln!(out, "{workload}")?;
        }
        return Ok(Exit::Good);
    }
    let all = workloads()?.count() as u64;
    let stops = stops::on_signals(NOTE)?;
    let tried = subjects(args)?;
    head(args.looks, out)?;
    let mut rows = Vec::new();
    for Tried { subject, kernel } in &tried {
        let subject = Stoppable::new(&**subject, &stops);
        let row = row((&subject, &stops), *kernel, args, workloads()?, all)?;
        print_row(args.looks, &row, out)?;
        let stopped = row.stopped;
        rows.push(row);
        if stopped {
            break;
        }
    }
    let stopped = rows.last().is_some_and(|row| row.stopped);
    let good = rows.iter().all(|row| row.failed.is_empty());
    if args.looks.json {
        json(args, all, &rows, stopped, out)?;
    } else {
        print_failed(&rows, out)?;
        if let Some(row) = rows.last().filter(|row| row.stopped) {
            let (name, done) = (&row.name, row.workloads);
            writeln!(out, "\nstopped: on {name} {done} of {all} workloads were run")?;
        }
    }
    Ok(match (good, stopped) {
        (false, _) => Exit::Problem,
        (true, true) => Exit::Stopped,
        (true, false) => Exit::Good,
    })
}

/// The longest name that has a place in the table's first column.
const NAME: usize = 24;

fn head(looks: Looks, out: &mut dyn Write) -> Result<()> {
    if looks.markdown {
        writeln!(out, "| file system | workloads | failed | cuts | states | wrong | refused |")?;
        writeln!(out, "|---|--:|--:|--:|--:|--:|--:|")?;
    } else if !looks.json {
        let names = ["workloads", "failed", "cuts", "states", "wrong", "refused"];
        writeln!(out, "{}", line("file system", names.map(str::to_owned)))?;
    }
    // Before there is any progress.
    Ok(out.flush()?)
}

fn line(name: &str, figures: [String; 6]) -> String {
    let [workloads, failed, cuts, states, wrong, refused] = figures;
    format!(
        "{name:<NAME$} {workloads:>9} {failed:>6} {cuts:>8} {states:>8} {wrong:>6} {refused:>7}"
    )
}

fn print_row(looks: Looks, row: &Row, out: &mut dyn Write) -> Result<()> {
    let Row { name, workloads, cuts, states, wrong, refused, failed, .. } = row;
    let figures = [*workloads, failed.len() as u64, *cuts, *states, *wrong, *refused];
    let figures = figures.map(|figure| figure.to_string());
    let name = Foreign::new(name).to_string();
    if looks.markdown {
        writeln!(out, "| {name} | {} |", figures.join(" | "))?;
    } else if !looks.json && name.chars().count() > NAME {
        // Mount options: in a line of their own.
        writeln!(out, "{name}\n{}", line("", figures))?;
    } else if !looks.json {
        writeln!(out, "{}", line(&name, figures))?;
    }
    Ok(out.flush()?)
}

fn print_failed(rows: &[Row], out: &mut dyn Write) -> Result<()> {
    for Row { name, failed, .. } in rows.iter().filter(|row| !row.failed.is_empty()) {
        writeln!(out)?;
        for what in failed.iter().take(PRINTED_MAX) {
            writeln!(out, "{}", crate::terminal::harmless(&format!("{name}: {what}")))?;
        }
        if failed.len() > PRINTED_MAX {
            writeln!(out, "{name}: and {} more (--json has all)", failed.len() - PRINTED_MAX)?;
        }
    }
    Ok(())
}

fn json(
    args: &CrashCorpus,
    all: u64,
    rows: &[Row],
    stopped: bool,
    out: &mut dyn Write,
) -> Result<()> {
    let rows: Vec<_> = rows
        .iter()
        .map(|row| {
            json!({
                "name": row.name,
                "workloads": row.workloads,
                "cuts": row.cuts,
                "states": row.states,
                "wrong": row.wrong,
                "refused": row.refused,
                "failed": row.failed,
            })
        })
        .collect();
    let body = json!({
        "space": args.space,
        "workloads": all,
        "stopped": stopped,
        "file_systems": rows,
    });
    Ok(document::print(out, "steadfast-corpus", 1, body)?)
}

fn workloads(args: &CrashCorpus) -> Result<Box<dyn Iterator<Item = Workload>>, Usage> {
    let every = args.every;
    Ok(match &args.space[..] {
        "known" => Box::new(KNOWN.iter().map(|known| known.workload()).step_by(every)),
        "seq-1" => Box::new(ace::seq1().step_by(every)),
        "seq-2" => Box::new(ace::seq2(every)),
        other => {
            return Err(Usage(format!("--space {other} is unknown: choose known, seq-1 or seq-2")));
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
                Some(words) => in_process(words)?,
                None => MountOptions::default(),
            };
            let kind = match kind {
                FsKind::Ext2 => OwnKind::Ext2,
                FsKind::Ext4 => OwnKind::Ext4,
                FsKind::Ext3 => return Err(Usage("--fs ext3: take ext4 or ext2".into()).into()),
            };
            let own =
                Own::new(name, kind, options, Duration::ZERO).map_err(|e| Usage(e.to_string()))?;
            let own = if args.lying { own.on_a_lying_disk() } else { own };
            Ok(Tried { subject: Box::new(own), kernel: false })
        }
        Fs::Kernel(kernel) => {
            if words.is_some() || args.lying {
                let what = "mount options and --lying are of Steadfast's own file systems";
                return Err(Usage(format!("--fs {name}: {what}")).into());
            }
            // Something is missing, or failed on this machine.
            let subject = InCorpus::new(kernel).map_err(|e| Usage(e.to_string()))?;
            Ok(Tried { subject: Box::new(subject), kernel: true })
        }
    }
}

/// Mount options of a file system that is used in this process: there is no mount to have those of
/// mounts.
fn in_process(words: &str) -> Result<MountOptions, Usage> {
    let wanted = options::parse(&[words.to_owned()])?;
    let (ext4, fuse) = (&wanted.ext4, &wanted.fuse);
    let of_mounts = [
        (ext4.read_only || ext4.no_load, "ro"),
        (!wanted.journals.is_empty(), "journal="),
        (wanted.remount, "remount"),
        (fuse.sync, "sync"),
        (fuse.writeback_cache, "writeback_cache"),
    ];
    match of_mounts.iter().find(|(is_given, _)| *is_given) {
        Some((_, word)) => {
            let what = format!("--fs: mount option {word}: the corpus is run without a mount");
            Err(Usage(what))
        }
        None => Ok(wanted.for_fs()),
    }
}

fn row(
    (subject, stops): (&Stoppable<'_>, &AtomicUsize),
    kernel: bool,
    args: &CrashCorpus,
    workloads: impl Iterator<Item = Workload>,
    all: u64,
) -> Result<Row> {
    let states = args.states.unwrap_or(if kernel { 4 } else { 24 });
    let places = if args.everywhere { Places::All } else { Places::Flushes };
    let bound = Bound { states, drawn: 4, ..Bound::default() };
    let plan = Plan { places, bound, seed: args.seed, use_it: true, ..Plan::EVERYWHERE };
    // The bar goes away with it, before the row is printed.
    let progress = Progress::start();
    let mut row = Row { name: subject.name(), ..Row::default() };
    for workload in workloads {
        progress.set(row.workloads as f64 / all.max(1) as f64, &row.name);
        let outcome = match try_out(subject, &workload, &plan) {
            Ok(outcome) => outcome,
            // Nothing is said of a workload that was stopped, or that the signal has disturbed.
            Err(_) if stops.load(Ordering::Relaxed) > 0 => {
                row.stopped = true;
                break;
            }
            Err(e) => return Err(Usage(format!("{}: {workload}: {e}", row.name)).into()),
        };
        row.workloads += 1;
        row.cuts += outcome.cuts;
        row.states += outcome.states;
        row.wrong += outcome.wrong;
        row.refused += outcome.refused;
        if let Some((state, wrong)) = outcome.first {
            row.failed.push(format!("{workload}: state {state}: {}", wrong.join("; ")));
        }
    }
    Ok(row)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_of_mounts_are_refused() {
        assert!(in_process("dirsync,data=journal").unwrap().sync_names);
        for word in ["sync", "ro", "writeback_cache", "remount", "journal=a"] {
            let said = in_process(&format!("data=journal,{word}")).unwrap_err().to_string();
            let word = word.trim_end_matches('a');
            assert!(said.contains(&format!("mount option {word}:")), "{said}");
        }
    }
}
