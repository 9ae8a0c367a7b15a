//! The pieces of a file that hold data: between them are holes, which nobody reads or writes.

use std::ops::Range;

use steadfast_vfs::{Fh, FileSystem, FsError, Result, SeekTo};

use super::bound::SizeLimit;

/// Bytes moved at a time.
pub(super) const CHUNK: u64 = 1 << 20;

/// The first piece of data at or after `at`; `None` if only a hole follows. A file system that
/// has no such query has data up to `size`. Of a file that is larger than its bound it is a part of
/// the piece: looking for the end of it all could take days.
pub(super) fn next_data(
    fs: &dyn FileSystem,
    fh: Fh,
    at: u64,
    size: u64,
    bound: SizeLimit,
) -> Result<Option<Range<u64>>> {
    if at >= size {
        return Ok(None);
    }
    let start = match fs.seek(fh, at, SeekTo::Data) {
        Ok(start) => start,
        Err(FsError::NoAddress) => return Ok(None),
        Err(e) if is_unsupported_query(&e) => return Ok(Some(at..size)),
        Err(e) => return Err(e),
    };
    if size > bound.bytes {
        let end = end_of_part(fs, fh, start, size.min(start.saturating_add(CHUNK)), bound);
        return Ok((start < end).then_some(start..end));
    }
    // A file that shrinks meanwhile has no more data.
    let end = match fs.seek(fh, start, SeekTo::Hole) {
        Ok(end) => end,
        Err(FsError::NoAddress) => return Ok(None),
        Err(e) => return Err(e),
    };
    let piece = start.max(at)..end.min(size);
    Ok((piece.start < piece.end).then_some(piece))
}

/// How far the data at `start` goes, block by block, at most to `most`.
fn end_of_part(fs: &dyn FileSystem, fh: Fh, start: u64, most: u64, bound: SizeLimit) -> u64 {
    let mut end = start - start % bound.block + bound.block;
    // What cannot be read is met again by whoever goes on from here.
    while end < most && fs.seek(fh, end, SeekTo::Data) == Ok(end) {
        end += bound.block;
    }
    end.min(most)
}

fn is_unsupported_query(e: &FsError) -> bool {
    matches!(e, FsError::Unsupported { .. } | FsError::Invalid { .. })
        || e.errno() == rustix::io::Errno::INVAL.raw_os_error()
}
