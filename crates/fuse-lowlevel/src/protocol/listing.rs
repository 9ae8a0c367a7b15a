//! The names of a directory, as many as an answer has room for.

use zerocopy::{Immutable, IntoBytes};

use super::attributes::EntryOut;

/// `struct fuse_dirent`, without the name behind it.
#[derive(IntoBytes, Immutable)]
#[repr(C)]
struct Dirent {
    ino: u64,
    off: u64,
    namelen: u32,
    kind: u32,
}

const _: () = assert!(size_of::<Dirent>() == 24);

/// Names, as the kernel wants them.
#[derive(Debug)]
pub struct Listing {
    bytes: Vec<u8>,
    size: usize,
}

impl Listing {
    /// Nothing yet, in an answer of at most `size` bytes.
    pub fn new(size: u32) -> Listing {
        let size = size as usize;
        // What one request asks for: the kernel's buffer is a page, or a few.
        Listing { bytes: Vec::with_capacity(size.min(64 << 10)), size }
    }

    /// Adds a name; `next`: where the next request is to go on. `kind`: the type as in st_mode.
    /// False: there was no room.
    #[must_use]
    pub fn add(&mut self, ino: u64, next: u64, kind: u32, name: &[u8]) -> bool {
        self.put(None, ino, next, kind, name)
    }

    /// As [`add`](Self::add), with what a lookup of it finds.
    #[must_use]
    pub fn add_entry(&mut self, entry: &EntryOut, next: u64, name: &[u8]) -> bool {
        self.put(Some(entry), entry.attr.ino, next, entry.attr.mode, name)
    }

    fn put(
        &mut self,
        entry: Option<&EntryOut>,
        ino: u64,
        next: u64,
        mode: u32,
        name: &[u8],
    ) -> bool {
        let head = entry.map_or(0, |_| size_of::<EntryOut>()) + size_of::<Dirent>();
        let len = (head + name.len()).next_multiple_of(8);
        if self.bytes.len() + len > self.size {
            return false;
        }
        let end = self.bytes.len() + len;
        if let Some(entry) = entry {
            self.bytes.extend_from_slice(entry.as_bytes());
        }
        // OK to cast: it has fitted.
        let namelen = name.len() as u32;
        let dirent = Dirent { ino, off: next, namelen, kind: (mode & 0o170_000) >> 12 };
        self.bytes.extend_from_slice(dirent.as_bytes());
        self.bytes.extend_from_slice(name);
        self.bytes.resize(end, 0);
        true
    }

    pub(crate) fn as_bytes(&self) -> &[u8] {
        &self.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_padded_and_bounded() {
        let mut listing = Listing::new(64);
        assert!(listing.add(5, 1, 0o100_644, b"abc"));
        assert!(!listing.add(5, 1, 0o100_644, b"a name that is so long"), "no room");
        assert!(listing.add(6, 2, 0o040_755, b"12345678"));
        let bytes = listing.as_bytes();
        assert_eq!(bytes.len(), 64);
        assert_eq!((bytes[16], bytes[20], &bytes[24..32]), (3, 8, &b"abc\0\0\0\0\0"[..]));
        assert_eq!((bytes[48], bytes[52]), (8, 4));
    }
}
