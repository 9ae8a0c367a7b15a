//! A make-believe file system over the journal, and what must hold of it after a crash.
//!
//! Every block of the file system's device is free, metadata (written through the journal), or
//! data (written in place, ordered). Updates are numbered; each also writes block 0, which holds
//! the number, so the state after a crash shows which updates it contains. What each update does
//! is kept, so the expected contents of every block are known for every number.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use steadfast_block::{BlockDevice, Completion, Payload, Request};
use steadfast_journal::{FsBlock, Journal, Tid, Update};
use steadfast_runtime::Mutex;

use crate::disk::Recorder;
use crate::rng::Rng;

pub const BLOCK: usize = 1024;

/// What a block is. The number is that of the update that wrote it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Use {
    Free,
    Meta(u64),
    Data(u64),
}

/// The bytes of `block` as update `n` wrote them. Some begin with the journal's magic number.
pub fn stamp(block: u64, n: u64) -> Vec<u8> {
    let mut bytes = vec![0; BLOCK];
    let mut rng = Rng::new(block << 32 ^ n);
    for word in bytes.as_chunks_mut::<8>().0 {
        *word = rng.next().to_le_bytes();
    }
    if n.is_multiple_of(3) {
        bytes[..4].copy_from_slice(&0xc03b_3998u32.to_be_bytes());
    }
    bytes[8..16].copy_from_slice(&n.to_le_bytes());
    bytes
}

struct Now {
    uses: Vec<Use>,
    /// Free, and the update that freed it has committed.
    pool: Vec<u64>,
    updates: u64,
    rng: Rng,
}

/// How updates look.
#[derive(Clone, Copy)]
pub struct Shape {
    /// Most blocks changed by one.
    pub most: usize,
    /// Percent of new blocks that are data.
    pub data_percent: u64,
    /// Percent of updates that are waited for.
    pub commit_percent: u64,
}

/// The make-believe file system.
pub struct Load {
    now: Mutex<Now>,
    /// What each update changed.
    history: Mutex<Vec<BTreeMap<u64, Use>>>,
    released: Arc<std::sync::Mutex<Vec<u64>>>,
    fs: Arc<dyn BlockDevice>,
    recorder: Arc<Recorder>,
    shape: Shape,
}

impl Load {
    pub fn new(
        fs: Arc<dyn BlockDevice>,
        recorder: Arc<Recorder>,
        blocks: std::ops::Range<u64>,
        shape: Shape,
        seed: u64,
    ) -> Arc<Load> {
        let pool = blocks.clone().skip(1).collect();
        let uses = vec![Use::Free; blocks.end as usize];
        let now = Now { uses, pool, updates: 0, rng: Rng::new(seed) };
        Arc::new(Load {
            now: Mutex::new(now),
            history: Mutex::new(vec![BTreeMap::new()]),
            released: Arc::default(),
            fs,
            recorder,
            shape,
        })
    }

    /// Makes one update and perhaps waits for its commit. Errors are the journal's.
    pub fn step(&self, journal: &Journal) -> steadfast_journal::Result<()> {
        let (n, tid, commit) = self.update(journal)?;
        if commit {
            journal.commit(tid)?;
            self.recorder.note(n);
        }
        Ok(())
    }

    fn update(&self, journal: &Journal) -> steadfast_journal::Result<(u64, Tid, bool)> {
        let mut guard = self.now.lock();
        let now = &mut *guard;
        now.pool.append(&mut self.released.lock().unwrap());
        let n = now.updates + 1;
        let mut changes = BTreeMap::from([(0, Use::Meta(n))]);
        let mut freed = Vec::new();
        let mut wait_for = Vec::new();
        for _ in 0..1 + now.rng.below(self.shape.most) {
            let b = 1 + now.rng.below(now.uses.len() - 1) as u64;
            if changes.contains_key(&b) {
                continue;
            }
            match now.uses[b as usize] {
                Use::Meta(_) if now.rng.chance(60) => drop(changes.insert(b, Use::Meta(n))),
                Use::Meta(_) | Use::Data(_) => {
                    changes.insert(b, Use::Free);
                    freed.push(b);
                }
                Use::Free if now.pool.is_empty() => {}
                Use::Free => {
                    let at = now.rng.below(now.pool.len());
                    let b = now.pool.swap_remove(at);
                    if now.rng.chance(self.shape.data_percent) {
                        changes.insert(b, Use::Data(n));
                        wait_for.push(self.write_in_place(b, n));
                    } else {
                        changes.insert(b, Use::Meta(n));
                    }
                }
            }
        }
        let update = self.as_update(now, &changes, freed, wait_for);
        // Under the lock, so that updates join in the order of their numbers.
        let tid = journal.submit(update)?;
        now.updates = n;
        for (b, u) in &changes {
            now.uses[*b as usize] = *u;
        }
        self.history.lock().push(changes);
        Ok((n, tid, now.rng.chance(self.shape.commit_percent)))
    }

