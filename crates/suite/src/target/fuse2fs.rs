//! fuse2fs of e2fsprogs, in the foreground, so that its end can be waited for.

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use super::{ImagePaths, LIMIT, cpu_of, is_mounted, umount};
use crate::{Result, SuiteError};

/// The running program.
#[derive(Debug)]
pub(super) struct Fuse2fsDaemon {
    child: Child,
}

pub(super) fn mount(paths: &ImagePaths<'_>, options: &str) -> Result<Fuse2fsDaemon> {
    if paths.journal.is_some() {
        return Err(SuiteError::Target("fuse2fs knows no external journals".into()));
    }
    // fakeroot is off: permissions are the kernel's business, as with the other targets.
    let mut all = "rw,allow_other,default_permissions".to_owned();
    if !options.is_empty() {
        all = format!("{all},{options}");
    }
    let mut command = Command::new("fuse2fs");
    command.arg("-f").arg(paths.image).arg(paths.mountpoint).args(["-o", &all]);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let failed = |source| SuiteError::Program { program: "fuse2fs".into(), source };
    let mut child = command.spawn().map_err(failed)?;
    let begun = Instant::now();
    while !is_mounted(paths.mountpoint) {
        if let Some(status) = child.try_wait().map_err(failed)? {
            return Err(SuiteError::Target(format!(
                "fuse2fs ended before it had mounted: {status}"
            )));
        }
        if begun.elapsed() > LIMIT {
            let _ = child.kill();
            return Err(SuiteError::Target("fuse2fs does not mount".into()));
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    Ok(Fuse2fsDaemon { child })
}

impl Fuse2fsDaemon {
    pub(super) fn pid(&self) -> u32 {
        self.child.id()
    }

    pub(super) fn cpu(&self) -> Option<Duration> {
        cpu_of(self.child.id())
    }

    /// Unmounts and waits for the program's end: it writes on after umount has returned.
    pub(super) fn unmount(mut self, mountpoint: &Path) -> Result<()> {
        umount(mountpoint)?;
        let begun = Instant::now();
        loop {
            let failed = |source| SuiteError::Program { program: "fuse2fs".into(), source };
            if let Some(status) = self.child.try_wait().map_err(failed)? {
                return match status.success() {
                    true => Ok(()),
                    false => Err(SuiteError::Target(format!("fuse2fs ended with {status}"))),
                };
            }
            if begun.elapsed() > LIMIT {
                return Err(SuiteError::Target("fuse2fs does not end after umount".into()));
            }
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

impl Drop for Fuse2fsDaemon {
    fn drop(&mut self) {
        // Ended already, unless something went wrong.
        let _ = self.child.kill();
        let _ = crate::ended(&mut self.child, LIMIT);
    }
}
