//! A volatile write cache in front of any device, and its crash states.
//!
//! A write is acknowledged when it is in memory. A flush drains everything and flushes the device
//! below; a write with FUA drains its own blocks. When the cache is full it drains in ascending
//! order of blocks from its last position, like an elevator. A *lying* cache acknowledges flushes
//! and FUA and does nothing.
//!
//! # Invariants
//!
//! 1. A block is in the cache until the device below has answered the write that drained it; so
//!    what is not in the cache is below.
//! 2. One drain at a time: two writes of one block are never below at once, where they could
//!    overtake each other.
//! 3. Every version of a block since its last drain is kept, because a power cut may leave any of
//!    them.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use smart_default::SmartDefault;
use steadfast_block::rng::Rng;
use steadfast_block::{
    BlockDevice, BlockError, Completion, DeviceInfo, Payload, Request, Result, check,
};
use steadfast_runtime::{Mutex, MutexGuard};

/// Longest request made of adjacent blocks when draining, in bytes.
const DRAIN_BYTES_MAX: usize = 1 << 20;

/// What the cache is like.
#[derive(Debug, Clone, Copy, PartialEq, Eq, SmartDefault)]
pub struct CacheSettings {
    /// Bytes it holds; older versions of a block count as well. A write that finds it full is
    /// acknowledged when there is room again.
    #[default(16 << 20)]
    pub capacity: u64,
    /// Flushes and FUA are answered with success and ignored.
    pub lying: bool,
}

/// What a power cut did to the contents of the cache, in units of the device's atomic write.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Cut {
    /// Units of which the newest version was left.
    pub kept: u64,
    /// Units of which an older version, also never drained, was left.
    pub older: u64,
    /// Units of which nothing was left.
    pub lost: u64,
}

/// Contents of a block at some time since its last drain.
struct Version {
    sequence: u64,
    data: Bytes,
}

#[derive(Default)]
struct State {
    /// Block number -> its versions, oldest first; never empty.
    blocks: BTreeMap<u64, Vec<Version>>,
    bytes: u64,
    next_sequence: u64,
    /// Where the next drain of a full cache begins.
    cursor: u64,
    /// Why nothing works: the power is off.
    off: Option<String>,
    /// The first failed drain or flush: every later flush and FUA write reports it.
    failed: Option<BlockError>,
}

struct WriteCacheCore {
    next: Arc<dyn BlockDevice>,
    info: DeviceInfo,
    settings: CacheSettings,
    state: Mutex<State>,
    /// Held while blocks are written below. Taken before `state`.
    draining: Mutex<()>,
}

/// A block that is being drained: its number, the version's sequence number and bytes.
type DrainBlock = (u64, u64, Bytes);

/// A volatile write cache over a device. Clones are the same cache.
#[derive(Clone)]
pub struct WriteCache(Arc<WriteCacheCore>);

impl WriteCache {
    /// An empty cache before `next`.
    pub fn new(next: Arc<dyn BlockDevice>, settings: CacheSettings) -> Self {
        let info = DeviceInfo { volatile_cache: true, ..next.info() };
        let (state, draining) = (Mutex::default(), Mutex::new(()));
        WriteCache(Arc::new(WriteCacheCore { next, info, settings, state, draining }))
    }

    /// Bytes that are only in the cache, all versions of every block counted.
    pub fn dirty_bytes(&self) -> u64 {
        self.0.state.lock().bytes
    }

    /// Cuts the power: each atomic unit of each cached block keeps what the device below has, or
    /// gets one of the versions in the cache, as `seed` decides. Requests fail with "is gone"
    /// until [`power_on`](Self::power_on).
    ///
    /// The seed decides first how much is lost (all, nothing, most, half, little), then what.
    ///
    /// # Errors
    /// Of the device below, when what is left is written to it.
    pub fn power_cut(&self, seed: u64) -> Result<Cut> {
        self.0.state.lock().off = Some("the power was cut".into());
        // Whatever is being drained arrives, which is one of the things that may happen.
        let _still = self.0.draining.lock();
        let blocks = {
            let mut state = self.0.state.lock();
            state.bytes = 0;
            std::mem::take(&mut state.blocks)
        };
        let mut rng = Rng::new(seed);
        let keep_percent = [0, 10, 50, 90, 100][rng.below(5) as usize];
        let mut cut = Cut::default();
        for (number, versions) in blocks {
            self.0.leave(number, &versions, keep_percent, &mut rng, &mut cut)?;
        }
        self.0.next.flush()?;
        Ok(cut)
    }

