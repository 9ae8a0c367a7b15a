//! A tree, folder by folder.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

use steadfast_vfs::{Attr, FileType, FsError};

use super::bound::SizeLimit;
use super::descent::{Descent, in_use, more_refused};
use super::failures::to_path;
use super::listing::ListStep;
use super::names::joined;
use crate::error::{Error, Result, bytes};
use crate::fs::FileSystem;
use crate::metadata::Metadata;

/// The folders of a tree, each with its entries by name: an iterator. The start comes first, then
/// what is below it, depth first and by name, as `ls -R` lists them.
///
/// ```
/// let fs = steadfast::Image::in_memory(16 << 20).mount()?;
/// fs.create_dir_all("/a/b")?;
/// let folders: Vec<_> = fs.folders("/a")?.map(|folder| folder.path).collect();
/// assert_eq!(folders, [std::path::Path::new("/a"), "/a/b".as_ref()]);
/// # Ok::<(), std::io::Error>(())
/// ```
pub struct Folders<'f> {
    fs: &'f FileSystem,
    start: Option<Attr>,
    /// What is kept for each folder on the way down: those in it that are still to come.
    descent: Descent<'f, VecDeque<(Vec<u8>, Attr)>>,
}

/// One folder of [`Folders`].
///
/// ```
/// let fs = steadfast::Image::in_memory(16 << 20).mount()?;
/// let folder = fs.folders("/")?.next().unwrap();
/// assert_eq!(folder.entries[0].name, "lost+found");
/// assert!(folder.errors.is_empty());
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug)]
#[non_exhaustive]
pub struct Folder {
    /// The start's path, and the names from there.
    pub path: PathBuf,
    /// What is in it, by name; nothing of a folder that must not be entered.
    pub entries: Vec<FolderEntry>,
    /// What of it cannot be read, or must not be used.
    pub errors: Vec<Error>,
    /// Whether it was entered: not if that would be a cycle.
    pub entered: bool,
}

/// A name of a [`Folder`].
///
/// ```
/// let fs = steadfast::Image::in_memory(16 << 20).mount()?;
/// fs.symlink("target", "/link")?;
/// let folder = fs.folders("/")?.next().unwrap();
/// assert_eq!(folder.entries[0].target.as_deref(), Some("target".as_ref()));
/// assert!(folder.entries[0].metadata.unwrap().is_symlink());
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct FolderEntry {
    /// The name.
    pub name: OsString,
    /// What it is, if that can be read.
    pub metadata: Option<Metadata>,
    /// Where a symbolic link leads, if that can be read.
    pub target: Option<PathBuf>,
}

impl FileSystem {
    /// Goes through a folder and those below it, folder by folder.
    ///
    /// ```
    /// let fs = steadfast::Image::in_memory(16 << 20).mount()?;
    /// assert_eq!(fs.folders("/")?.count(), 2);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    ///
    /// # Errors
    /// As of [`read_dir`](Self::read_dir).
    pub fn folders(&self, path: impl AsRef<Path>) -> Result<Folders<'_>> {
        let path = path.as_ref();
        let start = self.folder("folders", path)?;
        let vfs = &**self.vfs();
        SizeLimit::of(vfs, self.side()).map_err(Error::at("folders", path))?;
        let descent = Descent::new(vfs, self.side(), &start, bytes(path), VecDeque::new());
        Ok(Folders { fs: self, start: Some(start), descent })
    }
}

impl Folders<'_> {
    /// The entries of a folder, and the folders among them.
    fn list(&self, path: &[u8], dir: &Attr) -> (Folder, VecDeque<(Vec<u8>, Attr)>) {
        let vfs = &**self.fs.vfs();
        let mut errors = Vec::new();
        let failed = |path: &[u8], e: FsError| Error::at("folders", &to_path(path))(e);
        let refused = |path: &[u8], what: String| Error::Object { path: to_path(path), what };
        let mut listing = self.descent.listing(dir);
        let mut names: Vec<(Vec<u8>, Option<Attr>)> = Vec::new();
        while let Some(next) = listing.next(vfs) {
            match next {
                ListStep::Entry(e) => match vfs.getattr(e.ino).and_then(in_use) {
                    Ok(attr) => names.push((e.name, Some(attr))),
                    Err(why) => {
                        errors.push(failed(&joined(path, &e.name), why));
                        names.push((e.name, None));
                    }
                },
                ListStep::Refused(name, why) => {
                    errors.push(refused(&joined(path, &name), why.to_owned()));
                    names.push((name, None));
                }
                ListStep::More(count) => errors.push(refused(path, more_refused(count))),
                ListStep::Damage(e) => errors.push(failed(path, e)),
            }
        }
        names.sort_by(|a, b| a.0.cmp(&b.0));
        let (mut entries, mut folders) = (Vec::with_capacity(names.len()), VecDeque::new());
        for (name, attr) in names {
            let target = match attr.filter(|a| a.kind == FileType::Symlink) {
                Some(attr) => match vfs.readlink(attr.ino) {
                    Ok(target) => Some(to_path(&target)),
                    Err(e) => {
                        errors.push(failed(&joined(path, &name), e));
                        None
                    }
                },
                None => None,
            };
            if let Some(attr) = attr.filter(|a| a.kind == FileType::Directory) {
                folders.push_back((name.clone(), attr));
            }
            let (name, metadata) = (OsString::from_vec(name), attr.map(Metadata::new));
            entries.push(FolderEntry { name, metadata, target });
        }
        (Folder { path: to_path(path), entries, errors, entered: true }, folders)
    }
}

impl Iterator for Folders<'_> {
    type Item = Folder;

    fn next(&mut self) -> Option<Folder> {
        if let Some(start) = self.start.take() {
            let (folder, below) = self.list(self.descent.path(), &start);
            if let Some(here) = self.descent.here() {
                *here = below;
            }
            return Some(folder);
        }
        while let Some(rest) = self.descent.here() {
            let Some((name, attr)) = rest.pop_front() else {
                self.descent.leave();
                continue;
            };
            let path = self.descent.path_of(&name);
            if let Err(why) = self.descent.check(&attr) {
                let path = to_path(&path);
                let what = why.to_string();
                let errors = vec![Error::Object { path: path.clone(), what }];
                return Some(Folder { path, entries: Vec::new(), errors, entered: false });
            }
            let (folder, below) = self.list(&path, &attr);
            // OK to ignore: asked just before.
            let _ = self.descent.enter(&name, &attr, below);
            return Some(folder);
        }
        None
    }
}

steadfast_runtime::debug_fields!(Folders<'_>: fs);
