//! `steadfast iozone`: IOzone's tests in the current folder, in an image, or on a stack.

mod answer;
mod resume;
mod site_options;
mod target;

use std::io::{IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, Result};
use steadfast_bench::iozone::options::HELP;
use steadfast_bench::iozone::{
    self, CommandLine, Options, Surroundings, latency_files, matrix, report,
};
use steadfast_vfs::foreign::json;
use steadfast_vfs::{FileSystem, HostFs};

use self::resume::{Progress, Rows};
use self::site_options::OwnArgs;
use self::target::HostTarget;
use super::in_use;
use super::lab::{outputs, run::all};
use super::site::{ImageAccess, Site};
use super::whole_file;
use crate::{CommandEnd, Usage, terminal};

/// One of the files of -Q, which are in the current folder.
const A_LATENCY_FILE: &str = "wol.dat";

/// Runs IOzone with its own options.
pub fn run(words: &[String], out: &mut dyn Write) -> Result<CommandEnd> {
    let (OwnArgs { site, wide }, words) = site_options::taken_out(words)?;
    let mut options = match iozone::parse(&words) {
        Ok(CommandLine::Run(options)) => *options,
        Ok(CommandLine::Help) => {
            write!(out, "{HELP}")?;
            return Ok(CommandEnd::Good);
        }
        Ok(CommandLine::Version) => {
            writeln!(out, "steadfast iozone {}", env!("CARGO_PKG_VERSION"))?;
            return Ok(CommandEnd::Good);
        }
        Err(e) => return Err(Usage(format!("iozone: {}", e.message)).into()),
    };
    let here = site.image.is_none() && site.stack.is_none();
    if !here && !site.real_time && site.stack.is_some() {
        not_simulated(&options)?;
    }
    let folder = if here { split_folder(&mut options)? } else { PathBuf::new() };
    if here {
        refuse_used(&folder, &options)?;
    }
    if let Some(processor) = options.processor {
        bind(processor, &options)?;
    }
    // What is printed as it comes cannot be JSON as well.
    let json_to_stdout = options.json.as_deref() == Some("-");
    let json = options.json.as_deref().filter(|_| !json_to_stdout).map(Path::new);
    let spreadsheet = options.spreadsheet.as_deref().map(Path::new);
    let offsets = options.latency_files.then_some(Path::new(A_LATENCY_FILE));
    let wanted = [("--json", json), ("-b", spreadsheet), ("-Q", offsets)];
    let read = site.image.as_deref().or(site.stack.as_deref().map(Path::new));
    let [json, spreadsheet, _] = outputs::tried(wanted, read)?;
    let data_bytes = Some(options.data_bytes());
    let wants = ImageAccess { writes: true, noatime: true, data_bytes };
    let rows = match (json_to_stdout, wide || !std::io::stdout().is_terminal()) {
        (true, _) => Rows::Nowhere,
        (false, true) => Rows::AsTheyCome,
        (false, false) => Rows::InTheAnswer,
    };
    let ran = site.at(wants, move |site| work(site, &folder, &options, rows))?;
    if json_to_stdout {
        writeln!(out, "{}", ran.json)?;
    } else {
        out.write_all(ran.text.as_bytes())?;
    }
    // All of them, also where one cannot be written: they are what the time was spent for.
    let json = json.map_or(Ok(()), |file| file.write(&ran.json));
    let sheet = spreadsheet.zip(ran.sheet).map_or(Ok(()), |(file, sheet)| file.write(sheet));
    all([json, sheet])?;
    for (name, text) in &ran.latency_files {
        whole_file::write(name.as_ref(), text).with_context(|| format!("cannot write {name}"))?;
    }
    // The answer has them.
    for note in ran.notes.iter().filter(|_| rows != Rows::InTheAnswer) {
        terminal::note(&format!("note: {note}"));
    }
    Ok(CommandEnd::Good)
}

/// What a run has to show.
struct IozoneReport {
    text: String,
    json: String,
    sheet: Option<Vec<u8>>,
    latency_files: Vec<(String, String)>,
    notes: Vec<String>,
}

