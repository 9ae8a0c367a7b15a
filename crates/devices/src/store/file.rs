//! Stores to and from sparse files of the host.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

use bytes::Bytes;
use rustix::fs::{SeekFrom, seek};
use steadfast_block::pattern::SECTOR;

use super::{CHUNK, Store};

impl Store {
    /// Writes the contents as a sparse file at `path`, which is created or replaced.
    ///
    /// # Errors
    /// What the host's file system reports.
    pub fn export(&self, path: &Path) -> io::Result<()> {
        let file = File::create(path)?;
        file.set_len(self.size)?;
        for (offset, len) in self.populated() {
            let mut at = offset;
            while at < offset + len {
                let piece = CHUNK.min(offset + len - at);
                file.write_all_at(&self.read(at, piece), at)?;
                at += piece;
            }
        }
        Ok(())
    }

    /// The contents of the file at `path`; its holes stay holes. The store's size is the file's,
    /// rounded up to a whole sector of 512 bytes.
    ///
    /// # Errors
    /// What the host's file system reports.
    pub fn import(path: &Path) -> io::Result<Store> {
        let file = File::open(path)?;
        let len = file.metadata()?.len();
        let mut store = Store::new(len.next_multiple_of(SECTOR as u64));
        let mut at = 0;
        while at < len {
            let Some((from, end)) = data_after(&file, at, len) else { break };
            at = from;
            while at < end {
                let mut piece = vec![0; CHUNK.min(end - at) as usize];
                file.read_exact_at(&mut piece, at)?;
                let bytes = Bytes::from(piece);
                store.write_part(at, &bytes, None);
                at += bytes.len() as u64;
            }
        }
        Ok(store)
    }
}

/// The next range of the file that is not a hole; everything, where the host has no such query.
fn data_after(file: &File, at: u64, len: u64) -> Option<(u64, u64)> {
    match seek(file, SeekFrom::Data(at)) {
        Ok(from) if from >= at && from < len => {
            let end = seek(file, SeekFrom::Hole(from)).unwrap_or(len).clamp(from + 1, len);
            Some((from, end))
        }
        Ok(_) | Err(rustix::io::Errno::NXIO) => None,
        Err(_) => Some((at, len)),
    }
}
