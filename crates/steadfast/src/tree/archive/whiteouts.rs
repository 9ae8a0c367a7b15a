//! Whiteouts: how a layer of a container's image (OCI) says that something of the layers below it
//! is gone.

use std::collections::HashSet;

use steadfast_vfs::path::{list, why_refused};
use steadfast_vfs::{FileSystem as Vfs, FileType, FsError, Ino};

/// What is done with the names `.wh.NAME` (NAME is gone) and `.wh..wh..opq` (all that layers below
/// have in this folder is gone).
///
/// ```
/// use steadfast::{Image, tree::{Options, Whiteouts}};
///
/// let layer = {
///     let fs = Image::in_memory(16 << 20).mount()?;
///     fs.write("/.wh.old", "")?;
///     let mut archive = Vec::new();
///     Options::new().pack(&fs, "/", &mut archive)?;
///     archive
/// };
/// let fs = Image::in_memory(16 << 20).mount()?;
/// fs.write("/old", "of the layer below")?;
/// Options::new().whiteouts(Whiteouts::Apply).unpack(&fs, &layer[..], "/")?;
/// assert!(!fs.exists("/old")?);
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Whiteouts {
    /// They are names as others.
    #[default]
    Keep,
    /// What they name is removed, as far as this archive has not made it.
    Apply,
    /// They become what overlayfs has: a character device 0:0, an attribute of the folder.
    Overlay,
}

/// What a name says.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Whiteout<'n> {
    /// This name is gone.
    Gone(&'n [u8]),
    /// All names of the layers below are gone.
    Opaque,
    /// It is for another program's own use.
    Unused,
}

impl<'n> Whiteout<'n> {
    /// What a name says, if it is one.
    pub fn of(name: &'n [u8]) -> Option<Whiteout<'n>> {
        let hidden = name.strip_prefix(b".wh.")?;
        Some(match hidden {
            b".wh..opq" => Whiteout::Opaque,
            own if own.starts_with(b".wh.") => Whiteout::Unused,
            name if why_refused(name).is_some() || matches!(name, b"." | b"..") => Whiteout::Unused,
            name => Whiteout::Gone(name),
        })
    }
}

/// Removes `name` from `dir` with all it holds, but for what is in `made`.
pub(super) fn remove(
    fs: &dyn Vfs,
    dir: Ino,
    name: &[u8],
    made: &HashSet<Ino>,
) -> Result<(), FsError> {
    let attr = match fs.lookup(dir, name) {
        Err(FsError::NotFound) => return Ok(()),
        found => found?,
    };
    if made.contains(&attr.ino) {
        return Ok(());
    }
    if attr.kind != FileType::Directory {
        return fs.unlink(dir, name);
    }
    empty(fs, attr.ino, made)?;
    match fs.rmdir(dir, name) {
        Err(FsError::NotEmpty) => Ok(()),
        removed => removed,
    }
}

/// Removes everything in a folder and below, but for what is in `made`, and the folders that lead
/// to it. The image's own folders form a tree: it was made here or mounted, and a cycle ends at the
/// depth that a path can have.
pub(super) fn empty(fs: &dyn Vfs, dir: Ino, made: &HashSet<Ino>) -> Result<(), FsError> {
    /// Deeper than any path leads.
    const DEPTH_MAX: usize = 4096;
    let mut above: Vec<(Ino, Vec<u8>)> = Vec::new();
    let mut here = dir;
    let mut left = names(fs, here)?;
    let mut waiting: Vec<Vec<(Ino, FileType, Vec<u8>)>> = Vec::new();
    loop {
        let Some((ino, kind, name)) = left.pop() else {
            let (Some((parent, name)), Some(rest)) = (above.pop(), waiting.pop()) else {
                return Ok(());
            };
            match fs.rmdir(parent, &name) {
                _ if made.contains(&here) => {}
                Ok(()) | Err(FsError::NotEmpty) => {}
                Err(e) => return Err(e),
            }
            (here, left) = (parent, rest);
            continue;
        };
        if kind == FileType::Directory && above.len() < DEPTH_MAX {
            above.push((here, name));
            here = ino;
            waiting.push(std::mem::replace(&mut left, names(fs, ino)?));
        } else if !made.contains(&ino) {
            fs.unlink(here, &name)?;
        }
    }
}

fn names(fs: &dyn Vfs, dir: Ino) -> Result<Vec<(Ino, FileType, Vec<u8>)>, FsError> {
    let entries = list(fs, dir)?.into_iter();
    let named = entries.filter(|e| !matches!(e.name.as_slice(), b"." | b".."));
    Ok(named.map(|e| (e.ino, e.kind, e.name)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_say_something() {
        assert_eq!(Whiteout::of(b".wh.a"), Some(Whiteout::Gone(b"a")));
        assert_eq!(Whiteout::of(b".wh..wh..opq"), Some(Whiteout::Opaque));
        for unused in [&b".wh..wh.plnk"[..], b".wh.", b".wh..", b".wh..."] {
            assert_eq!(Whiteout::of(unused), Some(Whiteout::Unused), "{unused:?}");
        }
        assert_eq!((Whiteout::of(b"wh.a"), Whiteout::of(b".whx")), (None, None));
    }
}
