//! Requests about ranges of files: allocation, holes, copies within the file system.

use steadfast_vfs::{Fallocate, Fh, FsError, Ino, Result, SeekTo};

use super::Bridge;
use super::caller::Caller;

/// FALLOC_FL_* of fallocate(2).
const KEEP_SIZE: i32 = 1;
const PUNCH_HOLE: i32 = 2;
const COLLAPSE_RANGE: i32 = 8;
const ZERO_RANGE: i32 = 16;
const INSERT_RANGE: i32 = 32;

/// Bytes that one request copies at most: its caller goes on with the rest, and can be killed in
/// between.
const COPY_MAX: u64 = 16 << 20;
/// Bytes that are copied at a time.
const PIECE: usize = 1 << 20;

/// What fallocate(2) is to do.
pub(super) fn allocation(mode: i32) -> Result<Fallocate> {
    let keep_size = mode & KEEP_SIZE != 0;
    Ok(match mode & !KEEP_SIZE {
        0 => Fallocate::Allocate { keep_size },
        PUNCH_HOLE if keep_size => Fallocate::PunchHole,
        ZERO_RANGE => Fallocate::ZeroRange { keep_size },
        COLLAPSE_RANGE if !keep_size => Fallocate::CollapseRange,
        INSERT_RANGE if !keep_size => Fallocate::InsertRange,
        _ => return Err(FsError::Unsupported { what: format!("fallocate with mode {mode:#x}") }),
    })
}

/// Whether fallocate(2) with this mode changes more than what has storage, and the size.
pub(super) fn changes_bytes(mode: i32) -> bool {
    mode & !KEEP_SIZE != 0
}

/// What lseek(2) looks for: SEEK_DATA and SEEK_HOLE of Linux; the others never leave the kernel.
pub(super) fn sought(whence: i32) -> Result<SeekTo> {
    match whence {
        3 => Ok(SeekTo::Data),
        4 => Ok(SeekTo::Hole),
        _ => Err(FsError::Invalid { what: "where to seek from" }),
    }
}

impl Bridge {
    /// Copies between two files, or within one (copy_file_range(2)); how many bytes, which may be
    /// fewer than asked for. The kernel has written its pages and refused ranges that overlap.
    pub(super) fn copy(
        &self,
        (from, from_offset): (Fh, u64),
        (to, to_offset): (Fh, u64),
        to_ino: Ino,
        len: u64,
        caller: Caller,
    ) -> Result<u32> {
        self.before_change(to_ino, caller)?;
        let len = len.min(COPY_MAX);
        let mut done = 0;
        while done < len {
            let piece = (PIECE as u64).min(len - done) as usize;
            let copied = self.copy_piece((from, from_offset + done), (to, to_offset + done), piece);
            match copied {
                Ok(0) => break,
                Ok(n) => done += n as u64,
                // An O_DIRECT handle: with EOPNOTSUPP the kernel copies through its own buffers.
                Err(FsError::Invalid { what }) if done == 0 => {
                    return Err(FsError::Unsupported { what: format!("copying: {what}") });
                }
                Err(e) if done == 0 => return Err(e),
                // What is there is reported; the next request meets the error again.
                Err(_) => break,
            }
        }
        if self.options.sync {
            self.fs.fsync(to, false)?;
        }
        // OK to cast: no more than COPY_MAX.
        Ok(done as u32)
    }

    fn copy_piece(&self, from: (Fh, u64), to: (Fh, u64), len: usize) -> Result<usize> {
        let data = self.fs.read(from.0, from.1, len)?;
        if data.is_empty() { Ok(0) } else { self.fs.write(to.0, to.1, data) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modes_have_their_meaning() {
        assert_eq!(allocation(KEEP_SIZE).unwrap(), Fallocate::Allocate { keep_size: true });
        assert_eq!(allocation(PUNCH_HOLE | KEEP_SIZE).unwrap(), Fallocate::PunchHole);
        assert!(allocation(PUNCH_HOLE).is_err() && allocation(COLLAPSE_RANGE | KEEP_SIZE).is_err());
        assert_eq!((sought(3).unwrap(), sought(4).unwrap()), (SeekTo::Data, SeekTo::Hole));
        assert!(sought(0).is_err());
    }
}