    /// Turns the power on again: the cache is empty and works.
    pub fn power_on(&self) {
        let mut state = self.0.state.lock();
        state.off = None;
        state.failed = None;
    }

    /// Runs what must wait for the device below on a task of its own.
    fn task(
        &self,
        body: impl FnOnce(&WriteCacheCore) -> Result<()> + Send + 'static,
    ) -> Completion {
        let shared = Arc::clone(&self.0);
        Completion::on_task("write cache", move || body(&shared).map(|()| Bytes::new()))
    }

    fn accept(&self, offset: u64, data: &Payload, fua: bool) -> Completion {
        let blocks = self.0.blocks(offset, data.len() as u64);
        let full = match self.0.insert(blocks.start, data) {
            Ok(bytes) => bytes > self.0.settings.capacity,
            Err(off) => return Completion::ready(Err(off)),
        };
        if fua && !self.0.settings.lying {
            self.task(move |shared| shared.write_through(blocks))
        } else if full {
            self.task(WriteCacheCore::make_room)
        } else {
            Completion::ready(Ok(Bytes::new()))
        }
    }

    fn answer_flush(&self) -> Completion {
        match self.0.settings.lying {
            true => Completion::ready(self.0.power().map(|_| Bytes::new())),
            false => self.task(WriteCacheCore::flush),
        }
    }
}

impl BlockDevice for WriteCache {
    fn info(&self) -> DeviceInfo {
        DeviceInfo { volatile_cache: true, ..self.0.next.info() }
    }

    fn submit(&self, request: Request) -> Completion {
        if let Err(refused) = check(&self.0.info, &request) {
            return Completion::ready(Err(refused));
        }
        match request {
            Request::Read { offset, len } => self.0.read(offset, len),
            Request::Write { offset, data, fua } => self.accept(offset, &data, fua),
            Request::Flush => self.answer_flush(),
            Request::Discard { offset, len } => {
                self.task(move |shared| shared.discard(offset, len))
            }
        }
    }
}

impl WriteCacheCore {
    fn block(&self) -> u64 {
        u64::from(self.info.logical_block)
    }

    fn blocks(&self, offset: u64, len: u64) -> Range<u64> {
        offset / self.block()..(offset + len) / self.block()
    }

