//! The handshake: which version, and what of it.

use bitflags::bitflags;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

bitflags! {
    /// What a kernel offers, and what is agreed on: FUSE_* of `struct fuse_init_in`, `flags` and
    /// above them `flags2`.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub struct Capabilities: u64 {
        /// Several reads of a file at once.
        const ASYNC_READ = 1;
        /// O_TRUNC comes with the open.
        const ATOMIC_O_TRUNC = 1 << 3;
        /// "." and ".." can be looked up.
        const EXPORT_SUPPORT = 1 << 4;
        /// Writes of more than a page.
        const BIG_WRITES = 1 << 5;
        /// The umask is sent and not applied.
        const DONT_MASK = 1 << 6;
        /// ioctl(2) on folders.
        const HAS_IOCTL_DIR = 1 << 11;
        /// Names are listed with attributes.
        const DO_READDIRPLUS = 1 << 13;
        /// But only where somebody wants them.
        const READDIRPLUS_AUTO = 1 << 14;
        /// Asynchronous direct I/O.
        const ASYNC_DIO = 1 << 15;
        /// The kernel keeps writes.
        const WRITEBACK_CACHE = 1 << 16;
        /// Lookups and listings of one folder at the same time.
        const PARALLEL_DIROPS = 1 << 18;
        /// Access lists.
        const POSIX_ACL = 1 << 20;
        /// Requests of more than 32 pages.
        const MAX_PAGES = 1 << 22;
        /// The targets of symbolic links are kept.
        const CACHE_SYMLINKS = 1 << 23;
        /// Folders need not be opened: ENOSYS to OPENDIR says so.
        const NO_OPENDIR_SUPPORT = 1 << 24;
        /// Set-id bits are taken away by the daemon.
        const HANDLE_KILLPRIV_V2 = 1 << 28;
        /// There are flags above these.
        const INIT_EXT = 1 << 30;
        /// Mappings of files that are opened past the page cache.
        const DIRECT_IO_ALLOW_MMAP = 1 << 36;
        /// Requests over io_uring.
        const OVER_IO_URING = 1 << 41;
        const _ = !0;
    }
}

/// `struct fuse_init_in`. Before 7.36 it ends after `flags`.
#[derive(Debug, Clone, Copy, FromBytes, Immutable, KnownLayout)]
#[repr(C)]
pub(crate) struct InitIn {
    pub major: u32,
    pub minor: u32,
    max_readahead: u32,
    flags: u32,
}

/// The version that is spoken: 7.45. Newer kernels answer in it.
pub(crate) const VERSION: (u32, u32) = (7, 45);
/// The oldest that is known to work: Linux 5.4.
const OLDEST: u32 = 31;

/// What a kernel offers.
#[derive(Debug, Clone, Copy)]
pub struct Offer {
    /// Its version of the protocol: 7, and this.
    pub minor: u32,
    /// What it can do.
    pub capabilities: Capabilities,
    /// Bytes that it would read ahead of a sequential reader.
    pub max_readahead: u32,
}

impl Offer {
    /// As it stands in the arguments of INIT; `more`: what comes behind the structure.
    pub(crate) fn of(asked: &InitIn, more: &[u8]) -> Result<Offer, String> {
        if asked.major < VERSION.0 || (asked.major == VERSION.0 && asked.minor < OLDEST) {
            let (major, minor) = (asked.major, asked.minor);
            return Err(format!(
                "the kernel speaks FUSE {major}.{minor}; 7.{OLDEST} (Linux 5.4) or newer is needed"
            ));
        }
        let mut capabilities = Capabilities::from_bits_retain(asked.flags.into());
        if capabilities.contains(Capabilities::INIT_EXT)
            && let Some(Ok(high)) = more.get(..4).map(<[u8; 4]>::try_from)
        {
            let high = u64::from(u32::from_ne_bytes(high)) << 32;
            capabilities |= Capabilities::from_bits_retain(high);
        }
        let max_readahead = asked.max_readahead;
        Ok(Offer { minor: asked.minor, capabilities, max_readahead })
    }
}

