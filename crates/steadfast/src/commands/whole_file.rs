//! Files that are there whole or not at all: a result that took minutes replaces an older one only
//! once it is on the disk.

use std::ffi::OsString;
use std::fs::{self, File, Metadata};
use std::io::{self, ErrorKind};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Writes a file, which is made or replaced.
///
/// # Errors
/// As for [`write_by`].
pub fn write(path: &Path, bytes: impl AsRef<[u8]>) -> io::Result<()> {
    write_by(path, |to| fs::write(to, &bytes))
}

/// Makes or replaces a file by what `fill` writes to the path that it is given: beside the file,
/// which is then renamed over it. A file that has several names, or whose folder takes no new one,
/// and what is no regular file (a pipe, `/dev/stdout`) is written in its place.
///
/// # Errors
/// What the host reports, and what became of the file that was there.
pub fn write_by(path: &Path, fill: impl Fn(&Path) -> io::Result<()>) -> io::Result<()> {
    let found = fs::metadata(path);
    let (target, old) = match found {
        Ok(old) if !old.is_file() || old.nlink() > 1 => return fill(path),
        Ok(old) => (path.canonicalize()?, Some(old)),
        // It would be made where a link leads.
        Err(_) if fs::symlink_metadata(path).is_ok() => return fill(path),
        Err(_) => (path.to_owned(), None),
    };
    let Some(aside) = aside(&target) else { return fill(path) };
    match File::create_new(&aside) {
        Ok(_) => {}
        // The folder takes no new names, and the file may yet be written.
        Err(e) if e.kind() == ErrorKind::PermissionDenied && old.is_some() => return fill(path),
        Err(e) => return Err(e),
    }
    let done = fill(&aside).and_then(|()| replace(&aside, &target, old.as_ref()));
    done.map_err(|e| {
        // OK to ignore: the first failure is what counts.
        let _ = fs::remove_file(&aside);
        match old {
            Some(_) => io::Error::new(e.kind(), format!("{e}; the file is as it was before")),
            None => e,
        }
    })
}

/// A name beside a file that nobody else uses.
fn aside(target: &Path) -> Option<PathBuf> {
    let mut name = OsString::from(".");
    name.push(target.file_name()?);
    name.push(format!(".{}.new", std::process::id()));
    Some(target.with_file_name(name))
}

fn replace(aside: &Path, target: &Path, old: Option<&Metadata>) -> io::Result<()> {
    if let Some(old) = old {
        // OK to ignore: only root can give a file away.
        let _ = std::os::unix::fs::chown(aside, Some(old.uid()), Some(old.gid()));
        fs::set_permissions(aside, old.permissions())?;
    }
    // A disk may be found to be full as late as here.
    File::open(aside)?.sync_all()?;
    fs::rename(aside, target)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::io::Error;
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::{write, write_by};

    #[test]
    fn a_failure_leaves_what_was_there_and_nothing_else() {
        let folder = tempfile::tempdir().unwrap();
        let (old, new) = (folder.path().join("old"), folder.path().join("new"));
        fs::write(&old, "old").unwrap();
        for path in [&old, &new] {
            let failed = write_by(path, |to| {
                fs::write(to, "half")?;
                Err(Error::from_raw_os_error(28))
            });
            let said = failed.unwrap_err().to_string();
            assert!(said.contains("No space left"), "{said}");
            assert_eq!(said.contains("as it was"), path == &old, "{said}");
        }
        assert_eq!(fs::read_to_string(&old).unwrap(), "old");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn modes_and_links_are_kept() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::write(at("file"), "old").unwrap();
        fs::set_permissions(at("file"), fs::Permissions::from_mode(0o604)).unwrap();
        symlink("file", at("link")).unwrap();
        write(&at("link"), "new").unwrap();
        assert!(fs::symlink_metadata(at("link")).unwrap().is_symlink());
        assert_eq!(fs::read_to_string(at("file")).unwrap(), "new");
        assert_eq!(fs::metadata(at("file")).unwrap().permissions().mode() & 0o777, 0o604);
        // Two names of one file stay that.
        fs::hard_link(at("file"), at("other")).unwrap();
        write(&at("other"), "both").unwrap();
        assert_eq!(fs::read_to_string(at("file")).unwrap(), "both");
        symlink("nothing yet", at("dangling")).unwrap();
        write(&at("dangling"), "made").unwrap();
        assert_eq!(fs::read_to_string(at("nothing yet")).unwrap(), "made");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 5);
        write(std::path::Path::new("/dev/null"), "nobody reads it").unwrap();
        assert!(write(std::path::Path::new("/dev/full"), "x").is_err());
    }
}
