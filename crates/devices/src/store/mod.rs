//! Sparse contents, cheap to keep and to copy.
//!
//! A [`Store`] is the contents of a modelled device. A benchmark writes gigabytes into it, and the
//! crash explorer copies it thousands of times, so three properties make it cheap:
//!
//! * **packing**: pages (4 KiB) that a few words determine are stored as those words: runs of
//!   [stamped sectors](steadfast_block::pattern) and constant pages. Other pages share the memory
//!   of their write ([`PackedBytes`]);
//! * **sparseness**: unwritten pages cost nothing and read as zeros;
//! * **copy on write**: a clone shares everything; a write copies the 1 MiB chunk's page table it
//!   touches, never contents.
//!
//! # Invariants
//!
//! 1. Packing is lossless: a read returns exactly the bytes last written.
//! 2. A page's packed form depends on its 4096 bytes alone, however they were written. So two
//!    stores hold the same bytes exactly if their pages are equal, and [`Store::digest`] need not
//!    expand them.
//! 3. A chunk without a page that differs from zeros may exist, and means nothing.

mod digest;
mod file;
mod packed;
mod page;
mod parts;
mod unreadable;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use bytes::Bytes;
use steadfast_block::Payload;
use steadfast_block::pattern::{self, SECTOR, Stamp};

pub use digest::Digest;
pub use packed::{PackedBytes, Segment};
use page::{PAGE, Page};

/// Bytes of a page, the unit of [`Store::page_digest`].
pub const PAGE_BYTES: u64 = PAGE as u64;
/// Pages in a chunk.
const PAGES: usize = 256;
/// Bytes in a chunk.
const CHUNK: u64 = (PAGE * PAGES) as u64;

type Chunk = [Page; PAGES];

/// The contents of a device of a fixed size: bytes at offsets, zeros where never written.
///
/// Cloning takes a snapshot in constant time.
#[derive(Clone)]
pub struct Store {
    size: u64,
    chunks: Arc<BTreeMap<u64, Arc<Chunk>>>,
    /// Numbers of the sectors that cannot be read; mostly none.
    unreadable: Arc<BTreeSet<u64>>,
}

/// A piece of a request that lies within one page.
struct Piece {
    /// Number of the page on the device.
    page: u64,
    /// First byte within the page.
    start: usize,
    /// Offset of the piece within the request.
    at: usize,
    len: usize,
}

impl Piece {
    fn is_whole(&self) -> bool {
        self.len == PAGE
    }
}

/// Cuts a range of the device at page boundaries.
fn pieces(offset: u64, len: usize) -> impl Iterator<Item = Piece> {
    let mut at = 0;
    std::iter::from_fn(move || {
        let position = offset + at as u64;
        let start = (position % PAGE as u64) as usize;
        let piece =
            Piece { page: position / PAGE as u64, start, at, len: (PAGE - start).min(len - at) };
        at += piece.len;
        (piece.len > 0).then_some(piece)
    })
}

impl Store {
    /// A store of `size` bytes that reads as zeros.
    pub fn new(size: u64) -> Self {
        Store { size, chunks: Arc::default(), unreadable: Arc::default() }
    }

    /// A store that is full of the same bytes, again and again: `tile` is a MiB of them. It takes
    /// no more memory than one, and a table of them.
    ///
    /// # Panics
    /// If the tile has another length.
    pub fn tiled(size: u64, tile: &[u8]) -> Store {
        assert_eq!(tile.len() as u64, CHUNK, "a tile is a MiB");
        let mut one = Store::new(CHUNK);
        one.write_slice(0, tile);
        let whole = size / CHUNK;
        let chunks = one.chunks.get(&0).into_iter();
        let chunks = chunks.flat_map(|tile| (0..whole).map(|n| (n, Arc::clone(tile)))).collect();
        let mut store = Store { size, chunks: Arc::new(chunks), unreadable: Arc::default() };
        store.write_slice(whole * CHUNK, &tile[..(size % CHUNK) as usize]);
        store
    }

