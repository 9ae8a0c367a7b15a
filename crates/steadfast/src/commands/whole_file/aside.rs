//! A file that is filled to replace another one.

use std::ffi::OsString;
use std::fs::File;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io;
use std::os::fd::OwnedFd;

use rustix::fs::{AtFlags, CWD, Mode, OFlags, linkat, openat, renameat, unlinkat};
use rustix::io::Errno;

use super::place::{Identity, Place, is_of, path_of};

/// What a file that is being filled is called, should it need a name before it is whole.
pub const ASIDE: &str = ".steadfast-";

/// So many names are tried.
const NAMES: usize = 16;

/// A file that is to replace another one, in the folder of that.
pub struct Aside<'a> {
    place: &'a Place,
    /// It, which nobody else may read.
    pub file: File,
    /// `None`: it has none yet, so that nothing stays of it if this process is ended.
    name: Option<OsString>,
}

const READ_WRITE: OFlags = OFlags::RDWR.union(OFlags::CLOEXEC);

impl<'a> Aside<'a> {
    /// Beside what is at this place.
    pub fn of(place: &'a Place) -> io::Result<Aside<'a>> {
        let mode = Mode::RUSR | Mode::WUSR;
        if let Ok(file) = openat(place.folder(), ".", READ_WRITE | OFlags::TMPFILE, mode) {
            return Ok(Aside { place, file: file.into(), name: None });
        }
        let flags = READ_WRITE | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW;
        let (file, name) = with_new_name(|name| openat(place.folder(), name, flags, mode))?;
        Ok(Aside { place, file: file.into(), name: Some(name) })
    }

    /// Where nothing is: with the rights of any new file there, and no name, so that nothing stays
    /// of it if this process is ended. `None`: the file system has no such files.
    pub fn without_name(place: &'a Place) -> Option<Aside<'a>> {
        let mode = Mode::from_raw_mode(0o666);
        let file = openat(place.folder(), ".", READ_WRITE | OFlags::TMPFILE, mode).ok()?;
        Some(Aside { place, file: file.into(), name: None })
    }

    /// Gets its name, which nothing has.
    pub fn take_name(self) -> rustix::io::Result<()> {
        let (from, place) = (path_of(&self.file), self.place);
        linkat(CWD, &from, place.folder(), place.name(), AtFlags::SYMLINK_FOLLOW)
    }

    /// Takes the place of this file; `false`: another one has it by now.
    pub fn replace(mut self, old: Identity) -> io::Result<bool> {
        let folder = self.place.folder();
        let name = match self.name.clone() {
            Some(name) => name,
            None => {
                let from = path_of(&self.file);
                let link =
                    |name: &OsString| linkat(CWD, &from, folder, name, AtFlags::SYMLINK_FOLLOW);
                let ((), name) = with_new_name(link)?;
                self.name.insert(name).clone()
            }
        };
        if !self.place.is_of(old) {
            return Ok(false);
        }
        renameat(folder, &name, folder, self.place.name())?;
        self.name = None;
        Ok(true)
    }
}

impl Drop for Aside<'_> {
    fn drop(&mut self) {
        let Some(name) = &self.name else { return };
        let folder: &OwnedFd = self.place.folder();
        if Identity::of(&self.file).is_ok_and(|ours| is_of(folder, name, ours)) {
            // OK to ignore: why it is of no use is what counts.
            let _ = unlinkat(folder, name, AtFlags::empty());
        }
    }
}

/// Makes something with a name that nothing has.
fn with_new_name<T>(
    make: impl Fn(&OsString) -> rustix::io::Result<T>,
) -> io::Result<(T, OsString)> {
    for _ in 0..NAMES {
        // Each state is of other random numbers.
        let number = RandomState::new().build_hasher().finish();
        let name = OsString::from(format!("{ASIDE}{number:016x}"));
        match make(&name) {
            Ok(made) => return Ok((made, name)),
            Err(Errno::EXIST) => {}
            Err(e) => return Err(e.into()),
        }
    }
    Err(Errno::EXIST.into())
}
