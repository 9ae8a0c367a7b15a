//! `steadfast fio`: fio's job files in a folder, in an image, or on a stack.

mod around;
pub mod cli;

use std::io::Write;
use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, Result, anyhow};
use steadfast_bench::fio::options::{self, OptionRow};
use steadfast_bench::fio::report::{self, RunDate};
use steadfast_bench::fio::{self, AbsoluteRoot, FioPlan, FioResults, JobFile, PlanTarget};
use steadfast_runtime::{is_simulated, unix_ns};
use steadfast_vfs::foreign::json;
use steadfast_vfs::{FileSystem, FsError, HostFs, bounded};

use self::around::HostSurroundings;
use self::cli::{Fio, FioForm};
use super::in_use;
use super::lab::outputs;
use super::site::{ImageAccess, Site};
use crate::{CommandEnd, Unsupported, Usage, terminal};

/// Runs job files.
pub fn run(args: Fio, out: &mut dyn Write) -> Result<CommandEnd> {
    if let Some(name) = &args.cmdhelp {
        return help(name, out);
    }
    let files = args.jobs.iter().map(|path| read(path)).collect::<Result<Vec<_>>>()?;
    let wanted = [("--output", args.output.as_deref())];
    let read = args.jobs.iter().map(std::path::PathBuf::as_path);
    let read = read.chain(args.site.image.as_deref());
    let [output] = outputs::tried(wanted, read)?;
    let wants = ImageAccess { writes: true, noatime: true, data_bytes: None };
    let (site, form) = (args.site.clone(), args.output_format);
    let done = site.at(wants, move |site| work(site, &args, &files))?;
    let text = match form {
        FioForm::Normal => report::head(&done.plan) + &report::text(&done.results, &done.date),
        FioForm::Json => json(report::json(&done.results, &done.date)?),
        FioForm::Terse => report::terse(&done.results),
    };
    match output {
        Some(file) => file.write(&text)?,
        None => out.write_all(text.as_bytes())?,
    }
    done.results.notes.iter().for_each(|note| terminal::note(&format!("note: {note}")));
    match done.results.fault() {
        None => Ok(CommandEnd::Good),
        Some(fault) => {
            out.flush()?;
            terminal::error(&anyhow!("{}", fault.what));
            Ok(CommandEnd::Problem)
        }
    }
}

/// A run that has ended.
struct FioRun {
    plan: FioPlan,
    results: FioResults,
    date: RunDate,
}

fn work(site: &Site, args: &Fio, files: &[JobFile]) -> Result<FioRun> {
    let folder = args.folder.as_deref().unwrap_or(Path::new("."));
    let fs: Arc<dyn FileSystem> = match site.is_here() {
        true => {
            let host = HostFs::open(folder).map_err(|e| match e {
                e @ (FsError::NotFound | FsError::NotDirectory) => {
                    Usage(format!("--folder {}: {e}", folder.display())).into()
                }
                e => anyhow::Error::from(e),
            });
            Arc::new(host.with_context(|| format!("cannot work in {}", folder.display()))?)
        }
        false => site.fs()?,
    };
    let root = match site.is_here() && args.folder.is_none() {
        true => AbsoluteRoot::Folder(here()?),
        false => AbsoluteRoot::FileSystem,
    };
    let existing = |path: &str| fio::length_of(&*fs, path);
    let target = PlanTarget { root, existing: &existing, only: &args.section };
    let plan =
        fio::plan(files, &HostSurroundings, &target).map_err(|e| match e.is_unsupported() {
            true => anyhow::Error::from(Unsupported(e.to_string())),
            false => Usage(e.to_string()).into(),
        })?;
    if site.is_here() {
        refuse_used(folder, &plan)?;
    }
    fio::room(&*fs, &plan).map_err(|e| match e.source {
        FsError::NoSpace { .. } => anyhow::Error::from(Usage(e.to_string())),
        _ => e.into(),
    })?;
    let results = fio::run(&fs, &plan, |job| {
        let files = terminal::counted(job.files.len() as u64, "file");
        terminal::note(&format!("{}: laying out {files}", job.options.name));
    })?;
    Ok(FioRun { plan, results, date: date()? })
}

/// The current folder, as absolute paths name it.
fn here() -> Result<String> {
    let folder = std::env::current_dir().context("the current folder")?;
    let text = folder.to_str().map(str::to_owned);
    text.ok_or_else(|| Usage("the name of the current folder is no UTF-8".into()).into())
}

fn read(path: &Path) -> Result<JobFile> {
    let name = path.display().to_string();
    let text = bounded::text(path, bounded::SETTINGS_MAX);
    let text = text.map_err(|e| Usage(format!("{name}: {e}")))?;
    Ok(JobFile { name, text })
}

/// Refuses files that are images in use: they would be written over.
fn refuse_used(folder: &Path, plan: &FioPlan) -> Result<()> {
    let files = plan.jobs.iter().flat_map(|job| &job.files);
    let mut paths = files.map(|file| folder.join(file.path.trim_start_matches('/')));
    match paths.find_map(|path| in_use::by_whom(&path)) {
        Some(busy) => Err(busy.context("fio")),
        None => Ok(()),
    }
}

/// When the run ended; in a simulation by its clock, which begins in 1970.
fn date() -> Result<RunDate> {
    let unix_ns = unix_ns(0);
    let at = jiff::Timestamp::from_nanosecond(i128::from(unix_ns)).context("the time")?;
    let zone = if is_simulated() { jiff::tz::TimeZone::UTC } else { jiff::tz::TimeZone::system() };
    let text = at.to_zoned(zone).strftime("%a %b %e %H:%M:%S %Y").to_string();
    Ok(RunDate { unix_ns, text })
}

/// What one option takes, or all.
fn help(name: &str, out: &mut dyn Write) -> Result<CommandEnd> {
    if name != "all" {
        let Some(row) = options::row(name) else {
            if let Some(meant) = options::meant(name) {
                usage!("fio: option '{name}' is unknown: did you mean {meant}?");
            }
            usage!("fio: option '{name}' is not supported; --cmdhelp all lists those that are");
        };
        writeln!(out, "{:>10}: {}", row.name, row.help)?;
        writeln!(out, "{:>10}: {}", "value", form_of(row))?;
        if !row.aliases.is_empty() {
            writeln!(out, "{:>10}: {}", "also", row.aliases.join(", "))?;
        }
        return Ok(CommandEnd::Good);
    }
    for row in options::rows().filter(|row| row.has_effect()) {
        writeln!(out, "{:<20}: {}", row.name, row.help)?;
    }
    writeln!(out, "\nTaken, without effect:")?;
    for row in options::rows().filter(|row| !row.has_effect()) {
        writeln!(out, "{:<20}: {}", row.name, row.help)?;
    }
    Ok(CommandEnd::Good)
}

fn form_of(row: &OptionRow) -> &str {
    if row.has_effect() { row.form } else { "any, without effect" }
}
