//! Everything by path, named as in [`std::fs`].

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use steadfast_vfs::path::{parent_and_name, place, resolve};
use steadfast_vfs::{Attr, FileType, FsError, Ino, RenameFlags};

use super::FileSystem;
use crate::dir::ReadDir;
use crate::error::{Error, Result, bytes};
use crate::file::File;
use crate::metadata::Metadata;
use crate::open_options::OpenOptions;

impl FileSystem {
    /// The inode of a path.
    pub(crate) fn find(
        &self,
        operation: &'static str,
        path: &Path,
        follow_last: bool,
    ) -> Result<Attr> {
        resolve(&**self.vfs(), bytes(path), follow_last).map_err(Error::at(operation, path))
    }

    /// The folder and the name of what is to be made, moved or removed.
    pub(crate) fn entry<'p>(
        &self,
        path: &'p Path,
    ) -> std::result::Result<(Ino, &'p [u8]), FsError> {
        let all = bytes(path);
        if all.iter().all(|b| *b == b'/') {
            return Err(FsError::Busy { what: "the root" });
        }
        if all.contains(&0) {
            return Err(FsError::Invalid { what: "NUL in the path" });
        }
        parent_and_name(&**self.vfs(), all)
    }

    /// Opens a file for reading. A folder can be opened too, to be synced.
    ///
    /// ```
    /// use std::io::Read;
    /// use steadfast::Image;
    ///
    /// let fs = Image::in_memory(16 << 20).mount()?;
    /// fs.write("/file", "text")?;
    /// let mut text = String::new();
    /// fs.open("/file")?.read_to_string(&mut text)?;
    /// assert_eq!(text, "text");
    /// # Ok::<(), std::io::Error>(())
    /// ```
    ///
    /// # Errors
    /// As open(2) with O_RDONLY.
    pub fn open(&self, path: impl AsRef<Path>) -> Result<File> {
        OpenOptions::new().read(true).open(self, path)
    }

    /// Opens a file for writing, which is made, or cut to nothing if it is there.
    ///
    /// ```
    /// use std::io::Write;
    /// use steadfast::Image;
    ///
    /// let fs = Image::in_memory(16 << 20).mount()?;
    /// let mut file = fs.create("/file")?;
    /// file.write_all(b"durable")?;
    /// file.sync_all()?;
    /// # Ok::<(), std::io::Error>(())
    /// ```
    ///
    /// # Errors
    /// As open(2) with O_WRONLY, O_CREAT and O_TRUNC.
    pub fn create(&self, path: impl AsRef<Path>) -> Result<File> {
        OpenOptions::new().write(true).create(true).truncate(true).open(self, path)
    }

    /// All that a file holds.
    ///
    /// ```
    /// let fs = steadfast::Image::in_memory(16 << 20).mount()?;
    /// fs.write("/file", [1, 2, 3])?;
    /// assert_eq!(fs.read("/file")?, [1, 2, 3]);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    ///
    /// # Errors
    /// As open(2) and read(2).
    pub fn read(&self, path: impl AsRef<Path>) -> Result<Vec<u8>> {
        let path = path.as_ref();
        let file = OpenOptions::new().read(true).open_as("read", self, path)?;
        file.all("read")
    }

    /// All that a file holds, as text.
    ///
    /// ```
    /// let fs = steadfast::Image::in_memory(16 << 20).mount()?;
    /// fs.write("/file", "text")?;
    /// assert_eq!(fs.read_to_string("/file")?, "text");
    /// # Ok::<(), std::io::Error>(())
    /// ```
    ///
    /// # Errors
    /// It is no UTF-8; as for [`read`](Self::read).
    pub fn read_to_string(&self, path: impl AsRef<Path>) -> Result<String> {
        let path = path.as_ref();
        String::from_utf8(self.read(path)?).map_err(|_| {
            Error::at("read_to_string", path)(FsError::Invalid { what: "it is no UTF-8" })
        })
    }

    /// Makes these the contents of a file, which is made if it is not there. A power cut may leave
    /// a part of them, or none: see [`File::sync_all`](crate::File::sync_all).
    ///
    /// ```
    /// let fs = steadfast::Image::in_memory(16 << 20).mount()?;
    /// fs.write("/file", "text")?;
    /// # Ok::<(), std::io::Error>(())
    /// ```
    ///
    /// # Errors
    /// As open(2) and write(2).
    pub fn write(&self, path: impl AsRef<Path>, contents: impl AsRef<[u8]>) -> Result<()> {
        let options = OpenOptions::new().write(true).create(true).truncate(true).clone();
        let file = options.open_as("write", self, path.as_ref())?;
        file.put("write", contents.as_ref(), 0)
    }

    /// Copies contents and permissions of a file to another, which is made or replaced; returns the
    /// bytes.
    ///
    /// ```
    /// let fs = steadfast::Image::in_memory(16 << 20).mount()?;
    /// fs.write("/file", "text")?;
    /// assert_eq!(fs.copy("/file", "/copy")?, 4);
    /// assert_eq!(fs.read_to_string("/copy")?, "text");
    /// # Ok::<(), std::io::Error>(())
    /// ```
    ///
    /// # Errors
    /// Invalid: both are the same file. As [`open`](Self::open), [`create`](Self::create), read(2)
    /// and write(2).
    pub fn copy(&self, from: impl AsRef<Path>, to: impl AsRef<Path>) -> Result<u64> {
        let (from, to) = (from.as_ref(), to.as_ref());
        let source = OpenOptions::new().read(true).open_as("copy", self, from)?;
        let about = source.metadata()?;
        if !about.is_file() {
            return Err(Error::between("copy", from, to)(FsError::IsDirectory));
        }
        // Before it would be cut to nothing.
        if self.metadata(to).is_ok_and(|there| there.ino() == about.ino()) {
            let what = "both are the same file";
            return Err(Error::between("copy", from, to)(FsError::Invalid { what }));
        }
        let mut options = OpenOptions::new();
        options.write(true).create(true).truncate(true).mode(about.mode());
        let target = options.open_as("copy", self, to)?;
        let mut at = 0;
        loop {
            let part = source.part("copy", at)?;
            if part.is_empty() {
                break;
            }
            target.put("copy", &part, at)?;
            at += part.len() as u64;
        }
        self.set_permissions(to, about.permissions())?;
        Ok(at)
    }

    /// Makes a folder, whose parent must be there.
    ///
    /// ```
    /// let fs = steadfast::Image::in_memory(16 << 20).mount()?;
    /// fs.create_dir("/folder")?;
    /// assert!(fs.create_dir("/no/folder").is_err());
    /// # Ok::<(), std::io::Error>(())
    /// ```
    ///
    /// # Errors
    /// As mkdir(2).
    pub fn create_dir(&self, path: impl AsRef<Path>) -> Result<()> {
        let path = path.as_ref();
        let made = self.entry(path).and_then(|(dir, name)| {
            self.vfs().mkdir(dir, name, self.mounted().node(0o755)).map(drop)
        });
        match made {
            Err(FsError::Busy { .. }) => Err(FsError::Exists),
            made => made,
        }
        .map_err(Error::at("create_dir", path))
    }

    /// Makes a folder and those above it, as far as they are not there.
    ///
    /// ```
    /// let fs = steadfast::Image::in_memory(16 << 20).mount()?;
    /// fs.create_dir_all("/a/b/c")?;
    /// fs.create_dir_all("/a/b/c")?;
    /// # Ok::<(), std::io::Error>(())
    /// ```
    ///
    /// # Errors
    /// A file is in the way; as mkdir(2).
    pub fn create_dir_all(&self, path: impl AsRef<Path>) -> Result<()> {
        let path = path.as_ref();
        let mut missing = Vec::new();
        for part in path.ancestors() {
            match resolve(&**self.vfs(), bytes(part), true) {
                Ok(attr) if attr.kind == FileType::Directory => break,
                Ok(_) => return Err(Error::at("create_dir_all", part)(FsError::NotDirectory)),
                Err(FsError::NotFound) => missing.push(part),
                Err(e) => return Err(Error::at("create_dir_all", part)(e)),
            }
        }
        for part in missing.into_iter().rev() {
            match self.create_dir(part) {
                // Somebody else was faster; ".." of a folder that was missing is there now.
                Err(Error::Path { source: FsError::Exists | FsError::Invalid { .. }, .. })
                    if self.is_dir(part) => {}
                made => made?,
            }
        }
        Ok(())
    }

    fn is_dir(&self, path: &Path) -> bool {
        self.metadata(path).is_ok_and(|there| there.is_dir())
    }

    /// The entries of a folder, in the file system's order.
    ///
    /// ```
    /// let fs = steadfast::Image::in_memory(16 << 20).mount()?;
    /// for entry in fs.read_dir("/")? {
    ///     assert_eq!(entry?.file_name(), "lost+found");
    /// }
    /// # Ok::<(), std::io::Error>(())
    /// ```
    ///
    /// # Errors
    /// As opendir(3).
    pub fn read_dir(&self, path: impl AsRef<Path>) -> Result<ReadDir> {
        let path = path.as_ref();
        let dir = self.find("read_dir", path, true)?;
        if dir.kind != FileType::Directory {
            return Err(Error::at("read_dir", path)(FsError::NotDirectory));
        }
        Ok(ReadDir::new(Arc::clone(self.mounted()), dir.ino, path.to_path_buf()))
    }

    /// Removes the name of a file or a link.
    ///
    /// ```
    /// let fs = steadfast::Image::in_memory(16 << 20).mount()?;
    /// fs.write("/file", "")?;
    /// fs.remove_file("/file")?;
    /// assert!(!fs.exists("/file")?);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    ///
    /// # Errors
    /// As unlink(2).
    pub fn remove_file(&self, path: impl AsRef<Path>) -> Result<()> {
        let path = path.as_ref();
        let removed = self.entry(path).and_then(|(dir, name)| self.vfs().unlink(dir, name));
        removed.map_err(Error::at("remove_file", path))
    }

    /// Removes an empty folder.
    ///
    /// ```
    /// let fs = steadfast::Image::in_memory(16 << 20).mount()?;
    /// fs.create_dir_all("/a/b")?;
    /// assert!(fs.remove_dir("/a").is_err());
    /// fs.remove_dir("/a/b")?;
    /// # Ok::<(), std::io::Error>(())
    /// ```
    ///
    /// # Errors
    /// As rmdir(2).
    pub fn remove_dir(&self, path: impl AsRef<Path>) -> Result<()> {
        let path = path.as_ref();
        let removed = self.entry(path).and_then(|(dir, name)| self.vfs().rmdir(dir, name));
        removed.map_err(Error::at("remove_dir", path))
    }

    /// Moves a name; a file at the new one is replaced as a whole, which is how contents are
    /// replaced so that a power cut leaves the old or the new ones. For that the new ones must be
    /// synced before, and the folder afterwards if it is to be durable now.
    ///
    /// ```
    /// use std::io::Write;
    /// use steadfast::Image;
    ///
    /// let fs = Image::in_memory(16 << 20).mount()?;
    /// fs.write("/config", "old")?;
    /// let mut file = fs.create("/config.new")?;
    /// file.write_all(b"new")?;
    /// file.sync_all()?;
    /// fs.rename("/config.new", "/config")?;
    /// fs.open("/")?.sync_all()?;
    /// assert_eq!(fs.read_to_string("/config")?, "new");
    /// # Ok::<(), std::io::Error>(())
    /// ```
    ///
    /// # Errors
    /// As rename(2).
    pub fn rename(&self, from: impl AsRef<Path>, to: impl AsRef<Path>) -> Result<()> {
        let (from, to) = (from.as_ref(), to.as_ref());
        let renamed = self
            .entry(from)
            .and_then(|old| self.vfs().rename(old, self.entry(to)?, RenameFlags::empty()));
        renamed.map_err(Error::between("rename", from, to))
    }

    /// Gives a file, or a link itself, another name.
    ///
    /// ```
    /// let fs = steadfast::Image::in_memory(16 << 20).mount()?;
    /// fs.write("/file", "")?;
    /// fs.hard_link("/file", "/same")?;
    /// assert_eq!(fs.metadata("/file")?.nlink(), 2);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    ///
    /// # Errors
    /// As link(2).
    pub fn hard_link(&self, original: impl AsRef<Path>, link: impl AsRef<Path>) -> Result<()> {
        let (original, link) = (original.as_ref(), link.as_ref());
        let linked = resolve(&**self.vfs(), bytes(original), false).and_then(|attr| {
            if attr.kind == FileType::Directory {
                return Err(FsError::NotPermitted { what: "a further name of a folder" });
            }
            let (dir, name) = self.entry(link)?;
            self.vfs().link(attr.ino, dir, name).map(drop)
        });
        linked.map_err(Error::between("hard_link", original, link))
    }

    /// Makes a symbolic link to `original`, which may be anything.
    ///
    /// ```
    /// let fs = steadfast::Image::in_memory(16 << 20).mount()?;
    /// fs.symlink("../data", "/link")?;
    /// assert_eq!(fs.read_link("/link")?.to_str(), Some("../data"));
    /// # Ok::<(), std::io::Error>(())
    /// ```
    ///
    /// # Errors
    /// As symlink(2).
    pub fn symlink(&self, original: impl AsRef<Path>, link: impl AsRef<Path>) -> Result<()> {
        let (original, link) = (original.as_ref(), link.as_ref());
        let linked = self.entry(link).and_then(|(dir, name)| {
            self.vfs().symlink(dir, name, bytes(original), self.mounted().node(0o777)).map(drop)
        });
        linked.map_err(Error::at("symlink", link))
    }

    /// What a symbolic link says.
    ///
    /// ```
    /// let fs = steadfast::Image::in_memory(16 << 20).mount()?;
    /// fs.symlink("/anywhere", "/link")?;
    /// assert_eq!(fs.read_link("/link")?.to_str(), Some("/anywhere"));
    /// assert!(fs.read_link("/lost+found").is_err());
    /// # Ok::<(), std::io::Error>(())
    /// ```
    ///
    /// # Errors
    /// As readlink(2).
    pub fn read_link(&self, path: impl AsRef<Path>) -> Result<PathBuf> {
        let path = path.as_ref();
        let link = self.find("read_link", path, false)?;
        if link.kind != FileType::Symlink {
            let what = "it is no symbolic link";
            return Err(Error::at("read_link", path)(FsError::Invalid { what }));
        }
        let target = self.vfs().readlink(link.ino).map_err(Error::at("read_link", path))?;
        Ok(OsString::from_vec(target).into())
    }

    /// What there is to know of a file; links are followed.
    ///
    /// ```
    /// let fs = steadfast::Image::in_memory(16 << 20).mount()?;
    /// fs.write("/file", "12345")?;
    /// let file = fs.metadata("/file")?;
    /// assert!(file.is_file() && file.len() == 5);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    ///
    /// # Errors
    /// As stat(2).
    pub fn metadata(&self, path: impl AsRef<Path>) -> Result<Metadata> {
        self.find("metadata", path.as_ref(), true).map(Metadata::new)
    }

    /// The same of a link itself.
    ///
    /// ```
    /// let fs = steadfast::Image::in_memory(16 << 20).mount()?;
    /// fs.symlink("nowhere", "/link")?;
    /// assert!(fs.symlink_metadata("/link")?.is_symlink());
    /// assert!(fs.metadata("/link").is_err());
    /// # Ok::<(), std::io::Error>(())
    /// ```
    ///
    /// # Errors
    /// As lstat(2).
    pub fn symlink_metadata(&self, path: impl AsRef<Path>) -> Result<Metadata> {
        self.find("symlink_metadata", path.as_ref(), false).map(Metadata::new)
    }

    /// Whether there is something at a path; links are followed.
    ///
    /// ```
    /// let fs = steadfast::Image::in_memory(16 << 20).mount()?;
    /// assert!(fs.exists("/")? && !fs.exists("/none/at/all")?);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    ///
    /// # Errors
    /// The path cannot be looked up.
    pub fn exists(&self, path: impl AsRef<Path>) -> Result<bool> {
        let path = path.as_ref();
        match resolve(&**self.vfs(), bytes(path), true) {
            Ok(_) => Ok(true),
            Err(FsError::NotFound | FsError::NotDirectory) => Ok(false),
            Err(e) => Err(Error::at("exists", path)(e)),
        }
    }

    /// The path from the root without links, "." and "..".
    ///
    /// ```
    /// let fs = steadfast::Image::in_memory(16 << 20).mount()?;
    /// fs.create_dir_all("/a/b")?;
    /// fs.symlink("/a/b", "/link")?;
    /// assert_eq!(fs.canonicalize("link/../../../a/./b")?.to_str(), Some("/a/b"));
    /// # Ok::<(), std::io::Error>(())
    /// ```
    ///
    /// # Errors
    /// There is nothing there; more than 40 links.
    pub fn canonicalize(&self, path: impl AsRef<Path>) -> Result<PathBuf> {
        let path = path.as_ref();
        let found = place(&**self.vfs(), bytes(path), true).and_then(|place| match place.attr {
            Some(_) => Ok(place.path()),
            None => Err(FsError::NotFound),
        });
        let found = found.map_err(Error::at("canonicalize", path))?;
        Ok(OsString::from_vec(found).into())
    }
}
