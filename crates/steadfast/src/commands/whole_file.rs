//! Files that are there whole or not at all: a result that took minutes replaces an older one only
//! once it is on the disk.

use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{self, ErrorKind, Seek, Write};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::fs::{MetadataExt, fchown};
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, Mode, OFlags};
use rustix::io::Errno;
use tempfile::TempPath;

/// What a file that is being filled is called, should it need a name before it is whole.
const ASIDE: &str = ".steadfast-";

/// Writes a file, which is made or replaced.
///
/// # Errors
/// As for [`write_by`].
pub fn write(path: &Path, bytes: impl AsRef<[u8]>) -> io::Result<()> {
    write_by(path, |to| fs::write(to, &bytes))
}

/// Makes or replaces a file by what `fill` writes to the path that it is given.
///
/// A file that is there is replaced by another one, which is filled without a name where the file
/// system can do that, else beside it, and renamed over it: owner and mode stay. What cannot be
/// replaced so that nothing but its contents changes is written in its place: a file with several
/// names, an access list, other attributes or flags; one whose folder gives new files such; one
/// that another file system is mounted on; one in a folder that takes no new names; one that this
/// process was given, as its standard output; and whatever is no regular file, which is opened
/// once. What is named as a descriptor (`/dev/stdout`) is written to as that, without being
/// emptied. A new file that could not be filled is removed again.
///
/// # Errors
/// What the host reports, and what became of the file that was there.
pub fn write_by(path: &Path, fill: impl Fn(&Path) -> io::Result<()>) -> io::Result<()> {
    if let Some(given) = descriptor(path)? {
        return through(given, fill);
    }
    let old = match fs::metadata(path) {
        Ok(old) if old.is_file() => old,
        Ok(_) => return fill(path),
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
    let filled = fill(&path_of(&aside.file))
        .and_then(|()| aside.file.set_permissions(old.permissions()))
        // A disk may be found to be full as late as here.
        .and_then(|()| aside.file.sync_all());
    filled.map_err(|e| io::Error::new(e.kind(), format!("{e}; the file is as it was before")))?;
    // Not: a mount point, or another's file in a folder whose names are kept.
    aside.replace(&target).or_else(|_| fill(path))
}

/// A file that is to replace another one.
struct Aside {
    file: File,
    /// `None`: it has none yet, so that nothing stays of it if this process is ended.
    name: Option<TempPath>,
}

impl Aside {
    /// A file that nobody else may read, in this folder.
    fn in_folder(folder: &Path) -> io::Result<Aside> {
        let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC;
        if let Ok(file) = rustix::fs::open(folder, flags, Mode::RUSR | Mode::WUSR) {
            return Ok(Aside { file: file.into(), name: None });
        }
        let (file, name) = tempfile::NamedTempFile::with_prefix_in(ASIDE, folder)?.into_parts();
        Ok(Aside { file, name: Some(name) })
    }

    fn replace(self, target: &Path) -> io::Result<()> {
        let name = match self.name {
            Some(name) => name,
            None => {
                let folder = target.parent().unwrap_or(Path::new("/"));
                let from = path_of(&self.file);
                let named = tempfile::Builder::new().prefix(ASIDE).make_in(folder, |to| {
                    Ok(rustix::fs::linkat(CWD, &from, CWD, to, AtFlags::SYMLINK_FOLLOW)?)
                });
                named?.into_temp_path()
            }
        };
        Ok(name.persist(target)?)
    }
}

/// A path to an open file, whoever else renames what in its folder.
fn path_of(file: &File) -> PathBuf {
    format!("/proc/self/fd/{}", file.as_raw_fd()).into()
}

/// The file that is to replace what `path` leads to, of the same owner, and the path of that;
/// `None`: it has to be written in its place.
fn replacement(path: &Path, old: &Metadata) -> Option<(PathBuf, Aside)> {
    if old.nlink() != 1 || is_ours(old) {
        return None;
    }
    let target = path.canonicalize().ok()?;
    let present = File::open(&target).ok()?;
    let aside = Aside::in_folder(target.parent()?).ok()?;
    let flags = |file: &File| rustix::fs::ioctl_getflags(file).ok();
    let differs = [&present, &aside.file].into_iter().any(has_attributes)
        || flags(&present) != flags(&aside.file)
        || !path_of(&aside.file).exists();
    if differs {
        return None;
    }
    let made = aside.file.metadata().ok()?;
    if (made.uid(), made.gid()) != (old.uid(), old.gid()) {
        fchown(&aside.file, Some(old.uid()), Some(old.gid())).ok()?;
    }
    Some((target, aside))
}

/// The standard output or error output, where the path is one of its names: opening that would
/// empty a file that a shell goes on with, or appends to.
fn descriptor(path: &Path) -> io::Result<Option<OwnedFd>> {
    let Some(path) = path.to_str() else { return Ok(None) };
    let open = match path {
        "/dev/stdout" | "/dev/fd/1" | "/proc/self/fd/1" => {
            io::stdout().as_fd().try_clone_to_owned()
        }
        "/dev/stderr" | "/dev/fd/2" | "/proc/self/fd/2" => {
            io::stderr().as_fd().try_clone_to_owned()
        }
        _ => return Ok(None),
    };
    open.map(Some)
}

/// Writes to what is open already.
fn through(open: OwnedFd, fill: impl Fn(&Path) -> io::Result<()>) -> io::Result<()> {
    let mut whole = tempfile::tempfile()?;
    fill(&path_of(&whole))?;
    whole.rewind()?;
    let mut open = File::from(open);
    io::copy(&mut whole, &mut open)?;
    open.flush()
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

/// Whether a file has an access list or other extended attributes, which another one would not
/// have. A label of SELinux it gets from its folder.
fn has_attributes(file: &File) -> bool {
    let mut names = [0; 4096];
    match rustix::fs::flistxattr(file, &mut names[..]) {
        Ok(len) => names[..len]
            .split(|byte| *byte == 0)
            .any(|name| !name.is_empty() && name != b"security.selinux"),
        Err(Errno::NOTSUP) => false,
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

    /// A folder may give what is made in it an access list.
    #[test]
    fn what_a_folder_gives_new_files_an_old_one_does_not_get() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        fs::write(&path, "old").unwrap();
        // Version 2; owner, user 1000, group, mask and others: tag, rights, number.
        let entries: [(u16, u16, u32); 5] = [
            (0x01, 6, u32::MAX),
            (0x02, 7, 1000),
            (0x04, 4, u32::MAX),
            (0x10, 7, u32::MAX),
            (0x20, 0, u32::MAX),
        ];
        let mut list = 2u32.to_le_bytes().to_vec();
        for (tag, rights, id) in entries {
            list.extend([tag.to_le_bytes(), rights.to_le_bytes()].concat());
            list.extend(id.to_le_bytes());
        }
        let name = "system.posix_acl_default";
        let flags = rustix::fs::XattrFlags::empty();
        match rustix::fs::setxattr(folder.path(), name, &list, flags) {
            Err(rustix::io::Errno::NOTSUP) => return,
            set => set.unwrap(),
        }
        write(&path, "new").unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "new");
        assert_eq!(rustix::fs::listxattr(&path, &mut [0u8; 100][..]), Ok(0));
    }

    #[test]
    fn a_pipe_with_a_name_is_opened_once() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("pipe");
        let mode = rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR;
        rustix::fs::mkfifoat(rustix::fs::CWD, &path, mode).unwrap();
        let reader = std::thread::spawn({
            let path = path.clone();
            move || fs::read_to_string(path).unwrap()
        });
        write(&path, "all of it").unwrap();
        assert_eq!(reader.join().unwrap(), "all of it");
    }

    /// Nobody can put a link where it is, so that another file gets its owner.
    #[test]
    fn what_is_being_filled_has_no_name_or_is_reached_without_it() {
        let folder = tempfile::tempdir().unwrap();
        let (path, other) = (folder.path().join("file"), folder.path().join("other"));
        fs::write(&path, "old").unwrap();
        fs::write(&other, "another's").unwrap();
        write_by(&path, |to| {
            for entry in fs::read_dir(folder.path()).unwrap().flatten() {
                if entry.file_name().to_string_lossy().starts_with(super::ASIDE) {
                    fs::rename(entry.path(), folder.path().join("taken")).unwrap();
                    symlink(&other, entry.path()).unwrap();
                }
            }
            fs::write(to, "new")
        })
        .unwrap();
        assert_eq!(fs::read_to_string(&other).unwrap(), "another's");
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