    /// The same, with zeros where nobody has written to a [`tiled`](Self::tiled) store, MiB by MiB:
    /// an image of it has a size that a file may have.
    #[must_use]
    pub fn without_tiles(&self) -> Store {
        let mut times: BTreeMap<*const Chunk, usize> = BTreeMap::new();
        for chunk in self.chunks.values() {
            *times.entry(Arc::as_ptr(chunk)).or_default() += 1;
        }
        let own = |chunk: &Arc<Chunk>| times.get(&Arc::as_ptr(chunk)) == Some(&1);
        let chunks = self.chunks.iter().filter(|(_, chunk)| own(chunk));
        let chunks = chunks.map(|(n, chunk)| (*n, Arc::clone(chunk))).collect();
        Store { chunks: Arc::new(chunks), ..self.clone() }
    }

    /// Size in bytes.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// The contents as they are now, unaffected by later writes. The same as a clone.
    pub fn snapshot(&self) -> Store {
        self.clone()
    }

    /// The `len` bytes at `offset`.
    ///
    /// # Panics
    /// If the range ends beyond the store: callers check requests before they get here.
    pub fn read(&self, offset: u64, len: u64) -> Bytes {
        self.check(offset, len);
        if let Some(Page::Raw(page)) = self.page(offset / PAGE as u64) {
            let start = (offset % PAGE as u64) as usize;
            if start as u64 + len <= PAGE as u64 {
                return page.slice(start..start + len as usize);
            }
        }
        if let Some(run) = self.stamped_run(offset, len) {
            return run;
        }
        if self.is_hole(offset, len) {
            return steadfast_block::zeros(len as usize);
        }
        let mut out = vec![0; len as usize];
        self.read_into(offset, &mut out);
        Bytes::from(out)
    }

    /// Whether a range holds the same as in another store. It says no where that would have to be
    /// found out byte by byte, or a sector cannot be read.
    pub fn same_at(&self, other: &Store, offset: u64, len: u64) -> bool {
        let end = offset.saturating_add(len);
        let is_readable = self.unreadable.is_empty() && other.unreadable.is_empty();
        if !is_readable || end > self.size.min(other.size) {
            return false;
        }
        let same_page = |n: u64| {
            let [one, other] = [self, other].map(|store| store.page(n).unwrap_or(&Page::ZERO));
            one == other
        };
        (offset / CHUNK..end.div_ceil(CHUNK)).all(|chunk| {
            let same = match (self.chunks.get(&chunk), other.chunks.get(&chunk)) {
                (Some(one), Some(other)) => Arc::ptr_eq(one, other),
                (one, other) => one.is_none() && other.is_none(),
            };
            let first = (chunk * CHUNK).max(offset) / PAGE as u64;
            let last = ((chunk + 1) * CHUNK).min(end).div_ceil(PAGE as u64);
            same || (first..last).all(same_page)
        })
    }

    /// Whether the range has no page that differs from zeros.
    fn is_hole(&self, offset: u64, len: u64) -> bool {
        let page = PAGE as u64;
        let pages = offset / page..(offset + len).div_ceil(page);
        pages.into_iter().all(|number| self.page(number).is_none_or(Page::is_zero))
    }

    /// The range, if it is whole pages of one stamped run whose bytes are still in memory.
    fn stamped_run(&self, offset: u64, len: u64) -> Option<Bytes> {
        let page = PAGE as u64;
        if len == 0 || !offset.is_multiple_of(page) || !len.is_multiple_of(page) {
            return None;
        }
        let Page::Stamped(first) = self.page(offset / page)? else { return None };
        let bytes = pattern::made(*first, len as usize)?;
        let follows = |n: u64| {
            let stamp = first.after((n * page) as usize);
            self.page(offset / page + n) == Some(&Page::Stamped(stamp))
        };
        (1..len / page).all(follows).then_some(bytes)
    }

