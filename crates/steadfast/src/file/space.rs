//! The storage of an open file: allocation, holes, and ranges that move.

use steadfast_vfs::{Fallocate, FileExtent, FsError, OpenFlags, SeekTo};

use super::{File, Handle};
use crate::error::Result;

impl File {
    /// Gives the range of `len` bytes storage where it has none, which reads as zeros; the file
    /// grows to the end of the range. Later writes there do not fail for want of space.
    ///
    /// ```
    /// let fs = steadfast::Image::in_memory(16 << 20).mount()?;
    /// let file = fs.create("/file")?;
    /// file.write_all_at(&[[1; 4096], [2; 4096]].concat(), 0)?;
    /// file.allocate(0, 1 << 20)?;
    /// assert_eq!(file.metadata()?.len(), 1 << 20);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    ///
    /// # Errors
    /// As fallocate(2).
    pub fn allocate(&self, offset: u64, len: u64) -> Result<()> {
        self.fallocate("allocate", Fallocate::Allocate { keep_size: false }, offset, len)
    }

    /// As [`File::allocate`], but the file does not grow: storage beyond its end waits for what is
    /// appended (FALLOC_FL_KEEP_SIZE).
    ///
    /// ```
    /// let fs = steadfast::Image::in_memory(16 << 20).mount()?;
    /// let file = fs.create("/file")?;
    /// file.write_all_at(&[[1; 4096], [2; 4096]].concat(), 0)?;
    /// file.allocate_keep_size(0, 1 << 20)?;
    /// assert_eq!(file.metadata()?.len(), 8192);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    ///
    /// # Errors
    /// As fallocate(2).
    pub fn allocate_keep_size(&self, offset: u64, len: u64) -> Result<()> {
        self.fallocate("allocate_keep_size", Fallocate::Allocate { keep_size: true }, offset, len)
    }

    /// Gives the storage of a range back; it reads as zeros and the size stays
    /// (FALLOC_FL_PUNCH_HOLE).
    ///
    /// ```
    /// let fs = steadfast::Image::in_memory(16 << 20).mount()?;
    /// let file = fs.create("/file")?;
    /// file.write_all_at(&[[1; 4096], [2; 4096]].concat(), 0)?;
    /// file.punch_hole(0, 4096)?;
    /// assert_eq!(fs.read("/file")?, [[0; 4096], [2; 4096]].concat());
    /// # Ok::<(), std::io::Error>(())
    /// ```
    ///
    /// # Errors
    /// As fallocate(2).
    pub fn punch_hole(&self, offset: u64, len: u64) -> Result<()> {
        self.fallocate("punch_hole", Fallocate::PunchHole, offset, len)
    }

    /// Makes a range zeros that keep their storage; the file grows to the end of the range
    /// (FALLOC_FL_ZERO_RANGE).
    ///
    /// ```
    /// let fs = steadfast::Image::in_memory(16 << 20).mount()?;
    /// let file = fs.create("/file")?;
    /// file.write_all_at(&[[1; 4096], [2; 4096]].concat(), 0)?;
    /// file.zero_range(0, 4096)?;
    /// assert_eq!(fs.read("/file")?, [[0; 4096], [2; 4096]].concat());
    /// # Ok::<(), std::io::Error>(())
    /// ```
    ///
    /// # Errors
    /// As fallocate(2).
    pub fn zero_range(&self, offset: u64, len: u64) -> Result<()> {
        self.fallocate("zero_range", Fallocate::ZeroRange { keep_size: false }, offset, len)
    }

    /// Takes a range out; what follows moves to its start. In whole blocks and before the end of
    /// the file (FALLOC_FL_COLLAPSE_RANGE).
    ///
    /// ```
    /// let fs = steadfast::Image::in_memory(16 << 20).mount()?;
    /// let file = fs.create("/file")?;
    /// file.write_all_at(&[[1; 4096], [2; 4096]].concat(), 0)?;
    /// file.collapse_range(0, 4096)?;
    /// assert_eq!(fs.read("/file")?, [2; 4096]);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    ///
    /// # Errors
    /// As fallocate(2).
    pub fn collapse_range(&self, offset: u64, len: u64) -> Result<()> {
        self.fallocate("collapse_range", Fallocate::CollapseRange, offset, len)
    }

