//! Removing a file, or a tree.

use std::path::Path;

use steadfast_vfs::path::parent_and_name;
use steadfast_vfs::{Attr, FileSystem as Vfs, FileType, FsError, Ino};

use super::descent::{Descent, WalkStep};
use super::failures::TreeFailures;
use crate::error::{Error, Result, bytes};
use crate::fs::FileSystem;

impl FileSystem {
    /// Removes a folder with all it holds; of a link, the link. What cannot be removed ends it.
    ///
    /// ```
    /// let fs = steadfast::Image::in_memory(16 << 20).mount()?;
    /// fs.create_dir_all("/a/b")?;
    /// fs.write("/a/b/file", "")?;
    /// fs.remove_dir_all("/a")?;
    /// assert!(!fs.exists("/a")?);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    ///
    /// # Errors
    /// As unlink(2) and rmdir(2); a folder that, on a damaged disk, is in two places.
    pub fn remove_dir_all(&self, path: impl AsRef<Path>) -> Result<()> {
        let path = path.as_ref();
        let found = self.entry(path).and_then(|(dir, name)| self.vfs().lookup(dir, name));
        let checked = found.and_then(|attr| match attr.kind {
            FileType::Directory | FileType::Symlink => Ok(()),
            _ => Err(FsError::NotDirectory),
        });
        checked.map_err(Error::at("remove_dir_all", path))?;
        let mut failures = TreeFailures::new("remove_dir_all", None, None);
        remove(self, bytes(path), true, &mut failures)
    }
}

/// A folder that is being emptied.
struct FolderRemoval {
    /// The folder above, and its name there.
    above: Ino,
    name: Vec<u8>,
    /// Failures so far when it was entered: it stays if there are more when it is left.
    failures: u64,
}

/// Removes a file, or with `recursive` a whole tree.
pub(super) fn remove(
    fs: &FileSystem,
    path: &[u8],
    recursive: bool,
    failures: &mut TreeFailures<'_>,
) -> Result<()> {
    let vfs = &**fs.vfs();
    let (dir, name) = parent_and_name(vfs, path).map_err(|e| failures.error(path, e))?;
    let attr = vfs.lookup(dir, name).map_err(|e| failures.error(path, e))?;
    if attr.kind != FileType::Directory {
        return vfs.unlink(dir, name).map_err(|e| failures.error(path, e));
    }
    if !recursive {
        return Err(failures.error(path, FsError::IsDirectory));
    }
    if let Some(why) = foreign(vfs, dir, &attr).map_err(|e| failures.error(path, e))? {
        return failures.record_text(path, &why);
    }
    remove_tree(fs, path, (dir, name), &attr, failures)
}

/// Why a folder must not be emptied under this name: it is not its own.
fn foreign(
    fs: &dyn Vfs,
    above: Ino,
    folder: &Attr,
) -> std::result::Result<Option<String>, FsError> {
    let up = fs.lookup(folder.ino, b"..")?;
    let why = || {
        let what = "a second name of a folder that has another parent: its \"..\" is inode";
        format!("{what} {}, not {}", up.ino.0, above.0)
    };
    Ok((up.ino != above).then(why))
}

fn remove_tree(
    fs: &FileSystem,
    path: &[u8],
    (above, name): (Ino, &[u8]),
    start: &Attr,
    failures: &mut TreeFailures<'_>,
) -> Result<()> {
    let vfs = &**fs.vfs();
    let here = FolderRemoval { above, name: name.to_vec(), failures: 0 };
    let mut walk = Descent::new(vfs, fs.side(), start, path, here);
    let mut dir = vec![start.ino];
    while let Some(met) = walk.next(failures)? {
        let (WalkStep::Object { name, attr }, Some(at)) = (met, dir.last().copied()) else {
            let path = walk.path().to_vec();
            dir.pop();
            let Some((_, folder)) = walk.leave() else { break };
            if failures.count() == folder.failures {
                removed(failures, &path, vfs.rmdir(folder.above, &folder.name))?;
            }
            continue;
        };
        let path = walk.path_of(&name);
        if attr.kind != FileType::Directory {
            removed(failures, &path, vfs.unlink(at, &name))?;
            continue;
        }
        let belongs = match walk.check(&attr) {
            Ok(()) => foreign(vfs, at, &attr),
            Err(why) => Ok(Some(why.to_string())),
        };
        match belongs {
            Ok(None) => {}
            Ok(Some(why)) => {
                failures.record_text(&path, &why)?;
                continue;
            }
            Err(e) => {
                failures.record(&path, e)?;
                continue;
            }
        }
        let here = FolderRemoval { above: at, name: name.clone(), failures: failures.count() };
        dir.push(attr.ino);
        // OK to ignore: asked just before.
        let _ = walk.enter(&name, &attr, here);
    }
    Ok(())
}

/// Reports an object that could not be removed; ends the work where nothing can be.
fn removed(
    failures: &mut TreeFailures<'_>,
    path: &[u8],
    done: std::result::Result<(), FsError>,
) -> Result<()> {
    match done {
        Ok(()) => Ok(()),
        Err(e @ FsError::ReadOnly { .. }) => Err(failures.error(path, e)),
        Err(e) => failures.record(path, e),
    }
}
