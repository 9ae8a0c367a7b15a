//! How to mount.

mod superblock;
mod table;

use std::sync::Arc;

use smart_default::SmartDefault;
use steadfast_block::BlockDevice;
use steadfast_block::planted::BugSwitch;
use steadfast_ext4_format::ondisk::{Compat, Superblock};
use steadfast_ext4_format::{Result, refused};
use steadfast_pagecache::{PAGE, Settings};
use steadfast_vfs::TransactPolicy;

pub use superblock::default_options;
pub use table::{OPTIONS, check_together, speaks_of_journal};

/// What the journal promises about file data (mount option `data=`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum DataMode {
    /// Nothing: after a crash a file may show what its new blocks held before.
    Writeback,
    /// Newly allocated data is on the device before the transaction that maps it commits.
    /// Overwrites in place are not covered.
    #[default]
    Ordered,
    /// Data goes through the journal like metadata.
    Journal,
    /// Data and metadata become durable together, at transaction points; see
    /// [`MountOptions::transact`]. Nothing that a point holds is ever overwritten in place.
    Transact,
}

/// The words of a list of words and what they mean.
const fn words<T: Copy, const N: usize>(list: &[(&'static str, T); N]) -> [&'static str; N] {
    let mut words = [""; N];
    let mut i = 0;
    while i < N {
        words[i] = list[i].0;
        i += 1;
    }
    words
}

impl DataMode {
    const NAMES: [(&'static str, DataMode); 4] = [
        ("writeback", DataMode::Writeback),
        ("ordered", DataMode::Ordered),
        ("journal", DataMode::Journal),
        ("transact", DataMode::Transact),
    ];

    /// What follows `data=`.
    pub fn name(self) -> &'static str {
        // OK: every mode is in the list.
        Self::NAMES.iter().find(|(_, mode)| *mode == self).map_or("", |(name, _)| *name)
    }

    /// The mode that `data=` names.
    pub fn of_name(name: &str) -> Option<DataMode> {
        Self::NAMES.iter().find(|(n, _)| *n == name).map(|(_, mode)| *mode)
    }
}

/// Which files are read and written in place on a device that is memory (mount option `dax=`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Dax {
    /// None.
    Never,
    /// Those with the flag (`chattr +x`), where it can be done.
    #[default]
    Inode,
    /// All regular files; a mount where it cannot be done is refused.
    Always,
}

impl Dax {
    const WORDS: [(&'static str, Dax); 5] = [
        ("dax=inode", Dax::Inode),
        ("dax=never", Dax::Never),
        ("dax=always", Dax::Always),
        ("dax", Dax::Always),
        ("nodax", Dax::Never),
    ];

    /// Its mount option.
    pub fn word(self) -> &'static str {
        // OK: every way is in the list.
        Self::WORDS.iter().find(|(_, dax)| *dax == self).map_or("", |(word, _)| *word)
    }

    /// What a mount option asks for.
    pub(crate) fn of_word(word: &str) -> Option<Dax> {
        Self::WORDS.iter().find(|(w, _)| *w == word).map(|(_, dax)| *dax)
    }
}

/// When reading changes an inode's time of access.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum AccessTimes {
    /// `noatime`: never.
    Never,
    /// `relatime`: when the inode was changed after it was last read, and once a day.
    #[default]
    Relative,
    /// `strictatime`: always.
    Always,
}

