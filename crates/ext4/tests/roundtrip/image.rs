//! Image files, and what mke2fs, e2fsck and the kernel make of them.

use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::Arc;

use steadfast_block::BlockDevice;
use steadfast_devices::source::{FileDevice, FileOptions};
use steadfast_ext4_check::check;
use steadfast_host::Mount;
use steadfast_vfs::HostFs;
use tempfile::TempDir;

/// An image file in a folder of its own, gone when dropped.
pub struct Image {
    folder: TempDir,
}

fn output(command: &mut Command) -> Output {
    command.output().unwrap_or_else(|e| panic!("{command:?}: {e}"))
}

fn text(output: &Output) -> String {
    let both = [&output.stdout[..], &output.stderr].concat();
    String::from_utf8_lossy(&both).into_owned()
}

impl Image {
    /// A file system made by mke2fs with these options, of `size` bytes: ext4 unless `-t` says
    /// otherwise.
    pub fn mke2fs(size: u64, options: &[&str]) -> Image {
        let image = Image { folder: tempfile::tempdir().unwrap() };
        std::fs::File::create(image.path()).unwrap().set_len(size).unwrap();
        let mut command = Command::new("mke2fs");
        if !options.contains(&"-t") {
            command.args(["-t", "ext4"]);
        }
        let made = output(command.args(["-F", "-q"]).args(options).arg(image.path()));
        assert!(made.status.success(), "{command:?}: {}", text(&made));
        image
    }

    /// A copy, holes kept.
    pub fn clone_of(other: &Image) -> Image {
        let image = Image { folder: tempfile::tempdir().unwrap() };
        let mut command = Command::new("cp");
        let done = output(command.arg("--sparse=always").arg(other.path()).arg(image.path()));
        assert!(done.status.success(), "{command:?}: {}", text(&done));
        image
    }

    /// The file.
    pub fn path(&self) -> PathBuf {
        self.folder.path().join("image")
    }

    /// Whether its blocks are larger than the kernel's pages.
    pub fn has_large_blocks(&self) -> bool {
        let mut log = [0];
        std::fs::File::open(self.path()).unwrap().read_exact_at(&mut log, 1024 + 24).unwrap();
        log[0] > 2
    }

    /// Has debugfs change something.
    pub fn debugfs(&self, request: &str) {
        let mut command = Command::new("debugfs");
        let done = output(command.args(["-w", "-R", request]).arg(self.path()));
        assert!(done.status.success(), "{command:?}: {}", text(&done));
    }

    /// What debugfs says to a request that changes nothing.
    pub fn debugfs_says(&self, request: &str) -> String {
        text(&output(Command::new("debugfs").args(["-R", request]).arg(self.path())))
    }

    /// Panics unless e2fsck finds nothing to say, nor does our own check.
    pub fn assert_clean(&self) {
        let mut command = Command::new("timeout");
        let checked = output(command.args(["60", "e2fsck", "-fn"]).arg(self.path()));
        assert!(checked.status.success(), "e2fsck: {}", text(&checked));
        let device: Arc<dyn BlockDevice> =
            Arc::new(FileDevice::open(self.path(), &FileOptions::reading()).unwrap());
        let report = check(&device, None).unwrap();
        assert!(report.is_clean(), "our check: {:?}", report.findings);
    }

    /// Mounts it with the kernel.
    pub fn mount(&self, options: &str) -> KernelMount {
        KernelMount::of(Mount::of_image(&self.path(), None, options).unwrap())
    }

    /// Lets fuse2fs mount it for reading: blocks that the kernel here cannot have.
    pub fn mount_by_fuse2fs(&self) -> KernelMount {
        let folder = tempfile::tempdir().unwrap();
        let mut command = Command::new("fuse2fs");
        command.arg(self.path()).arg(folder.path()).args(["-o", "ro,use_ino"]);
        let mounted = output(&mut command);
        assert!(mounted.status.success(), "{command:?}: {}", text(&mounted));
        KernelMount::of(Mount::adopt(folder))
    }
}

/// A mounted image; unmounted when dropped.
pub struct KernelMount {
    // Goes first: its open folder would keep the mount busy.
    fs: HostFs,
    mount: Mount,
}

impl KernelMount {
    fn of(mount: Mount) -> KernelMount {
        KernelMount { fs: HostFs::open(mount.path()).unwrap(), mount }
    }

    /// Where it is mounted.
    pub fn folder(&self) -> &Path {
        self.mount.path()
    }

    /// The kernel's file system.
    pub fn fs(&self) -> &HostFs {
        &self.fs
    }
}
