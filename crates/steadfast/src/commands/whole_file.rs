//! Files that are there whole or not at all: a result that took minutes replaces an older one only
//! once it is on the disk.

use std::ffi::OsStr;
use std::fs::{self, Metadata, OpenOptions};
use std::io::{self, ErrorKind};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, chown};
use std::path::{Path, PathBuf};

use tempfile::NamedTempFile;

/// Writes a file, which is made or replaced.
///
/// # Errors
/// As for [`write_by`].
pub fn write(path: &Path, bytes: impl AsRef<[u8]>) -> io::Result<()> {
    write_by(path, |to| fs::write(to, &bytes))
}

/// Makes or replaces a file by what `fill` writes to the path that it is given.
///
/// A file that is there is replaced by another one, which is filled beside it and renamed over it:
/// owner and mode stay. What cannot be replaced so that nothing but its contents changes is written
/// in its place: a file with several names, an access list or other attributes; one that another
/// file system is mounted on; one in a folder that takes no new names; one that this process was
/// given, as its standard output; and whatever is no regular file. A new file that could not be
/// filled is removed again.
///
/// # Errors
/// What the host reports, and what became of the file that was there.
pub fn write_by(path: &Path, fill: impl Fn(&Path) -> io::Result<()>) -> io::Result<()> {
    let old = match fs::metadata(path) {
        Ok(old) => old,
        Err(e) => {
            // A link that leads nowhere is not ours to remove.
            let is_new = e.kind() == ErrorKind::NotFound && fs::symlink_metadata(path).is_err();
            return fill(path).inspect_err(|_| {
                if is_new {
                    // OK to ignore: the first failure is what counts.
                    let _ = fs::remove_file(path);
                }
            });
        }
    };
    // What may not be written may not be replaced either.
    OpenOptions::new().write(true).open(path)?;
    let Some((target, aside)) = replacement(path, &old) else { return fill(path) };
    let filled = fill(aside.path())
        .and_then(|()| aside.as_file().set_permissions(old.permissions()))
        // A disk may be found to be full as late as here.
        .and_then(|()| aside.as_file().sync_all());
    filled.map_err(|e| io::Error::new(e.kind(), format!("{e}; the file is as it was before")))?;
    match aside.persist(&target) {
        Ok(_) => Ok(()),
        // A mount point, or another's file in a folder whose names are kept.
        Err(_) => fill(path),
    }
}

/// The file that is to replace what `path` leads to, of the same owner, and the path of that;
/// `None`: it has to be written in its place.
fn replacement(path: &Path, old: &Metadata) -> Option<(PathBuf, NamedTempFile)> {
    if !old.is_file() || old.nlink() != 1 || is_ours(old) {
        return None;
    }
    let target = path.canonicalize().ok()?;
    if has_attributes(&target) {
        return None;
    }
    // Nobody else may read it while it is filled.
    let aside = NamedTempFile::with_prefix_in(".steadfast-", target.parent()?).ok()?;
    let made = aside.as_file().metadata().ok()?;
    if (made.uid(), made.gid()) != (old.uid(), old.gid()) {
        chown(aside.path(), Some(old.uid()), Some(old.gid())).ok()?;
    }
    Some((target, aside))
}

/// Whether this process has the file open, as its standard output for example: who gave it that
/// goes on with the same file.
fn is_ours(file: &Metadata) -> bool {
    let Ok(open) = fs::read_dir("/proc/self/fd") else { return false };
    open.flatten().any(|entry| {
        fs::metadata(entry.path())
            .is_ok_and(|other| (other.dev(), other.ino()) == (file.dev(), file.ino()))
    })
}

/// Whether a file has an access list or other extended attributes, which a new one would not have.
/// A label of SELinux it gets from its folder.
fn has_attributes(path: &Path) -> bool {
    let mut names = [0; 4096];
    match rustix::fs::listxattr(path, &mut names[..]) {
        Ok(len) => names[..len]
            .split(|byte| *byte == 0)
            .any(|name| !name.is_empty() && OsStr::from_bytes(name) != "security.selinux"),
        Err(rustix::io::Errno::NOTSUP) => false,
        Err(_) => true,
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::io::{Error, Seek, Write};
    use std::os::fd::AsRawFd;
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
        // A name may be as long as any.
        let long = at(&"n".repeat(255));
        write(&long, "1").unwrap();
        write(&long, "2").unwrap();
        assert_eq!(fs::read_to_string(&long).unwrap(), "2");
        assert!(write(std::path::Path::new("/dev/full"), "x").is_err());
    }

    /// As `> file` of a shell, that goes on writing to it.
    #[test]
    fn what_this_process_has_open_is_written_in_its_place() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("output");
        let mut open = fs::File::create(&path).unwrap();
        write(&path, "a result\n").unwrap();
        open.seek(std::io::SeekFrom::End(0)).unwrap();
        open.write_all(b"what follows\n").unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "a result\nwhat follows\n");
        let descriptor = format!("/proc/self/fd/{}", open.as_raw_fd());
        fs::remove_file(&path).unwrap();
        write(descriptor.as_ref(), "no name").unwrap();
    }

    #[test]
    fn attributes_stay_and_protected_files_are_not_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        fs::write(&path, "old").unwrap();
        let flags = rustix::fs::XattrFlags::empty();
        match rustix::fs::setxattr(&path, "user.note", b"mine", flags) {
            Err(rustix::io::Errno::NOTSUP) => {}
            set => {
                set.unwrap();
                write(&path, "new").unwrap();
                let mut value = [0; 8];
                let len = rustix::fs::getxattr(&path, "user.note", &mut value[..]).unwrap();
                assert_eq!(&value[..len], b"mine");
            }
        }
        fs::set_permissions(&path, fs::Permissions::from_mode(0o444)).unwrap();
        let may = fs::OpenOptions::new().write(true).open(&path).is_ok();
        assert_eq!(write(&path, "mine now").is_ok(), may, "root may");
    }
}