    /// The state, if the power is on.
    fn power(&self) -> Result<MutexGuard<'_, State>> {
        let state = self.state.lock();
        match state.off.clone() {
            None => Ok(state),
            Some(reason) => Err(BlockError::Gone { device: self.info.name.clone(), reason }),
        }
    }

    /// Puts the blocks of a write into the cache; how many bytes it holds then.
    fn insert(&self, first: u64, data: &Payload) -> Result<u64> {
        let mut state = self.power()?;
        let sequence = state.next_sequence;
        state.next_sequence += 1;
        for (number, data) in (first..).zip(data.units(self.block() as usize)) {
            state.blocks.entry(number).or_default().push(Version { sequence, data });
        }
        state.bytes += data.len() as u64;
        Ok(state.bytes)
    }

    fn read(&self, offset: u64, len: u64) -> Completion {
        let blocks = self.blocks(offset, len);
        let cached: Vec<DrainBlock> = match self.newest(blocks.clone()) {
            Ok(cached) => cached,
            Err(off) => return Completion::ready(Err(off)),
        };
        if cached.len() as u64 == blocks.end - blocks.start {
            let whole: Payload = cached.into_iter().map(|(.., data)| data).collect();
            return Completion::ready(Ok(whole.into_contiguous()));
        }
        let below = self.next.submit(Request::Read { offset, len });
        if cached.is_empty() {
            return below;
        }
        let block = self.block();
        let over = move |below: Bytes| {
            let mut out = below.to_vec();
            for (number, _, data) in cached {
                let at = ((number - blocks.start) * block) as usize;
                out[at..at + data.len()].copy_from_slice(&data);
            }
            Bytes::from(out)
        };
        below.map(|answer| answer.map(over))
    }

    fn flush(&self) -> Result<()> {
        let _one = self.draining.lock();
        self.still_sound()?;
        self.drain(self.newest(0..u64::MAX)?, false)?;
        self.next.flush().inspect_err(|error| self.remember(error))
    }

    /// Makes a range durable below.
    fn write_through(&self, blocks: Range<u64>) -> Result<()> {
        let _one = self.draining.lock();
        self.still_sound()?;
        let here = self.newest(blocks.clone())?;
        let all = here.len() as u64 == blocks.end - blocks.start;
        self.drain(here, true)?;
        if all {
            return Ok(());
        }
        // The rest was drained meanwhile to make room, and may be in a cache below.
        self.next.flush().inspect_err(|error| self.remember(error))
    }

    fn still_sound(&self) -> Result<()> {
        self.state.lock().failed.clone().map_or(Ok(()), Err)
    }

    fn remember(&self, error: &BlockError) {
        self.state.lock().failed.get_or_insert(error.clone());
    }

    /// Drains until the cache is half full.
    fn make_room(&self) -> Result<()> {
        let _one = self.draining.lock();
        let picked = {
            let mut state = self.power()?;
            let from = state.cursor;
            let mut excess = state.bytes.saturating_sub(self.settings.capacity / 2);
            let elevator = state.blocks.range(from..).chain(state.blocks.range(..from));
            let mut picked: Vec<DrainBlock> = Vec::new();
            for (number, versions) in elevator {
                if excess == 0 {
                    break;
                }
                excess = excess.saturating_sub(versions.len() as u64 * self.block());
                picked.push(pick(*number, versions));
            }
            state.cursor = picked.last().map_or(0, |(number, ..)| number + 1);
            picked
        };
        self.drain(picked, false)
    }

    fn discard(&self, offset: u64, len: u64) -> Result<()> {
        // Drained first: the device below may leave a discarded range as it was, and that must
        // not be older than what was written last.
        let _one = self.draining.lock();
        self.drain(self.newest(self.blocks(offset, len))?, false)?;
        self.next.discard(offset, len)
    }

    fn newest(&self, blocks: Range<u64>) -> Result<Vec<DrainBlock>> {
        let state = self.power()?;
        Ok(state.blocks.range(blocks).map(|(number, versions)| pick(*number, versions)).collect())
    }

    /// Writes blocks below and forgets those versions. The caller holds `draining`.
    fn drain(&self, picked: Vec<DrainBlock>, fua: bool) -> Result<()> {
        let requests = gather(&picked, self.block());
        let below: Vec<Completion> = requests
            .into_iter()
            .map(|(offset, data)| self.next.submit(Request::Write { offset, data, fua }))
            .collect();
        Completion::wait_all(&below).inspect_err(|error| self.remember(error))?;
        let mut state = self.state.lock();
        for (number, sequence, _) in picked {
            // Still there: only drains and cuts remove blocks, both under `draining`.
            let versions = state.blocks.entry(number).or_default();
            let before = versions.len();
            versions.retain(|version| version.sequence > sequence);
            let (freed, empty) = (before - versions.len(), versions.is_empty());
            if empty {
                state.blocks.remove(&number);
            }
            state.bytes -= freed as u64 * self.block();
        }
        Ok(())
    }

    /// Writes what a power cut leaves of one block.
    fn leave(
        &self,
        number: u64,
        versions: &[Version],
        keep_percent: u64,
        rng: &mut Rng,
        cut: &mut Cut,
    ) -> Result<()> {
        let offset = number * self.block();
        let mut block = self.next.read(offset, self.block())?.to_vec();
        let unit = (self.info.atomic_write as usize).clamp(1, block.len());
        let mut changed = false;
        for (i, out) in block.chunks_mut(unit).enumerate() {
            if !rng.percent(keep_percent) {
                cut.lost += 1;
                continue;
            }
            let back = rng.below(versions.len() as u64) as usize;
            let chosen = &versions[versions.len() - 1 - back].data;
            out.copy_from_slice(&chosen[i * unit..][..out.len()]);
            if back == 0 {
                cut.kept += 1
            } else {
                cut.older += 1
            }
            changed = true;
        }
        if changed { self.next.write(offset, block.into()) } else { Ok(()) }
    }
}

fn pick(number: u64, versions: &[Version]) -> DrainBlock {
    // OK to index: a block in the cache has a version.
    let newest = &versions[versions.len() - 1];
    (number, newest.sequence, newest.data.clone())
}

/// Adjacent blocks as one request.
fn gather(picked: &[DrainBlock], block: u64) -> Vec<(u64, Payload)> {
    let mut requests: Vec<(u64, Payload)> = Vec::new();
    for (number, _, data) in picked {
        let offset = number * block;
        match requests.last_mut() {
            Some((from, run))
                if *from + run.len() as u64 == offset && run.len() < DRAIN_BYTES_MAX =>
            {
                run.push(data.clone());
            }
            _ => requests.push((offset, data.clone().into())),
        }
    }
    requests
}

#[cfg(test)]
mod tests;
