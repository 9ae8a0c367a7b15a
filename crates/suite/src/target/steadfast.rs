//! `steadfast mount`, in the foreground, so that its end can be waited for.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use super::{EmptyTransport, ImagePaths, LIMIT, cpu_of, is_mounted, umount};
use crate::{Result, SuiteError};

/// The running program and what it says.
#[derive(Debug)]
pub(crate) struct Daemon {
    child: Child,
    log: PathBuf,
}

/// Mounts; what the program says is added to the file `log`.
pub(crate) fn mount(
    binary: &Path,
    paths: &ImagePaths<'_>,
    options: &str,
    log: &Path,
) -> Result<Daemon> {
    // As the kernel's own mounts are: FUSE would open no device and honour no set-id bit.
    let mut all = "allow_other,dev,suid".to_owned();
    if !options.is_empty() {
        all = format!("{all},{options}");
    }
    if let Some(journal) = paths.journal {
        all = format!("{all},journal={}", journal.display());
    }
    let mut command = Command::new(binary);
    command.arg("mount").arg(paths.image).arg(paths.mountpoint);
    command.args(["--foreground", "-o", &all]);
    start(command, paths.mountpoint, log)
}

/// Mounts the server that answers at once.
pub(super) fn empty(
    program: &Path,
    transport: EmptyTransport,
    mountpoint: &Path,
    log: &Path,
) -> Result<Daemon> {
    let transport = match transport {
        EmptyTransport::Uring => "ring",
        EmptyTransport::Fuse => "device",
    };
    let mut command = Command::new(program);
    command.arg(mountpoint).arg(transport);
    start(command, mountpoint, log)
}

/// Starts a program that mounts and serves, and waits for the mount.
fn start(mut command: Command, mountpoint: &Path, log: &Path) -> Result<Daemon> {
    let program = command.get_program().display().to_string();
    let failed = |source| SuiteError::Program { program: program.clone(), source };
    let out = File::options().create(true).append(true).open(log).map_err(failed)?;
    command.stdin(Stdio::null()).stdout(out.try_clone().map_err(failed)?).stderr(out);
    let child = command.spawn().map_err(failed)?;
    let mut daemon = Daemon { child, log: log.to_owned() };
    let begun = Instant::now();
    while !is_mounted(mountpoint) {
        if let Some(status) = daemon.child.try_wait().map_err(failed)? {
            return Err(daemon.error(&format!("ended before it had mounted: {status}")));
        }
        if begun.elapsed() > LIMIT {
            return Err(daemon.error("does not mount"));
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    Ok(daemon)
}

impl Daemon {
    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    pub(super) fn cpu(&self) -> Option<Duration> {
        cpu_of(self.child.id())
    }

    fn error(&self, what: &str) -> SuiteError {
        let log = std::fs::read_to_string(&self.log).unwrap_or_default();
        SuiteError::Target(format!("steadfast mount {what}\n{log}"))
    }

    /// Unmounts and waits for the program's end: it writes on after umount has returned.
    pub(crate) fn unmount(mut self, mountpoint: &Path) -> Result<()> {
        umount(mountpoint)?;
        let begun = Instant::now();
        loop {
            let failed = |source| SuiteError::Program { program: "steadfast".into(), source };
            if let Some(status) = self.child.try_wait().map_err(failed)? {
                return match status.success() {
                    true => Ok(()),
                    false => Err(self.error(&format!("ended with {status}"))),
                };
            }
            if begun.elapsed() > LIMIT {
                return Err(self.error("does not end after umount"));
            }
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        // Ended already, unless something went wrong.
        let _ = self.child.kill();
        let _ = crate::ended(&mut self.child, LIMIT);
    }
}