/// What a daemon wants of what is offered.
#[derive(Debug, Clone, Copy)]
pub struct Wishes {
    /// What the kernel is to do; what it has not offered is left out.
    pub capabilities: Capabilities,
    /// Bytes of a write request at most: a multiple of 4096, at most 1 MiB.
    pub max_write: u32,
    /// Requests under way that nobody waits for (read-ahead, write-back), at most.
    pub max_background: u16,
    /// Bytes that the kernel reads ahead at most; less than a page: it reads nothing ahead.
    pub max_readahead: u32,
}

/// `struct fuse_init_out`.
#[derive(Debug, Clone, Copy, IntoBytes, Immutable)]
#[repr(C)]
pub(crate) struct InitOut {
    major: u32,
    minor: u32,
    max_readahead: u32,
    flags: u32,
    max_background: u16,
    congestion_threshold: u16,
    max_write: u32,
    time_gran: u32,
    max_pages: u16,
    map_alignment: u16,
    flags2: u32,
    max_stack_depth: u32,
    request_timeout: u16,
    unused: [u16; 11],
}

const _: () = assert!(size_of::<InitOut>() == 64);

const PAGE: u32 = 4096;

impl InitOut {
    /// Only the version: the kernel is to begin again with it.
    pub fn version() -> InitOut {
        InitOut {
            major: VERSION.0,
            minor: VERSION.1,
            max_readahead: 0,
            flags: 0,
            max_background: 0,
            congestion_threshold: 0,
            max_write: 0,
            time_gran: 0,
            max_pages: 0,
            map_alignment: 0,
            flags2: 0,
            max_stack_depth: 0,
            request_timeout: 0,
            unused: [0; 11],
        }
    }

    /// What is agreed on.
    pub fn agreed(offer: &Offer, wishes: &Wishes) -> InitOut {
        let always = Capabilities::BIG_WRITES | Capabilities::MAX_PAGES | Capabilities::INIT_EXT;
        let agreed = ((wishes.capabilities | always) & offer.capabilities).bits();
        InitOut {
            max_readahead: wishes.max_readahead.min(offer.max_readahead),
            // OK to cast: the lower half, and the upper one.
            flags: agreed as u32,
            flags2: (agreed >> 32) as u32,
            max_background: wishes.max_background,
            congestion_threshold: wishes.max_background / 4 * 3,
            max_write: wishes.max_write,
            time_gran: 1,
            // OK to cast: at most 256.
            max_pages: wishes.max_write.div_ceil(PAGE) as u16,
            ..InitOut::version()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(major: u32, minor: u32, flags: u32) -> InitIn {
        InitIn { major, minor, max_readahead: 128 << 10, flags }
    }

    #[test]
    fn what_is_not_offered_is_not_agreed_on() {
        let more = (1u32 << (41 - 32)).to_ne_bytes();
        let offer = Offer::of(&asked(7, 45, 1 << 30 | 1 << 3), &more).unwrap();
        assert!(offer.capabilities.contains(Capabilities::OVER_IO_URING));
        let wishes = Wishes {
            capabilities: Capabilities::ATOMIC_O_TRUNC
                | Capabilities::POSIX_ACL
                | Capabilities::OVER_IO_URING,
            max_write: 1 << 20,
            max_background: 64,
            max_readahead: u32::MAX,
        };
        let out = InitOut::agreed(&offer, &wishes);
        assert_eq!((out.flags, out.flags2), (1 << 30 | 1 << 3, 1 << 9));
        assert_eq!((out.max_pages, out.max_readahead), (256, 128 << 10));
        // Without the flag for it what lies behind is not read.
        let offer = Offer::of(&asked(7, 35, 1 << 3), &more).unwrap();
        assert_eq!(offer.capabilities, Capabilities::ATOMIC_O_TRUNC);
    }

    #[test]
    fn kernels_before_5_4_are_refused() {
        assert!(Offer::of(&asked(7, 30, 0), &[]).unwrap_err().contains("7.30"));
        assert!(Offer::of(&asked(6, 99, 0), &[]).is_err());
        assert!(Offer::of(&asked(7, 31, 0), &[]).is_ok());
    }
}
