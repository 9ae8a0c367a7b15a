//! `cat`: a file's contents.

use std::io::Write;

use anyhow::{Context, Result, bail};
use steadfast_vfs::path::resolve;
use steadfast_vfs::{Fh, FileSystem, FileType, FsError, OpenFlags};

use super::bound::{BEYOND, Bound};
use super::names::shown;
use super::pieces::{CHUNK, next_data};
use super::walk::Side;

/// What a hole reads as, a part at a time.
static ZEROS: [u8; 64 << 10] = [0; 64 << 10];

/// Copies a file's contents to `out`.
pub fn cat(fs: &dyn FileSystem, path: &[u8], out: &mut dyn Write) -> Result<()> {
    let attr = resolve(fs, path, true).with_context(|| shown(path))?;
    match attr.kind {
        FileType::Regular => {}
        FileType::Directory => bail!("{}: {}", shown(path), FsError::IsDirectory),
        _ => bail!("{}: is not a regular file", shown(path)),
    }
    let fh = fs.open(attr.ino, OpenFlags::READ | OpenFlags::CALLER_CACHES);
    let fh = fh.with_context(|| shown(path))?;
    let written = write_all(fs, fh, attr.size, out).with_context(|| shown(path));
    fs.release(fh)?;
    written
}

fn write_all(fs: &dyn FileSystem, fh: Fh, size: u64, out: &mut dyn Write) -> Result<()> {
    let bound = Bound::of(fs, Side::Image)?;
    let (mut at, mut data) = (0, 0_u64);
    while let Some(piece) = next_data(fs, fh, at, size, bound)? {
        data = data.saturating_add(piece.end - piece.start);
        if data > bound.bytes {
            bail!("{BEYOND}; written up to byte {at}");
        }
        write_zeros(piece.start - at, out)?;
        at = piece.start;
        while at < piece.end {
            // OK to cast: at most CHUNK.
            let part = fs.read(fh, at, (piece.end - at).min(CHUNK) as usize)?;
            if part.is_empty() {
                bail!("ends at byte {at} of {size}");
            }
            out.write_all(&part)?;
            at += part.len() as u64;
        }
    }
    write_zeros(size - at, out)
}

fn write_zeros(mut count: u64, out: &mut dyn Write) -> Result<()> {
    while count > 0 {
        // OK to cast: at most the buffer's length.
        let part = count.min(ZEROS.len() as u64) as usize;
        out.write_all(&ZEROS[..part])?;
        count -= part as u64;
    }
    Ok(())
}
