//! Image files, and what mke2fs, e2fsck and the kernel make of them.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

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
    /// An ext4 made by mke2fs with these options, of `size` bytes.
    pub fn mke2fs(size: u64, options: &[&str]) -> Image {
        let image = Image::empty();
        std::fs::File::create(image.path()).unwrap().set_len(size).unwrap();
        let mut command = Command::new("mke2fs");
        command.args(["-F", "-q", "-t", "ext4"]).args(options).arg(image.path());
        let made = output(&mut command);
        assert!(made.status.success(), "{command:?}: {}", text(&made));
        image
    }

    /// A folder for an image that is not there yet.
    pub fn empty() -> Image {
        Image { folder: tempfile::tempdir().unwrap() }
    }

    /// The file.
    pub fn path(&self) -> PathBuf {
        self.folder.path().join("image")
    }

    /// Panics unless e2fsck finds nothing to say.
    pub fn assert_clean(&self) {
        let mut command = Command::new("timeout");
        let checked = output(command.args(["60", "e2fsck", "-fn"]).arg(self.path()));
        assert!(checked.status.success(), "e2fsck: {}", text(&checked));
    }

    /// Lets e2fsck replay the journal and repair what it would after a crash (-p: nothing that
    /// needs a decision).
    pub fn repair(&self) {
        let mut command = Command::new("timeout");
        let repaired = output(command.args(["60", "e2fsck", "-p"]).arg(self.path()));
        let fine = repaired.status.code().is_some_and(|code| code <= 1);
        assert!(fine, "e2fsck -p: {}", text(&repaired));
    }

    /// Mounts it with the kernel.
    pub fn mount(&self, options: &str) -> KernelMount {
        let mount = Mount::of_image(&self.path(), None, options).unwrap();
        KernelMount { fs: HostFs::open(mount.path()).unwrap(), mount }
    }
}

/// A mounted image; unmounted when dropped.
pub struct KernelMount {
    // Goes first: its open folder would keep the mount busy.
    fs: HostFs,
    mount: Mount,
}

impl KernelMount {
    /// Where it is mounted.
    pub fn folder(&self) -> &Path {
        self.mount.path()
    }

    /// The kernel's file system.
    pub fn fs(&self) -> &HostFs {
        &self.fs
    }
}
