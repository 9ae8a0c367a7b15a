//! The file system under test at a folder of this machine, for programs that know nothing of it.

use std::io::{BufRead, BufReader, Error, Read, Result};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use steadfast_crash::CrashError;
use steadfast_crash::program::inside::{AckLog, Program};
use steadfast_fuse::Options;
use steadfast_host::MountFolder;
use steadfast_runtime::sleep;
use steadfast_vfs::FileSystem as Vfs;

use crate::fs::FileSystem;

/// Longest line that is one acknowledgement, in bytes.
const LINE_MAX: u64 = 1 << 20;

/// The folder that a program under test works in: a file system of its own, mounted by FUSE.
///
/// ```no_run
/// use steadfast::crash::{AtFolder, PowerCut};
///
/// let program = |at: &AtFolder| {
///     std::fs::write(at.path().join("file"), "text")?;
///     std::fs::File::open(at.path().join("file"))?.sync_all()?;
///     at.acknowledge("stored");
///     std::io::Result::Ok(())
/// };
/// PowerCut::new().run_at_folder(program).check().unwrap();
/// ```
#[derive(Clone)]
pub struct AtFolder {
    path: PathBuf,
    said: AckLog,
}

impl AtFolder {
    /// The folder.
    ///
    /// ```no_run
    /// # fn program(at: &steadfast::crash::AtFolder) -> std::io::Result<()> {
    /// std::fs::create_dir(at.path().join("folder"))
    /// # }
    /// ```
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Acknowledges that something is done; as
    /// [`ProgramFs::acknowledge`](super::ProgramFs::acknowledge).
    ///
    /// ```no_run
    /// # fn program(at: &steadfast::crash::AtFolder) {
    /// at.acknowledge("stored");
    /// # }
    /// ```
    pub fn acknowledge(&self, text: impl AsRef<str>) {
        self.said.say(text.as_ref().as_bytes());
    }

    /// Runs a program in the folder, also named by its environment's `STEADFAST_MOUNT`, until it
    /// and all processes that have inherited its output end. Each line that it prints is an
    /// acknowledgement.
    ///
    /// ```no_run
    /// use std::process::Command;
    /// # fn program(at: &steadfast::crash::AtFolder) -> std::io::Result<()> {
    /// at.command(Command::new("sh").args(["-c", "echo text > file && sync file && echo stored"]))
    /// # }
    /// ```
    ///
    /// # Errors
    /// It could not be started; it ended with another status than 0.
    pub fn command(&self, command: &mut Command) -> Result<()> {
        command.current_dir(&self.path).env("STEADFAST_MOUNT", &self.path);
        let name = command.get_program().to_string_lossy().into_owned();
        let named = |e: Error| Error::new(e.kind(), format!("{name}: {e}"));
        let mut child = command.stdout(Stdio::piped()).spawn().map_err(named)?;
        if let Some(out) = child.stdout.take() {
            let mut out = BufReader::new(out);
            let mut line = Vec::new();
            while out.by_ref().take(LINE_MAX).read_until(b'\n', &mut line)? > 0 {
                self.said.say(line.strip_suffix(b"\n").unwrap_or(&line));
                line.clear();
            }
        }
        let status = child.wait()?;
        match status.success() {
            true => Ok(()),
            false => Err(Error::other(format!("{name}: {status}"))),
        }
    }
}

steadfast_runtime::debug_fields!(AtFolder: path);

/// What is run on the recorded file system: it is mounted, the program runs, time goes on for a
/// while, and it is taken away.
pub(super) fn program<E: std::fmt::Display>(
    work: impl FnOnce(&AtFolder) -> std::result::Result<(), E> + 'static,
    linger: Duration,
) -> Program {
    Box::new(move |fs, said| mounted(fs, said, work, linger))
}

fn mounted<E: std::fmt::Display>(
    fs: Arc<dyn Vfs>,
    said: &AckLog,
    work: impl FnOnce(&AtFolder) -> std::result::Result<(), E>,
    linger: Duration,
) -> std::result::Result<(), CrashError> {
    let cannot = |e: String| CrashError::Run(format!("the file system under test: {e}"));
    let folder = MountFolder::new().map_err(|e| cannot(e.to_string()))?;
    let options = Options {
        source: "crash-test".into(),
        // Servers run under users of their own; the file system's permissions hold for them.
        allow_other: rustix::process::geteuid().is_root(),
        ..Options::default()
    };
    let fs = FileSystem::over(fs, "disk");
    let mounted = fs.mount_at_with(folder.path(), &options).map_err(|e| cannot(e.to_string()))?;
    let at = AtFolder { path: folder.path().to_owned(), said: said.clone() };
    let done = work(&at).map_err(|e| CrashError::Run(format!("the program failed: {e}")));
    if done.is_ok() {
        sleep(linger);
    }
    let ended = mounted.unmount().map(drop).map_err(|e| cannot(e.to_string()));
    done.and(ended)
}
