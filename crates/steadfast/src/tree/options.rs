//! How a tree is copied or removed.

use std::io::{Read, Write};
use std::path::{Path, PathBuf};

use steadfast_vfs::Timestamp;

use super::archive::{self, Whiteouts};
use super::failures::{Note, OnFailure, OnNote, Report, TreeFailures};
use super::owners::{Changes, OwnerMap};
use super::{ends, remove};
use crate::error::{Error, Result, bytes};
use crate::fs::FileSystem;

/// How a tree is copied or removed, for [`copy_in`](Self::copy_in), [`copy_out`](Self::copy_out)
/// and [`remove`](Self::remove).
///
/// ```
/// use steadfast::{Image, tree};
///
/// let folder = tempfile::tempdir()?;
/// let fs = Image::in_memory(16 << 20).mount()?;
/// let mut failures = Vec::new();
/// let options = tree::Options::new().on_failure(|error| failures.push(error));
/// let report = options.copy_in(&fs, folder.path(), "/")?;
/// assert_eq!((report.failures, failures.len()), (0, 0));
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Default)]
#[must_use = "nothing happens before `copy_in`, `copy_out` or `remove`"]
pub struct Options<'h> {
    single: bool,
    contents: bool,
    changes: Changes,
    whiteouts: Whiteouts,
    exclude: Vec<PathBuf>,
    on_failure: Option<OnFailure<'h>>,
    on_note: Option<OnNote<'h>>,
}

