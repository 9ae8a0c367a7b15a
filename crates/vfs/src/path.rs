//! Operations by path, built on [`FileSystem`], for callers in the same process.

pub use crate::foreign::shown;
use crate::{Attr, Dirent, FileSystem, FileType, FsError, Ino, Result};

/// Symbolic links followed in one resolution before [`FsError::Loop`] (as Linux).
const LINKS_MAX: u32 = 40;

/// Where a path leads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PathLookup {
    /// The folder that the last name is in.
    pub dir: Ino,
    /// The last name, links followed; empty for the root.
    pub name: Vec<u8>,
    /// What has this name; `None`: nothing.
    pub attr: Option<Attr>,
    /// The folders from the root down to `dir`, by name.
    pub folders: Vec<Vec<u8>>,
    /// The path ends in '/', so it means a folder.
    pub means_folder: bool,
}

impl PathLookup {
    /// The same path without links, "." and "..", from the root on.
    pub fn path(&self) -> Vec<u8> {
        let names = self.folders.iter().chain((!self.name.is_empty()).then_some(&self.name));
        let mut path: Vec<u8> = names.flat_map(|name| [b"/", &name[..]].concat()).collect();
        if path.is_empty() {
            path.push(b'/');
        }
        path
    }
}

/// Finds where `path` leads, following symbolic links; the last one only if `follow_last` or if a
/// '/' follows it. A leading '/' is the file system's root; so is the start of a relative path.
/// ".." leads back along the way that was gone, so no path leaves the file system, whatever the
/// folders on the disk say is above them.
///
/// # Errors
/// NotFound: a folder on the way; that only the last name is missing is no error. NotDirectory,
/// Loop (more than 40 links), Invalid (NUL in the path).
pub fn place(fs: &dyn FileSystem, path: &[u8], follow_last: bool) -> Result<PathLookup> {
    if path.contains(&0) {
        return Err(FsError::Invalid { what: "NUL in the path" });
    }
    let root = fs.getattr(fs.root())?;
    let mut way: Vec<(Vec<u8>, Attr)> = Vec::new();
    let mut ahead: Vec<Vec<u8>> = names_from_last(path);
    let mut means_folder = ends_as_folder(path);
    let mut links = 0;
    while let Some(name) = ahead.pop() {
        let here = way.last().map_or(root, |(_, attr)| *attr);
        if here.kind != FileType::Directory {
            return Err(FsError::NotDirectory);
        }
        if name == b".." {
            way.pop();
            continue;
        }
        let last = ahead.is_empty();
        let attr = match fs.lookup(here.ino, &name) {
            Ok(attr) => attr,
            Err(FsError::NotFound) if last => {
                let folders = way.into_iter().map(|(name, _)| name).collect();
                return Ok(PathLookup { dir: here.ino, name, attr: None, folders, means_folder });
            }
            Err(e) => return Err(e),
        };
        if attr.kind != FileType::Symlink || (last && !follow_last && !means_folder) {
            way.push((name, attr));
            continue;
        }
        links += 1;
        if links > LINKS_MAX {
            return Err(FsError::Loop);
        }
        let target = fs.readlink(attr.ino)?;
        match target.first() {
            None => return Err(FsError::NotFound),
            Some(b'/') => way.clear(),
            Some(_) => {}
        }
        means_folder |= last && ends_as_folder(&target);
        ahead.extend(names_from_last(&target));
    }
    let (name, attr) = way.pop().unwrap_or((Vec::new(), root));
    if means_folder && attr.kind != FileType::Directory {
        return Err(FsError::NotDirectory);
    }
    let dir = way.last().map_or(root.ino, |(_, attr)| attr.ino);
    let folders = way.into_iter().map(|(name, _)| name).collect();
    Ok(PathLookup { dir, name, attr: Some(attr), folders, means_folder })
}

/// The names of a path without ".", the last one first.
fn names_from_last(path: &[u8]) -> Vec<Vec<u8>> {
    let names = path.split(|b| *b == b'/').filter(|n| !n.is_empty() && *n != b".");
    names.rev().map(<[u8]>::to_vec).collect()
}

/// Whether a path can only mean a folder.
fn ends_as_folder(path: &[u8]) -> bool {
    path.ends_with(b"/") || path.ends_with(b"/.")
}

/// Finds the inode at `path`, as [`place`] does.
pub fn resolve(fs: &dyn FileSystem, path: &[u8], follow_last: bool) -> Result<Attr> {
    place(fs, path, follow_last)?.attr.ok_or(FsError::NotFound)
}

/// Splits a path into its parent directory (resolved) and its last name.
pub fn parent_and_name<'p>(fs: &dyn FileSystem, path: &'p [u8]) -> Result<(Ino, &'p [u8])> {
    let end = path.iter().rposition(|b| *b != b'/').map_or(0, |i| i + 1);
    let path = &path[..end];
    let cut = path.iter().rposition(|b| *b == b'/').map_or(0, |i| i + 1);
    let (dir, name) = path.split_at(cut);
    if name.is_empty() || name == b"." || name == b".." {
        return Err(FsError::Invalid { what: "the path names no file" });
    }
    let dir = resolve(fs, dir, true)?;
    if dir.kind != FileType::Directory {
        return Err(FsError::NotDirectory);
    }
    Ok((dir.ino, name))
}

/// All entries of a directory, without "." and "..", in the file system's order.
pub fn list(fs: &dyn FileSystem, dir: Ino) -> Result<Vec<Dirent>> {
    let (mut all, mut from) = (Vec::new(), 0);
    loop {
        let part = fs.readdir(dir, from)?;
        let Some(last) = part.last() else { return Ok(all) };
        if last.next <= from && from != 0 {
            return Err(FsError::Invalid { what: "readdir does not move forward" });
        }
        from = last.next;
        all.extend(part.into_iter().filter(|e| e.name != b"." && e.name != b".."));
    }
}

/// Why these bytes are no name of one object in its folder, if they are none.
pub fn why_refused(name: &[u8]) -> Option<&'static str> {
    /// Longest name in bytes.
    const NAME_MAX: usize = 255;
    match name {
        b"" => Some("an empty name: refused"),
        b"." | b".." => Some("one more entry of this name: refused"),
        _ if name.contains(&b'/') => Some("a name with '/' in it: refused"),
        _ if name.contains(&0) => Some("a name with NUL in it: refused"),
        _ if name.len() > NAME_MAX => Some("a name of more than 255 bytes: refused"),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
