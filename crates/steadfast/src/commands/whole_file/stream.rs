//! A file that is written bit by bit: what is there stays if this process is killed.

use std::fs::{File, OpenOptions, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use super::place::path_of;
use super::{Fresh, Target, write_by};

/// A file that is made, or takes the place of an older one, with the first bytes that are written.
/// Until then what is there stays. Its folder is open from the beginning on: what is mounted over
/// it later does not see what is written.
pub struct StreamFile {
    path: PathBuf,
    target: Option<Target>,
    file: Option<File>,
    /// A descriptor of this process, or no file.
    is_given: bool,
}

impl StreamFile {
    /// Finds the place. A FIFO is opened, and so waits for its reader.
    ///
    /// # Errors
    /// What the host reports.
    pub fn at(path: &Path) -> io::Result<StreamFile> {
        let target = match Target::find(path)? {
            Target::Open(open) if !path_of(&open).metadata()?.is_file() => {
                Target::Given(OpenOptions::new().write(true).open(path_of(&open))?.into())
            }
            target => target,
        };
        let is_given = matches!(target, Target::Given(_));
        Ok(StreamFile { path: path.to_owned(), target: Some(target), file: None, is_given })
    }
}

fn create(target: Target) -> io::Result<File> {
    let emptied = |open: &_| OpenOptions::new().write(true).truncate(true).open(path_of(open));
    match target {
        Target::Given(open) => Ok(open.into()),
        Target::Open(open) => emptied(&open),
        Target::New(place) => File::create_new(path_of(place.folder()).join(place.name())),
        Target::Old { place, open, about } => {
            let fresh = || {
                let new = Fresh::in_place_of(&place, &about)?;
                new.file.set_permissions(Permissions::from_mode(about.mode() & 0o777))?;
                let file = new.file.try_clone()?;
                new.replace(&place).map(|()| file)
            };
            fresh().or_else(|why| if place.is_anybodys()? { Err(why) } else { emptied(&open) })
        }
    }
}

impl Write for StreamFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if let Some(target) = self.target.take() {
            self.file = Some(create(target)?);
        }
        match &mut self.file {
            Some(file) => file.write(bytes),
            None => Err(io::Error::other("it could not be made")),
        }
    }

    /// The end: it is on the disk, and under its name.
    fn flush(&mut self) -> io::Result<()> {
        let Some(file) = self.file.as_ref().filter(|_| !self.is_given) else { return Ok(()) };
        file.sync_all()?;
        if file.metadata()?.nlink() > 0 {
            return Ok(());
        }
        // Somebody has removed it meanwhile: a program that cleans its folder up.
        let copy = |to: &Path| {
            let mut to = OpenOptions::new().write(true).open(to)?;
            io::copy(&mut File::open(path_of(file))?, &mut to).map(drop)
        };
        write_by(&self.path, copy)
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn what_is_there_stays_until_the_first_write() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::write(at("old"), "an old and longer text").unwrap();
        fs::set_permissions(at("old"), Permissions::from_mode(0o640)).unwrap();
        fs::write(at("two-names"), "an old and longer text").unwrap();
        fs::hard_link(at("two-names"), at("other")).unwrap();
        for name in ["old", "two-names", "new"] {
            let before = fs::read(at(name)).ok();
            drop(StreamFile::at(&at(name)).unwrap());
            assert_eq!(fs::read(at(name)).ok(), before);
            let mut file = StreamFile::at(&at(name)).unwrap();
            file.write_all(b"new").unwrap();
            // Before its end.
            assert_eq!(fs::read(at(name)).unwrap(), b"new");
            file.flush().unwrap();
        }
        assert_eq!(fs::read(at("other")).unwrap(), b"new");
        assert_eq!(fs::metadata(at("old")).unwrap().mode() & 0o777, 0o640);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 4);
    }

    #[test]
    fn what_was_removed_meanwhile_is_there_at_the_end() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("new");
        let mut file = StreamFile::at(&path).unwrap();
        file.write_all(b"first ").unwrap();
        fs::remove_file(&path).unwrap();
        file.write_all(b"second").unwrap();
        file.flush().unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"first second");
    }
}
