//! `steadfast iozone`: IOzone's throughput tests in the current folder, in real time.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, Result};
use steadfast_bench::iozone::options::HELP;
use steadfast_bench::iozone::{self, Options, Parsed, Surroundings, report};
use steadfast_vfs::HostFs;

use crate::{Outcome, Usage, terminal};

/// Runs IOzone with its own options.
pub fn run(words: &[String], out: &mut dyn Write) -> Result<Outcome> {
    let mut options = match iozone::parse(words) {
        Ok(Parsed::Run(options)) => *options,
        Ok(Parsed::Help) => {
            write!(out, "{HELP}")?;
            return Ok(Outcome::Good);
        }
        Ok(Parsed::Version) => {
            writeln!(out, "steadfast iozone {}", env!("CARGO_PKG_VERSION"))?;
            return Ok(Outcome::Good);
        }
        Err(e) => return Err(Usage(format!("iozone: {}", e.message)).into()),
    };
    let folder = split_folder(&mut options)?;
    let host =
        HostFs::open(&folder).with_context(|| format!("cannot work in {}", folder.display()))?;
    let surroundings = surroundings();
    let results = iozone::run(Arc::new(host), "", &options, &surroundings, None)?;
    let json_to_stdout = options.json.as_deref() == Some("-");
    if json_to_stdout {
        writeln!(out, "{}", results.to_json()?)?;
    } else {
        write!(out, "{}", report::text(&results))?;
        if let Some(path) = &options.json {
            std::fs::write(path, results.to_json()?)
                .with_context(|| format!("cannot write {path}"))?;
        }
    }
    for note in &results.notes {
        terminal::note(&format!("note: {note}"));
    }
    Ok(Outcome::Good)
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
            return Err(Usage("iozone: the files of -F must be in one folder".into()).into());
        }
        common = Some(folder);
        *file = name;
    }
    Ok(common.unwrap_or_else(|| PathBuf::from(".")))
}

/// The time and the machine, as IOzone's header shows them.
fn surroundings() -> Surroundings {
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
        memory_bytes: Some(rustix::system::sysinfo().totalram),
        repeat_data: false,
    }
}