fn work(site: &Site, folder: &Path, options: &Options, rows: Rows) -> Result<IozoneReport> {
    let fs: Arc<dyn FileSystem> = match site.is_here() {
        true => {
            let host = HostFs::open(folder);
            Arc::new(host.with_context(|| format!("cannot work in {}", folder.display()))?)
        }
        false => site.fs()?,
    };
    let surroundings = surroundings(site);
    let Some(plan) = &options.matrix else {
        let results = iozone::run(fs, "", options, &surroundings, None)?;
        return Ok(IozoneReport {
            text: match rows {
                Rows::InTheAnswer => answer::of_runs(&results),
                _ => report::text(&results),
            },
            json: json(results.to_json()?),
            sheet: options.spreadsheet.as_ref().map(|_| matrix::spreadsheet_of_runs(&results)),
            latency_files: latency_files::of_runs(&results),
            notes: results.notes,
        });
    };
    let host = HostTarget::new(folder);
    let place: &dyn matrix::MatrixTarget =
        if site.is_here() { &host } else { &matrix::InProcessTarget };
    let mut progress = Progress::new(options, plan, &surroundings, rows)?;
    let results = matrix::run(&fs, "", options, &surroundings, (place, None), &mut progress)?;
    progress.finish()?;
    Ok(IozoneReport {
        text: match rows {
            Rows::InTheAnswer => answer::of_matrix(&results),
            // The header and the rows are printed already.
            _ => matrix::end(&results),
        },
        json: json(results.to_json()?),
        sheet: options.spreadsheet.as_ref().map(|_| matrix::spreadsheet(&results)),
        latency_files: latency_files::of_cells(&results),
        notes: results.notes,
    })
}

/// What has no meaning in virtual time.
fn not_simulated(options: &Options) -> Result<()> {
    let wrong = [
        (options.cpu_use, "-+u (processor use): it is this machine's, and time is not"),
        (options.processor.is_some(), "-P (binding to processors): they are modelled"),
    ];
    match wrong.iter().find(|(given, _)| *given) {
        Some((_, what)) => Err(Usage(format!("iozone: in virtual time there is no {what}")).into()),
        None => Ok(()),
    }
}

/// Runs on one processor from now on.
fn bind(processor: u32, options: &Options) -> Result<()> {
    if options.matrix.is_none() {
        usage!("iozone: -P is for one file at a time here: with -t use taskset");
    }
    let mut set = rustix::thread::CpuSet::new();
    if processor as usize >= rustix::thread::CpuSet::MAX_CPU {
        usage!("iozone: -P {processor}: there are not so many");
    }
    set.set(processor as usize);
    rustix::thread::sched_setaffinity(None, &set)
        .map_err(|e| Usage(format!("iozone: -P {processor}: {e}")).into())
}

/// The folder that the files are in; their names are cut down to what lies below it. All files
/// of a run are in one folder.
fn split_folder(options: &mut Options) -> Result<PathBuf> {
    let split = |path: &str| -> Result<(PathBuf, String)> {
        let path = Path::new(path);
        let name = path
            .file_name()
            .ok_or_else(|| Usage(format!("iozone: {} names no file", path.display())))?;
        let folder = match path.parent() {
            Some(p) if !p.as_os_str().is_empty() => p.to_path_buf(),
            _ => PathBuf::from("."),
        };
        Ok((folder, name.to_string_lossy().into_owned()))
    };
    let Some(files) = &mut options.files else {
        let (folder, name) = split(&options.base)?;
        options.base = name;
        return Ok(folder);
    };
    let mut common: Option<PathBuf> = None;
    for file in files.iter_mut() {
        let (folder, name) = split(file)?;
        if common.as_ref().is_some_and(|c| *c != folder) {
            usage!("iozone: the files of -F must be in one folder");
        }
        common = Some(folder);
        *file = name;
    }
    Ok(common.unwrap_or_else(|| PathBuf::from(".")))
}

/// Refuses folders, and files that are images in use: they would be cut, written over and removed.
fn refuse_used(folder: &Path, options: &Options) -> Result<()> {
    let most = options.children.iter().copied().max().unwrap_or(0);
    let each = || (0..most).map(|child| options.file_of(child)).collect();
    let files: Vec<String> = match &options.files {
        Some(files) => files.clone(),
        None if options.matrix.is_some() => vec![options.base.clone()],
        None => each(),
    };
    let paths = || files.iter().map(|file| folder.join(file));
    if let Some(path) = paths().find(|path| path.is_dir()) {
        usage!("iozone: {}: is a folder; name a file in it", path.display());
    }
    match paths().find_map(|path| in_use::by_whom(&path)) {
        Some(busy) => Err(busy.context("iozone")),
        None => Ok(()),
    }
}

/// The time and the machine, as IOzone's header shows them.
fn surroundings(site: &Site) -> Surroundings {
    let now = jiff::Zoned::now();
    let uname = rustix::system::uname();
    let part = |s: &std::ffi::CStr| s.to_string_lossy().into_owned();
    Surroundings {
        began: Some(now.strftime("%a %b %e %H:%M:%S %Y").to_string()),
        machine: Some(format!(
            "{} {} {} {} {} GNU/Linux",
            part(uname.sysname()),
            part(uname.nodename()),
            part(uname.release()),
            part(uname.version()),
            part(uname.machine())
        )),
        memory_bytes: site.memory_bytes().or(Some(rustix::system::sysinfo().totalram)),
        ..Surroundings::default()
    }
}
