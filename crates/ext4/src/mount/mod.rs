//! Mounting and unmounting.
//!
//! # Order
//!
//! 1. The superblock is read and checked; what is not implemented is refused by name.
//! 2. The journal is found: a file of the file system, or the device that was given, which must be
//!    the one the superblock names. A device that may lose its contents is refused unless the
//!    options accept it. Until here nothing has been written.
//!    With multiple-mount protection the file system is taken first (`mmp`).
//! 3. If the file system needs recovery the log is replayed; for a read-only mount into memory
//!    only. What could not be mounted then is refused before anything of it is written. If it does
//!    not need recovery, what a journal may still hold is discarded and never replayed: it is
//!    of another time.
//! 4. Superblock, group descriptors and orphans are read anew.
//! 5. The superblock is written: from here on the file system needs recovery.
//! 6. Orphans are deleted or cut to their size.

mod given_up;
mod journal;
mod relied_upon;
mod reload;
mod replay;
mod stale;
mod unmount;

use std::sync::{Arc, Weak};
use std::time::Duration;

use steadfast_block::BlockDevice;
use steadfast_ext4_format::journal::find_internal;
use steadfast_ext4_format::ondisk::{
    Compat, Incompat, Layout, RoCompat, StateFlags, Superblock, check_supported_filesystem,
    check_writable_filesystem,
};
use steadfast_ext4_format::superblock::FoundSuperblock;
use steadfast_ext4_format::{Result, groups, refused, superblock, unsupported};
use steadfast_pagecache::{DirtyLimit, PAGE, PageCache, PageStore};

pub use relied_upon::check_mountable;
pub use replay::{delete_orphans, discardable, replay, replayed_blocks};

use crate::file::process_orphans;
use crate::meta::{MetaLog, Parts};
use crate::mounted::Ext4;
use crate::options::{DataMode, MountOptions};
use crate::quota;
use crate::stage::{LoadedLayout, assemble, load_orphans};
use crate::state::{AccessRule, Clock, Handles, MountRecovery, Protection, Track, Transact};

impl Ext4 {
    /// Mounts the file system on `device`.
    ///
    /// # Errors
    /// Refused: bad options, a wrong or missing or unfit journal device; each says the way out.
    /// Unsupported: features, by name. Corrupt: the superblock, group descriptors or journal.
    pub fn mount(device: Arc<dyn BlockDevice>, options: MountOptions) -> Result<Arc<Ext4>> {
        options.check()?;
        let bootstrap = superblock::find(&*device)?;
        let superblock = &bootstrap.superblock;
        let supported =
            if options.read_only { check_supported_filesystem } else { check_writable_filesystem };
        supported(superblock)?;
        let layout = Layout::new(superblock, device.info().size)?;
        relied_upon::check_sectors(&*device, &layout)?;
        let read_only = options.read_only;
        if device.info().read_only && !read_only {
            return refused(format!("{} is read-only: mount read-only", device.info().name));
        }
        if options.journal.fast_commits && !read_only {
            check_fast_commits(superblock)?;
        }
        options.check_with(superblock)?;
        let options = options.divided(layout.block_size);
        let found = journal::find(&device, superblock, &layout, &options)?;
        let clock = Clock::new(options.simulated_epoch);
        let guarded = layout.features.incompat.contains(Incompat::MMP) && !read_only;
        let protection = guarded
            .then(|| Protection::take(&device, superblock, &layout, clock).map(Arc::new))
            .transpose()?;
        let mounted = Ext4::mount_found(device, &bootstrap, found, options, protection.clone());
        if let (Err(_), Some(protection)) = (&mounted, protection) {
            // That it cannot be mounted is what there is to say.
            let _ = protection.release();
        }
        mounted
    }