    /// Fills `out`, which must be zeroed where the store may hold zeros, from `offset`.
    fn read_into(&self, offset: u64, out: &mut [u8]) {
        for p in pieces(offset, out.len()) {
            if let Some(page) = self.page(p.page).filter(|page| !page.is_zero()) {
                page.copy_to(p.start, &mut out[p.at..p.at + p.len]);
            }
        }
    }

    /// Writes a payload at `offset`, sharing its memory where its bytes cannot be packed.
    ///
    /// # Panics
    /// If the range ends beyond the store.
    pub fn write(&mut self, offset: u64, data: &Payload) {
        self.check(offset, data.len() as u64);
        self.written(offset, data.len() as u64);
        let mut at = offset;
        for (number, part) in data.parts().iter().enumerate() {
            self.write_part(at, part, data.stamp(number));
            at += part.len() as u64;
        }
    }

    /// Writes bytes at `offset`, copying what cannot be packed.
    ///
    /// # Panics
    /// If the range ends beyond the store.
    pub fn write_slice(&mut self, offset: u64, data: &[u8]) {
        self.check(offset, data.len() as u64);
        self.written(offset, data.len() as u64);
        for p in pieces(offset, data.len()) {
            let bytes = &data[p.at..p.at + p.len];
            let page = if p.is_whole() { Page::of_slice(bytes) } else { self.patched(&p, bytes) };
            self.install(p.page, page);
        }
    }

    /// Writes packed bytes at `offset` without expanding what stays packed.
    ///
    /// # Panics
    /// If the range ends beyond the store.
    pub fn write_packed(&mut self, offset: u64, data: &PackedBytes) {
        self.write_packed_parts(offset, data, std::iter::once(0..data.len()));
    }

    /// Makes a range read as zeros again and frees what it held.
    ///
    /// # Panics
    /// If the range ends beyond the store.
    pub fn discard(&mut self, offset: u64, len: u64) {
        self.check(offset, len);
        self.written(offset, len);
        let end = offset + len;
        let mut at = offset;
        while at < end {
            let chunk = at / CHUNK;
            let next = ((chunk + 1) * CHUNK).min(end);
            if next - at == CHUNK {
                self.remove_chunk(chunk);
            } else if self.chunks.contains_key(&chunk) {
                self.clear(at, (next - at) as usize);
            }
            at = next;
        }
    }

    fn remove_chunk(&mut self, chunk: u64) {
        if self.chunks.contains_key(&chunk) {
            Arc::make_mut(&mut self.chunks).remove(&chunk);
        }
    }

    fn clear(&mut self, offset: u64, len: usize) {
        for p in pieces(offset, len) {
            let zeros = &[0; PAGE][..p.len];
            let page = if p.is_whole() { Page::ZERO } else { self.patched(&p, zeros) };
            self.install(p.page, page);
        }
    }

    /// The ranges that may differ from zeros, as (offset, length) in bytes, ascending, not
    /// adjacent, in whole pages (the last may be cut by the end of the store).
    pub fn populated(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        let mut pages = self.pages().map(|(n, _)| n).peekable();
        std::iter::from_fn(move || {
            let first = pages.next()?;
            let mut last = first;
            while pages.next_if_eq(&(last + 1)).is_some() {
                last += 1;
            }
            let offset = first * PAGE as u64;
            let end = ((last + 1) * PAGE as u64).min(self.size);
            Some((offset, end - offset))
        })
    }

    /// About how many bytes of memory the contents take, shared ones included.
    pub fn footprint(&self) -> u64 {
        let tables = self.chunks.len() as u64 * (size_of::<Chunk>() as u64 + 64);
        tables + self.pages().map(|(_, page)| page.footprint()).sum::<u64>()
    }

    /// The pages that are not zeros, ascending, with their numbers.
    fn pages(&self) -> impl Iterator<Item = (u64, &Page)> {
        self.chunks.iter().flat_map(|(n, chunk)| {
            let first = n * PAGES as u64;
            (first..).zip(chunk.iter()).filter(|(_, page)| !page.is_zero())
        })
    }