    fn as_update(
        &self,
        now: &Now,
        changes: &BTreeMap<u64, Use>,
        freed: Vec<u64>,
        wait_for: Vec<Completion>,
    ) -> Update {
        let image = |(b, u): (&u64, &Use)| match u {
            Use::Meta(n) => Some((FsBlock(*b), Bytes::from(stamp(*b, *n)))),
            Use::Free | Use::Data(_) => None,
        };
        let was_meta = |b: &&u64| matches!(now.uses[**b as usize], Use::Meta(_));
        let revokes = freed.iter().filter(was_meta).map(|b| FsBlock(*b)).collect();
        let released = Arc::clone(&self.released);
        Update {
            writes: changes.iter().filter_map(image).collect(),
            revokes,
            wait_for,
            on_commit: vec![Box::new(move |_| released.lock().unwrap().extend(freed))],
        }
    }

    fn write_in_place(&self, block: u64, n: u64) -> Completion {
        let offset = block * BLOCK as u64;
        let data = Payload::from(stamp(block, n));
        self.fs.submit(Request::Write { offset, data, fua: false })
    }

    /// Updates made so far.
    pub fn updates(&self) -> u64 {
        self.now.lock().updates
    }

    /// Checks what a reader of the running journal sees against what was written last. The disk
    /// is read after the journal was asked, as a reader must: what the journal has no image of
    /// any more is at home by then, what it had an image of may be in flight there.
    pub fn check_live(&self, journal: &Journal, disk: impl FnOnce() -> Vec<u8>) {
        let now = self.now.lock();
        let images: Vec<_> =
            (0..now.uses.len()).map(|b| journal.image(FsBlock(b as u64))).collect();
        let disk = disk();
        for ((b, u), image) in now.uses.iter().enumerate().zip(images) {
            // Data may still be in flight.
            let Use::Meta(n) = *u else { continue };
            let home = || Bytes::copy_from_slice(&disk[b * BLOCK..(b + 1) * BLOCK]);
            let seen = image.unwrap_or_else(home);
            assert!(seen == stamp(b as u64, n), "block {b}: {u:?}");
        }
    }

    /// What is wrong with a recovered file system: `acknowledged` updates must be in it.
    pub fn judge(&self, disk: &[u8], acknowledged: u64, ordered: bool) -> Result<u64, String> {
        let n = u64::from_le_bytes(disk[8..16].try_into().unwrap());
        if n < acknowledged {
            return Err(format!("holds {n} updates, {acknowledged} were acknowledged"));
        }
        let history = self.history.lock();
        if n as usize >= history.len() {
            return Err(format!("holds {n} updates, only {} were made", history.len() - 1));
        }
        let mut uses: BTreeMap<u64, Use> = BTreeMap::new();
        for changes in &history[..=n as usize] {
            uses.extend(changes.iter().map(|(b, u)| (*b, *u)));
        }
        for (b, u) in uses {
            let found = &disk[b as usize * BLOCK..(b as usize + 1) * BLOCK];
            let (Use::Meta(m) | Use::Data(m)) = u else { continue };
            if matches!(u, Use::Data(_)) && !ordered {
                continue;
            }
            if found != stamp(b, m) {
                let holds = u64::from_le_bytes(found[8..16].try_into().unwrap());
                return Err(format!("after update {n}, block {b} is not {u:?} but has {holds}"));
            }
        }
        Ok(n)
    }
}
