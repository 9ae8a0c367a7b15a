//! Where finished transactions go: the journal or, in a file system without one, straight home.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use steadfast_block::{BlockDevice, BlockError, Completion, Request};
use steadfast_ext4_format::{Ext4Error, Result};
use steadfast_journal::{FsBlock, Journal, JournalError, Overlay, Tid, Update};
use steadfast_runtime::Mutex;
use steadfast_vfs::FsError;

/// The log of a volume.
pub(crate) enum MetaLog {
    /// A journal.
    Journal(Arc<Journal>),
    /// No journal: blocks are kept here and written home on commit.
    Direct(DirectLog),
    /// A read-only mount: what the log would replay, and nothing more.
    ReadOnly(Overlay),
    /// Of a volume that is only staged over what a log would replay: changes stay here until they
    /// are taken.
    Staged {
        /// What the log would replay.
        base: Overlay,
        /// What has changed since.
        changed: Mutex<BTreeMap<u64, Bytes>>,
    },
}

/// What ran out when a transaction that is committed on demand only has filled the log.
pub(crate) const LOG_FULL: &str = "log blocks: the transaction is larger than the journal";

/// A full log is a lack of space like others.
fn no_space_if_full(e: JournalError) -> Ext4Error {
    match e {
        JournalError::Full { .. } => FsError::NoSpace { what: LOG_FULL }.into(),
        e => e.into(),
    }
}

/// Updates of at most this many blocks are made where the log sets no limit.
const UPDATE_BLOCKS_MAX: usize = 1024;

impl MetaLog {
    /// A log that writes blocks straight home.
    pub fn direct(device: Arc<dyn BlockDevice>, block_size: u32) -> Self {
        MetaLog::Direct(DirectLog { device, block_size, state: Mutex::new(DirectState::default()) })
    }

    /// The journal, if it is one.
    pub fn journal(&self) -> Option<&Arc<Journal>> {
        match self {
            MetaLog::Journal(journal) => Some(journal),
            MetaLog::Direct(_) | MetaLog::ReadOnly(_) | MetaLog::Staged { .. } => None,
        }
    }

    /// Adds an update whole. The number is that of the transaction it joined.
    pub fn submit(&self, update: Update) -> Result<Tid> {
        match self {
            MetaLog::Journal(journal) => journal.submit(update).map_err(no_space_if_full),
            MetaLog::Direct(log) => log.submit(update),
            MetaLog::Staged { changed, .. } => {
                let mut changed = changed.lock();
                update.revokes.iter().for_each(|block| drop(changed.remove(&block.0)));
                changed.extend(update.writes.into_iter().map(|(block, image)| (block.0, image)));
                Ok(Tid(1))
            }
            MetaLog::ReadOnly(_) => {
                let why = "mounted read-only".into();
                Err(Ext4Error::Fs(FsError::ReadOnly { why }))
            }
        }
    }

    /// Waits until an update of so many blocks would not have to wait: before the metadata lock
    /// is taken.
    pub fn wait_for_room(&self, blocks: usize) -> Result<()> {
        let Some(journal) = self.journal() else { return Ok(()) };
        journal.wait_for_room(blocks, 1).map_err(no_space_if_full)
    }

    /// Log blocks that operations may still add to the running transaction, when it is committed
    /// on demand only and so far takes what it takes: a quarter of the log is left to write-back.
    pub fn room_on_demand(&self) -> u64 {
        let Some(journal) = self.journal() else { return u64::MAX };
        let (taken, whole) = journal.running_blocks();
        u64::from((whole - whole / 4).saturating_sub(taken))
    }

    /// The same for an empty transaction.
    pub fn most_room_on_demand(&self) -> u64 {
        let Some(journal) = self.journal() else { return u64::MAX };
        let (_, whole) = journal.running_blocks();
        u64::from(whole - whole / 4)
    }

    /// The newest contents of a block that are not yet in their home place.
    pub fn image(&self, block: u64) -> Option<Bytes> {
        match self {
            MetaLog::Journal(journal) => journal.image(FsBlock(block)),
            MetaLog::Direct(log) => log.state.lock().dirty.get(&block).cloned(),
            MetaLog::ReadOnly(overlay) => overlay.get(&FsBlock(block)).cloned(),
            MetaLog::Staged { base, changed } => {
                let newer = changed.lock().get(&block).cloned();
                newer.or_else(|| base.get(&FsBlock(block)).cloned())
            }
        }
    }

