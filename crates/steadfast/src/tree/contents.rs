//! A file's contents into anything that takes bytes.

use std::io::{self, Write};
use std::path::Path;

use steadfast_vfs::path::resolve;
use steadfast_vfs::{Fh, FileType, FsError, OpenFlags};

use super::bound::{BEYOND, SizeLimit};
use super::pieces::{CHUNK, next_data};
use crate::error::{Error, bytes};
use crate::fs::FileSystem;

/// What a hole reads as, a part at a time.
static ZEROS: [u8; 64 << 10] = [0; 64 << 10];

impl FileSystem {
    /// Writes all that a file holds to `out`; returns how much that is. Holes are written as zeros
    /// and not read. A file that claims more data than the file system has room for is an error.
    ///
    /// ```
    /// let fs = steadfast::Image::in_memory(16 << 20).mount()?;
    /// fs.write("/file", "text")?;
    /// let mut out = Vec::new();
    /// assert_eq!(fs.read_to_writer("/file", &mut out)?, 4);
    /// assert_eq!(out, b"text");
    /// # Ok::<(), std::io::Error>(())
    /// ```
    ///
    /// # Errors
    /// As open(2) and read(2) ([`Error::of`] finds it); what `out` says.
    pub fn read_to_writer(&self, path: impl AsRef<Path>, mut out: impl Write) -> io::Result<u64> {
        let path = path.as_ref();
        let failed = |e: FsError| io::Error::from(Error::at("read_to_writer", path)(e));
        let fs = self.vfs();
        let attr = resolve(&**fs, bytes(path), true).map_err(failed)?;
        match attr.kind {
            FileType::Regular => {}
            FileType::Directory => return Err(failed(FsError::IsDirectory)),
            _ => {
                let what = "is not a regular file".into();
                return Err(Error::Object { path: path.to_owned(), what }.into());
            }
        }
        let flags = OpenFlags::READ | OpenFlags::CALLER_CACHES;
        let fh = fs.open(attr.ino, flags).map_err(failed)?;
        let written = self.write_all_to(path, (fh, attr.size), &mut out);
        fs.release(fh).map_err(failed)?;
        written.map(|()| attr.size)
    }

    fn write_all_to(
        &self,
        path: &Path,
        (fh, size): (Fh, u64),
        out: &mut dyn Write,
    ) -> io::Result<()> {
        let failed = |e: FsError| io::Error::from(Error::at("read_to_writer", path)(e));
        let refused = |what| io::Error::from(Error::Object { path: path.to_owned(), what });
        let fs = &**self.vfs();
        let bound = SizeLimit::of(fs, self.side()).map_err(failed)?;
        let (mut at, mut data) = (0, 0_u64);
        while let Some(piece) = next_data(fs, fh, at, size, bound).map_err(failed)? {
            data = data.saturating_add(piece.end - piece.start);
            if data > bound.bytes {
                return Err(refused(format!("{BEYOND}; written up to byte {at}")));
            }
            write_zeros(piece.start - at, out)?;
            at = piece.start;
            while at < piece.end {
                // OK to cast: at most CHUNK.
                let part = fs.read(fh, at, (piece.end - at).min(CHUNK) as usize).map_err(failed)?;
                if part.is_empty() {
                    return Err(refused(format!("ends at byte {at} of {size}")));
                }
                out.write_all(&part)?;
                at += part.len() as u64;
            }
        }
        write_zeros(size - at, out)
    }
}

fn write_zeros(mut count: u64, out: &mut dyn Write) -> io::Result<()> {
    while count > 0 {
        // OK to cast: at most the buffer's length.
        let part = count.min(ZEROS.len() as u64) as usize;
        out.write_all(&ZEROS[..part])?;
        count -= part as u64;
    }
    Ok(())
}
