//! A third opinion: the kernel mounts what the cut left, recovers it itself, and the same judge
//! looks at the mount. Needs root, loop devices and a kernel with ext4.

use std::ffi::OsStr;
use std::process::{Command, Stdio};
use std::sync::{Mutex, PoisonError};

use steadfast_devices::filter::record::Moment;
use steadfast_devices::store::Store;
use steadfast_host::Mount;
use steadfast_vfs::HostFs;

use crate::figures::StateFigures;
use crate::judge::Judge;
use crate::opinion::Opinion;

/// Seconds after which a command is killed.
const LIMIT_SECONDS: &str = "60";

/// Mounts images with the kernel's ext4.
pub struct Kernel {
    /// One image at a time: there is one mount point.
    folder: Mutex<tempfile::TempDir>,
}

impl Kernel {
    /// Fails in words if this is not root or has no folder for images.
    pub fn find() -> crate::Result<Kernel> {
        let user = run("id", &["-u"])?;
        if user.trim() != "0" {
            return Err("mounting with the kernel needs root".into());
        }
        let folder = tempfile::tempdir().map_err(|e| format!("a folder for images: {e}"))?;
        std::fs::create_dir(folder.path().join("mount")).map_err(|e| e.to_string())?;
        Ok(Kernel { folder: Mutex::new(folder) })
    }

    /// Lets the kernel recover the contents of disk and journal device, and judges what it shows.
    /// The kernel's refusal to mount is damage; what the machine around fails in is not.
    pub fn judge(
        &self,
        disk: &Store,
        journal: Option<&Store>,
        judge: &dyn Judge,
        at: Moment,
    ) -> Opinion {
        self.asked(disk, journal, judge, at)
            .unwrap_or_else(|why| Opinion::NotGiven(why.to_string()))
    }

    fn asked(
        &self,
        disk: &Store,
        journal: Option<&Store>,
        judge: &dyn Judge,
        at: Moment,
    ) -> crate::Result<Opinion> {
        let folder = self.folder.lock().unwrap_or_else(PoisonError::into_inner);
        let image = |name: &str, contents: &Store| {
            let path = folder.path().join(name);
            contents.export(&path).map_err(|e| format!("cannot write an image: {e}"))?;
            Ok::<_, String>(path)
        };
        let disk = image("disk.img", disk)?;
        let journal = journal.map(|j| image("journal.img", j)).transpose()?;
        let point = folder.path().join("mount");
        let options = "errors=remount-ro";
        let mounted = match Mount::of_image_at(&disk, journal.as_deref(), &point, options) {
            Ok(mounted) => mounted,
            // mount(8): 32 is a mount that failed; what was killed or not started has others.
            Err(e) if e.command.starts_with("mount") && e.said.starts_with("exit status: 32") => {
                return Ok(Opinion::Damaged(format!("the kernel refused the mount: {e}")));
            }
            Err(e) => return Err(crate::CrashError::host(e)),
        };
        let mut cut = StateFigures { at: at.at, ..StateFigures::default() };
        {
            let fs = HostFs::open(&point).map_err(|e| format!("opening the mount: {e}"))?;
            judge.judge(&fs, at, &mut cut);
        }
        mounted.unmount().map_err(|e| e.to_string())?;
        let wrong: Vec<String> = cut.findings.into_iter().chain(cut.damage).collect();
        Ok(if wrong.is_empty() { Opinion::Clean } else { Opinion::Damaged(wrong.join("; ")) })
    }
}

fn run<S: AsRef<OsStr>>(program: &str, arguments: &[S]) -> crate::Result<String> {
    let output = Command::new("timeout")
        .args(["-s", "KILL", LIMIT_SECONDS, program])
        .args(arguments)
        .stdin(Stdio::null())
        .output()
        .map_err(|e| format!("{program} could not be run: {e}"))?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let why = String::from_utf8_lossy(&output.stderr);
    Err(format!("{program}: {}: {}", output.status, why.trim()).into())
}