    /// Why nothing can be logged any more.
    pub fn aborted(&self) -> Option<String> {
        self.journal()?.aborted().map(|e| e.to_string())
    }

    /// Whether any block may have contents that are not in their home place.
    pub fn may_hold_images(&self) -> bool {
        !matches!(self, MetaLog::ReadOnly(overlay) if overlay.is_empty())
    }

    /// The transaction that an update would join now.
    pub fn running_tid(&self) -> Tid {
        self.journal().map_or(Tid(1), |journal| journal.running_tid())
    }

    /// Waits until the transaction is durable.
    pub fn commit(&self, tid: Tid) -> Result<()> {
        match self {
            MetaLog::Journal(journal) => Ok(journal.commit(tid)?),
            MetaLog::Direct(log) => log.write_home(),
            MetaLog::ReadOnly(_) | MetaLog::Staged { .. } => Ok(()),
        }
    }

    /// Commits, and writes everything to its place.
    pub fn checkpoint_all(&self) -> Result<()> {
        match self {
            MetaLog::Journal(journal) => Ok(journal.checkpoint_all()?),
            MetaLog::Direct(log) => log.write_home(),
            MetaLog::ReadOnly(_) | MetaLog::Staged { .. } => Ok(()),
        }
    }

    /// As [`checkpoint_all`](Self::checkpoint_all), and ends the journal. The file system says of
    /// itself by then what an aborted journal remembered.
    pub fn close(&self) -> Result<()> {
        let Some(journal) = self.journal() else { return self.checkpoint_all() };
        journal.close()?;
        if journal.superblock().errno() != 0 {
            steadfast_journal::clear_errno(journal.log())?;
        }
        Ok(())
    }

    /// Takes what has not been written home, of a volume that is only staged: its device keeps
    /// what it has.
    pub fn take_images(&self) -> BTreeMap<u64, Bytes> {
        match self {
            MetaLog::Direct(log) => std::mem::take(&mut log.state.lock().dirty),
            MetaLog::Staged { changed, .. } => std::mem::take(&mut changed.lock()),
            MetaLog::Journal(_) | MetaLog::ReadOnly(_) => BTreeMap::new(),
        }
    }

    /// Most blocks that one update should hold: well below what the log can take at once.
    pub fn update_blocks_max(&self) -> usize {
        let of_journal = self.journal().map(|journal| journal.max_update_blocks() / 2);
        of_journal.unwrap_or(usize::MAX).min(UPDATE_BLOCKS_MAX)
    }
}

/// A volume without a journal: no promise but that a commit writes everything.
pub(crate) struct DirectLog {
    device: Arc<dyn BlockDevice>,
    block_size: u32,
    state: Mutex<DirectState>,
}

#[derive(Default)]
struct DirectState {
    dirty: BTreeMap<u64, Bytes>,
    wait_for: Vec<Completion>,
    failed: Option<BlockError>,
}

/// Blocks kept before they are written home without being asked.
const DIRTY_MAX: usize = 4096;

impl DirectLog {
    fn submit(&self, update: Update) -> Result<Tid> {
        let full = {
            let mut state = self.state.lock();
            if let Some(e) = &state.failed {
                return Err(e.clone().into());
            }
            for block in update.revokes {
                state.dirty.remove(&block.0);
            }
            let writes = update.writes.into_iter().map(|(block, image)| (block.0, image));
            state.dirty.extend(writes);
            state.wait_for.extend(update.wait_for);
            state.dirty.len() > DIRTY_MAX
        };
        if full {
            self.write_home()?;
        }
        update.on_commit.into_iter().for_each(|f| f(Tid(1)));
        Ok(Tid(1))
    }

    fn write_home(&self) -> Result<()> {
        // The lock is held throughout: a block must not be read from the device before its
        // image has arrived there.
        let mut state = self.state.lock();
        if let Some(e) = &state.failed {
            return Err(e.clone().into());
        }
        self.write_dirty(&state).inspect_err(|e| state.failed = Some(e.clone()))?;
        state.dirty.clear();
        state.wait_for.clear();
        Ok(())
    }

    fn write_dirty(&self, state: &DirectState) -> std::result::Result<(), BlockError> {
        Completion::wait_all(&state.wait_for)?;
        let size = u64::from(self.block_size);
        let writes: Vec<Completion> = state
            .dirty
            .iter()
            .map(|(block, contents)| {
                let (offset, data) = (block * size, contents.clone().into());
                self.device.submit(Request::Write { offset, data, fua: false })
            })
            .collect();
        Completion::wait_all(&writes)?;
        self.device.flush()
    }
}
