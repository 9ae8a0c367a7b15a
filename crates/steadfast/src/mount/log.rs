//! The log of a mount: to the terminal, or to a file.

use std::fs::{File, OpenOptions};
use std::path::Path;
use std::sync::Mutex;

use anyhow::{Context, Result};
use tracing::Level;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::fmt::layer;
use tracing_subscriber::prelude::*;

/// Logs to the standard error, or to a file that is appended to; `debug`: of ours, everything.
pub fn start(file: Option<&Path>, debug: bool) -> Result<()> {
    let level = if debug { Level::DEBUG } else { Level::INFO };
    // The FUSE library warns of every call that is not there, which its caller is told anyway.
    let whose = Targets::new().with_default(Level::ERROR).with_target("steadfast", level);
    match file {
        Some(path) => {
            let lines = layer().with_target(false).with_ansi(false);
            let lines = lines.with_writer(Mutex::new(open(path)?)).with_filter(whose);
            tracing_subscriber::registry().with(lines).init();
        }
        None => {
            let lines = layer().with_target(false).with_ansi(false);
            let lines = lines.with_writer(std::io::stderr).with_filter(whose);
            tracing_subscriber::registry().with(lines).init();
        }
    }
    Ok(())
}

/// Opens a log for appending.
pub fn open(path: &Path) -> Result<File> {
    let file = OpenOptions::new().create(true).append(true).open(path);
    file.with_context(|| format!("log {}", path.display()))
}
