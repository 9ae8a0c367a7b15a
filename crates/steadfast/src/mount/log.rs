//! The log of a mount: to the terminal, or to a file.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use anyhow::{Context, Result};
use tracing::Level;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::fmt::layer;
use tracing_subscriber::prelude::*;

use steadfast_vfs::foreign;

use super::place::{check_room, own_file, runtime_folder};
use crate::commands::whole_file::place::{self, PathMeaning, path_of};

/// A log that is a file, open to be appended to.
pub struct LogFile {
    /// Where it is.
    pub path: PathBuf,
    file: File,
    /// Nobody has asked for it: it is in the folder for sockets and logs.
    is_own: bool,
}

impl LogFile {
    /// The folder for sockets and logs, in which this process can have its socket, and its log: the
    /// file that was `given`; without one, in the background, the one of this name in the folder.
    ///
    /// # Errors
    /// There is no such folder, or the file cannot be opened.
    pub fn of_process(
        given: Option<&Path>,
        in_background: bool,
        name: &str,
    ) -> Result<(PathBuf, Option<LogFile>)> {
        let folder = runtime_folder().context("the folder for control sockets")?;
        check_room(&folder)?;
        let log = match (given, in_background) {
            (Some(given), _) => Some(LogFile::named(given)?),
            (None, true) => Some(LogFile::in_folder(&folder, name)?),
            (None, false) => None,
        };
        Ok((folder, log))
    }

    /// The file that the user has named; links are followed.
    ///
    /// # Errors
    /// It cannot be opened.
    fn named(path: &Path) -> Result<LogFile> {
        let path = std::path::absolute(path)?;
        let file = match place::find(&path) {
            Ok(PathMeaning::Named(place)) => place.append(),
            Ok(PathMeaning::Descriptor(open)) => Ok(open.into()),
            Ok(PathMeaning::Other(open)) => OpenOptions::new().append(true).open(path_of(&open)),
            Err(e) => Err(e),
        };
        let file = file.with_context(|| format!("log {}", path.display()))?;
        Ok(LogFile { path, file, is_own: false })
    }

    /// A file in the folder for sockets and logs, which may be shared: no link is followed, and
    /// what another user has put there, or what has a second name elsewhere, is refused.
    ///
    /// # Errors
    /// It cannot be opened, or is not a file of this user alone.
    fn in_folder(folder: &Path, name: &str) -> Result<LogFile> {
        let path = folder.join(name);
        let file = own_file(&path).with_context(|| format!("log {}", path.display()))?;
        Ok(LogFile { path, file, is_own: true })
    }

    /// The standard error goes there from now on.
    ///
    /// # Errors
    /// As the system says.
    pub fn takes_stderr(&self) -> io::Result<()> {
        Ok(rustix::stdio::dup2_stderr(&self.file)?)
    }

    /// Removes one that nobody has asked for.
    pub fn remove_own(&self) {
        if self.is_own {
            // OK to ignore: an empty file stays.
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

/// Logs to the standard error, or to a file that is appended to; `debug`: of ours, everything.
pub fn start(file: Option<&LogFile>, debug: bool) -> Result<()> {
    let level = if debug { Level::DEBUG } else { Level::INFO };
    // The FUSE library warns of every call that is not there, which its caller sees anyway.
    let whose = Targets::new().with_default(Level::ERROR).with_target("steadfast", level);
    match file {
        Some(log) => {
            let lines = layer().with_target(false).with_ansi(false);
            let file = log.file.try_clone().context("the log")?;
            let lines = lines.with_writer(Mutex::new(Line(file))).with_filter(whose);
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

/// Writes what is one event as one line in which nothing is to be obeyed: names of files, devices
/// and callers may be anybody's.
struct Line<W>(W);

impl<W: Write> Write for Line<W> {
    fn write(&mut self, event: &[u8]) -> io::Result<usize> {
        let body = event.strip_suffix(b"\n").unwrap_or(event);
        let mut line = foreign::line(body).into_bytes();
        line.extend(&event[body.len()..]);
        self.0.write_all(&line)?;
        Ok(event.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

#[cfg(test)]
mod tests {
    use rustix::fs::Mode;

    use super::*;

    #[test]
    fn an_event_is_one_line() {
        let mut line = Line(Vec::new());
        line.write_all(b"INFO a name\nERROR made up\r \x07\n").unwrap();
        assert_eq!(line.0, b"INFO a name\\012ERROR made up\\015 \\007\n");
        let mut line = Line(Vec::new());
        line.write_all("\u{1b}[2mINFO\u{9b} \u{202e}\u{e9}\n".as_bytes()).unwrap();
        let shown = "\\033[2mINFO\\302\\233 \\342\\200\\256\u{e9}\n";
        assert_eq!(line.0, shown.as_bytes());
    }

    #[test]
    fn a_log_is_appended_to() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log");
        for line in ["one\n", "two\n"] {
            LogFile::named(&path).unwrap().file.write_all(line.as_bytes()).unwrap();
        }
        let own = || LogFile::in_folder(folder.path(), "log").map(|log| log.file);
        own().unwrap().write_all(b"three\n").unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "one\ntwo\nthree\n");
        LogFile::named("/dev/null".as_ref()).unwrap().file.write_all(b"four\n").unwrap();
        assert!(LogFile::named(&folder.path().join("none/log")).is_err());
        // A second name of it may be another's.
        std::fs::hard_link(&path, folder.path().join("other")).unwrap();
        assert!(own().is_err());
        std::fs::remove_file(&path).unwrap();
        std::os::unix::fs::symlink(folder.path().join("other"), &path).unwrap();
        assert!(own().is_err());
        std::fs::remove_file(&path).unwrap();
        rustix::fs::mkfifoat(rustix::fs::CWD, &path, Mode::RWXU).unwrap();
        assert!(own().is_err());
        assert_eq!(std::fs::read(folder.path().join("other")).unwrap().len(), 14);
    }
}
