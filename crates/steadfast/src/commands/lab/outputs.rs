//! The files that a run writes: tried before the run, so that minutes are not lost to a misspelt
//! path.

use std::fs::{self, File, OpenOptions};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use crate::Usage;
use crate::cli::LabRun;

/// A file that can be written.
pub struct Output {
    path: PathBuf,
}

impl Output {
    /// Tries to open the file; what is there stays as it is, and what is not there is not made.
    fn tried(path: &Path) -> Result<Output> {
        let is_new = fs::symlink_metadata(path).is_err();
        let cannot = |e| Usage(format!("cannot write {}: {e}", path.display()));
        OpenOptions::new().write(true).create(true).truncate(false).open(path).map_err(cannot)?;
        if is_new {
            fs::remove_file(path).map_err(cannot)?;
        }
        Ok(Output { path: path.into() })
    }

    /// Writes it.
    pub fn write(&self, text: &str) -> Result<()> {
        fs::write(&self.path, text).with_context(|| format!("cannot write {}", self.path.display()))
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

/// What was asked for beside the tables.
pub struct Outputs {
    pub json: Option<Output>,
    pub report: Option<Output>,
    pub chart: Option<Output>,
    /// A folder that is there and empty.
    pub record: Option<PathBuf>,
}

impl Outputs {
    /// Tries all of them.
    pub fn tried(args: &LabRun) -> Result<Outputs> {
        let file = |path: &Option<PathBuf>| path.as_deref().map(Output::tried).transpose();
        Ok(Outputs {
            json: file(&args.json.clone().filter(|path| path != Path::new("-")))?,
            report: file(&args.report)?,
            chart: file(&args.chart)?,
            record: args.record.as_deref().map(folder).transpose()?,
        })
    }
}

/// Makes the folder if it is not there. It must be empty: rows of two runs must not mix.
fn folder(path: &Path) -> Result<PathBuf> {
    let cannot = |e: std::io::Error| Usage(format!("cannot write to {}: {e}", path.display()));
    fs::create_dir_all(path).map_err(cannot)?;
    if fs::read_dir(path).map_err(cannot)?.next().is_some() {
        let what = format!("--record {}: the folder is not empty; name a new one", path.display());
        return Err(Usage(what).into());
    }
    let probe = path.join(".probe");
    File::create(&probe).and_then(|_| fs::remove_file(&probe)).map_err(cannot)?;
    Ok(path.into())
}
