//! The flags of open(2), as the host's kernel and FUSE have them, and ours.
//!
//! By libc's values: rustix calls O_SYNC by both names on Linux, so its `DSYNC` is never what a
//! program that gave O_DSYNC alone has given.

use rustix::fs::OFlags;

use crate::OpenFlags;

/// O_DSYNC. O_SYNC has this bit and one more.
const DSYNC: OFlags = OFlags::from_bits_retain(libc::O_DSYNC as u32);
/// O_SYNC.
const SYNC: OFlags = OFlags::from_bits_retain(libc::O_SYNC as u32);

/// Flags that stand for each other, SYNC before its part DSYNC.
const PAIRS: [(OpenFlags, OFlags); 6] = [
    (OpenFlags::SYNC, SYNC),
    (OpenFlags::DSYNC, DSYNC),
    (OpenFlags::DIRECT, OFlags::DIRECT),
    (OpenFlags::APPEND, OFlags::APPEND),
    (OpenFlags::TRUNCATE, OFlags::TRUNC),
    (OpenFlags::NO_ACCESS_TIME, OFlags::NOATIME),
];

impl OpenFlags {
    /// What open(2)'s flags mean here; of the two promises the stronger.
    #[must_use]
    pub fn from_raw(raw: i32) -> OpenFlags {
        // OK to cast: bits.
        let raw = OFlags::from_bits_retain(raw as u32);
        let mut flags = match raw & OFlags::ACCMODE {
            OFlags::WRONLY => OpenFlags::WRITE,
            OFlags::RDWR => OpenFlags::READ | OpenFlags::WRITE,
            _ => OpenFlags::READ,
        };
        for (ours, theirs) in PAIRS {
            flags.set(ours, raw.contains(theirs));
        }
        if flags.contains(OpenFlags::SYNC) { flags - OpenFlags::DSYNC } else { flags }
    }

    /// The same as open(2) takes it, for rustix.
    pub(crate) fn to_raw(self) -> OFlags {
        let access = match (self.contains(OpenFlags::READ), self.contains(OpenFlags::WRITE)) {
            (true, true) => OFlags::RDWR,
            (false, true) => OFlags::WRONLY,
            _ => OFlags::RDONLY,
        };
        let given = PAIRS.iter().filter(|(ours, _)| self.contains(*ours));
        given.fold(access, |all, (_, theirs)| all | *theirs)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_flag_is_what_the_kernel_calls_so() {
        for (ours, theirs) in [
            (OpenFlags::SYNC, libc::O_SYNC),
            (OpenFlags::DSYNC, libc::O_DSYNC),
            (OpenFlags::DIRECT, libc::O_DIRECT),
            (OpenFlags::APPEND, libc::O_APPEND),
            (OpenFlags::TRUNCATE, libc::O_TRUNC),
            (OpenFlags::NO_ACCESS_TIME, libc::O_NOATIME),
        ] {
            assert_eq!(OpenFlags::from_raw(theirs | libc::O_WRONLY), ours | OpenFlags::WRITE);
            assert_eq!((ours | OpenFlags::WRITE).to_raw().bits(), (theirs | libc::O_WRONLY) as u32);
        }
        let both = OpenFlags::READ | OpenFlags::WRITE;
        assert_eq!(OpenFlags::from_raw(libc::O_RDWR | libc::O_CREAT | libc::O_EXCL), both);
        assert_eq!(OpenFlags::from_raw(0), OpenFlags::READ);
        assert_eq!(both.to_raw().bits(), libc::O_RDWR as u32);
    }

    #[test]
    fn o_dsync_alone_is_less_than_o_sync() {
        // asm-generic/fcntl.h: 00010000, and 04000000 with it.
        #[cfg(any(target_arch = "x86_64", target_arch = "aarch64", target_arch = "riscv64"))]
        assert_eq!((DSYNC.bits(), SYNC.bits()), (0x1000, 0x10_1000));
        assert!(SYNC.contains(DSYNC) && !DSYNC.contains(SYNC));
    }
}
