//! How a write request is to be written. Its flags are the open file's at the time of the call,
//! with O_DSYNC or O_SYNC if the call asks for that by RWF_DSYNC or RWF_SYNC, or the file was
//! opened so. O_DIRECT may have come or gone by fcntl(2) since.
//!
//! Of a file opened without O_DIRECT the kernel sends an fsync after each such write, whatever is
//! answered: to flush here too would flush twice. Past its page cache
//! (FOPEN_DIRECT_IO) it sends none: the write itself keeps the promise.

use std::collections::HashSet;
use std::sync::{Mutex, MutexGuard, PoisonError};

use steadfast_fuse_lowlevel::WriteFlags;
use steadfast_vfs::{Fh, OpenFlags};

const SYNC: OpenFlags = OpenFlags::SYNC.union(OpenFlags::DSYNC);

/// Open files whose every write the kernel follows with an fsync. One that is not here has its
/// promise kept at the write: at worst it is kept twice.
#[derive(Default)]
pub(super) struct SyncedAfter(Mutex<HashSet<Fh>>);

impl SyncedAfter {
    fn lock(&self) -> MutexGuard<'_, HashSet<Fh>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A file has been opened.
    pub fn note(&self, fh: Fh, flags: OpenFlags) {
        if flags.intersects(SYNC) && !flags.contains(OpenFlags::DIRECT) {
            self.lock().insert(fh);
        }
    }

    /// It was closed.
    pub fn forget(&self, fh: Fh) {
        self.lock().remove(&fh);
    }

    /// What a write request asks for.
    pub fn how(&self, fh: Fh, raw: i32, write: WriteFlags) -> OpenFlags {
        if write.contains(WriteFlags::CACHE) {
            // Pages of a mapping, through any file that is open for writing: not aligned at the
            // end of the file, and fsync or msync comes if one is wanted.
            return OpenFlags::WRITTEN_BACK;
        }
        let how = OpenFlags::from_raw(raw) & OpenFlags::BY_CALL;
        let is_followed =
            how.intersects(SYNC) && !how.contains(OpenFlags::DIRECT) && self.lock().contains(&fh);
        if is_followed { how - SYNC } else { how }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // x86-64 and arm64 have other values of O_DIRECT: asked of the types.
    fn raw(flags: rustix::fs::OFlags) -> i32 {
        flags.bits() as i32
    }

    #[test]
    fn a_promise_is_kept_by_the_write_or_by_the_fsync_that_follows() {
        use rustix::fs::OFlags;
        // asm-generic/fcntl.h
        let dsync = OFlags::from_bits_retain(0x1000);
        let none = WriteFlags::empty();
        let (buffered, direct, plain) = (Fh(1), Fh(2), Fh(3));
        let synced = SyncedAfter::default();
        synced.note(buffered, OpenFlags::WRITE | OpenFlags::DSYNC);
        synced.note(direct, OpenFlags::WRITE | OpenFlags::DSYNC | OpenFlags::DIRECT);
        synced.note(plain, OpenFlags::WRITE);
        let past = OpenFlags::DIRECT | OpenFlags::DSYNC;
        assert_eq!(synced.how(buffered, raw(dsync), none), OpenFlags::empty());
        assert_eq!(synced.how(direct, raw(dsync | OFlags::DIRECT), none), past);
        assert_eq!(synced.how(buffered, raw(dsync | OFlags::DIRECT), none), past);
        // dd takes O_DIRECT away for its last block; the kernel still goes past its cache.
        assert_eq!(synced.how(direct, raw(dsync), none), OpenFlags::DSYNC);
        // RWF_DSYNC, RWF_SYNC.
        assert_eq!(synced.how(plain, raw(dsync), none), OpenFlags::DSYNC);
        assert_eq!(synced.how(plain, raw(OFlags::SYNC), none), OpenFlags::SYNC);
        let page = WriteFlags::CACHE;
        let everything = raw(dsync | OFlags::DIRECT);
        assert_eq!(synced.how(direct, everything, page), OpenFlags::WRITTEN_BACK);
        synced.forget(buffered);
        assert_eq!(synced.how(buffered, raw(dsync), none), OpenFlags::DSYNC);
    }
}
