//! fallocate: space for what is still to be written, holes, zeros, and ranges that come out of a
//! file or into it.
//!
//! Each works under the exclusive lock of the file, in transactions of bounded size. After every
//! one of them the file is a valid one: a crash leaves a prefix of the work done. What fits into
//! one transaction happens whole or not at all. The rules (what is refused, which times change,
//! how far a hole reaches beyond the end) are those of the kernel's fs/ext4/extents.c, 6.x.
//!
//! # Why no old contents show
//!
//! * Space is allocated as unwritten extents, which read as zeros until write-back has put data
//!   there and waited for it.
//! * Pages of a range that goes are dropped from the page cache, and their writes in flight are
//!   over, before its blocks are given back: nothing is written to blocks that are others' by then.
//! * Reservations of delayed data go in the same step as the pages that they were made for.

mod punch;
mod shift;
mod space;

use steadfast_ext4_format::ondisk::InodeFlags;
use steadfast_ext4_format::{Ext4Error, Result};
use steadfast_vfs::{Fallocate, FsError};

use crate::file::dax::zero_to;
use crate::file::fallocate::punch::punch_hole;
pub(crate) use crate::file::fallocate::punch::zero_journalled;
use crate::file::fallocate::shift::{collapse_range, insert_range};
use crate::file::fallocate::space::{allocate_range, zero_range};
use crate::file::in_place::is_dax;
use crate::file::inline::move_out_of_inode;
use crate::file::reserve::unreserve;
use crate::file::times::{check_end, touch_written};
use crate::mounted::{Ext4, key};
use crate::planted::Bug;
use crate::state::Inode;

/// Does what fallocate(2) does to `[offset, offset + len)` bytes of a file.
///
/// # Errors
/// EINVAL (no length; a shift that is not aligned, or not inside the file), EFBIG, EPERM
/// (immutable, or append-only and not a plain allocation), EOPNOTSUPP (all but holes in files
/// mapped by indirect blocks), ENOSPC.
pub(crate) fn fallocate_file(
    fs: &Ext4,
    inode: &Inode,
    what: Fallocate,
    offset: u64,
    len: u64,
) -> Result<()> {
    if len == 0 {
        return Err(FsError::Invalid { what: "fallocate of no bytes" }.into());
    }
    let end = check_end(fs, inode, offset, len)?;
    let _exclusive = inode.data_lock.write();
    fs.parts.check_writable()?;
    let flags = inode.state().raw.flags();
    let appends_only = flags.contains(InodeFlags::APPEND);
    if flags.contains(InodeFlags::IMMUTABLE)
        || (appends_only && !matches!(what, Fallocate::Allocate { .. }))
    {
        return Err(FsError::NotPermitted { what: "the file is immutable or append-only" }.into());
    }
    fs.with_space(|| move_out_of_inode(fs, inode))?;
    let flags = inode.state().raw.flags();
    if !flags.contains(InodeFlags::EXTENTS) && what != Fallocate::PunchHole {
        let what = "this kind of fallocate in a file mapped by indirect blocks".into();
        return Err(Ext4Error::Fs(FsError::Unsupported { what }));
    }
    touch_written(fs, inode)?;
    if is_dax(fs, inode) {
        zero_to(fs, inode, end)?;
    }
    match what {
        Fallocate::Allocate { keep_size } => {
            allocate_range(fs, inode, offset, end, keep_size, None)
        }
        Fallocate::PunchHole => punch_hole(fs, inode, offset, end),
        Fallocate::ZeroRange { keep_size } => zero_range(fs, inode, offset, end, keep_size),
        Fallocate::CollapseRange => collapse_range(fs, inode, offset, end),
        Fallocate::InsertRange => insert_range(fs, inode, offset, len),
    }
}

/// Writes out all that is dirty and takes everything from byte `from` on out of the cache:
/// what it holds will be at another place in the file. Refused while some of that is lost: nobody
/// would know any more that it is, and where.
pub(crate) fn flush_and_drop(fs: &Ext4, inode: &Inode, from: u64) -> Result<()> {
    if !fs.volume.has(Bug::CollapseWithoutFlush) {
        fs.pages.flush(key(inode.no))?;
    }
    fs.pages.check_lost(key(inode.no), &(from..u64::MAX))?;
    fs.pages.invalidate(key(inode.no), from..u64::MAX);
    // All data has its place now. No reservation may be left for what will stand there.
    unreserve(fs, inode, from / fs.volume.block_size(), u64::MAX);
    Ok(())
}
