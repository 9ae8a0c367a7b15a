//! Files that are there whole or not at all: a result that took minutes replaces an older one only
//! once it is on the disk.

mod aside;
pub mod place;
#[cfg(test)]
mod races;
#[cfg(test)]
mod tests;

use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{self, Seek, Write};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::{MetadataExt, fchown};
use std::path::Path;

use rustix::io::Errno;

use aside::Aside;
use place::{Found, Identity, Made, Place, path_of};

/// So often a file is filled again, because another one has taken its place meanwhile.
const ATTEMPTS: usize = 8;

/// Writes a file, which is made or replaced.
///
/// # Errors
/// As for [`write_by`].
pub fn write(path: &Path, bytes: impl AsRef<[u8]>) -> io::Result<()> {
    write_by(path, |to| fs::write(to, &bytes))
}

/// Makes or replaces a file by what `fill` writes to the path that it is given.
///
/// The path is followed once: its folder is opened, and all else is done in that. A file that is
/// there is replaced by another one, which is filled without a name where the file system can do
/// that, else beside it, and renamed over it: owner and mode stay. What cannot be replaced so that
/// nothing but its contents changes is written in its place: a file with several names, an access
/// list, other attributes or flags; one whose folder gives new files such; one that another file
/// system is mounted on; one in a folder that takes no new names; one that this process was given,
/// as its standard output; and whatever is no regular file, which is opened once. As root also
/// whatever is in a folder that another user may change, where no file changes its owner; a link
/// of another user there is not followed, and what is no file and of another user is refused. What
/// is named as a descriptor (`/dev/stdout`) is written to as that, without being emptied. A new
/// file gets its name when it is whole, where the file system can do that; if not, one that could
/// not be filled is removed again.
///
/// # Errors
/// What the host reports, and what became of the file that was there.
pub fn write_by(path: &Path, fill: impl Fn(&Path) -> io::Result<()>) -> io::Result<()> {
    for _ in 0..ATTEMPTS {
        let place = match place::find(path)? {
            Found::Descriptor(given) => return through(given, fill),
            Found::Other(open) => return fill(&path_of(&open)),
            Found::Named(place) => place,
        };
        if write_at(&place, &fill)? {
            return Ok(());
        }
    }
    Err(place::replaced())
}

/// Whether the folder of a place takes a new file; none stays there.
///
/// # Errors
/// What the host reports.
pub fn try_to_make(place: &Place) -> io::Result<()> {
    let aside = Aside::of(place)?;
    // By this it is filled.
    path_of(&aside.file).metadata().map(drop).map_err(|e| {
        io::Error::new(e.kind(), format!("/proc is needed, where open files have a path: {e}"))
    })
}

/// Makes or replaces what is at a place; `false`: it has become something else meanwhile.
fn write_at(place: &Place, fill: &impl Fn(&Path) -> io::Result<()>) -> io::Result<bool> {
    let Some(present) = place.present()? else { return write_new(place, fill) };
    let old = File::from(present.try_clone()?).metadata()?;
    if old.is_symlink() {
        return Ok(false);
    }
    place.is_no_other(&old)?;
    if !old.is_file() {
        return fill(&path_of(&present)).map(|()| true);
    }
    // What may not be written may not be replaced either.
    let open = OpenOptions::new().write(true).open(path_of(&present))?;
    let aside = match place.is_exposed()? || is_ours(&old, &[present.as_raw_fd(), open.as_raw_fd()])
    {
        true => None,
        false => replacement(place, &open, &old),
    };
    let in_place = || fill(&path_of(&open)).map(|()| true);
    let Some(aside) = aside else { return in_place() };
    let filled = fill(&path_of(&aside.file))
        .and_then(|()| aside.file.set_permissions(old.permissions()))
        // A disk may be found to be full as late as here.
        .and_then(|()| aside.file.sync_all());
    filled.map_err(|e| io::Error::new(e.kind(), format!("{e}; the file is as it was before")))?;
    // Not: a mount point, or another's file in a folder whose names are kept.
    aside.replace(Identity::in_metadata(&old)).or_else(|_| in_place())
}

/// Makes a file, which gets its name when it is whole and on the disk; `false`: something else has
/// the name by now.
fn write_new(place: &Place, fill: &impl Fn(&Path) -> io::Result<()>) -> io::Result<bool> {
    if let Some(new) = Aside::without_name(place) {
        fill(&path_of(&new.file)).and_then(|()| new.file.sync_all())?;
        match new.take_name() {
            Ok(()) => return Ok(true),
            Err(Errno::EXIST) => return Ok(false),
            // The file system, or a rule of the host, lets no file get its name later.
            Err(_) => {}
        }
    }
    let Some(made) = place.make()? else { return Ok(false) };
    fill_new(made, fill).map(|()| true)
}

fn fill_new(made: Made<'_>, fill: &impl Fn(&Path) -> io::Result<()>) -> io::Result<()> {
    let filled = fill(&path_of(&made.file));
    if filled.is_err() {
        // OK to ignore: the first failure is what counts.
        let _ = made.remove();
    }
    filled
}

/// The file that is to replace what is open, of the same owner; `None`: it has to be written in its
/// place.
fn replacement<'a>(place: &'a Place, open: &File, old: &Metadata) -> Option<Aside<'a>> {
    if old.nlink() != 1 {
        return None;
    }
    let aside = Aside::of(place).ok()?;
    let flags = |file: &File| rustix::fs::ioctl_getflags(file).ok();
    let differs = [open, &aside.file].into_iter().any(has_attributes)
        || flags(open) != flags(&aside.file)
        || !path_of(&aside.file).exists();
    if differs {
        return None;
    }
    let made = aside.file.metadata().ok()?;
    if (made.uid(), made.gid()) != (old.uid(), old.gid()) {
        fchown(&aside.file, Some(old.uid()), Some(old.gid())).ok()?;
    }
    Some(aside)
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