impl AccessTimes {
    const NAMES: [(&'static str, AccessTimes); 3] = [
        ("relatime", AccessTimes::Relative),
        ("noatime", AccessTimes::Never),
        ("strictatime", AccessTimes::Always),
    ];

    /// The words of mount(8) that take one of them back to the default, which is `relatime`.
    const NEGATIONS: [(&'static str, AccessTimes); 3] = [
        ("atime", AccessTimes::Never),
        ("norelatime", AccessTimes::Relative),
        ("nostrictatime", AccessTimes::Always),
    ];

    /// Its mount option.
    pub fn name(self) -> &'static str {
        // OK: every way is in the list.
        Self::NAMES.iter().find(|(_, times)| *times == self).map_or("", |(name, _)| *name)
    }

    /// What a mount option asks for.
    pub fn of_name(name: &str) -> Option<AccessTimes> {
        Self::NAMES.iter().find(|(n, _)| *n == name).map(|(_, times)| *times)
    }

    /// What holds after a mount option, one of the names or negations.
    pub(crate) fn changed_by(self, word: &str) -> AccessTimes {
        if let Some(named) = Self::of_name(word) {
            return named;
        }
        let negated = Self::NEGATIONS.iter().any(|(w, times)| *w == word && *times == self);
        if negated { AccessTimes::default() } else { self }
    }
}

/// Mount options. The default is the kernel's: data=ordered, delayed allocation, commit every
/// five seconds.
#[derive(Clone, SmartDefault)]
pub struct MountOptions {
    /// `data=`.
    pub data: DataMode,
    /// `transact=`: when transaction points are made by themselves, with data=transact.
    pub transact: TransactPolicy,
    /// The first option that was given and says something of a journal ([`speaks_of_journal`]): a
    /// file system without one is not mounted with it. `None`: the values above are not asked for.
    pub data_given: Option<String>,
    /// The external journal's device, if the file system has one.
    pub journal_device: Option<Arc<dyn BlockDevice>>,
    /// The number of that device as the kernel encodes it (`new_encode_dev`), which the mount
    /// puts into the superblock (`s_journal_dev`): a kernel finds the journal by it. 0: it is no
    /// block device, and the superblock keeps what it has.
    pub journal_number: u32,
    /// Commit interval, asynchronous commit, whether a volatile journal device is accepted, and
    /// when checkpoints happen; fast commits (`fast_commit`), for file systems that have this
    /// feature and neither quotas nor bigalloc, with data=ordered and data=writeback. `checksums`,
    /// `wide` and `simulated_epoch_ns` are set by the mount.
    pub journal: steadfast_journal::Config,
    /// `dax=`: files that are used in place.
    pub dax: Dax,
    /// `ro`: nothing at all is written; a log that needs recovery is replayed in memory.
    pub read_only: bool,
    /// `noload`: do not look at the journal, whatever it holds. Where there is one, only together
    /// with `read_only`: a mount that may write is refused.
    pub no_load: bool,
    /// `delalloc`: allocate when data is written back rather than when it is written.
    #[default(true)]
    pub delayed_allocation: bool,
    /// `auto_da_alloc`: contents that wait for their places (delayed allocation) are written out
    /// before their file is renamed over another, and when a file that was cut to nothing is
    /// closed, so that a program that forgets to sync is not left with an empty file.
    #[default(true)]
    pub auto_da_alloc: bool,
    /// The largest window of free blocks, in bytes, that is kept behind a growing file so that
    /// files that grow side by side stay in runs of this length. The window is as large as the
    /// file up to here. Default: 8 MiB, where the kernel's allocator stops
    /// (`ext4_mb_normalize_request`, fs/ext4/mballoc.c). At most a block group is kept.
    #[default(8 << 20)]
    pub window_max: u64,
    /// Let everybody use the blocks reserved for the super-user.
    pub use_reserved: bool,
    /// `noatime`, `relatime`, `strictatime`.
    pub access_times: AccessTimes,
    /// `dirsync`: a name that is made, changed or removed is durable when the call returns.
    pub sync_names: bool,
    /// `nodiratime`: reading a directory never changes its time of access.
    pub no_directory_access_times: bool,
    /// The page cache's settings.
    pub page_cache: Settings,
    /// Clean metadata blocks kept in memory.
    #[default(16384)]
    pub metadata_cache_blocks: usize,
    /// Inodes kept in memory beside those in use, and twice as many names.
    #[default(32768)]
    pub inode_cache: usize,
    /// `cache=`: bytes for everything that is kept in memory of the disk's contents (pages, block
    /// images that the journal has and the home places do not, metadata blocks, inodes, names).
    /// The mount divides them and sets the three above and the journal's `image_bytes_max`.
    /// `None`: those say it; the memory of the page cache is then for pages and for block images,
    /// which take at most half of it.
    pub cache_bytes: Option<u64>,
    /// The date at which a simulation begins, in seconds since 1970: 2024-01-01 by default. Ignored
    /// in real time.
    #[default(1_704_067_200)]
    pub simulated_epoch: u64,
    /// `minixdf`: statfs counts the file system's own blocks as space.
    pub minix_df: bool,
    /// Leaves an internal journal as it is, empty, and writes everything to its place: for who
    /// fills a new image that nobody needs unless it is finished. A crash meanwhile needs e2fsck.
    pub without_journal: bool,
    /// A bug that the crash explorer is to find.
    pub planted: BugSwitch<crate::Bug>,
}

impl std::fmt::Debug for MountOptions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("MountOptions")
            .field("data", &self.data)
            .field("transact", &self.transact)
            .field("journal_device", &self.journal_device.as_ref().map(|d| d.info().name))
            .field("journal", &self.journal)
            .field("read_only", &self.read_only)
            .field("no_load", &self.no_load)
            .field("delayed_allocation", &self.delayed_allocation)
            .finish_non_exhaustive()
    }
}

/// Bytes counted for an inode in memory with its share of names.
pub(crate) const INODE_COST: u64 = 1536;

/// Bytes counted for a page or block in memory beside its contents: its frame, its place in the
/// maps, who else holds it, and what the allocator adds.
pub(crate) const BLOCK_COST: u64 = 256;

/// Bytes of [`MountOptions::cache_bytes`], at most an eighth of it, for data between the caches and
/// the devices.
const ON_ITS_WAY: u64 = 8 << 20;

/// Inodes, or blocks of metadata, that are kept however little `cache=` is.
const FEWEST: usize = 16;

impl MountOptions {
    /// Lets what is dirty be written by the age of `commit=`, looked for in half of it: so a mount
    /// has it, which sync(2) does not reach.
    pub fn write_by_commit_age(&mut self) {
        let commit_ms = u64::try_from(self.journal.commit_interval.as_millis());
        let commit_ms = commit_ms.unwrap_or(u64::MAX);
        self.page_cache.dirty_expire_ms = commit_ms;
        self.page_cache.writeback_interval_ms = (commit_ms / 2).max(500);
    }

