//! Whole trees of files; what there is to say of how is [`tree::Options`].

use std::path::Path;

use super::FileSystem;
use crate::error::Result;
use crate::tree::{self, Report, Side};

impl FileSystem {
    /// Copies a file or a tree of this machine into the file system as `to`, or under it if it is
    /// a folder; see [`tree::Options::copy_in`].
    ///
    /// ```
    /// let folder = tempfile::tempdir()?;
    /// std::fs::write(folder.path().join("file"), "text")?;
    /// let fs = steadfast::Image::in_memory(16 << 20).mount()?;
    /// fs.copy_in(folder.path(), "/copy")?;
    /// assert_eq!(fs.read_to_string("/copy/file")?, "text");
    /// # Ok::<(), std::io::Error>(())
    /// ```
    ///
    /// # Errors
    /// The first object that could not be copied.
    pub fn copy_in(&self, host: impl AsRef<Path>, to: impl AsRef<Path>) -> Result<Report> {
        tree::Options::new().copy_in(self, host, to)
    }

    /// Copies a file or a tree out of the file system to this machine as `host`, or under it if it
    /// is a folder; see [`tree::Options::copy_out`].
    ///
    /// ```
    /// let folder = tempfile::tempdir()?;
    /// let fs = steadfast::Image::in_memory(16 << 20).mount()?;
    /// fs.create_dir("/folder")?;
    /// fs.write("/folder/file", "text")?;
    /// fs.copy_out("/folder", folder.path().join("copy"))?;
    /// assert_eq!(std::fs::read(folder.path().join("copy/file"))?, b"text");
    /// # Ok::<(), std::io::Error>(())
    /// ```
    ///
    /// # Errors
    /// The first object that could not be copied.
    pub fn copy_out(&self, from: impl AsRef<Path>, host: impl AsRef<Path>) -> Result<Report> {
        tree::Options::new().copy_out(self, from, host)
    }

    pub(crate) fn side(&self) -> Side {
        if self.0.host { Side::Host } else { Side::Image }
    }
}
