//! The log of a mount: to the terminal, or to a file.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::Path;
use std::sync::Mutex;

use anyhow::{Context, Result};
use tracing::Level;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::fmt::layer;
use tracing_subscriber::prelude::*;

use crate::commands::whole_file::place::{self, Found, path_of};

/// Logs to the standard error, or to a file that is appended to; `debug`: of ours, everything.
pub fn start(file: Option<&Path>, debug: bool) -> Result<()> {
    let level = if debug { Level::DEBUG } else { Level::INFO };
    // The FUSE library warns of every call that is not there, which its caller sees anyway.
    let whose = Targets::new().with_default(Level::ERROR).with_target("steadfast", level);
    match file {
        Some(path) => {
            let lines = layer().with_target(false).with_ansi(false);
            let lines = lines.with_writer(Mutex::new(Line(open(path)?))).with_filter(whose);
            tracing_subscriber::registry().with(lines).init();
        }
        None => {
            let lines = layer().with_target(false).with_ansi(false);
            let lines = lines.with_writer(|| Line(std::io::stderr())).with_filter(whose);
            tracing_subscriber::registry().with(lines).init();
        }
    }
    Ok(())
}

/// Writes what is one event as one line: names of files, devices and callers may be anybody's.
struct Line<W>(W);

impl<W: Write> Write for Line<W> {
    fn write(&mut self, event: &[u8]) -> io::Result<usize> {
        let body = event.strip_suffix(b"\n").unwrap_or(event);
        let is_plain = |byte: &u8| !byte.is_ascii_control() || matches!(byte, b'\t' | 0x1b);
        if body.iter().all(is_plain) {
            self.0.write_all(event)?;
            return Ok(event.len());
        }
        let mut line = Vec::with_capacity(event.len() + 16);
        for byte in body {
            match is_plain(byte) {
                true => line.push(*byte),
                false => line.extend(byte.escape_ascii()),
            }
        }
        line.extend(&event[body.len()..]);
        self.0.write_all(&line)?;
        Ok(event.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

/// Opens a log for appending.
pub fn open(path: &Path) -> Result<File> {
    let file = match place::find(path) {
        Ok(Found::Named(place)) => place.append(),
        Ok(Found::Descriptor(open)) => Ok(open.into()),
        Ok(Found::Other(open)) => OpenOptions::new().append(true).open(path_of(&open)),
        Err(e) => Err(e),
    };
    file.with_context(|| format!("log {}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_is_one_line() {
        let mut line = Line(Vec::new());
        line.write_all(b"INFO a name\nERROR made up\r \x07\n").unwrap();
        assert_eq!(line.0, b"INFO a name\\nERROR made up\\r \\x07\n");
        let mut plain = Line(Vec::new());
        plain.write_all("\u{1b}[2mINFO\u{1b}[0m \u{e9}\n".as_bytes()).unwrap();
        assert_eq!(plain.0, "\u{1b}[2mINFO\u{1b}[0m \u{e9}\n".as_bytes());
    }

    #[test]
    fn a_log_is_appended_to() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log");
        for line in ["one\n", "two\n"] {
            open(&path).unwrap().write_all(line.as_bytes()).unwrap();
        }
        assert_eq!(std::fs::read_to_string(path).unwrap(), "one\ntwo\n");
        open("/dev/null".as_ref()).unwrap().write_all(b"three\n").unwrap();
        assert!(open(&folder.path().join("none/log")).is_err());
    }
}
