//! Open files.

mod space;

use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::Bytes;
use steadfast_runtime::Mutex;
use steadfast_vfs::{Fh, FileSystem as Vfs, FsError, Ino, OpenFlags, SetAttr};

use crate::error::{Error, Result};
use crate::fs::FileSystemCore;
use crate::metadata::Metadata;

/// Bytes that one call moves at most: what is moved is in memory twice.
const CALL_MAX: usize = 16 << 20;
/// Bytes read at a time where the end of a file is not known.
const CHUNK: usize = 1 << 20;

/// An open file: [`Read`], [`Write`] and [`Seek`], of `&File` too, and the calls of
/// [`std::fs::File`]. It is closed when it is dropped, which makes nothing durable;
/// errors of closing are lost.
///
/// ```
/// use std::io::{Read, Seek, Write};
/// use steadfast::{Image, OpenOptions};
///
/// let fs = Image::in_memory(16 << 20).mount()?;
/// let mut file = OpenOptions::new().read(true).write(true).create(true).open(&fs, "/file")?;
/// file.write_all(b"contents")?;
/// file.sync_all()?;
/// file.rewind()?;
/// let mut text = String::new();
/// file.read_to_string(&mut text)?;
/// assert_eq!(text, "contents");
/// # Ok::<(), std::io::Error>(())
/// ```
pub struct File {
    mounted: Arc<FileSystemCore>,
    ino: Ino,
    handle: Handle,
    path: PathBuf,
    /// Where `read` and `write` go on.
    position: Mutex<u64>,
}

/// What is open.
#[derive(Clone, Copy)]
pub(crate) enum Handle {
    File(Fh, OpenFlags),
    Folder,
}

impl File {
    pub(crate) fn new(
        mounted: Arc<FileSystemCore>,
        ino: Ino,
        handle: Handle,
        path: PathBuf,
    ) -> File {
        File { mounted, ino, handle, path, position: Mutex::new(0) }
    }

    fn failed(&self, operation: &'static str) -> impl FnOnce(FsError) -> Error {
        Error::at(operation, &self.path)
    }

    /// Does something with its inode.
    pub(crate) fn on_inode<T>(
        &self,
        operation: &'static str,
        work: impl FnOnce(&dyn Vfs, Ino) -> std::result::Result<T, FsError>,
    ) -> Result<T> {
        work(&**self.mounted.fs(), self.ino).map_err(self.failed(operation))
    }

    /// The handle of a regular file that was opened for what `flag` says.
    fn fh(&self, flag: OpenFlags) -> std::result::Result<Fh, FsError> {
        match self.handle {
            Handle::File(fh, flags) if flags.contains(flag) => Ok(fh),
            Handle::File(..) => Err(FsError::BadHandle),
            Handle::Folder => Err(FsError::IsDirectory),
        }
    }

    /// Reads at a place, which has no say in where [`Read`] goes on; returns how many bytes, fewer
    /// than asked for at the end, none behind it.
    ///
    /// ```
    /// let fs = steadfast::Image::in_memory(16 << 20).mount()?;
    /// fs.write("/file", "12345")?;
    /// let mut two = [0; 2];
    /// assert_eq!(fs.open("/file")?.read_at(&mut two, 3)?, 2);
    /// assert_eq!(&two, b"45");
    /// # Ok::<(), std::io::Error>(())
    /// ```
    ///
    /// # Errors
    /// As pread(2).
    pub fn read_at(&self, buffer: &mut [u8], offset: u64) -> Result<usize> {
        self.get("read_at", buffer, offset)
    }

    fn get(&self, operation: &'static str, buffer: &mut [u8], offset: u64) -> Result<usize> {
        let len = buffer.len().min(CALL_MAX);
        let read = self.fh(OpenFlags::READ).and_then(|fh| self.mounted.fs().read(fh, offset, len));
        let read = read.map_err(self.failed(operation))?;
        let len = read.len().min(buffer.len());
        buffer[..len].copy_from_slice(&read[..len]);
        Ok(len)
    }