    /// Divides [`cache_bytes`](Self::cache_bytes) after a part for data on its way: three quarters
    /// for pages, of which the journal's images take up to a half, an eighth for metadata blocks, a
    /// tenth for inodes with names, of which some in use may be too many for a while.
    pub(super) fn divided(mut self, block_size: u32) -> Self {
        // Of this mount, whoever else has been given a copy of the options.
        self.journal.image_bytes = Arc::default();
        let Some(all) = self.cache_bytes else {
            let most = &mut self.journal.image_bytes_max;
            *most = (*most).min(self.page_cache.memory_limit_bytes() / 2);
            return self;
        };
        let all = all - (all / 8).min(ON_ITS_WAY);
        let count =
            |bytes: u64, each: u64| usize::try_from(bytes / each).unwrap_or(usize::MAX).max(FEWEST);
        let pages = all / 4 * 3 / (PAGE as u64 + BLOCK_COST);
        self.page_cache.memory_bytes = pages * PAGE as u64;
        self.journal.image_bytes_max = all / 8 * 3;
        self.journal.image_overhead_bytes = BLOCK_COST;
        self.metadata_cache_blocks = count(all / 8, u64::from(block_size) + BLOCK_COST);
        self.inode_cache = count(all / 10, INODE_COST);
        self
    }

    /// What a kernel with so much memory for the contents of the disk keeps there. Block images
    /// that the journal has and the home places do not are dirty memory, and bounded as such:
    /// jbd2 hands them to the VM as dirty buffers when they are committed, and since Linux 6.4
    /// (265e72efa99f) pages of data=journal are dirty from the write on. Beside that memory there
    /// is an eighth of it for metadata blocks, and a tenth for inodes.
    pub fn limit_memory(&mut self, memory_bytes: u64) {
        let count = |bytes: u64, each: u64| usize::try_from(bytes / each).unwrap_or(usize::MAX);
        self.page_cache.memory_bytes = memory_bytes;
        self.journal.image_bytes_max = self.page_cache.dirty_limit_bytes();
        let blocks = count(memory_bytes / 8, PAGE as u64 + BLOCK_COST);
        self.metadata_cache_blocks = self.metadata_cache_blocks.min(blocks);
        self.inode_cache = self.inode_cache.min(count(memory_bytes / 10, INODE_COST));
    }

    /// Refuses options that contradict each other.
    pub(super) fn check(&self) -> Result<()> {
        if self.journal.async_commit && self.data == DataMode::Ordered {
            // The commit block could be durable before the ordered data is: stale data exposed.
            return refused(
                "journal_async_commit cannot keep the promise of data=ordered; mount with \
                 data=writeback or data=journal, or without async_commit",
            );
        }
        if self.data == DataMode::Transact && self.journal.async_commit {
            return refused(
                "journal_async_commit cannot keep the promise of data=transact: the commit block \
                 could be durable before the data is; mount without it",
            );
        }
        if self.data == DataMode::Transact && !self.delayed_allocation {
            return refused("data=transact needs delayed allocation: mount without nodelalloc");
        }
        let recordable = matches!(self.data, DataMode::Ordered | DataMode::Writeback);
        if self.journal.fast_commits && !recordable {
            return refused(
                "fast_commit cannot record data that goes through the journal or to new places: \
                 mount with data=ordered or data=writeback, or without it",
            );
        }
        if self.journal.fast_commits && self.journal.async_commit {
            return refused("fast_commit and journal_async_commit exclude each other");
        }
        if self.dax == Dax::Always && matches!(self.data, DataMode::Journal | DataMode::Transact) {
            return refused(
                "dax=always writes files in place, and data=journal and data=transact do not: \
                 mount with data=ordered or data=writeback, or without dax",
            );
        }
        if self.data == DataMode::Transact && self.sync_names {
            return refused(
                "with data=transact, transact= says which changes of names are durable at once: \
                 mount without dirsync, with transact=create,mkdir,link,rename,unlink",
            );
        }
        Ok(())
    }

    /// Refuses options that need a journal, or one that is not there.
    pub(super) fn check_with(&self, superblock: &Superblock) -> Result<()> {
        let has_journal = superblock.features().compat.contains(Compat::HAS_JOURNAL);
        if has_journal && self.no_load && !self.read_only {
            // The kernel does so where the journal is empty. What it writes is in no journal then,
            // and nothing says so after a crash.
            return refused("noload is for read-only mounts only: add ro, or leave noload out");
        }
        match &self.data_given {
            Some(word) if !has_journal => refused(format!(
                "the option {word} is for file systems with a journal, and this one has none: \
                 leave it out, or give the file system a journal (tune2fs -j)"
            )),
            Some(word) if self.no_load => refused(format!(
                "the option {word} is about the journal, which noload leaves alone: leave one of \
                 them out"
            )),
            _ => Ok(()),
        }
    }
}
