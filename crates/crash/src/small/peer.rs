//! What the same judgement costs outside: the kernel mounts a state, which recovers it, the judge's
//! walk over all names and bytes, the unmount, then `e2fsck -fn`. A way to compare speeds, and one
//! more opinion. Needs root, loop devices and e2fsprogs.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use steadfast_devices::store::Store;
use steadfast_host::Mount;
use steadfast_vfs::{FileSystem, HostFs};

use crate::e2fsck::E2fsck;
use crate::error::{CrashError, Result};
use crate::opinion::Opinion;
use crate::tree::Tree;

/// The kernel's ext4 and e2fsck on images in a folder.
pub struct Peer {
    e2fsck: E2fsck,
    folder: tempfile::TempDir,
}

impl Peer {
    /// Looks for what it needs; images are put where `images` says: best a folder in memory.
    ///
    /// # Errors
    /// In words, what is missing.
    pub fn find(images: &Path) -> Result<Peer> {
        let e2fsck = E2fsck::find().ok_or_else(|| CrashError::host("e2fsck is not installed"))?;
        let folder = tempfile::tempdir_in(images)
            .map_err(|e| format!("a folder for images in {}: {e}", images.display()))?;
        std::fs::create_dir(folder.path().join("mount")).map_err(|e| e.to_string())?;
        Ok(Peer { e2fsck, folder })
    }

    /// Mounts, reads everything, unmounts and checks one state; how long that took. Putting the
    /// images in place is not counted. `contents` is the disk, then the journal's device if it has
    /// one.
    ///
    /// # Errors
    /// In words, what was refused, or what e2fsck found.
    pub fn judge(&self, contents: &[Store]) -> Result<Duration> {
        let mut images: Vec<PathBuf> = Vec::new();
        for (n, store) in contents.iter().enumerate() {
            let path = self.folder.path().join(format!("device{n}.img"));
            store.export(&path).map_err(|e| format!("{}: {e}", path.display()))?;
            images.push(path);
        }
        let (disk, journal) = (&images[0], images.get(1).map(PathBuf::as_path));
        let point = self.folder.path().join("mount");
        let begun = Instant::now();
        let mounted = Mount::of_image_at(disk, journal, &point, "errors=remount-ro")
            .map_err(|e| format!("the kernel refused the mount: {e}"))?;
        {
            let fs = HostFs::open(&point).map_err(|e| format!("opening the mount: {e}"))?;
            Tree::look_whole(&fs, fs.root()).map_err(|e| format!("reading the mount: {e}"))?;
        }
        mounted.unmount().map_err(|e| e.to_string())?;
        match self.e2fsck.judge_image(disk, journal) {
            Opinion::Clean => Ok(begun.elapsed()),
            Opinion::Damaged(why) | Opinion::NotGiven(why) => Err(CrashError::Host(why)),
        }
    }
}