    /// Reads at a place until the buffer is full.
    ///
    /// ```
    /// let fs = steadfast::Image::in_memory(16 << 20).mount()?;
    /// fs.write("/file", "12345")?;
    /// let file = fs.open("/file")?;
    /// file.read_exact_at(&mut [0; 5], 0)?;
    /// assert!(file.read_exact_at(&mut [0; 5], 1).is_err());
    /// # Ok::<(), std::io::Error>(())
    /// ```
    ///
    /// # Errors
    /// Invalid: the file ends before; as pread(2).
    pub fn read_exact_at(&self, mut buffer: &mut [u8], mut offset: u64) -> Result<()> {
        while !buffer.is_empty() {
            let len = self.get("read_exact_at", buffer, offset)?;
            if len == 0 {
                let what = "the file ends before the buffer is full";
                return Err(self.failed("read_exact_at")(FsError::Invalid { what }));
            }
            buffer = &mut buffer[len..];
            offset += len as u64;
        }
        Ok(())
    }

    /// Writes at a place, which has no say in where [`Write`] goes on; returns how many bytes. A
    /// file that was opened to append writes at its end, wherever this says.
    ///
    /// ```
    /// let fs = steadfast::Image::in_memory(16 << 20).mount()?;
    /// let file = fs.create("/file")?;
    /// assert_eq!(file.write_at(b"end", 1 << 20)?, 3);
    /// assert_eq!(file.metadata()?.len(), (1 << 20) + 3);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    ///
    /// # Errors
    /// As pwrite(2).
    pub fn write_at(&self, data: &[u8], offset: u64) -> Result<usize> {
        self.set("write_at", data, offset)
    }

    fn set(&self, operation: &'static str, data: &[u8], offset: u64) -> Result<usize> {
        let data = &data[..data.len().min(CALL_MAX)];
        let written = self.fh(OpenFlags::WRITE).and_then(|fh| match data {
            [] => Ok(0),
            data => self.mounted.fs().write(fh, offset, Bytes::copy_from_slice(data)),
        });
        written.map_err(self.failed(operation))
    }

    /// Writes all of it at a place.
    ///
    /// ```
    /// let fs = steadfast::Image::in_memory(16 << 20).mount()?;
    /// let file = fs.create("/file")?;
    /// file.write_all_at(b"12345", 0)?;
    /// # Ok::<(), std::io::Error>(())
    /// ```
    ///
    /// # Errors
    /// As pwrite(2); a part may be written.
    pub fn write_all_at(&self, data: &[u8], offset: u64) -> Result<()> {
        self.put("write_all_at", data, offset)
    }

    pub(crate) fn put(
        &self,
        operation: &'static str,
        mut data: &[u8],
        mut offset: u64,
    ) -> Result<()> {
        while !data.is_empty() {
            let len = self.set(operation, data, offset)?;
            if len == 0 {
                let what = format!("nothing was written at byte {offset}");
                return Err(self.failed(operation)(FsError::Io { what }));
            }
            data = &data[len..];
            offset += len as u64;
        }
        Ok(())
    }

    /// What is at a place, a part of it; nothing at the end.
    pub(crate) fn part(&self, operation: &'static str, offset: u64) -> Result<Bytes> {
        let part = self.fh(OpenFlags::READ);
        let part = part.and_then(|fh| self.mounted.fs().read(fh, offset, CHUNK));
        part.map_err(self.failed(operation))
    }

    /// All of it from the start.
    pub(crate) fn all(&self, operation: &'static str) -> Result<Vec<u8>> {
        let mut all = Vec::new();
        loop {
            let from = all.len();
            let part = self.part(operation, from as u64)?;
            if part.is_empty() {
                return Ok(all);
            }
            // A damaged file may claim any size.
            if all.try_reserve(part.len()).is_err() {
                let what = format!("no memory for more than {from} bytes");
                return Err(self.failed(operation)(FsError::Io { what }));
            }
            all.extend_from_slice(&part);
        }
    }

    /// Makes the file durable, contents and metadata; of a folder, its names. When this returns, no
    /// power cut takes it.
    ///
    /// ```
    /// use std::io::Write;
    ///
    /// let fs = steadfast::Image::in_memory(16 << 20).mount()?;
    /// let mut file = fs.create("/file")?;
    /// file.write_all(b"kept")?;
    /// file.sync_all()?;
    /// fs.open("/")?.sync_all()?;
    /// # Ok::<(), std::io::Error>(())
    /// ```
    ///
    /// # Errors
    /// As fsync(2): nothing is promised then.
    pub fn sync_all(&self) -> Result<()> {
        self.sync("sync_all", false)
    }