    /// Puts a hole in; what was there moves behind it. In whole blocks and before the end of the
    /// file (FALLOC_FL_INSERT_RANGE).
    ///
    /// ```
    /// let fs = steadfast::Image::in_memory(16 << 20).mount()?;
    /// let file = fs.create("/file")?;
    /// file.write_all_at(&[[1; 4096], [2; 4096]].concat(), 0)?;
    /// file.insert_range(0, 4096)?;
    /// assert_eq!(fs.read("/file")?, [[0; 4096], [1; 4096], [2; 4096]].concat());
    /// # Ok::<(), std::io::Error>(())
    /// ```
    ///
    /// # Errors
    /// As fallocate(2).
    pub fn insert_range(&self, offset: u64, len: u64) -> Result<()> {
        self.fallocate("insert_range", Fallocate::InsertRange, offset, len)
    }

    /// As fallocate(2); of what was not opened for writing EBADF, as there.
    fn fallocate(
        &self,
        operation: &'static str,
        what: Fallocate,
        offset: u64,
        len: u64,
    ) -> Result<()> {
        let done = self.fh(OpenFlags::WRITE).and_then(|fh| {
            if len == 0 {
                return Err(FsError::Invalid { what: "a range of no bytes" });
            }
            self.mounted.fs().fallocate(fh, what, offset, len)
        });
        done.map_err(self.failed(operation))
    }

    /// Where the first data at or behind `offset` begins; `None` if there is none (SEEK_DATA). It
    /// has no say in where [`Read`](std::io::Read) goes on.
    ///
    /// ```
    /// let fs = steadfast::Image::in_memory(16 << 20).mount()?;
    /// let file = fs.create("/file")?;
    /// file.write_all_at(b"data", 1 << 20)?;
    /// assert_eq!(file.seek_data(0)?, Some(1 << 20));
    /// assert_eq!(file.seek_data(2 << 20)?, None);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    ///
    /// # Errors
    /// As lseek(2).
    pub fn seek_data(&self, offset: u64) -> Result<Option<u64>> {
        self.find("seek_data", offset, SeekTo::Data)
    }

    /// Where the first hole at or behind `offset` begins: the end of the file is one; `None` behind
    /// the end (SEEK_HOLE).
    ///
    /// ```
    /// let fs = steadfast::Image::in_memory(16 << 20).mount()?;
    /// let file = fs.create("/file")?;
    /// file.write_all_at(b"data", 0)?;
    /// assert_eq!(file.seek_hole(0)?, Some(4));
    /// assert_eq!(file.seek_hole(5)?, None);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    ///
    /// # Errors
    /// As lseek(2).
    pub fn seek_hole(&self, offset: u64) -> Result<Option<u64>> {
        self.find("seek_hole", offset, SeekTo::Hole)
    }

    fn find(&self, operation: &'static str, offset: u64, to: SeekTo) -> Result<Option<u64>> {
        let found = match self.handle {
            Handle::File(fh, _) => self.mounted.fs().seek(fh, offset, to),
            Handle::Folder => Err(FsError::IsDirectory),
        };
        match found {
            Ok(place) => Ok(Some(place)),
            Err(FsError::NoAddress) => Ok(None),
            Err(failed) => Err(self.failed(operation)(failed)),
        }
    }

    /// The parts of a range that have storage, in order, and where on the device they lie, in
    /// bytes (FIEMAP).
    ///
    /// ```
    /// let fs = steadfast::Image::in_memory(16 << 20).mount()?;
    /// let file = fs.create("/file")?;
    /// file.write_all_at(&[1; 4096], 8192)?;
    /// file.sync_all()?;
    /// let extents = file.extents(0, 1 << 20)?;
    /// assert_eq!((extents.len(), extents[0].logical, extents[0].len), (1, 8192, 4096));
    /// # Ok::<(), std::io::Error>(())
    /// ```
    ///
    /// # Errors
    /// As ioctl(2) with FS_IOC_FIEMAP.
    pub fn extents(&self, offset: u64, len: u64) -> Result<Vec<FileExtent>> {
        self.mounted.fs().extents(self.ino, offset, len).map_err(self.failed("extents"))
    }
}
