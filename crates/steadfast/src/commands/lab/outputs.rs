//! The files that a run writes: tried before the run, so that minutes are not lost to a misspelt
//! path.

use std::ffi::OsStr;
use std::fs;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use steadfast_lab::Recordings;

use crate::Usage;
use crate::commands::whole_file;
use crate::commands::whole_file::place::{self, FolderName, Identity, PathMeaning, path_of};

/// A file that can be written.
pub struct Output {
    path: PathBuf,
}

impl Output {
    /// Tries to open the file; what is there stays as it is, and what is not there is not made.
    pub fn tried(option: &str, path: &Path) -> Result<Output, Usage> {
        if path == Path::new("-") {
            usage!("{option} -: it is written to a file only; name one");
        }
        whole_file::try_out(path)
            .map_err(|e| Usage(format!("{option}: cannot write {}: {e}", path.display())))?;
        Ok(Output { path: path.into() })
    }

    /// Writes it, whole: on a full disk what was there stays.
    pub fn write(&self, contents: impl AsRef<[u8]>) -> Result<()> {
        whole_file::write(&self.path, contents)
            .with_context(|| format!("cannot write {}", self.path.display()))
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

/// Tries the files that are asked for by these options. No two of them may be the same file, and
/// none one of those that are read.
pub fn tried<const N: usize>(
    wanted: [(&str, Option<&Path>); N],
    inputs: impl IntoIterator<Item: AsRef<Path>>,
) -> Result<[Option<Output>; N], Usage> {
    let named: Vec<(&str, &Path)> =
        wanted.iter().filter_map(|(option, path)| Some((*option, (*path)?))).collect();
    let inputs: Vec<_> = inputs.into_iter().collect();
    for (i, (option, path)) in named.iter().enumerate() {
        if inputs.iter().any(|input| is_same(path, input.as_ref())) {
            usage!("{option} {}: that file is read; name another one", path.display());
        }
        if let Some((other, _)) = named[..i].iter().find(|(_, other)| is_same(path, other)) {
            usage!("{other} and {option} name the same file, {}", path.display());
        }
    }
    let mut outputs = [const { None }; N];
    for (output, (option, path)) in outputs.iter_mut().zip(wanted) {
        *output = path.map(|path| Output::tried(option, path)).transpose()?;
    }
    Ok(outputs)
}

/// Whether two paths lead to one file, which need not be there.
pub fn is_same(a: &Path, b: &Path) -> bool {
    let file = |path: &Path| fs::metadata(path).ok().map(|file| Identity::in_metadata(&file));
    // Where nothing is: what would be made there.
    let place = |path: &Path| match place::find(path) {
        Ok(PathMeaning::Named(place)) => {
            Some((Identity::of(place.folder()).ok()?, place.name().to_owned()))
        }
        _ => None,
    };
    match (file(a), file(b)) {
        (None, None) => place(a).is_some_and(|a| Some(a) == place(b)),
        (a, b) => a == b,
    }
}

/// A folder for recordings.
pub struct Folder {
    path: PathBuf,
    open: OwnedFd,
    is_new: bool,
}

impl Folder {
    /// Makes the folder if it is not there. It must be empty: rows of two runs must not mix.
    pub fn tried(path: &Path) -> Result<Folder, Usage> {
        let cannot =
            |e: io::Error| Usage(format!("--record: cannot write to {}: {e}", path.display()));
        let is_new = fs::symlink_metadata(path).is_err();
        let open = place::folder(path, true).map_err(cannot)?;
        if fs::read_dir(path_of(&open)).map_err(cannot)?.next().is_some() {
            let shown = path.display();
            usage!("--record {shown}: the folder is not empty; name a new one");
        }
        if place::is_anybodys(&open).map_err(cannot)? {
            let shown = path.display();
            usage!(
                "--record {shown}: another user may change this folder while root writes to it; \
                 name a new one"
            );
        }
        tempfile::tempfile_in(path_of(&open)).map_err(cannot)?;
        Ok(Folder { path: path.into(), open, is_new })
    }

    /// Where to write: for root the folder itself, whoever renames what it is in.
    pub fn path(&self) -> PathBuf {
        if place::is_root() { path_of(&self.open) } else { self.path.clone() }
    }

    /// What is written there.
    pub fn recordings(&self) -> Recordings {
        Recordings::new(self.path(), self.path.clone())
    }

    /// After the run: what there is, in words; `whole`: all that was to be. A folder that was made
    /// for nothing goes.
    pub fn end(&self, whole: bool) -> String {
        let shown = self.path.display();
        let names = fs::read_dir(path_of(&self.open));
        let is_empty = names.is_ok_and(|mut names| names.next().is_none());
        if !is_empty {
            let but = if whole { "" } else { " (not all of them could be written)" };
            return format!("Recordings: {shown}{but}");
        }
        let removed = || FolderName::of_new(&self.path)?.remove_folder(&self.open);
        let gone = self.is_new && removed().is_ok();
        let left = if gone { "is not there" } else { "is empty" };
        let why = if whole { "no run that is cut had begun" } else { "it could not be written" };
        format!("Nothing was recorded, {shown} {left}: {why}")
    }
}

/// The file of an option that may also be `-`, the standard output.
pub fn unless_stdout(path: Option<&PathBuf>) -> Option<&Path> {
    path.map(PathBuf::as_path).filter(|path| path.as_os_str() != OsStr::new("-"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pipe_with_a_name_is_not_opened_to_try_it() {
        let folder = tempfile::tempdir().unwrap();
        let pipe = folder.path().join("pipe");
        let mode = rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR;
        rustix::fs::mkfifoat(rustix::fs::CWD, &pipe, mode).unwrap();
        // Nobody reads it: opening would wait.
        let output = Output::tried("--report", &pipe).unwrap();
        assert_eq!(output.path(), pipe);
    }
}