    fn page(&self, number: u64) -> Option<&Page> {
        let chunk = self.chunks.get(&(number / PAGES as u64))?;
        Some(&chunk[(number % PAGES as u64) as usize])
    }

    fn install(&mut self, number: u64, page: Page) {
        let chunk = number / PAGES as u64;
        if page.is_zero() && !self.chunks.contains_key(&chunk) {
            return;
        }
        let table = Arc::make_mut(&mut self.chunks)
            .entry(chunk)
            .or_insert_with(|| Arc::new([const { Page::ZERO }; PAGES]));
        Arc::make_mut(table)[(number % PAGES as u64) as usize] = page;
    }

    /// The page with `bytes` laid over the piece of it that they are for.
    fn patched(&self, piece: &Piece, bytes: &[u8]) -> Page {
        let mut whole = [0; PAGE];
        if let Some(old) = self.page(piece.page) {
            old.copy_to(0, &mut whole);
        }
        whole[piece.start..piece.start + piece.len].copy_from_slice(bytes);
        Page::of_slice(&whole)
    }

    /// `stamp`: what all of the part is known to follow from.
    fn write_part(&mut self, offset: u64, part: &Bytes, stamp: Option<Stamp>) {
        let stamp = stamp.or_else(|| pattern::run_of(part));
        let whole = |n: u64| n.is_multiple_of(PAGE as u64);
        if let Some(first) = stamp.filter(|_| whole(offset) && whole(part.len() as u64)) {
            return self.write_stamped(offset / PAGE as u64, first, part.len() / PAGE);
        }
        let pages: Vec<(u64, Page)> = pieces(offset, part.len())
            .map(|p| {
                if let Some(first) = stamp.filter(|_| p.is_whole() && p.at % SECTOR == 0) {
                    return (p.page, Page::Stamped(first.after(p.at)));
                }
                let bytes = part.slice(p.at..p.at + p.len);
                (p.page, if p.is_whole() { Page::of(bytes) } else { self.patched(&p, &bytes) })
            })
            .collect();
        let raw = pages.iter().filter(|(_, page)| matches!(page, Page::Raw(_))).count();
        // A few raw pages must not keep the whole of a large, otherwise packed buffer alive.
        let share = raw * 2 * PAGE >= part.len();
        for (number, page) in pages {
            self.install(number, if share { page } else { page.unshared() });
        }
    }

    /// Writes so many pages of one stamped run.
    fn write_stamped(&mut self, page: u64, first: Stamp, count: usize) {
        let chunks = Arc::make_mut(&mut self.chunks);
        let mut done = 0;
        while done < count {
            let number = page + done as u64;
            let at = (number % PAGES as u64) as usize;
            let here = (PAGES - at).min(count - done);
            let table = chunks
                .entry(number / PAGES as u64)
                .or_insert_with(|| Arc::new([const { Page::ZERO }; PAGES]));
            let pages = &mut Arc::make_mut(table)[at..at + here];
            for (i, page) in (done..).zip(pages) {
                *page = Page::Stamped(first.after(i * PAGE));
            }
            done += here;
        }
    }

    fn check(&self, offset: u64, len: u64) {
        let inside = offset.checked_add(len).is_some_and(|end| end <= self.size);
        assert!(inside, "{len} bytes at {offset} end beyond the store's {}", self.size);
    }
}

impl PartialEq for Store {
    /// Whether both hold the same bytes.
    fn eq(&self, other: &Self) -> bool {
        let same = self.size == other.size && self.unreadable == other.unreadable;
        same && (Arc::ptr_eq(&self.chunks, &other.chunks) || self.pages().eq(other.pages()))
    }
}

impl Eq for Store {}

impl std::fmt::Debug for Store {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Store({} bytes, {} chunks)", self.size, self.chunks.len())
    }
}

#[cfg(test)]
mod tests;
