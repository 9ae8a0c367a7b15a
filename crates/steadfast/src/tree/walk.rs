//! A walk through a tree, object by object.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

use steadfast_vfs::path::resolve;
use steadfast_vfs::{Attr, FileType, FsError};

use super::descent::{Descent, WalkStep};
use super::failures::{TreeFailures, to_path};
use crate::error::{Error, Result, bytes};
use crate::fs::FileSystem;
use crate::metadata::Metadata;
use crate::methods::getters;

/// Everything below a folder: an iterator. A folder comes before what it holds, and is entered by
/// the next step unless [`skip_folder`](Self::skip_folder) says otherwise; symbolic links are not
/// followed. An error is about one object, and the walk goes on behind it.
///
/// ```
/// use std::path::Path;
///
/// let fs = steadfast::Image::in_memory(16 << 20).mount()?;
/// fs.create_dir("/folder")?;
/// fs.write("/folder/file", "12345")?;
/// let mut walk = fs.walk("/")?;
/// let mut bytes = 0;
/// while let Some(entry) = walk.next() {
///     let entry = entry?;
///     if entry.path() == Path::new("/lost+found") {
///         walk.skip_folder();
///     } else if entry.metadata().is_file() {
///         assert_eq!((entry.file_name().to_str(), entry.depth()), (Some("file"), 2));
///         bytes += entry.metadata().len();
///     }
/// }
/// assert_eq!(bytes, 5);
/// # Ok::<(), std::io::Error>(())
/// ```
pub struct Walk<'f> {
    descent: Descent<'f, ()>,
    /// Folders below the start that the walk is in.
    depth: usize,
    /// A folder that is entered next.
    pending: Option<(Vec<u8>, Attr)>,
}

/// What a [`Walk`] meets.
///
/// ```
/// let fs = steadfast::Image::in_memory(16 << 20).mount()?;
/// let entry = fs.walk("/")?.next().unwrap()?;
/// assert_eq!(entry.path(), std::path::Path::new("/lost+found"));
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    name: OsString,
    path: PathBuf,
    depth: usize,
    metadata: Metadata,
}

impl FileSystem {
    /// Walks through everything below a folder.
    ///
    /// ```
    /// let fs = steadfast::Image::in_memory(16 << 20).mount()?;
    /// fs.create_dir_all("/a/b/c")?;
    /// assert_eq!(fs.walk("/a")?.count(), 2);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    ///
    /// # Errors
    /// As of [`read_dir`](Self::read_dir).
    pub fn walk(&self, path: impl AsRef<Path>) -> Result<Walk<'_>> {
        let path = path.as_ref();
        let start = self.folder("walk", path)?;
        let descent = Descent::new(&**self.vfs(), self.side(), &start, bytes(path), ());
        Ok(Walk { descent, depth: 1, pending: None })
    }

    /// The folder at a path.
    pub(super) fn folder(&self, operation: &'static str, path: &Path) -> Result<Attr> {
        let attr = resolve(&**self.vfs(), bytes(path), true);
        let attr = attr.map_err(Error::at(operation, path))?;
        match attr.kind {
            FileType::Directory => Ok(attr),
            _ => Err(Error::at(operation, path)(FsError::NotDirectory)),
        }
    }
}

impl Walk<'_> {
    /// Does not enter the folder that came last.
    ///
    /// ```
    /// let fs = steadfast::Image::in_memory(16 << 20).mount()?;
    /// fs.create_dir_all("/a/b/c")?;
    /// let mut walk = fs.walk("/a")?;
    /// walk.next();
    /// walk.skip_folder();
    /// assert!(walk.next().is_none());
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn skip_folder(&mut self) {
        self.pending = None;
    }

    /// The next object; `None` at the end.
    fn step(&mut self) -> Result<Option<Entry>> {
        if let Some((name, attr)) = self.pending.take() {
            let path = self.descent.path_of(&name);
            match self.descent.enter(&name, &attr, ()) {
                Ok(()) => self.depth += 1,
                Err(why) => {
                    let what = why.to_string();
                    return Err(Error::Object { path: to_path(&path), what });
                }
            }
        }
        // Each failure is an item: the next step goes on behind it.
        let mut failures = TreeFailures::new("walk", None, None);
        while let Some(met) = self.descent.next(&mut failures)? {
            let WalkStep::Object { name, attr } = met else {
                self.descent.leave();
                self.depth -= 1;
                continue;
            };
            let path = to_path(&self.descent.path_of(&name));
            if attr.kind == FileType::Directory {
                self.pending = Some((name.clone(), attr));
            }
            let (name, metadata) = (OsString::from_vec(name), Metadata::new(attr));
            return Ok(Some(Entry { name, path, depth: self.depth, metadata }));
        }
        Ok(None)
    }
}

impl Iterator for Walk<'_> {
    type Item = Result<Entry>;

    fn next(&mut self) -> Option<Self::Item> {
        self.step().transpose()
    }
}

steadfast_runtime::debug_fields!(Walk<'_>: depth);

getters! {
    Entry, "let entry = fs.walk(\"/\")?.next().unwrap()?;";
    /// The name alone.
    file_name -> &OsStr = |e| &e.name, "assert_eq!(entry.file_name(), \"lost+found\");";
    /// The path: that of the walk's start, and the names from there.
    path -> &Path = |e| &e.path, "assert!(fs.metadata(entry.path())?.is_dir());";
    /// How deep below the start it is: 1 in the folder itself.
    depth -> usize = |e| e.depth, "assert_eq!(entry.depth(), 1);";
    /// What it is; of a symbolic link the link.
    metadata -> &Metadata = |e| &e.metadata, "assert!(entry.metadata().is_dir());";
}
