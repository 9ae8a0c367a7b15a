//! The file systems of a run: one, or several, on each of which the program is run.

use std::path::{Path, PathBuf};

use anyhow::Result;
use steadfast_peers::PeerError;

use super::cli::CrashRun;
use super::setup::{Fs, Setup};
use crate::{CommandEnd, Unsupported, Usage, terminal};

/// A file system that was asked for and is not tested.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SkippedFs {
    /// As it was asked for.
    pub name: String,
    /// Why, in words.
    pub why: String,
    /// It should have been.
    pub has_failed: bool,
}

impl SkippedFs {
    /// The run on it failed.
    pub fn failed(setup: &Setup, why: &anyhow::Error) -> SkippedFs {
        SkippedFs { name: setup.name.clone(), why: terminal::with_causes(why), has_failed: true }
    }

    /// Somebody stopped the runs before.
    pub fn stopped(setup: &Setup) -> SkippedFs {
        let why = "the runs were stopped before".into();
        SkippedFs { name: setup.name.clone(), why, has_failed: true }
    }
}

/// What the command line asks for: what to run on, and what this machine's kernel does not have.
/// Where one is asked for, that one.
pub fn of(args: &CrashRun) -> Result<(Vec<Setup>, Vec<SkippedFs>), Usage> {
    let (mut setups, mut skipped) = (Vec::<Setup>::new(), Vec::new());
    for name in &args.fs {
        let setup = Setup::of(args, name)?;
        if setups.iter().any(|other| other.in_words() == setup.in_words()) {
            usage!("--fs {}: {name} is there twice", args.fs.join(","));
        }
        setups.push(setup);
    }
    if setups.len() == 1 {
        return Ok((setups, skipped));
    }
    if !args.stack.is_empty() || args.journal != "internal" {
        usage!("--stack and --journal are for one file system");
    }
    let mut problem = None;
    setups.retain(|setup| {
        let Fs::Kernel(fs) = setup.fs else { return true };
        match fs.available() {
            Ok(()) => return true,
            Err(e @ PeerError::NoKernel { .. }) => {
                let (name, why) = (setup.name.clone(), e.to_string());
                skipped.push(SkippedFs { name, why, has_failed: false });
            }
            Err(e) => {
                problem.get_or_insert(Usage(format!("--fs {}: {e}", setup.name)));
            }
        }
        false
    });
    problem.map_or(Ok((setups, skipped)), Err)
}

/// Says aloud what is left out.
pub fn say_skipped(skipped: &[SkippedFs]) {
    for SkippedFs { name, why, .. } in skipped {
        terminal::note(&format!("note: {name} is skipped: {why}"));
    }
}

/// Says on which of several file systems the program is run now.
pub fn say_begun(setups: &[Setup], number: usize) {
    if let (Some(setup), true) = (setups.get(number), setups.len() > 1) {
        let (name, of) = (&setup.name, setups.len());
        terminal::note(&format!("on {name} ({} of {of})", number + 1));
    }
}

/// The end of a run for which there was no file system.
pub fn none_tested(skipped: &[SkippedFs]) -> Result<CommandEnd> {
    let all: Vec<String> = skipped.iter().map(|fs| format!("{}: {}", fs.name, fs.why)).collect();
    let all = all.join("; ");
    match skipped.iter().any(|fs| fs.has_failed) {
        true => usage!("nothing was tested: {all}"),
        false => Err(Unsupported(format!("nothing was tested: {all}")).into()),
    }
}

/// Where the recording of a run is kept: of several, with the file system's name before the ending.
pub fn record_path(path: &Path, setups: &[Setup], setup: &Setup) -> PathBuf {
    if setups.len() < 2 {
        return path.to_owned();
    }
    let plain = |c: char| if c.is_ascii_alphanumeric() || c == '_' { c } else { '-' };
    let name: String = setup.name.chars().map(plain).collect();
    let stem = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let ending = path.extension().map(|e| format!(".{}", e.to_string_lossy())).unwrap_or_default();
    path.with_file_name(format!("{stem}-{name}{ending}"))
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        run: CrashRun,
    }

    fn asked(words: &[&str]) -> Result<(Vec<Setup>, Vec<SkippedFs>), Usage> {
        let line = [&["run"], words, &["--", "true"]].concat();
        of(&Line::parse_from(line).run)
    }

    #[test]
    fn each_has_its_options_and_its_recording() {
        let (setups, skipped) = asked(&["--fs", "ext2,ext4:data=journal:commit=1"]).unwrap();
        assert_eq!(skipped, []);
        let options: Vec<&str> = setups.iter().map(|setup| &setup.options[..]).collect();
        assert_eq!(options, ["", "data=journal,commit=1"]);
        let path = record_path(Path::new("a/run.crash"), &setups, &setups[1]);
        assert_eq!(path, Path::new("a/run-ext4-data-journal-commit-1.crash"));
        assert_eq!(record_path(Path::new("run"), &setups, &setups[0]), Path::new("run-ext2"));
        assert_eq!(record_path(Path::new("run"), &setups[..1], &setups[0]), Path::new("run"));
    }

    #[test]
    fn what_cannot_be_is_refused() {
        for (words, why) in [
            (&["--fs", "ext4,ext4"][..], "ext4 is there twice"),
            (&["--fs", "ext4,zfs"], "--fs zfs is unknown"),
            (&["--fs", "ext4,"], "--fs: a name is missing"),
            (&["--fs", "ext4,ext3", "--journal", "nvram"], "for one file system"),
        ] {
            let refused = asked(words).unwrap_err().to_string();
            assert!(refused.contains(why), "{refused}");
        }
    }
}
