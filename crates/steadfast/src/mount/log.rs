//! The log of a mount: to the terminal, or to a file.

use std::fs::{File, OpenOptions};
use std::path::Path;
use std::sync::Mutex;

use anyhow::{Context, Result};
use tracing::Level;

/// Logs to the standard error, or to a file that is appended to.
pub fn start(file: Option<&Path>) -> Result<()> {
    let make = tracing_subscriber::fmt().with_max_level(Level::INFO).with_target(false);
    match file {
        Some(path) => make.with_ansi(false).with_writer(Mutex::new(open(path)?)).init(),
        None => make.with_ansi(false).with_writer(std::io::stderr).init(),
    }
    Ok(())
}

/// Opens a log for appending.
pub fn open(path: &Path) -> Result<File> {
    let file = OpenOptions::new().create(true).append(true).open(path);
    file.with_context(|| format!("log {}", path.display()))
}
