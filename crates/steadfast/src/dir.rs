//! Folders, entry by entry.

use std::collections::VecDeque;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::PathBuf;
use std::sync::Arc;

use steadfast_vfs::path::why_refused;
use steadfast_vfs::{FileType, FsError, Ino};

use crate::error::{Error, Result};
use crate::fs::FileSystemCore;
use crate::metadata::Metadata;
use crate::methods::getters;

/// The entries of a folder, without "." and "..": an iterator. What is added or removed meanwhile
/// may be met or not. After an error there is no more.
///
/// ```
/// let fs = steadfast::Image::in_memory(16 << 20).mount()?;
/// fs.write("/a", "")?;
/// let mut names = Vec::new();
/// for entry in fs.read_dir("/")? {
///     names.push(entry?.file_name());
/// }
/// names.sort();
/// assert_eq!(names, ["a", "lost+found"]);
/// # Ok::<(), std::io::Error>(())
/// ```
pub struct ReadDir {
    mounted: Arc<FileSystemCore>,
    dir: Ino,
    path: PathBuf,
    part: VecDeque<steadfast_vfs::Dirent>,
    /// Where the next part begins; `None` at the end.
    next: Option<u64>,
}

impl ReadDir {
    pub(crate) fn new(mounted: Arc<FileSystemCore>, dir: Ino, path: PathBuf) -> ReadDir {
        ReadDir { mounted, dir, path, part: VecDeque::new(), next: Some(0) }
    }

    fn read(&mut self, from: u64) -> std::result::Result<(), FsError> {
        self.next = None;
        let part = self.mounted.fs().readdir(self.dir, from)?;
        let Some(last) = part.last() else { return Ok(()) };
        if last.next <= from && from != 0 {
            return Err(FsError::Corrupt {
                what: "the folder does not end".into(),
                place: format!("inode {}", self.dir.0),
            });
        }
        self.next = Some(last.next);
        self.part = part.into();
        Ok(())
    }

    /// The next entry, as it is on the disk.
    fn step(&mut self) -> std::result::Result<Option<DirEntry>, FsError> {
        loop {
            while let Some(entry) = self.part.pop_front() {
                if matches!(entry.name.as_slice(), b"." | b"..") {
                    continue;
                }
                if let Some(why) = why_refused(&entry.name) {
                    self.part.clear();
                    self.next = None;
                    let place = format!("inode {}", self.dir.0);
                    return Err(FsError::Corrupt { what: why.into(), place });
                }
                let path = self.path.join(OsStr::from_bytes(&entry.name));
                return Ok(Some(DirEntry {
                    mounted: Arc::clone(&self.mounted),
                    ino: entry.ino,
                    kind: entry.kind,
                    name: OsString::from_vec(entry.name),
                    path,
                }));
            }
            let Some(from) = self.next else { return Ok(None) };
            self.read(from)?;
        }
    }
}

impl Iterator for ReadDir {
    type Item = Result<DirEntry>;

    fn next(&mut self) -> Option<Self::Item> {
        self.step().map_err(Error::at("read_dir", &self.path)).transpose()
    }
}

steadfast_runtime::debug_fields!(ReadDir: path);

/// One name in a folder.
///
/// ```
/// use std::path::Path;
/// use steadfast::{FileType, Image};
///
/// let fs = Image::in_memory(16 << 20).mount()?;
/// fs.create_dir("/folder")?;
/// fs.write("/folder/file", "12345")?;
/// let entry = fs.read_dir("/folder")?.next().unwrap()?;
/// assert_eq!(entry.file_name(), "file");
/// assert_eq!(entry.path(), Path::new("/folder/file"));
/// assert_eq!(entry.file_type(), FileType::Regular);
/// assert_eq!(entry.metadata()?.len(), 5);
/// assert_eq!(entry.ino(), fs.metadata("/folder/file")?.ino());
/// # Ok::<(), std::io::Error>(())
/// ```
pub struct DirEntry {
    mounted: Arc<FileSystemCore>,
    ino: Ino,
    kind: FileType,
    name: OsString,
    path: PathBuf,
}

getters! {
    DirEntry, "let entry = fs.read_dir(\"/\")?.next().unwrap()?;";
    /// Its name.
    file_name -> OsString = |e| e.name.clone(), "assert_eq!(entry.file_name(), \"lost+found\");";
    /// Its path: that of the folder as it was given, and the name.
    path -> PathBuf = |e| e.path.clone(),
        "assert_eq!(entry.path().to_str(), Some(\"/lost+found\"));";
    /// What it is, as the folder says.
    file_type -> FileType = |e| e.kind,
        "assert_eq!(entry.file_type(), steadfast::FileType::Directory);";
    /// Its inode number.
    ino -> u64 = |e| e.ino.0, "assert_eq!(entry.ino(), 11);";
}

impl DirEntry {
    /// What there is to know of it; a link is not followed.
    ///
    /// ```
    /// let fs = steadfast::Image::in_memory(16 << 20).mount()?;
    /// let entry = fs.read_dir("/")?.next().unwrap()?;
    /// assert!(entry.metadata()?.is_dir());
    /// # Ok::<(), std::io::Error>(())
    /// ```
    ///
    /// # Errors
    /// It is damaged, or was removed meanwhile.
    pub fn metadata(&self) -> Result<Metadata> {
        let attr =
            self.mounted.fs().getattr(self.ino).map_err(Error::at("metadata", &self.path))?;
        if attr.nlink == 0 {
            return Err(Error::at("metadata", &self.path)(FsError::NotFound));
        }
        Ok(Metadata::new(attr))
    }
}

steadfast_runtime::debug_fields!(DirEntry: path);
