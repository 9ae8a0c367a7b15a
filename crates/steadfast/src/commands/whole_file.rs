//! Files that are there whole or not at all: a result that took minutes replaces an older one only
//! once it is on the disk.

pub mod place;
#[cfg(test)]
mod races;
pub mod stream;
#[cfg(test)]
mod tests;

use std::fs::{self, File, Metadata, OpenOptions, Permissions};
use std::io::{self, Seek, Write};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt, fchown};
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::fs::{Access, AtFlags, CWD, Mode, OFlags, access, linkat, openat};
use rustix::io::Errno;
use tempfile::{Builder, TempPath};

use place::{FolderName, Identity, PathMeaning, path_of};

/// So often a file is filled again, because another one has taken its place meanwhile.
const ATTEMPTS: usize = 8;

/// How long the reader of a FIFO is waited for, which may have to be started yet.
const READER_WAITED_FOR: Duration = Duration::from_secs(2);
const READER_PAUSE: Duration = Duration::from_millis(10);

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
/// The path is followed once: its folder is opened, and all else is done in that. A file gets its
/// name when it is whole and on the disk; of one that it replaces it has owner and mode. What
/// cannot be replaced so that nothing but its contents changes is written in its place: a file with
/// several names, an access list or other attributes; one that another file system is mounted on;
/// one in a folder that takes no new names; one that this process was given, as its standard
/// output; and whatever is no regular file, which is opened once (a FIFO that nobody reads is
/// refused). In a folder that another user may change, root refuses these, but for what it was
/// given; a link there it does not follow. In a folder where all may make names (`/tmp`) nobody's
/// file but one's own is written to, and no link of another user is followed, whatever the kernel's
/// `protected_regular` and `protected_symlinks` are. What is named as a descriptor (`/dev/stdout`)
/// is written to as that, without being emptied.
///
/// # Errors
/// What the host reports, and what became of the file that was there.
pub fn write_by(path: &Path, fill: impl Fn(&Path) -> io::Result<()>) -> io::Result<()> {
    for _ in 0..ATTEMPTS {
        match Target::find(path)? {
            Target::Given(open) => return through(open, fill),
            Target::Open(open) => {
                return match fifo(&open)? {
                    Some(fifo) => through(fifo, fill),
                    None => fill(&path_of(&open)),
                };
            }
            Target::Old { place, open, about } => {
                return replace(&place, &open, &about, &fill);
            }
            Target::New(place) => {
                let new = Fresh::of(&place, 0o666)?;
                fill(&path_of(&new.file)).and_then(|()| new.file.sync_all())?;
                let named = new.take_name(&place).or_else(|e| match e.kind() {
                    io::ErrorKind::AlreadyExists => Err(e),
                    // The file system, or a rule of the host, lets no file get its name later.
                    _ => make(&place, &fill),
                });
                match named {
                    Err(e) if e.kind() == io::ErrorKind::AlreadyExists => {}
                    done => return done,
                }
            }
        }
    }
    Err(place::replaced())
}

/// Whether [`write_by`] may write there; what is there stays as it is, and nothing is made.
///
/// # Errors
/// What the host reports.
pub fn try_out(path: &Path) -> io::Result<()> {
    match Target::find(path)? {
        Target::Given(_) | Target::Old { .. } => Ok(()),
        // Not opened: the reader of a FIFO would take a trial for all that comes.
        Target::Open(open) => Ok(access(path_of(&open), Access::WRITE_OK)?),
        // Not by its name: another run might make its output there at this moment.
        Target::New(place) => {
            let new = Fresh::of(&place, 0o600)?;
            // By this it is filled.
            path_of(&new.file).metadata().map(drop).map_err(|e| {
                let what = format!("/proc is needed, where open files have a path: {e}");
                io::Error::new(e.kind(), what)
            })
        }
    }
}

/// What a path leads to, and so how it is written.
enum Target {
    /// A descriptor of this process.
    Given(OwnedFd),
    /// It is written in its place.
    Open(OwnedFd),
    /// A file that is replaced, open to be looked at.
    Old { place: FolderName, open: OwnedFd, about: Metadata },
    /// Nothing is there.
    New(FolderName),
}

impl Target {
    fn find(path: &Path) -> io::Result<Target> {
        for _ in 0..ATTEMPTS {
            let place = match place::find(path)? {
                PathMeaning::Descriptor(given) => return Ok(Target::Given(given)),
                PathMeaning::Other(open) => return Ok(Target::Open(open)),
                PathMeaning::Named(place) => place,
            };
            let Some(open) = place.present()? else { return Ok(Target::New(place)) };
            let about = path_of(&open).metadata()?;
            if about.is_symlink() {
                // It was none a moment ago.
                continue;
            }
            if about.is_file() {
                // What may not be written may not be replaced either.
                OpenOptions::new().write(true).open(path_of(&open))?;
            }
            if about.is_dir() {
                return Err(Errno::ISDIR.into());
            }
            if is_ours(&about, &[open.as_raw_fd()]) {
                return Ok(Target::Open(open));
            }
            if about.is_file() && place.is_of_another(about.uid())? {
                return Err(place::of_another(about.uid()));
            }
            let is_plain = about.is_file() && about.nlink() == 1;
            if is_plain && !has_attributes(&path_of(&open)) {
                return Ok(Target::Old { place, open, about });
            }
            return match place.is_anybodys()? {
                true => Err(place::not_alone()),
                false => Ok(Target::Open(open)),
            };
        }
        Err(place::replaced())
    }
}

