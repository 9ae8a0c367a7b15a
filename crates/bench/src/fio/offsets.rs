//! Which request comes next: kind, file, offset, length. Knows no time.

use std::sync::Arc;

use steadfast_block::rng::Rng;

use super::options::{BlockSizes, FileOrder, RequestKind};
use super::plan::{FioFile, FioJob};
use super::random_map::RandomMap;
use crate::places::{Chooser, Distribution, uniform};

/// A request to be made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct FioRequest {
    pub(super) kind: RequestKind,
    /// Which of the job's files.
    pub(super) file: usize,
    /// Bytes from the beginning of the file.
    pub(super) offset: u64,
    /// Bytes.
    pub(super) len: u64,
}

/// Where a job is in a file.
#[derive(Default)]
struct FileCursor {
    /// Where the next request of each kind begins that follows the one before, from the start of
    /// the job's part on.
    next: [u64; 2],
    /// Random ones that follow each other still.
    run_left: [u64; 2],
    map: Option<RandomMap>,
    chooser: Option<Chooser>,
    is_done: bool,
}

/// The requests of one pass of a job.
pub(super) struct RequestSequence {
    job: Arc<FioJob>,
    rng: Rng,
    files: Vec<FileCursor>,
    /// Which file is next, in turn.
    turn: usize,
    /// The file of which the last request was the first again.
    pub(super) began_again: Option<usize>,
}

impl RequestSequence {
    pub(super) fn new(job: &Arc<FioJob>) -> RequestSequence {
        let files = (0..job.files.len()).map(|_| FileCursor::default()).collect();
        let (job, rng) = (Arc::clone(job), Rng::new(job.seed));
        let mut requests = RequestSequence { job, rng, files, turn: 0, began_again: None };
        requests.restart();
        requests
    }

    /// Begins another pass.
    pub(super) fn restart(&mut self) {
        let job = &self.job;
        for (file, cursor) in job.files.iter().zip(&mut self.files) {
            // Backwards begins at the end.
            let first = if job.options.mix.step < 0 { file.len } else { 0 };
            cursor.next = [first; 2];
            cursor.run_left = [0; 2];
            cursor.is_done = false;
            cursor.map = job.has_map().then(|| RandomMap::new(file.len / job.map_block()));
            if job.options.mix.random
                && !job.has_map()
                && job.options.distribution != Distribution::Random
                && cursor.chooser.is_none()
            {
                let blocks = file.len / job.map_block();
                cursor.chooser = Some(Chooser::new(&job.options.distribution, blocks));
            }
        }
        self.turn = 0;
    }

    /// Whether the next request of a mix is a read or a write.
    pub(super) fn kind(&mut self) -> RequestKind {
        let o = &self.job.options;
        match (o.mix.reads, o.mix.writes) {
            (true, true) if self.rng.percent(o.read_percent) => RequestKind::Read,
            (true, true) | (false, _) => RequestKind::Write,
            (true, false) => RequestKind::Read,
        }
    }

    /// The next request of a kind; `None`: the pass is over. A job that goes on until its time is
    /// over begins at the start of a file again when it is done with it.
    pub(super) fn next(&mut self, kind: RequestKind) -> Option<FioRequest> {
        self.began_again = None;
        for _ in 0..self.files.len() {
            let file = self.file()?;
            let mut place = self.in_file(kind, file);
            if place.is_none() && self.job.options.time_based {
                self.begin_again(kind, file);
                place = self.in_file(kind, file);
            }
            match place {
                Some((offset, len)) => return Some(FioRequest { kind, file, offset, len }),
                None => self.files[file].is_done = true,
            }
        }
        None
    }

    fn begin_again(&mut self, kind: RequestKind, file: usize) {
        let job = &self.job;
        let cursor = &mut self.files[file];
        cursor.next[kind as usize] = 0;
        if cursor.map.is_some() {
            cursor.map = Some(RandomMap::new(job.files[file].len / job.map_block()));
        }
        self.began_again = Some(file);
    }

    fn file(&mut self) -> Option<usize> {
        let count = self.files.len();
        let first = match self.job.options.file_order {
            FileOrder::Random => self.rng.below(count as u64) as usize,
            FileOrder::RoundRobin | FileOrder::Sequential => self.turn,
        };
        let at = (0..count).map(|i| (first + i) % count).find(|at| !self.files[*at].is_done)?;
        self.turn = match self.job.options.file_order {
            FileOrder::RoundRobin => (at + 1) % count,
            FileOrder::Sequential | FileOrder::Random => at,
        };
        Some(at)
    }

