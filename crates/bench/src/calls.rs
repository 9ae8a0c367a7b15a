//! Calls on an open file, as every benchmark makes them.

use std::time::Duration;

use bytes::Bytes;
use steadfast_runtime::cpu;
use steadfast_vfs::{Fh, FileSystem, FsError};

/// Processor time of a system call apart from what the file system does: entry, exit, finding
/// the file, checking the buffer. Declared in the simulation; real calls take their own.
pub(crate) const SYSCALL: Duration = Duration::from_micros(1);

/// Writes all of it; or at which offset the call was that failed.
pub(crate) fn write(
    fs: &dyn FileSystem,
    fh: Fh,
    mut offset: u64,
    mut data: Bytes,
) -> Result<(), (u64, FsError)> {
    while !data.is_empty() {
        cpu(SYSCALL);
        let done = match fs.write(fh, offset, data.clone()).map_err(|e| (offset, e))? {
            0 => {
                let what = "nothing was written, and no error given".into();
                return Err((offset, FsError::Io { what }));
            }
            done => done.min(data.len()),
        };
        (offset, data) = (offset + done as u64, data.slice(done..));
    }
    Ok(())
}

/// Reads so many bytes, in parts as they come; or at which offset the call was that failed, and
/// how: `None`, the file ends there.
pub(crate) fn read(
    fs: &dyn FileSystem,
    fh: Fh,
    offset: u64,
    len: u64,
) -> Result<Vec<Bytes>, (u64, Option<FsError>)> {
    let mut parts: Vec<Bytes> = Vec::with_capacity(1);
    read_each(fs, fh, (offset, len), |part| parts.push(part))?;
    Ok(parts)
}

/// As [`read`], of a range (offset, bytes): each part goes to `take`.
pub(crate) fn read_each(
    fs: &dyn FileSystem,
    fh: Fh,
    (offset, len): (u64, u64),
    mut take: impl FnMut(Bytes),
) -> Result<(), (u64, Option<FsError>)> {
    let (mut at, end) = (offset, offset + len);
    while at < end {
        cpu(SYSCALL);
        let part = fs.read(fh, at, (end - at) as usize).map_err(|e| (at, Some(e)))?;
        if part.is_empty() {
            return Err((at, None));
        }
        at += part.len() as u64;
        take(part);
    }
    Ok(())
}

/// The parts in one.
pub(crate) fn joined(parts: Vec<Bytes>) -> Bytes {
    match &parts[..] {
        [whole] => whole.clone(),
        parts => Bytes::from(parts.concat()),
    }
}

/// The path of a file that a command line names: from the root, or else in the folder.
pub(crate) fn path_in(folder: &str, name: String) -> String {
    if name.starts_with('/') || folder.is_empty() {
        return name;
    }
    format!("{}/{name}", folder.trim_end_matches('/'))
}
