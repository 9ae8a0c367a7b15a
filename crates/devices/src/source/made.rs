//! A file that was made, and goes again if it turns out to be of no use.

use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;

use rustix::fs::{AtFlags, Mode, OFlags, Stat, fstat, openat, statat, unlinkat};
use rustix::io::Errno;

/// A new file in a folder that is kept open: renaming the folder meanwhile does not change what is
/// removed.
pub struct Made {
    folder: OwnedFd,
    name: OsString,
    /// It, open for reading and writing.
    pub(super) file: File,
}

impl Made {
    /// Makes a file where nothing is.
    pub(super) fn new(path: &Path) -> io::Result<Made> {
        let name = path.file_name().ok_or(Errno::EXIST)?.to_owned();
        let folder = path.parent().filter(|folder| *folder != Path::new(""));
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let folder = rustix::fs::open(folder.unwrap_or(Path::new(".")), flags, Mode::empty())?;
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW;
        let mode = Mode::from_raw_mode(0o666);
        let file = openat(&folder, &name, flags | OFlags::CLOEXEC, mode)?.into();
        Ok(Made { folder, name, file })
    }

    /// Makes its name durable.
    pub(super) fn sync_name(&self) -> io::Result<()> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        File::from(openat(&self.folder, ".", flags, Mode::empty())?).sync_all()
    }

    /// Whether what is open is this file: who may rename in its folder may have put another one
    /// in its place before it was opened.
    pub(super) fn is(&self, open: impl AsFd) -> bool {
        self.has(fstat(open))
    }

    fn has(&self, other: rustix::io::Result<Stat>) -> bool {
        matches!((other, fstat(&self.file)), (Ok(other), Ok(made))
            if (other.st_dev, other.st_ino) == (made.st_dev, made.st_ino))
    }

    /// Removes it, unless its name is that of another file by now.
    pub fn remove(self) {
        if self.has(statat(&self.folder, &self.name, AtFlags::SYMLINK_NOFOLLOW)) {
            // OK to ignore: why it is of no use is what counts.
            let _ = unlinkat(&self.folder, &self.name, AtFlags::empty());
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn another_file_of_the_name_stays() {
        let top = tempfile::tempdir().unwrap();
        let at = |name: &str| top.path().join(name);
        for folder in ["dir", "other"] {
            fs::create_dir(at(folder)).unwrap();
        }
        fs::write(at("other/image"), "another's").unwrap();
        assert!(Made::new(&at("other/image")).is_err());
        let made = Made::new(&at("dir/image")).unwrap();
        made.sync_name().unwrap();
        // The folder is exchanged for another one.
        fs::rename(at("dir"), at("moved")).unwrap();
        fs::rename(at("other"), at("dir")).unwrap();
        made.remove();
        assert!(!at("moved/image").exists());
        assert_eq!(fs::read_to_string(at("dir/image")).unwrap(), "another's");
        let made = Made::new(&at("moved/image")).unwrap();
        fs::rename(at("dir/image"), at("moved/image")).unwrap();
        made.remove();
        assert_eq!(fs::read_to_string(at("moved/image")).unwrap(), "another's");
    }
}