    /// Offset and length in a file.
    fn in_file(&mut self, kind: RequestKind, file: usize) -> Option<(u64, u64)> {
        let FioFile { start, len, .. } = self.job.files[file];
        let job = Arc::clone(&self.job);
        let sizes = &job.options.sizes[kind as usize];
        let wanted = length(sizes, self.job.options.bs_unaligned, &mut self.rng);
        let (at, most) = match self.job.options.mix.random {
            true => self.random_place(kind, file, wanted)?,
            false => self.following_place(kind, file)?,
        };
        let fitting = match most.min(len - at) {
            fits if fits >= wanted => wanted,
            fits if self.job.options.bs_unaligned => fits,
            fits => fits / sizes.least * sizes.least,
        };
        if fitting == 0 {
            return None;
        }
        let cursor = &mut self.files[file];
        cursor.next[kind as usize] = at + fitting;
        if let Some(map) = &mut cursor.map {
            let block = self.job.map_block();
            (at / block..(at + fitting).div_ceil(block)).for_each(|block| {
                map.take(block);
            });
        }
        Some((start + at, fitting))
    }

    /// Where the next one begins that follows the one before.
    fn following_place(&mut self, kind: RequestKind, file: usize) -> Option<(u64, u64)> {
        let step = self.job.options.mix.step;
        let len = self.job.files[file].len;
        let next = self.files[file].next[kind as usize];
        let is_first = next == 0;
        let at = if step == 0 || (is_first && step > 0) {
            if next >= len {
                return None;
            }
            next
        } else {
            match next.checked_add_signed(step).filter(|at| *at < len) {
                Some(at) => at,
                None if step > 0 => 0,
                // From the end again.
                None => len.checked_add_signed(step)?,
            }
        };
        Some((at, u64::MAX))
    }

    /// Where the next random one begins, and how many bytes are free there.
    fn random_place(&mut self, kind: RequestKind, file: usize, wanted: u64) -> Option<(u64, u64)> {
        let (o, len) = (&self.job.options, self.job.files[file].len);
        let (block, align) = (self.job.map_block(), self.job.align(kind));
        let cursor = &mut self.files[file];
        let next = cursor.next[kind as usize];
        let left = &mut cursor.run_left[kind as usize];
        let follows = *left > 0 && next + o.sizes[kind as usize].least <= len;
        *left = if follows { *left - 1 } else { o.mix.run - 1 };
        let least = o.sizes[kind as usize].least;
        let Some(map) = &mut cursor.map else {
            if follows {
                return Some((next, u64::MAX));
            }
            let at = match &cursor.chooser {
                Some(chooser) => chooser.block(&mut self.rng) * block,
                // The last one fits.
                None => self.rng.below((len - least) / align + 1) * align,
            };
            return Some((at.min((len - least) / align * align), u64::MAX));
        };
        let blocks = len / block;
        let mut from = if follows { next / block } else { self.rng.below(blocks) };
        loop {
            let at = map.next(from)?;
            // A request ends where the next one has been already.
            let run = map.run(at, wanted.div_ceil(block).max(1));
            if run * block >= least {
                return Some((at * block, run * block));
            }
            // No request fits in there any more.
            (at..at + run).for_each(|block| {
                map.take(block);
            });
            from = at + run;
        }
    }
}

/// Bytes that a request shall have.
fn length(sizes: &BlockSizes, unaligned: bool, rng: &mut Rng) -> u64 {
    if !sizes.split.is_empty() {
        let mut drawn = rng.below(100);
        for (size, share) in &sizes.split {
            match drawn.checked_sub(*share) {
                Some(rest) => drawn = rest,
                None => return *size,
            }
        }
        return sizes.most;
    }
    if sizes.least == sizes.most {
        return sizes.least;
    }
    let drawn = sizes.least + (sizes.most as f64 * uniform(rng)) as u64;
    let whole = if unaligned { drawn } else { drawn / sizes.least * sizes.least };
    whole.clamp(sizes.least, sizes.most)
}