/// Makes a file, which is removed again if it cannot be filled.
fn make(place: &FolderName, fill: &impl Fn(&Path) -> io::Result<()>) -> io::Result<()> {
    let file = File::create_new(path_of(place.folder()).join(place.name()))?;
    let filled = fill(&path_of(&file));
    if filled.is_err() {
        // OK to ignore: the first failure is what counts.
        let _ = Identity::of(&file).and_then(|made| place.remove(made));
    }
    filled
}

/// Replaces a file, or writes it in its place where that cannot be done.
fn replace(
    place: &FolderName,
    open: &OwnedFd,
    old: &Metadata,
    fill: &impl Fn(&Path) -> io::Result<()>,
) -> io::Result<()> {
    let is_anybodys = place.is_anybodys()?;
    let in_place = |why: io::Error| match is_anybodys {
        true => Err(why),
        false => fill(&path_of(open)),
    };
    let new = match Fresh::in_place_of(place, old) {
        Ok(new) => new,
        Err(why) => return in_place(why),
    };
    let filled = fill(&path_of(&new.file))
        .and_then(|()| new.file.set_permissions(Permissions::from_mode(old.mode() & 0o777)))
        // A disk may be found to be full as late as here.
        .and_then(|()| new.file.sync_all());
    filled.map_err(|e| io::Error::new(e.kind(), format!("{e}; the file is as it was before")))?;
    // Not: a mount point, or another's file in a folder whose names are kept.
    new.replace(place).or_else(in_place)
}

/// A file without a name, so that nothing stays of it if this process is ended; where the file
/// system has no such files, one beside the place.
struct Fresh {
    file: File,
    name: Option<TempPath>,
}

impl Fresh {
    fn of(place: &FolderName, mode: u32) -> io::Result<Fresh> {
        let flags = OFlags::RDWR | OFlags::CLOEXEC | OFlags::TMPFILE;
        if let Ok(file) = openat(place.folder(), ".", flags, Mode::from_raw_mode(mode)) {
            return Ok(Fresh { file: file.into(), name: None });
        }
        let mut builder = Builder::new();
        builder.prefix(ASIDE).permissions(Permissions::from_mode(mode));
        let (file, name) = builder.tempfile_in(path_of(place.folder()))?.into_parts();
        Ok(Fresh { file, name: Some(name) })
    }

    /// Of the same owner as another one, and without what a folder may give to new files.
    fn in_place_of(place: &FolderName, old: &Metadata) -> io::Result<Fresh> {
        let fresh = Fresh::of(place, 0o600)?;
        let made = path_of(&fresh.file).metadata()?;
        if has_attributes(&path_of(&fresh.file)) {
            return Err(io::Error::other("its folder gives new files an access list"));
        }
        if (made.uid(), made.gid()) != (old.uid(), old.gid()) {
            fchown(&fresh.file, Some(old.uid()), Some(old.gid()))?;
        }
        Ok(fresh)
    }

    fn link(&self, to: &Path) -> io::Result<()> {
        Ok(linkat(CWD, path_of(&self.file), CWD, to, AtFlags::SYMLINK_FOLLOW)?)
    }

    /// Gets its name, which nothing has.
    fn take_name(self, place: &FolderName) -> io::Result<()> {
        let at = path_of(place.folder()).join(place.name());
        match self.name {
            Some(name) => Ok(name.persist_noclobber(at)?),
            None => self.link(&at),
        }
    }

    /// Takes the place of what has the name.
    fn replace(mut self, place: &FolderName) -> io::Result<()> {
        let folder = path_of(place.folder());
        let name = match self.name.take() {
            Some(name) => name,
            None => {
                let made = Builder::new().prefix(ASIDE).make_in(&folder, |at| self.link(at))?;
                made.into_temp_path()
            }
        };
        Ok(name.persist(folder.join(place.name()))?)
    }
}

/// A FIFO, opened to be written to: nobody waits for its reader for ever.
///
/// # Errors
/// Nobody reads it.
fn fifo(open: &OwnedFd) -> io::Result<Option<OwnedFd>> {
    let about = path_of(open).metadata()?;
    if !about.file_type().is_fifo() {
        return Ok(None);
    }
    let flags = OFlags::WRONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let end = Instant::now() + READER_WAITED_FOR;
    let fifo = loop {
        match rustix::fs::open(path_of(open), flags, Mode::empty()) {
            Err(Errno::NXIO) if Instant::now() < end => std::thread::sleep(READER_PAUSE),
            Err(Errno::NXIO) => return Err(io::Error::other("it is a FIFO that nobody reads")),
            opened => break opened?,
        }
    };
    rustix::fs::fcntl_setfl(&fifo, rustix::fs::fcntl_getfl(&fifo)? - OFlags::NONBLOCK)?;
    Ok(Some(fifo))
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

/// Whether this process was given the file open, as its standard output for example: who gave it
/// that goes on with the same file. Not counted are the descriptors `own`, opened here.
pub fn is_ours(file: &Metadata, own: &[i32]) -> bool {
    let Ok(open) = fs::read_dir("/proc/self/fd") else { return false };
    let own: Vec<String> = own.iter().map(i32::to_string).collect();
    open.flatten().filter(|entry| !own.iter().any(|own| entry.file_name() == own.as_str())).any(
        |entry| {
            fs::metadata(entry.path())
                .is_ok_and(|other| Identity::in_metadata(&other) == Identity::in_metadata(file))
        },
    )
}

/// Whether a file has an access list or other extended attributes, which another one would not
/// have. A label of SELinux it gets from its folder.
fn has_attributes(file: &Path) -> bool {
    let mut names = [0; 4096];
    match rustix::fs::listxattr(file, &mut names[..]) {
        Ok(len) => names[..len]
            .split(|byte| *byte == 0)
            .any(|name| !name.is_empty() && name != b"security.selinux"),
        Err(Errno::NOTSUP) => false,
        Err(_) => true,
    }
}
