//! What every engine needs: a script for a task, and nothing of another engine's environment.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};
use steadfast_sweep::SHARD_VARIABLES;

use crate::Usage;

/// The folder of a sweep that is submitted.
pub struct SweepFolder {
    /// Absolute, for whoever works elsewhere.
    pub path: PathBuf,
}

impl SweepFolder {
    /// Makes it, if it is not there.
    pub fn new(path: &Path) -> Result<SweepFolder> {
        let cannot = |e| Usage(format!("-o {}: {e}", path.display()));
        for below in ["results", "log"] {
            fs::create_dir_all(path.join(below)).map_err(cannot)?;
        }
        Ok(SweepFolder { path: fs::canonicalize(path).map_err(cannot)? })
    }

    /// The plan's file.
    pub fn plan(&self) -> PathBuf {
        self.path.join("plan.json")
    }

    /// Where shards write to.
    pub fn results(&self) -> PathBuf {
        self.path.join("results")
    }

    /// The script of a task: its argument, if it has one, is the shard's number.
    pub fn write_script(&self) -> Result<PathBuf> {
        let program = std::env::current_exe().context("finding this program")?;
        let here = std::env::current_dir().context("finding the current folder")?;
        let text = format!(
            "#!/bin/sh\n\
             # A task of a sweep. The shard's number is the engine's, or the argument.\n\
             cd {} || exit 2\n\
             exec {} sweep run --plan {} -o {} ${{1:+--shard \"$1\"}}\n",
            quoted(&here)?,
            quoted(&program)?,
            quoted(&self.plan())?,
            quoted(&self.results())?
        );
        let path = self.path.join("shard.sh");
        fs::write(&path, text).with_context(|| path.display().to_string())?;
        Ok(path)
    }
}

/// A path as a word of a shell's.
fn quoted(path: &Path) -> Result<String> {
    let Some(text) = path.to_str() else {
        usage!("{}: a script cannot name it: its name is not UTF-8", path.display());
    };
    Ok(format!("'{}'", text.replace('\'', "'\\''")))
}

/// A program of an engine, which is not told what another engine has said to this process.
pub fn command(name: &str) -> Command {
    let mut command = Command::new(name);
    for (variable, _) in SHARD_VARIABLES {
        command.env_remove(variable);
    }
    command
}

/// What a program of an engine prints.
pub fn output(command: &mut Command, package: &str) -> Result<String> {
    let name = command.get_program().to_string_lossy().into_owned();
    let ran = command.output().map_err(|e| match e.kind() {
        std::io::ErrorKind::NotFound => {
            Usage(format!("{name} is not there: install it (Debian's package {package})"))
        }
        _ => Usage(format!("{name}: {e}")),
    })?;
    if !ran.status.success() {
        usage!("{name}: {}", String::from_utf8_lossy(&ran.stderr).trim());
    }
    Ok(String::from_utf8_lossy(&ran.stdout).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_one_word() {
        assert_eq!(quoted(Path::new("/a b/it's $x")).unwrap(), r"'/a b/it'\''s $x'");
    }
}
