//! Third pass: the newest image of each block.

use bytes::Bytes;

use super::read::Reader;
use super::revoke::RevokeTable;
use super::scan::{LogScan, Transaction};
use super::{Overlay, RecoveryFinding, RecoveryReport};
use crate::ondisk::MAGIC;
use crate::ondisk::tag::{ESCAPE, Tag};
use crate::planted::Bug;
use crate::{JournalError, LogBlock, Result};

/// Brings the images together; every one that counts is checked before anything is written.
/// `fs_blocks` is the size of the file system's device.
pub(super) fn images(
    reader: &mut Reader<'_>,
    scanned: &LogScan,
    revoked: &RevokeTable,
    fs_blocks: u64,
    report: &mut RecoveryReport,
) -> Result<Overlay> {
    let mut overlay = Overlay::new();
    let magic = !reader.has(Bug::MagicNotRestored);
    for t in &scanned.transactions {
        report.images += t.images.len() as u64;
        for (at, tag) in &t.images {
            if revoked.covers(tag.block, t.tid) {
                report.revoked += 1;
                continue;
            }
            let place = || format!("log block {at}, transaction {}", t.tid);
            if tag.block.0 >= fs_blocks {
                let what = format!("block {} is beyond the file system's device", tag.block);
                return Err(JournalError::corrupt(what, place()));
            }
            let image = reader.block(*at)?;
            if !tag.matches(&reader.layout, t.tid.0, &image) {
                let what = format!("the checksum of block {}'s image does not match", tag.block);
                return Err(JournalError::corrupt(what, place()));
            }
            let image = if magic { unescaped(tag, image) } else { image };
            overlay.insert(tag.block, image);
        }
    }
    Ok(overlay)
}

fn unescaped(tag: &Tag, image: Bytes) -> Bytes {
    if tag.flags & ESCAPE == 0 {
        return image;
    }
    let mut bytes = image.to_vec();
    bytes[..4].copy_from_slice(&MAGIC.to_be_bytes());
    Bytes::from(bytes)
}

/// With asynchronous commit the commit block may be on the medium when some of the images are
/// not. The checksums of v2 and v3 commit blocks cover only themselves, so the last
/// transaction's images are checked one by one; if one is missing, the transaction is dropped:
/// it was not acknowledged as durable. (The kernel's recovery fails here.) An earlier
/// transaction was flushed before the next began, so a bad image in it is corruption.
pub(super) fn drop_unwritten_end(reader: &mut Reader<'_>, scanned: &mut LogScan) -> Result<()> {
    let Some(last) = scanned.transactions.last() else { return Ok(()) };
    if let Some((at, tag)) = first_bad(reader, last)? {
        let tid = last.tid;
        let what = format!("the image of block {} at {at} was not written", tag.block);
        scanned.findings.push(RecoveryFinding::Interrupted { tid, what });
        scanned.end = tid;
        scanned.transactions.pop();
    }
    Ok(())
}

fn first_bad(reader: &mut Reader<'_>, t: &Transaction) -> Result<Option<(LogBlock, Tag)>> {
    for (at, tag) in &t.images {
        let image = reader.block(*at)?;
        if !tag.matches(&reader.layout, t.tid.0, &image) {
            return Ok(Some((*at, *tag)));
        }
    }
    Ok(None)
}