    /// Makes the contents durable, and what is needed to read them.
    ///
    /// ```
    /// let fs = steadfast::Image::in_memory(16 << 20).mount()?;
    /// let file = fs.create("/file")?;
    /// file.write_all_at(b"kept", 0)?;
    /// file.sync_data()?;
    /// # Ok::<(), std::io::Error>(())
    /// ```
    ///
    /// # Errors
    /// As fdatasync(2).
    pub fn sync_data(&self) -> Result<()> {
        self.sync("sync_data", true)
    }

    fn sync(&self, operation: &'static str, data_only: bool) -> Result<()> {
        let synced = match self.handle {
            Handle::File(fh, _) => self.mounted.fs().fsync(fh, data_only),
            Handle::Folder => self.mounted.fs().fsyncdir(self.ino),
        };
        synced.map_err(self.failed(operation))
    }

    /// Cuts it, or extends it with a hole.
    ///
    /// ```
    /// let fs = steadfast::Image::in_memory(16 << 20).mount()?;
    /// let file = fs.create("/file")?;
    /// file.set_len(1 << 30)?;
    /// assert_eq!(file.metadata()?.len(), 1 << 30);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    ///
    /// # Errors
    /// As ftruncate(2).
    pub fn set_len(&self, size: u64) -> Result<()> {
        let set = SetAttr { size: Some(size), ..SetAttr::default() };
        let done = match self.fh(OpenFlags::WRITE) {
            Ok(_) => self.mounted.fs().setattr(self.ino, set).map(drop),
            // As ftruncate(2) of what was not opened for writing.
            Err(_) => Err(FsError::Invalid { what: "not opened for writing" }),
        };
        done.map_err(self.failed("set_len"))
    }

    /// What there is to know of it.
    ///
    /// ```
    /// let fs = steadfast::Image::in_memory(16 << 20).mount()?;
    /// assert!(fs.create("/file")?.metadata()?.is_empty());
    /// # Ok::<(), std::io::Error>(())
    /// ```
    ///
    /// # Errors
    /// As fstat(2).
    pub fn metadata(&self) -> Result<Metadata> {
        self.on_inode("metadata", |fs, ino| fs.getattr(ino)).map(Metadata::new)
    }

    /// The path it was opened by; it may have another name by now.
    ///
    /// ```
    /// let fs = steadfast::Image::in_memory(16 << 20).mount()?;
    /// assert_eq!(fs.create("/file")?.path().to_str(), Some("/file"));
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn path(&self) -> &Path {
        &self.path
    }

    fn appends(&self) -> bool {
        matches!(self.handle, Handle::File(_, flags) if flags.contains(OpenFlags::APPEND))
    }
}

impl Read for &File {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let mut position = self.position.lock();
        let len = self.get("read", buffer, *position)?;
        *position += len as u64;
        Ok(len)
    }
}

impl Write for &File {
    fn write(&mut self, data: &[u8]) -> io::Result<usize> {
        let mut position = self.position.lock();
        let len = self.set("write", data, *position)?;
        *position = match self.appends() {
            true => self.metadata()?.len(),
            false => *position + len as u64,
        };
        Ok(len)
    }

    /// Does nothing: nothing is kept here. [`File::sync_all`] makes it durable.
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Seek for &File {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        let mut position = self.position.lock();
        let target = match to {
            SeekFrom::Start(at) => Some(at),
            SeekFrom::Current(by) => position.checked_add_signed(by),
            SeekFrom::End(by) => self.metadata()?.len().checked_add_signed(by),
        };
        let target = target.filter(|at| i64::try_from(*at).is_ok());
        let what = "a place before the start or beyond all files";
        *position = target.ok_or_else(|| self.failed("seek")(FsError::Invalid { what }))?;
        Ok(*position)
    }
}

impl Read for File {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        (&*self).read(buffer)
    }
}

impl Write for File {
    fn write(&mut self, data: &[u8]) -> io::Result<usize> {
        (&*self).write(data)
    }

    fn flush(&mut self) -> io::Result<()> {
        (&*self).flush()
    }
}

impl Seek for File {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        (&*self).seek(to)
    }
}

impl Drop for File {
    fn drop(&mut self) {
        // A simulation that is torn down by a panic must not be waited in.
        if !self.mounted.usable() {
            return;
        }
        if let Handle::File(fh, _) = self.handle {
            // Nobody is left to get the error; what must be known, `sync_all` says.
            let _ = self.mounted.fs().flush(fh);
            let _ = self.mounted.fs().release(fh);
        }
    }
}

steadfast_runtime::debug_fields!(File: path);
