//! Reading through the cache.

use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use steadfast_block::pattern;
use steadfast_runtime::MutexGuard;
use steadfast_vfs::Result;

use crate::load::Load;
use crate::read_ahead::ReadAheadWindow;
use crate::state::State;
use crate::{FileKey, PAGE, PAGE_U64, PageCache};

/// Where a page that was asked for comes from.
enum Source {
    Cached(Bytes),
    Loading(Arc<Load>),
}

/// What a read found and what it has begun.
struct Plan {
    sources: Vec<Source>,
    /// Loads to be started, in order.
    starts: Vec<Arc<Load>>,
}

impl PageCache {
    /// Reads up to `len` bytes at `offset` of a file of `size` bytes: fewer at its end, none
    /// beyond. Pages that are not there are read, and some after them if the file is being read
    /// in sequence.
    ///
    /// # Errors
    /// When a page that was asked for cannot be read. A failed read-ahead is nobody's error.
    pub fn read(&self, file: FileKey, offset: u64, len: usize, size: u64) -> Result<Bytes> {
        let end = offset.saturating_add(len as u64).min(size);
        if offset >= end {
            return Ok(Bytes::new());
        }
        let last = end.div_ceil(PAGE_U64);
        let piece = self.state.lock().limits.read_piece;
        let mut first = offset / PAGE_U64;
        let mut out = ReadBuffer::new(offset, end);
        while first < last {
            let pages = first..last.min(first + piece);
            self.read_piece(file, pages.clone(), size.div_ceil(PAGE_U64), &mut out)?;
            first = pages.end;
        }
        Ok(out.finish())
    }

    fn read_piece(
        &self,
        file: FileKey,
        pages: Range<u64>,
        file_pages: u64,
        out: &mut ReadBuffer,
    ) -> Result<()> {
        let plan = self.plan_read(file, pages.clone(), file_pages);
        self.charge(pages.end - pages.start, out.overlap(&pages));
        for load in &plan.starts {
            self.start_load(Arc::clone(load));
        }
        if let Some(load) = out.is_all_of(&pages, &plan.sources)
            && let Ok(data) = load.wait()
        {
            out.whole = Some(data.slice(out.range_in(load.first)));
            return Ok(());
        }
        for (page, source) in pages.zip(plan.sources) {
            match source {
                Source::Cached(data) => out.push(page, &data, 0),
                Source::Loading(load) => match load.wait() {
                    Ok(data) => out.push(page, &data, (page - load.first) as usize * PAGE),
                    // It may have failed on account of another page.
                    Err(_) => out.push(page, &self.read_alone(file, page)?, 0),
                },
            }
        }
        Ok(())
    }

    /// Looks the pages up and begins to load what is missing, waiting for memory if need be.
    fn plan_read(&self, file: FileKey, pages: Range<u64>, file_pages: u64) -> Plan {
        let mut state = self.room_to_load(file, &pages);
        let limits = state.limits;
        let f = state.file(file);
        let is_missing = |p: &u64| !f.pages.contains(*p) && !f.loading.contains(*p);
        let missing: Vec<u64> = pages.clone().filter(is_missing).collect();
        let window =
            f.streams.on_read(&pages, &limits, |p| !f.pages.contains(p) && !f.loading.contains(p));
        let ahead: Vec<u64> = match &window {
            None => Vec::new(),
            Some(w) => (w.pages.start.max(pages.end)..w.pages.end.min(file_pages))
                .filter(is_missing)
                .collect(),
        };
        let loads = runs_to_load(missing, ahead, window.as_ref());
        let mut sources = Vec::with_capacity((pages.end - pages.start) as usize);
        let mut starts = Vec::new();
        // First what is there: making room for read-ahead may evict it.
        let cached: Vec<Option<Bytes>> = pages.clone().map(|p| state.page(file, p)).collect();
        for run in loads {
            let is_demand = run.start < pages.end;
            let count = run.end - run.start;
            if !state.make_room(count) {
                if !is_demand {
                    continue;
                }
                // Room was made for what is asked for, not for what is added to it.
                let run = run.start..run.end.min(pages.end);
                state.make_room(run.end - run.start);
                begin(&mut state, file, run, &mut starts);
                continue;
            }
            if run.end > pages.end {
                state.stats.read_ahead_pages += run.end - run.start.max(pages.end);
            }
            begin(&mut state, file, run, &mut starts);
        }
        for (page, cached) in pages.zip(cached) {
            sources.push(match cached {
                Some(data) => {
                    state.stats.hit_pages += 1;
                    Source::Cached(data)
                }
                None => {
                    state.stats.miss_pages += 1;
                    // OK to expect: a page that is not there is being loaded, since just above at
                    // the latest.
                    let load = state.file(file).loading.get(page);
                    Source::Loading(Arc::clone(load.expect("a page being loaded")))
                }
            });
        }
        Plan { sources, starts }
    }

