//! `steadfast svm link`: links to this program by the names of the commands.

use std::os::unix::fs::symlink;
use std::path::Path;

use anyhow::{Context, Result};

use crate::commands::whole_file::place;

/// Makes those that are not there. Nothing is made where something else has one of the names.
pub fn link(folder: &Path) -> Result<()> {
    if !folder.is_dir() {
        let what = if folder.exists() { "is no folder" } else { "there is no such folder" };
        usage!("{}: {what}", folder.display());
    }
    // As root no link of another user is followed to it, also if it is put there meanwhile.
    let open = place::folder(folder, false).with_context(|| folder.display().to_string())?;
    let program = std::env::current_exe().context("looking for this program's own file")?;
    let mut missing = Vec::new();
    for name in steadfast_svm::NAMES {
        let (at, now) = (folder.join(name), place::path_of(&open).join(name));
        match now.symlink_metadata() {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => missing.push((at, now)),
            Err(error) => return Err(error).with_context(|| at.display().to_string()),
            Ok(_) if now.canonicalize().is_ok_and(|to| to == program) => {}
            Ok(_) => usage!("{}: is there already, and is no link to us", at.display()),
        }
    }
    for (at, now) in missing {
        symlink(&program, &now).with_context(|| at.display().to_string())?;
    }
    Ok(())
}
