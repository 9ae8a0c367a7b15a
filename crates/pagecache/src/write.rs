//! Writing into the cache.

use bytes::{Bytes, BytesMut};
use steadfast_block::pattern;
use steadfast_vfs::{FsError, Result};

use crate::state::State;
use crate::{DirtyParts, FileKey, PAGE, PAGE_U64, PageCache};

/// One page's share of a write.
struct Part {
    page: u64,
    /// Where in the page it begins.
    at: usize,
    bytes: Bytes,
    /// The rest of the page is in the file and must be read first.
    needs_old: bool,
    /// The bytes are in memory that is never freed.
    lasts: bool,
}

impl PageCache {
    /// Writes `data` at `offset` of a file that was `size_before` bytes long. The pages become
    /// dirty; write-back follows. Waits when there is too much dirty data.
    ///
    /// A page of which only a part is written is read first, if the rest lies in the file. The
    /// pages of up to half the dirty limit (at most 256 KiB) change at one instant; the caller
    /// excludes readers where a longer write must be seen whole.
    ///
    /// # Errors
    /// When a page that is written in part cannot be read; nothing has been written then.
    /// Write-back errors are reported by [`fsync`](Self::fsync).
    pub fn write(&self, file: FileKey, offset: u64, data: Bytes, size_before: u64) -> Result<()> {
        let parts = split(offset, data, size_before)?;
        for part in parts.iter().filter(|p| p.needs_old) {
            self.fetch(file, part.page)?;
        }
        let piece = self.state.lock().limits.write_piece as usize;
        for parts in parts.chunks(piece) {
            let bytes = parts.iter().map(|p| p.bytes.len()).sum();
            self.charge(parts.len() as u64, bytes);
            self.write_parts(file, parts)?;
            self.balance(bytes);
        }
        Ok(())
    }

    fn write_parts(&self, file: FileKey, parts: &[Part]) -> Result<()> {
        // Before the lock: allocating and copying need nobody else to wait.
        let mut fresh: Vec<Option<Bytes>> = parts.iter().map(Part::fresh_page).collect();
        loop {
            let mut state = self.admit(parts.len() as u64);
            let gone = parts.iter().find(|p| p.needs_old && !state.is_present(file, p.page));
            if let Some(part) = gone {
                drop(state);
                self.fetch(file, part.page)?;
                continue;
            }
            let mut is_first = false;
            for (part, fresh) in parts.iter().zip(&mut fresh) {
                part.apply(&mut state, file, fresh.take());
                is_first |= state.mark_dirty(file, part.page, part.dirties());
            }
            let wake = is_first && state.periodic_at.is_none();
            drop(state);
            if wake {
                // The task must set its timer.
                self.control.wake();
            }
            return Ok(());
        }
    }

    /// Puts data into the cache that is already safe in the journal: pages that are
    /// wholly given become clean pages unless they are dirty; of a page that is given in part,
    /// only the bytes of a page that is there change. Without memory to spare nothing is kept.
    pub fn insert_clean(&self, file: FileKey, offset: u64, data: Bytes) {
        let Ok(parts) = split(offset, data, u64::MAX) else { return };
        let bytes = parts.iter().map(|p| p.bytes.len()).sum();
        self.charge(parts.len() as u64, bytes);
        let fresh = |part: &Part| if part.needs_old { None } else { part.fresh_page() };
        let fresh: Vec<Option<Bytes>> = parts.iter().map(fresh).collect();
        let mut state = self.state.lock();
        for (part, fresh) in parts.iter().zip(fresh) {
            let room = loop {
                let room = state.make_room(1);
                if room || !state.is_dirty(file, part.page) {
                    break room;
                }
                state = self.wait_for_memory(state);
            };
            if !room || (part.needs_old && !state.is_present(file, part.page)) {
                // What is there, or in flight, is out of date.
                state.drop_page(file, part.page);
                continue;
            }
            part.apply(&mut state, file, fresh);
            state.add_dirty_parts(file, part.page, part.dirties());
        }
    }
}

impl Part {
    fn dirties(&self) -> DirtyParts {
        DirtyParts::touched(self.at..self.at + self.bytes.len())
    }

    /// The whole page's new contents, where they do not depend on the old.
    fn fresh_page(&self) -> Option<Bytes> {
        // A copy of its own even if the page is given whole: a slice would pin the caller's buffer.
        let own = || match self.lasts {
            true => self.bytes.clone(),
            false => Bytes::copy_from_slice(&self.bytes),
        };
        (self.bytes.len() == PAGE).then(own)
    }

    /// Changes the page. A page that is not there, and need not be, was zeros.
    fn apply(&self, state: &mut State, file: FileKey, fresh: Option<Bytes>) {
        if let Some(fresh) = fresh {
            state.put_page(file, self.page, fresh);
        } else if state.is_present(file, self.page) {
            state.patch_page(file, self.page, self.at, &self.bytes);
        } else {
            let mut page = BytesMut::zeroed(PAGE);
            page[self.at..self.at + self.bytes.len()].copy_from_slice(&self.bytes);
            state.put_page(file, self.page, page.freeze());
        }
    }
}

/// A write page by page.
fn split(offset: u64, data: Bytes, size_before: u64) -> Result<Vec<Part>> {
    let end = offset.checked_add(data.len() as u64).ok_or(FsError::FileTooLarge)?;
    let mut parts = Vec::with_capacity(data.len() / PAGE + 2);
    let lasts = pattern::is_interned(&data);
    let mut from = offset;
    while from < end {
        let page = from / PAGE_U64;
        let page_start = page * PAGE_U64;
        let to = end.min(page_start.saturating_add(PAGE_U64));
        let old_end = size_before.min(page_start.saturating_add(PAGE_U64));
        let keeps_old = (page_start < from && page_start < size_before) || to < old_end;
        parts.push(Part {
            page,
            at: (from - page_start) as usize,
            bytes: data.slice((from - offset) as usize..(to - offset) as usize),
            needs_old: keeps_old,
            lasts,
        });
        from = to;
    }
    Ok(parts)
}