    /// The lock, with room for loading all of `pages` that are missing.
    fn room_to_load(&self, file: FileKey, pages: &Range<u64>) -> MutexGuard<'_, State> {
        let mut state = self.state.lock();
        loop {
            let mut missing = 0;
            for p in pages.clone() {
                // A use, so that making room evicts others first.
                if state.page(file, p).is_none() && !state.file(file).loading.contains(p) {
                    missing += 1;
                }
            }
            if state.make_room(missing) {
                return state;
            }
            state = self.wait_for_memory(state);
        }
    }

    /// Reads one page by itself.
    fn read_alone(&self, file: FileKey, page: u64) -> Result<Bytes> {
        loop {
            let mut state = self.room_to_load(file, &(page..page + 1));
            if let Some(data) = state.page(file, page) {
                return Ok(data);
            }
            if let Some(load) = state.file(file).loading.get(page).cloned() {
                drop(state);
                if let Ok(data) = load.wait() {
                    let at = (page - load.first) as usize * PAGE;
                    return Ok(data.slice(at..at + PAGE));
                }
                continue;
            }
            let load = Load::new(file, page..page + 1);
            state.begin_load(&load);
            drop(state);
            self.start_load(Arc::clone(&load));
            return load.wait();
        }
    }

    /// Sees to it that a page is in memory, or was a moment ago.
    pub(crate) fn fetch(&self, file: FileKey, page: u64) -> Result<()> {
        self.read_alone(file, page).map(drop)
    }
}

fn begin(state: &mut State, file: FileKey, run: Range<u64>, starts: &mut Vec<Arc<Load>>) {
    let load = Load::new(file, run);
    state.begin_load(&load);
    starts.push(load);
}

/// Groups pages into runs: those asked for and those ahead of them together if the window says
/// so, else one after the other.
fn runs_to_load(
    missing: Vec<u64>,
    ahead: Vec<u64>,
    window: Option<&ReadAheadWindow>,
) -> Vec<Range<u64>> {
    if window.is_some_and(|w| w.with_demand) {
        return runs(missing.into_iter().chain(ahead));
    }
    let mut all = runs(missing);
    all.extend(runs(ahead));
    all
}

/// Ascending pages as runs.
fn runs(pages: impl IntoIterator<Item = u64>) -> Vec<Range<u64>> {
    let mut runs: Vec<Range<u64>> = Vec::new();
    for page in pages {
        match runs.last_mut() {
            Some(run) if run.end == page => run.end += 1,
            _ => runs.push(page..page + 1),
        }
    }
    runs
}

/// The bytes that a read returns, as they come together.
struct ReadBuffer {
    start: u64,
    end: u64,
    bytes: Vec<u8>,
    /// All that was asked for, when one page or one load has it: shared, not copied.
    whole: Option<Bytes>,
    /// What has come so far, as long as it is one piece of memory that lasts.
    run: Option<Bytes>,
}

impl ReadBuffer {
    fn new(start: u64, end: u64) -> ReadBuffer {
        ReadBuffer { start, end, bytes: Vec::new(), whole: None, run: None }
    }

    /// The load that has all the bytes, if these pages are all and come from one, which is not much
    /// more: the answer keeps all of it in memory.
    fn is_all_of(&self, pages: &Range<u64>, sources: &[Source]) -> Option<Arc<Load>> {
        if self.overlap(pages) as u64 != self.end - self.start {
            return None;
        }
        let Some((Source::Loading(first), rest)) = sources.split_first() else { return None };
        let same = |s: &Source| matches!(s, Source::Loading(load) if Arc::ptr_eq(load, first));
        let much = u64::from(first.count) * PAGE_U64 > 2 * (self.end - self.start);
        (!much && rest.iter().all(same)).then(|| Arc::clone(first))
    }

    /// Where the bytes are in a load that begins at page `first`.
    fn range_in(&self, first: u64) -> Range<usize> {
        let at = first * PAGE_U64;
        (self.start - at) as usize..(self.end - at) as usize
    }

    /// How many of the bytes lie in these pages.
    fn overlap(&self, pages: &Range<u64>) -> usize {
        let from = self.start.max(pages.start.saturating_mul(PAGE_U64));
        (self.end.min(pages.end.saturating_mul(PAGE_U64)).saturating_sub(from)) as usize
    }

    /// Adds what is wanted of a page, which begins at byte `at` of `data`.
    fn push(&mut self, page: u64, data: &Bytes, at: usize) {
        let page_start = page * PAGE_U64;
        let from = self.start.max(page_start) - page_start;
        let to = self.end.min(page_start.saturating_add(PAGE_U64)) - page_start;
        if data.len() == PAGE && (page_start, self.end - page_start) == (self.start, PAGE_U64) {
            self.whole = Some(data.clone());
            return;
        }
        let piece = data.slice(at + from as usize..at + to as usize);
        if self.bytes.is_empty() {
            let longer = match &self.run {
                None => pattern::is_interned(&piece).then(|| piece.clone()),
                Some(run) => pattern::joined(run, &piece),
            };
            if longer.is_some() {
                self.run = longer;
                return;
            }
            // At once, unless somebody asks for more than will come.
            self.bytes.reserve(((self.end - self.start) as usize).min(64 << 20));
        }
        self.bytes.extend_from_slice(&self.run.take().unwrap_or_default());
        self.bytes.extend_from_slice(&piece);
    }

    fn finish(self) -> Bytes {
        self.whole.or(self.run).unwrap_or_else(|| Bytes::from(self.bytes))
    }
}
