//! Operations on open files.

use bytes::Bytes;
use steadfast_ext4_format::ondisk::InodeFlags;
use steadfast_vfs::{Fh, FileType, FsError, OpenFlags, Result, TransactMask};

use super::attributes::VERITY_IS_READ_ONLY;
use crate::file::{delete_if_unused, read_file, read_file_into, write_file};
use crate::mounted::{Ext4, key};
use crate::state::{Inode, OpenFile};

/// What a write counts as in a transaction mask.
pub(super) fn written_bits(how: OpenFlags) -> TransactMask {
    match how.intersects(OpenFlags::SYNC | OpenFlags::DSYNC) {
        true => TransactMask::WRITE | TransactMask::FSYNC,
        false => TransactMask::WRITE,
    }
}

impl Ext4 {
    /// What an opening does after the handle is there: if it fails nobody learns the handle, so it
    /// is closed again. One that stayed would be in the way of every rollback.
    pub(super) fn or_close(&self, fh: Fh, done: Result<()>) -> Result<()> {
        done.inspect_err(|_| {
            // OK to ignore: the first failure is the one to report.
            let _ = release(self, fh);
        })
    }
}

pub(super) fn release(fs: &Ext4, fh: Fh) -> Result<()> {
    let (file, last) = fs.handles.remove(fh)?;
    if fs.volume.status.is_down() {
        return Ok(());
    }
    if fs.group_failure().is_some() {
        // The inode goes back as it was; the end of the group and fsync say so.
        return fs.settle_group();
    }
    if last {
        release_last(fs, &file.inode)?;
    }
    fs.point_after_close(&file)
}

/// Whether a file may be opened so.
pub(super) fn check_openable(fs: &Ext4, inode: &Inode, flags: OpenFlags) -> Result<()> {
    match inode.kind() {
        FileType::Regular => {}
        FileType::Directory => return Err(FsError::IsDirectory),
        _ => return Err(FsError::Invalid { what: "only regular files are opened here" }),
    }
    if inode.state().raw.flags().contains(InodeFlags::ENCRYPTED) {
        return Err(FsError::NoKey);
    }
    if flags.intersects(OpenFlags::WRITE | OpenFlags::TRUNCATE) {
        fs.run(|| fs.parts.check_writable())?;
        let kept = inode.state().raw.flags();
        let appends = flags.contains(OpenFlags::APPEND) && !flags.contains(OpenFlags::TRUNCATE);
        let append_only = kept.contains(InodeFlags::APPEND) && !appends;
        if kept.contains(InodeFlags::IMMUTABLE) || append_only {
            return Err(FsError::NotPermitted { what: "the file is immutable or append-only" });
        }
        if kept.contains(InodeFlags::VERITY) {
            return Err(FsError::NotPermitted { what: VERITY_IS_READ_ONLY });
        }
    }
    Ok(())
}

pub(super) fn read_from(
    fs: &Ext4,
    file: &OpenFile,
    direct: bool,
    offset: u64,
    len: usize,
) -> Result<Bytes> {
    let read = fs.run(|| read_file(fs, file, direct, offset, len))?;
    note_read(fs, file);
    Ok(read)
}

/// The same into the caller's memory.
pub(super) fn read_into(
    fs: &Ext4,
    file: &OpenFile,
    direct: bool,
    offset: u64,
    out: &mut [u8],
) -> Result<usize> {
    let read = fs.run(|| read_file_into(fs, file, direct, offset, out))?;
    note_read(fs, file);
    Ok(read)
}

fn note_read(fs: &Ext4, file: &OpenFile) {
    if !file.flags.contains(OpenFlags::NO_ACCESS_TIME) {
        fs.accessed(&file.inode);
    }
}

pub(super) fn write_to(
    fs: &Ext4,
    file: &OpenFile,
    how: OpenFlags,
    offset: u64,
    data: &Bytes,
) -> Result<usize> {
    let deleted = fs.parts.holds.deleted();
    let mut written = fs.run(|| write_file(fs, file, how, offset, data.clone()))?;
    let may_find_more = || {
        let busy = !fs.parts.transacts() && fs.parts.allocator.counts().busy_blocks > 0;
        fs.parts.holds.settle(deleted) || busy
    };
    if written < data.len() && may_find_more() {
        // There was no space for more, and now there may be. What fails has written this much.
        let (at, rest) = (offset + written as u64, data.slice(written..));
        let more = fs.run(|| write_file(fs, file, how, at, rest.clone()));
        written += more.unwrap_or(0);
    }
    file.note_write();
    fs.point_after(written_bits(how))?;
    Ok(written)
}

/// Nobody has the file open any more.
fn release_last(fs: &Ext4, inode: &Inode) -> Result<()> {
    let flush = std::mem::take(&mut inode.state().flush_on_close);
    let delays = fs.options.delayed_allocation && fs.options.auto_da_alloc;
    let delays = delays && !fs.parts.transacts();
    if flush && inode.state().raw.links() > 0 && delays {
        // An error stays with the file, for fsync to report.
        let _ = fs.pages.flush(key(inode.no));
    }
    fs.parts.lock_meta().alloc.windows.remove(inode.no);
    fs.run(|| delete_if_unused(fs, inode))
}
