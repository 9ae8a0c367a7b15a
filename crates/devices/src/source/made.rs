//! A file that was made, and goes again if it turns out to be of no use.

use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;

use rustix::fs::{AtFlags, Mode, OFlags, fstat, openat, statat, unlinkat};
use rustix::io::Errno;

/// A new file in a folder that is kept open: renaming the folder meanwhile does not change what is
/// removed.
pub struct NewFile {
    folder: OwnedFd,
    name: OsString,
    /// It, open for reading and writing.
    pub(super) file: File,
}

impl NewFile {
    /// The folder that a path leads to, links followed.
    pub(super) fn folder_of(path: &Path) -> io::Result<OwnedFd> {
        let folder = path.parent().filter(|folder| *folder != Path::new(""));
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        Ok(rustix::fs::open(folder.unwrap_or(Path::new(".")), flags, Mode::empty())?)
    }

    /// Makes a file in a folder, where nothing has the last name of `path`.
    pub(super) fn new_in(folder: OwnedFd, path: &Path) -> io::Result<NewFile> {
        let name = path.file_name().ok_or(Errno::EXIST)?.to_owned();
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW;
        let mode = Mode::from_raw_mode(0o666);
        let file = openat(&folder, &name, flags | OFlags::CLOEXEC, mode)?.into();
        Ok(NewFile { folder, name, file })
    }

    /// It, with what something done with it has given; if that failed, it is removed.
    pub(super) fn kept<T, E>(self, done: Result<T, E>) -> Result<(T, NewFile), E> {
        match done {
            Ok(given) => Ok((given, self)),
            Err(e) => {
                self.remove();
                Err(e)
            }
        }
    }

    /// Makes its name durable.
    pub(super) fn sync_name(&self) -> io::Result<()> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        File::from(openat(&self.folder, ".", flags, Mode::empty())?).sync_all()
    }

    /// Removes it, unless its name is that of another file by now.
    pub fn remove(self) {
        let named = statat(&self.folder, &self.name, AtFlags::SYMLINK_NOFOLLOW);
        let is_ours = matches!((named, fstat(&self.file)), (Ok(named), Ok(made))
            if (named.st_dev, named.st_ino) == (made.st_dev, made.st_ino));
        if is_ours {
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
        let make = |path: &Path| NewFile::new_in(NewFile::folder_of(path).unwrap(), path);
        assert!(make(&at("other/image")).is_err());
        let made = make(&at("dir/image")).unwrap();
        made.sync_name().unwrap();
        // The folder is exchanged for another one.
        fs::rename(at("dir"), at("moved")).unwrap();
        fs::rename(at("other"), at("dir")).unwrap();
        made.remove();
        assert!(!at("moved/image").exists());
        assert_eq!(fs::read_to_string(at("dir/image")).unwrap(), "another's");
        let made = make(&at("moved/image")).unwrap();
        fs::rename(at("dir/image"), at("moved/image")).unwrap();
        made.remove();
        assert_eq!(fs::read_to_string(at("moved/image")).unwrap(), "another's");
    }
}
