//! A third opinion: the kernel mounts what the cut left, recovers it itself, and the same judge
//! looks at the mount. Needs root, loop devices and a kernel with ext4.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use steadfast_devices::filter::record::Moment;
use steadfast_devices::store::Store;
use steadfast_host::{Folder, Mount};
use steadfast_vfs::{FileSystem, HostFs};

use crate::e2fsck::E2fsck;
use crate::error::{CrashError, Result};
use crate::figures::StateFigures;
use crate::judge::Judge;
use crate::opinion::Opinion;
use crate::tree::Tree;

/// Mounts images with the kernel's ext4.
pub struct Kernel {
    /// One image at a time: there is one mount point.
    folder: Mutex<Folder>,
}

impl Kernel {
    /// Fails in words if this is not root or has no folder for images.
    pub fn find() -> Result<Kernel> {
        Kernel::find_in(&std::env::temp_dir())
    }

    /// The same, with the images in this folder: best one in memory.
    ///
    /// # Errors
    /// As of [`find`](Self::find).
    pub fn find_in(images: &Path) -> Result<Kernel> {
        if !rustix::process::geteuid().is_root() {
            return Err("mounting with the kernel needs root".into());
        }
        let no_folder = |e| format!("a folder for images in {}: {e}", images.display());
        let folder = Folder::new_in(images, "steadfast-kernel-").map_err(no_folder)?;
        std::fs::create_dir(folder.path().join("mount")).map_err(|e| e.to_string())?;
        Ok(Kernel { folder: Mutex::new(folder) })
    }

    /// Lets the kernel recover the contents of disk and journal device, and judges what it shows.
    /// The kernel's refusal to mount is damage; a failure of this machine is not.
    pub fn judge(
        &self,
        disk: &Store,
        journal: Option<&Store>,
        judge: &dyn Judge,
        at: Moment,
    ) -> Opinion {
        let folder = self.folder.lock().unwrap_or_else(PoisonError::into_inner);
        let mut cut = StateFigures { at: at.at, ..StateFigures::default() };
        let look = |fs: &HostFs| {
            judge.judge(fs, at, &mut cut);
            Ok(())
        };
        match CutImages::put(&folder, disk, journal).and_then(|images| images.mounted(look)) {
            Err(why) => return Opinion::NotGiven(why.to_string()),
            Ok(Err(refused)) => return Opinion::Damaged(refused),
            Ok(Ok(())) => {}
        }
        let wrong: Vec<String> = cut.findings.into_iter().chain(cut.damage).collect();
        if wrong.is_empty() { Opinion::Clean } else { Opinion::Damaged(wrong.join("; ")) }
    }

    /// How long the same judgement takes outside: the kernel's mount, a walk over all names and
    /// bytes, the unmount, and `e2fsck -fn`. Putting the images in place is not counted.
    ///
    /// # Errors
    /// In words, what was refused, or what e2fsck found.
    pub fn time(&self, e2fsck: &E2fsck, disk: &Store, journal: Option<&Store>) -> Result<Duration> {
        let folder = self.folder.lock().unwrap_or_else(PoisonError::into_inner);
        let images = CutImages::put(&folder, disk, journal)?;
        let begun = Instant::now();
        images.mounted(|fs| {
            let read = Tree::look_whole(fs, fs.root()).map(drop);
            read.map_err(|e| format!("reading the mount: {e}").into())
        })??;
        let journal = images.journal.as_ref().map(|_| JOURNAL);
        match e2fsck.judge_images(folder.path(), DISK, journal) {
            Opinion::Clean => Ok(begun.elapsed()),
            Opinion::Damaged(why) | Opinion::NotGiven(why) => Err(CrashError::Host(why)),
        }
    }
}

/// The images in their folder.
const DISK: &str = "disk.img";
const JOURNAL: &str = "journal.img";

/// What a cut has left, as files.
struct CutImages {
    disk: PathBuf,
    journal: Option<PathBuf>,
    point: PathBuf,
}

impl CutImages {
    fn put(folder: &Folder, disk: &Store, journal: Option<&Store>) -> Result<CutImages> {
        let image = |name: &str, contents: &Store| {
            let path = folder.path().join(name);
            contents.export(&path).map_err(|e| format!("cannot write an image: {e}"))?;
            Ok::<_, String>(path)
        };
        let disk = image(DISK, disk)?;
        let journal = journal.map(|j| image(JOURNAL, j)).transpose()?;
        Ok(CutImages { disk, journal, point: folder.path().join("mount") })
    }

    /// Has the kernel mount them, and looks at the mount. The inner error is its refusal, in words.
    fn mounted(
        &self,
        look: impl FnOnce(&HostFs) -> Result<()>,
    ) -> Result<std::result::Result<(), String>> {
        let (journal, options) = (self.journal.as_deref(), "errors=remount-ro");
        let mounted = match Mount::of_image_at(&self.disk, journal, &self.point, options) {
            Ok(mounted) => mounted,
            // mount(8): 32 is a mount that failed; what was killed or not started has others.
            Err(e) if e.command.starts_with("mount") && e.said.starts_with("exit status: 32") => {
                return Ok(Err(format!("the kernel refused the mount: {e}")));
            }
            Err(e) => return Err(CrashError::host(e)),
        };
        {
            let fs = HostFs::open(&self.point).map_err(|e| format!("opening the mount: {e}"))?;
            look(&fs)?;
        }
        mounted.unmount().map_err(|e| e.to_string())?;
        Ok(Ok(()))
    }
}