    /// The rest of a mount, from where the first byte is written.
    fn mount_found(
        device: Arc<dyn BlockDevice>,
        bootstrap: &FoundSuperblock,
        mut found: Option<journal::OpenLog>,
        options: MountOptions,
        protection: Option<Arc<Protection>>,
    ) -> Result<Arc<Ext4>> {
        let layout = Layout::new(&bootstrap.superblock, device.info().size)?;
        let recovered = journal::recover(&device, bootstrap, &layout, found.as_ref(), &options)?;
        let mut superblock = superblock::read(&*device, &recovered.overlay)?;
        if !superblock.has_journal() {
            // The log held that it is given up (`given_up`).
            found = None;
        }
        let mut by_backup = found.as_ref().and_then(|found| found.by_backup.clone());
        if by_backup.is_some() && !options.read_only {
            // The log may have held the inode as it was.
            by_backup = find_internal(&device, &bootstrap.superblock, &layout)?.by_backup;
        }
        // What is damaged is not written to; only the log is replayed.
        let read_only = options.read_only || by_backup.is_some();
        if options.read_only {
            check_supported_filesystem(&superblock)?;
        } else {
            check_writable_filesystem(&superblock)?;
        }
        let layout = Layout::new(&superblock, device.info().size)?;
        if recovered.had_error() {
            superblock.state.set(superblock.state.get() | StateFlags::ERROR.bits());
        }
        let groups = groups::read(&*device, &layout, &recovered.overlay)?;
        let journal_blocks = found.as_ref().map(|f| f.blocks.clone()).unwrap_or_default();
        let loaded = LoadedLayout { superblock, layout, groups, journal_blocks };
        let clock = Clock::new(options.simulated_epoch);
        let mut home = None;
        let log = match (read_only, found) {
            (true, _) => MetaLog::ReadOnly(recovered.overlay),
            (false, Some(found)) => {
                let features = loaded.superblock.features();
                let data_in_place = options.data != DataMode::Journal;
                home = found.home_mark(&device, &loaded.layout, data_in_place)?.map(Arc::new);
                journal::open(found, home.clone(), &device, features, clock, &options)?
            }
            (false, None) if options.data == DataMode::Transact => {
                return refused(
                    "data=transact needs a journal, and the file system has none: give it \
                            one (tune2fs -j), or mount with another data= mode",
                );
            }
            (false, None) => MetaLog::direct(Arc::clone(&device), loaded.layout.block_size),
        };
        let mut parts = assemble(device, loaded, log, clock, &options);
        if !read_only {
            // Who only reads leaves them alone, and is not to fail for what only they need.
            parts = load_orphans(parts)?;
        }
        parts.allocator.home.clone_from(&home);
        parts.quotas = quota::load(&parts)?;
        let fast = options.journal.fast_commits && matches!(parts.log, MetaLog::Journal(_));
        parts.fast = fast.then(Track::default);
        relied_upon::check_root(&parts)?;
        relied_upon::check_orphans(&parts)?;
        if parts.transacts() {
            check_transactable(&parts.volume.layout)?;
        }
        let options = with_early_write_back(options, &parts);
        let dax = crate::file::check_dax(&parts.volume, &options)?;
        let recovery = recovered.report.map(|log| {
            let orphans = parts.lock_meta().orphans.len();
            MountRecovery { log, orphans, in_memory: options.read_only }
        });
        let fs = Arc::new_cyclic(|me: &Weak<Ext4>| {
            let store: Weak<dyn PageStore> = me.clone();
            let images = Arc::clone(&options.journal.image_bytes);
            let pages = PageCache::beside(options.page_cache.clone(), store, images);
            Ext4 {
                volume: Arc::clone(&parts.volume),
                transact: parts.transacts().then(|| Transact::new(options.transact)),
                access_rule: AccessRule::of(&options),
                handles: Handles::default(),
                me: Weak::clone(me),
                home,
                protection,
                parts,
                pages,
                options,
                dax,
                recovery,
            }
        });
        if let Some(damage) = by_backup {
            fs.volume.status.set_read_only(format!(
                "the journal was found by the superblock's copy of its inode only ({damage}): \
                 read-only until e2fsck -f has restored the inode"
            ));
        }
        if read_only {
            fs.volume.status.set_read_only("mounted read-only");
            return Ok(fs);
        }
        if let Some(protection) = &fs.protection {
            let journal = fs.parts.log.journal().cloned();
            protection.start(Arc::downgrade(&fs.volume.status), journal);
        }
        fs.mark_mounted()?;
        if let Err(e) = process_orphans(&fs) {
            // It was not in need of recovery before. OK to ignore: the first error is what to say.
            let _ = fs.unmount();
            return Err(e);
        }
        fs.pages.start();
        fs.start_transacting()?;
        Ok(fs)
    }
}

/// How long a mount for writing waits to see whether another host has the file system mounted
/// (multiple-mount protection), by what is on the device now; zero without it.
///
/// # Errors
/// As for a mount: what makes no sense is refused there.
pub fn protection_wait(device: &dyn BlockDevice) -> Result<Duration> {
    let superblock = superblock::find(device)?.superblock;
    match superblock.features().incompat.contains(Incompat::MMP) {
        true => Protection::wait(device, &superblock),
        false => Ok(Duration::ZERO),
    }
}

/// Refuses `fast_commit` where fast commits cannot be written.
fn check_fast_commits(superblock: &Superblock) -> Result<()> {
    let features = superblock.features();
    let refused = |what: &str| refused(format!("fast_commit: {what}: mount without the option"));
    if !features.compat.contains(Compat::HAS_JOURNAL) {
        return refused("the file system has no journal");
    }
    if !features.compat.contains(Compat::FAST_COMMIT) {
        return refused(
            "the file system does not have this feature (tune2fs -O fast_commit gives it)",
        );
    }
    if features.ro_compat.intersects(RoCompat::QUOTA | RoCompat::PROJECT) {
        return refused("a replay does not count what quotas count");
    }
    if features.ro_compat.contains(RoCompat::BIGALLOC) {
        return refused("not with bigalloc");
    }
    Ok(())
}

/// Refuses what data=transact cannot do yet.
fn check_transactable(layout: &Layout) -> Result<()> {
    if layout.block_size as usize > PAGE {
        let what = format!(
            "data=transact needs blocks of at most {PAGE} bytes; this file system's have {}: \
             mount with another data= mode",
            layout.block_size
        );
        return unsupported(what);
    }
    if layout.features.ro_compat.contains(RoCompat::BIGALLOC) {
        return unsupported("data=transact on bigalloc: mount with another data= mode");
    }
    Ok(())
}

/// With data=transact delayed data counts against the journal's room until it has its place, so it
/// gets one before that runs short.
fn with_early_write_back(mut options: MountOptions, parts: &Parts) -> MountOptions {
    if parts.transacts() {
        let settings = &mut options.page_cache;
        let most = parts.log.most_room_on_demand() / 3 * parts.volume.block_size();
        let now = match settings.dirty_background {
            DirtyLimit::Bytes(bytes) => bytes,
            DirtyLimit::Percent(p) => settings.memory_bytes / 100 * u64::from(p),
        };
        settings.dirty_background = DirtyLimit::Bytes(now.min(most));
    }
    options
}

/// Whether the log must be replayed before the file system can be used.
fn needs_recovery(superblock: &Superblock) -> bool {
    superblock.features().incompat.contains(Incompat::NEEDS_RECOVERY)
}