impl<'h> Options<'h> {
    /// Folders with all they hold; the first failure ends it.
    ///
    /// ```
    /// let options = steadfast::tree::Options::new();
    /// ```
    pub fn new() -> Options<'h> {
        Options::default()
    }

    /// Whether a folder is taken with all it holds; else one is refused.
    ///
    /// ```
    /// use steadfast::{Image, tree};
    ///
    /// let fs = Image::in_memory(16 << 20).mount()?;
    /// fs.create_dir("/folder")?;
    /// let error = tree::Options::new().recursive(false).remove(&fs, "/folder").unwrap_err();
    /// assert_eq!(error.errno(), 21); // EISDIR
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn recursive(mut self, recursive: bool) -> Self {
        self.single = !recursive;
        self
    }

    /// Of a folder that is copied in, takes what is in it and its own attributes for the target
    /// folder, not the folder itself.
    ///
    /// ```
    /// use steadfast::{Image, tree};
    ///
    /// let folder = tempfile::tempdir()?;
    /// std::fs::write(folder.path().join("file"), "text")?;
    /// let fs = Image::in_memory(16 << 20).mount()?;
    /// tree::Options::new().contents(true).copy_in(&fs, folder.path(), "/")?;
    /// assert!(fs.exists("/file")?);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn contents(mut self, contents: bool) -> Self {
        self.contents = contents;
        self
    }

    /// Other owners than the source has.
    ///
    /// ```
    /// use steadfast::tree::{Options, OwnerMap};
    ///
    /// let options = Options::new().owners(OwnerMap::new().all(0, 0));
    /// ```
    pub fn owners(mut self, owners: OwnerMap) -> Self {
        self.changes.owners = owners;
        self
    }

    /// Whether copies of the same tree are the same: names are taken in their order, which needs
    /// memory for one folder's names, and each object was last read when it was last changed.
    ///
    /// ```
    /// let options = steadfast::tree::Options::new().by_name(true);
    /// ```
    pub fn by_name(mut self, by_name: bool) -> Self {
        self.changes.by_name = by_name;
        self
    }

    /// Later times than this become it.
    ///
    /// ```
    /// use steadfast::{tree::Options, vfs::Timestamp};
    ///
    /// let options = Options::new().newest(Timestamp { secs: 1_700_000_000, nanos: 0 });
    /// ```
    pub fn newest(mut self, newest: Timestamp) -> Self {
        self.changes.newest = Some(newest);
        self
    }

    /// What [`unpack`](Self::unpack) does with whiteouts.
    ///
    /// ```
    /// use steadfast::tree::{Options, Whiteouts};
    ///
    /// let options = Options::new().whiteouts(Whiteouts::Apply);
    /// ```
    pub fn whiteouts(mut self, whiteouts: Whiteouts) -> Self {
        self.whiteouts = whiteouts;
        self
    }

    /// A file of the host that is neither copied nor replaced: the image itself, if it is in the
    /// folder that is copied.
    ///
    /// ```
    /// use steadfast::{Image, tree};
    ///
    /// let folder = tempfile::tempdir()?;
    /// let image = folder.path().join("disk.img");
    /// let fs = Image::create(&image).size(16 << 20).mount()?;
    /// tree::Options::new().exclude(&image).copy_in(&fs, folder.path(), "/folder")?;
    /// assert!(!fs.exists("/folder/disk.img")?);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn exclude(mut self, file: impl Into<PathBuf>) -> Self {
        self.exclude.push(file.into());
        self
    }

    /// Goes on after a failure, which is handed to this. What would make every further object fail
    /// (a full or read-only target) still ends it.
    ///
    /// ```
    /// use steadfast::{Image, tree};
    ///
    /// let folder = tempfile::tempdir()?;
    /// std::fs::write(folder.path().join("name"), "text")?;
    /// let fs = Image::in_memory(16 << 20).mount()?;
    /// fs.create_dir_all("/in/name")?;
    /// let mut failures = Vec::new();
    /// let options = tree::Options::new().on_failure(|error| failures.push(error.to_string()));
    /// options.copy_in(&fs, folder.path().join("name"), "/in")?;
    /// assert_eq!(failures, ["/in/name: is in the way: it exists and is a folder"]);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn on_failure(mut self, handler: impl FnMut(Error) + 'h) -> Self {
        self.on_failure = Some(Box::new(handler));
        self
    }

    /// Is handed, at the end, what could not be kept; also if the operation fails.
    ///
    /// ```
    /// let options = steadfast::tree::Options::new().on_note(|note| eprintln!("{note}"));
    /// ```
    pub fn on_note(mut self, handler: impl FnMut(&Note) + 'h) -> Self {
        self.on_note = Some(Box::new(handler));
        self
    }

    /// Copies a file or a tree of this machine into the file system as `to`; if `to` is a folder
    /// that is there, under it with the file's own name.
    ///
    /// Contents keep their holes; links, owners, modes, times, attributes, access control lists and
    /// devices are kept. Symbolic links are copied, not followed. A file that is replaced is the
    /// old one or the new one after a power cut.
    ///
    /// ```
    /// use steadfast::{Image, tree};
    ///
    /// let folder = tempfile::tempdir()?;
    /// std::fs::write(folder.path().join("file"), "text")?;
    /// let fs = Image::in_memory(16 << 20).mount()?;
    /// tree::Options::new().copy_in(&fs, folder.path().join("file"), "/")?;
    /// assert_eq!(fs.read_to_string("/file")?, "text");
    /// # Ok::<(), std::io::Error>(())
    /// ```
    ///
    /// # Errors
    /// There is no such file, or no such folder to copy into; the first object that fails (without
    /// [`on_failure`](Self::on_failure)); a full or read-only target.
    pub fn copy_in(
        self,
        fs: &FileSystem,
        host: impl AsRef<Path>,
        to: impl AsRef<Path>,
    ) -> Result<Report> {
        let ends = match self.contents {
            true => ends::contents_inwards(fs, host.as_ref(), bytes(to.as_ref()))?,
            false => ends::inwards(fs, host.as_ref(), bytes(to.as_ref()), !self.single)?,
        };
        self.copy("copy_in", ends)
    }

    /// Copies a file or a tree out of the file system to this machine as `host`; if that is a
    /// folder that is there, under it with the file's own name. Nothing is written outside of it,
    /// whatever names and links the file system has.
    ///
    /// ```
    /// use steadfast::{Image, tree};
    ///
    /// let folder = tempfile::tempdir()?;
    /// let fs = Image::in_memory(16 << 20).mount()?;
    /// fs.write("/file", "text")?;
    /// tree::Options::new().copy_out(&fs, "/file", folder.path())?;
    /// assert_eq!(std::fs::read(folder.path().join("file"))?, b"text");
    /// # Ok::<(), std::io::Error>(())
    /// ```
    ///
    /// # Errors
    /// As of [`copy_in`](Self::copy_in).
    pub fn copy_out(
        self,
        fs: &FileSystem,
        from: impl AsRef<Path>,
        host: impl AsRef<Path>,
    ) -> Result<Report> {
        let ends = ends::outwards(fs, bytes(from.as_ref()), host.as_ref(), !self.single)?;
        self.copy("copy_out", ends)
    }

    fn copy(self, operation: &'static str, ends: ends::Ends<'_>) -> Result<Report> {
        let mut failures = TreeFailures::new(operation, self.on_failure, self.on_note);
        let done = ends.copy(&self.exclude, &self.changes, &mut failures);
        failures.end(done)
    }

    /// Unpacks a tar archive into the folder `to`: ustar, GNU's and pax, with attributes, access
    /// control lists, holes, hard links and devices. It is read once, from its beginning to its
    /// end.
    ///
    /// Nothing is made outside of `to`, whatever names and links the archive has: `..` is refused,
    /// a `/` in front is left out, and a path that leads through a link is refused.
    ///
    /// ```
    /// use steadfast::{Image, tree::Options};
    ///
    /// let fs = Image::in_memory(16 << 20).mount()?;
    /// fs.write("/file", "text")?;
    /// let mut archive = Vec::new();
    /// Options::new().pack(&fs, "/", &mut archive)?;
    /// fs.create_dir("/copy")?;
    /// Options::new().unpack(&fs, &archive[..], "/copy")?;
    /// assert_eq!(fs.read_to_string("/copy/file")?, "text");
    /// # Ok::<(), std::io::Error>(())
    /// ```
    ///
    /// # Errors
    /// There is no such folder; the archive is none, damaged or cut off; the first member that
    /// fails (without [`on_failure`](Self::on_failure)); a full or read-only target.
    pub fn unpack(
        self,
        fs: &FileSystem,
        mut archive: impl Read,
        to: impl AsRef<Path>,
    ) -> Result<Report> {
        let mut failures = TreeFailures::new("unpack", self.on_failure, self.on_note);
        let how = (&self.changes, self.whiteouts);
        let to = bytes(to.as_ref());
        let done = archive::unpack(&**fs.vfs(), &mut archive, to, how, &mut failures);
        failures.end(done)
    }

    /// Packs a file or a tree into a tar archive, pax where that is needed: names are those below
    /// `from`, in their order, so that the same tree gives the same archive. An empty `lost+found`
    /// of the file system is left out.
    ///
    /// ```
    /// use steadfast::{Image, tree::Options};
    ///
    /// let fs = Image::in_memory(16 << 20).mount()?;
    /// fs.write("/file", "text")?;
    /// let mut archive = Vec::new();
    /// Options::new().pack(&fs, "/", &mut archive)?;
    /// assert!(archive.len() % 512 == 0 && archive.windows(6).any(|part| part == b"./file"));
    /// # Ok::<(), std::io::Error>(())
    /// ```
    ///
    /// # Errors
    /// There is no such file; the archive cannot be written; the first object that fails (without
    /// [`on_failure`](Self::on_failure)).
    pub fn pack(
        self,
        fs: &FileSystem,
        from: impl AsRef<Path>,
        mut archive: impl Write,
    ) -> Result<Report> {
        let mut failures = TreeFailures::new("pack", self.on_failure, self.on_note);
        let from = bytes(from.as_ref());
        let done = archive::pack(fs, from, &mut archive, &self.changes, &mut failures);
        failures.end(done)
    }

    /// Removes a file or a tree. Symbolic links are removed, not followed; a folder whose
    /// `..` is another folder is not emptied.
    ///
    /// ```
    /// use steadfast::{Image, tree};
    ///
    /// let fs = Image::in_memory(16 << 20).mount()?;
    /// fs.create_dir_all("/a/b/c")?;
    /// tree::Options::new().remove(&fs, "/a")?;
    /// assert!(!fs.exists("/a")?);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    ///
    /// # Errors
    /// There is no such file; the first object that cannot be removed (without
    /// [`on_failure`](Self::on_failure)); a read-only file system.
    pub fn remove(self, fs: &FileSystem, path: impl AsRef<Path>) -> Result<Report> {
        let mut failures = TreeFailures::new("remove", self.on_failure, self.on_note);
        let done = remove::remove(fs, bytes(path.as_ref()), !self.single, &mut failures);
        failures.end(done)
    }
}

impl std::fmt::Debug for Options<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Options")
            .field("recursive", &!self.single)
            .field("exclude", &self.exclude)
            .finish_non_exhaustive()
    }
}
