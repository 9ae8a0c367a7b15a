//! Operations by path, built on [`FileSystem`]: for the image commands, the benches and tests.

use crate::{Attr, DirEntry, FileSystem, FileType, FsError, Ino, Result};

/// Symbolic links followed in one resolution before [`FsError::Loop`] (as Linux).
const LINKS_MAX: u32 = 40;

/// Finds the inode at `path`, following symbolic links; the last one only if `follow_last`.
/// A leading '/' is the file system's root; so is the start of a relative path.
pub fn resolve(fs: &dyn FileSystem, path: &[u8], follow_last: bool) -> Result<Attr> {
    resolve_from(fs, fs.root(), path, follow_last, &mut 0)
}

fn resolve_from(
    fs: &dyn FileSystem,
    start: Ino,
    path: &[u8],
    follow_last: bool,
    links: &mut u32,
) -> Result<Attr> {
    let mut at = fs.getattr(if path.first() == Some(&b'/') { fs.root() } else { start })?;
    let mut names = path.split(|b| *b == b'/').filter(|n| !n.is_empty()).peekable();
    while let Some(name) = names.next() {
        if at.kind != FileType::Directory {
            return Err(FsError::NotDirectory);
        }
        let found = fs.lookup(at.ino, name)?;
        let last = names.peek().is_none();
        at = if found.kind == FileType::Symlink && (!last || follow_last) {
            *links += 1;
            if *links > LINKS_MAX {
                return Err(FsError::Loop);
            }
            let target = fs.readlink(found.ino)?;
            resolve_from(fs, at.ino, &target, true, links)?
        } else {
            found
        };
    }
    Ok(at)
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
pub fn list(fs: &dyn FileSystem, dir: Ino) -> Result<Vec<DirEntry>> {
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
