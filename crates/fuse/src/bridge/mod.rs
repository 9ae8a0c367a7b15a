//! From the kernel's requests to calls of a file system.

mod attr;
mod caller;
mod copied;
mod held;
mod inode_flags;
mod ioctl;
mod large_reads;
mod listing;
mod opened;
mod privileges;
mod ranges;
mod replies;
mod requests;
mod writers;
mod writing;
mod xattrs;

use std::os::fd::OwnedFd;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use rustix::io::Errno;
use steadfast_fuse_lowlevel::{
    Capabilities, Config, EntryOut, FileAttr, Offer, Session, Transport, Wishes,
};
use steadfast_vfs::{Attr, Fh, FileSystem, FileType, FsError, Ino, NewNode, OpenFlags, Result};

pub(crate) use self::attr::ROOT;
use self::inode_flags::SYNCHRONOUS;
use self::large_reads::ReadThreads;
pub(crate) use self::opened::OpenInodes;
use self::privileges::Capable;
use self::writers::Writers;
use self::writing::SyncedAfter;
use crate::error_log::ErrorLog;
use crate::invalidator::Invalidator;
use crate::options::{FOREVER, Options};

/// What the kernel is answered: a value, or an error number.
type Answer<T> = std::result::Result<T, Errno>;

/// Requests under way that nobody waits for, at most.
const MAX_BACKGROUND: u16 = 64;
/// Longest name in bytes (NAME_MAX): FUSE lets 1024 through.
const NAME_MAX: usize = 255;

/// A kernel's number of an inode: what it was given with an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct NodeId(pub u64);

/// A file system as the kernel asks it; a clone is for a request that is answered later.
#[derive(Clone)]
pub(crate) struct Bridge {
    fs: Arc<dyn FileSystem>,
    root: Ino,
    /// Closing a file may promise something, so that the kernel has to wait for our answer.
    close_promises: bool,
    options: Options,
    /// A panic was caught: nothing is asked of the file system any more.
    pub(crate) down: Arc<AtomicBool>,
    errors: Arc<ErrorLog>,
    capable: Arc<Capable>,
    synced_after: Arc<SyncedAfter>,
    writers: Arc<Writers>,
    /// The kernel asks before a write(2) that it keeps (`writers.rs`).
    is_asked_before_writes: bool,
    /// For changes that the kernel does not see; set once it is mounted.
    kernel: Arc<OnceLock<Invalidator>>,
    /// For long reads, over io_uring.
    readers: Arc<OnceLock<ReadThreads>>,
    /// Inodes of which the kernel may have pages.
    pub(crate) opened: Arc<OpenInodes>,
}

impl Bridge {
    pub fn new(fs: Arc<dyn FileSystem>, mut options: Options) -> Self {
        if !fs.names_have_one_spelling() {
            // The kernel would go on finding a file by one spelling after another was removed.
            (options.entry_timeout, options.negative_timeout) = (Duration::ZERO, Duration::ZERO);
        }
        let root = fs.root();
        let close_promises = fs.transact_policy().is_ok();
        let errors = Arc::new(ErrorLog::new(options.source.clone()));
        Bridge {
            fs,
            root,
            close_promises,
            options,
            down: Arc::default(),
            errors,
            capable: Arc::default(),
            synced_after: Arc::default(),
            writers: Arc::default(),
            is_asked_before_writes: false,
            kernel: Arc::default(),
            readers: Arc::default(),
            opened: Arc::default(),
        }
    }

    /// What we want of the kernel, as far as it has it.
    fn wishes(&mut self, offer: &Offer) -> Wishes {
        let mut capabilities = Capabilities::ASYNC_READ
            | Capabilities::ATOMIC_O_TRUNC
            | Capabilities::DONT_MASK
            | Capabilities::DO_READDIRPLUS
            | Capabilities::READDIRPLUS_AUTO
            | Capabilities::PARALLEL_DIROPS
            | Capabilities::HANDLE_KILLPRIV_V2
            | Capabilities::CACHE_SYMLINKS
            | Capabilities::HAS_IOCTL_DIR
            | Capabilities::EXPORT_SUPPORT
            | Capabilities::DIRECT_IO_ALLOW_MMAP;
        // With it the kernel asks for permissions, whatever the mount's options are.
        capabilities.set(Capabilities::POSIX_ACL, !self.options.fake_root);
        if self.options.async_direct_io {
            capabilities |= Capabilities::ASYNC_DIO;
        }
        if self.options.writeback_cache {
            capabilities |= Capabilities::WRITEBACK_CACHE;
            self.is_asked_before_writes =
                offer.minor >= writers::ASKS_FOR_THE_MODE && self.options.attr_timeout >= FOREVER;
        }
        let max_write = self.options.max_write.clamp(4096, 1 << 20).next_multiple_of(4096);
        let max_readahead = if self.options.read_ahead { u32::MAX } else { 0 };
        Wishes { capabilities, max_write, max_background: MAX_BACKGROUND, max_readahead }
    }

    /// The mount is gone.
    fn ended(&self) {
        // OK to ignore: nobody asks any more.
        let _ = self.call("unmount", || {
            self.fs.let_go_all();
            Ok(())
        });
    }

    /// Calls the file system; a panic in it becomes EIO and takes it down.
    fn call<T>(&self, what: &str, work: impl FnOnce() -> Result<T>) -> Answer<T> {
        if self.down.load(Ordering::Acquire) {
            return Err(Errno::IO);
        }
        match catch_unwind(AssertUnwindSafe(work)) {
            Ok(Ok(value)) => Ok(value),
            Ok(Err(e)) => {
                self.log(what, &e);
                Err(Errno::from_raw_os_error(e.errno()))
            }
            Err(panic) => {
                self.go_down(what, &*panic);
                Err(Errno::IO)
            }
        }
    }

    fn log(&self, what: &str, e: &FsError) {
        if matches!(e, FsError::Corrupt { .. } | FsError::Io { .. }) {
            let message = e.to_string();
            self.errors.error(what, &message, || format!("{what}: {message}"));
        }
    }

    fn go_down(&self, what: &str, panic: &(dyn std::any::Any + Send)) {
        self.down.store(true, Ordering::Release);
        let text = panic
            .downcast_ref::<String>()
            .map(String::as_str)
            .or_else(|| panic.downcast_ref::<&str>().copied())
            .unwrap_or("no message");
        tracing::error!(
            "{}: {what}: a fault in the file system's code ({text}): it is shut down as by a power \
             cut; unmount and mount again to recover",
            self.options.source
        );
        // A second fault changes nothing: it is down.
        let _ = catch_unwind(AssertUnwindSafe(|| self.fs.shutdown(steadfast_vfs::Shutdown::Now)));
    }

    /// The file system's number of an inode.
    fn ino(&self, ino: NodeId) -> Ino {
        if ino.0 == ROOT { self.root } else { Ino(ino.0) }
    }

    /// The kernel's number of an inode.
    fn number(&self, ino: Ino) -> u64 {
        if ino == self.root { ROOT } else { ino.0 }
    }

    /// Attributes to show, with the file system's own number.
    fn shown(&self, attr: &Attr) -> FileAttr {
        self.before_attributes(attr.ino);
        attr::attr(attr, attr.ino.0)
    }

    /// An entry: the number is also what the kernel will ask by.
    fn entry(&self, attr: &Attr) -> EntryOut {
        self.before_attributes(attr.ino);
        let number = self.number(attr.ino);
        let shown = attr::attr(attr, number);
        let (names, attributes) = (self.options.entry_timeout, self.options.attr_timeout);
        EntryOut::new((number, attr.generation.into()), shown, names, attributes)
    }

    /// Attributes were changed by a call of which the kernel does not think so: it asks anew.
    fn attributes_changed(&self, ino: Ino) {
        if let Some(kernel) = self.kernel.get() {
            kernel.attributes(self.number(ino));
        }
    }

    /// As [`call`](Self::call), for what changes `names`. One that fails may have changed them all
    /// the same: with data=transact the change is there, and its transaction point is what failed.
    /// The kernel takes an error for no change.
    fn change_names<T>(
        &self,
        what: &str,
        names: &[(NodeId, &[u8])],
        work: impl FnOnce() -> Result<T>,
    ) -> Answer<T> {
        let done = self.call(what, work);
        let failed = done.as_ref().is_err_and(|e| self.may_have_changed(*e));
        if failed && let Some(kernel) = self.kernel.get() {
            kernel.names(names);
        }
        done
    }

    /// As [`call`](Self::call), for what changes a file. Where that fails although the change is
    /// there, the kernel asks for the attributes anew: a size from before would stay.
    fn change<T>(&self, what: &str, ino: NodeId, work: impl FnOnce() -> Result<T>) -> Answer<T> {
        let done = self.call(what, work);
        if done.as_ref().is_err_and(|e| self.may_have_changed(*e)) {
            self.attributes_changed(self.ino(ino));
        }
        done
    }

    /// A change of a range, with this mode, may have been done in part, also where space ran out on
    /// the way: the kernel has its size from before, and its pages.
    fn range_failed(&self, ino: NodeId, mode: i32, e: Errno) {
        let on_the_way = matches!(e, Errno::NOSPC | Errno::DQUOT);
        let Some(kernel) = self.kernel.get() else { return };
        if on_the_way || self.may_have_changed(e) {
            let number = self.number(self.ino(ino));
            match ranges::changes_bytes(mode) {
                true => kernel.contents(number),
                false => kernel.attributes(number),
            }
        }
    }

    /// Whether a call with this error may have done something: those of devices and journals, and
    /// that of a transaction point that found no space.
    fn may_have_changed(&self, e: Errno) -> bool {
        match e {
            Errno::IO | Errno::ROFS | Errno::UCLEAN => true,
            Errno::NOSPC => self.close_promises,
            _ => false,
        }
    }

    /// What a lookup finds. By "." the kernel asks for an inode whose number a file handle gave it
    /// (open_by_handle_at(2), NFS), and which it no longer knows.
    fn find(&self, dir: NodeId, child: &[u8]) -> Result<Attr> {
        match child {
            // 2 and the like: only the root has a number of its own here.
            b"." if Ino(dir.0) == self.root && dir.0 != ROOT => Err(FsError::Stale),
            b"." => self.fs.by_number(self.ino(dir)),
            _ => self.fs.lookup(self.ino(dir), name(child)?),
        }
    }

    /// Opens for the kernel, which keeps what it reads; `appends`: with O_APPEND.
    fn open_file(&self, ino: Ino, flags: OpenFlags, appends: bool) -> Result<Fh> {
        let flags = self.readable(flags) | OpenFlags::CALLER_CACHES;
        let fh = match self.fs.open(ino, flags) {
            // A file that may only be appended to is opened with that flag only.
            Err(FsError::NotPermitted { .. }) if appends => {
                self.fs.open(ino, flags | OpenFlags::APPEND)
            }
            other => other,
        }?;
        self.note_open(fh, ino, flags);
        Ok(fh)
    }

    /// How to open below what is opened so. With writeback_cache the kernel reads through files
    /// that were opened for writing only: of a page that is written in part it needs the rest. That
    /// is no access by the writer.
    fn readable(&self, flags: OpenFlags) -> OpenFlags {
        let writes_only = flags.contains(OpenFlags::WRITE) && !flags.contains(OpenFlags::READ);
        if self.options.writeback_cache && writes_only {
            flags | OpenFlags::READ | OpenFlags::NO_ACCESS_TIME
        } else {
            flags
        }
    }

    /// How the kernel treats a file that was opened so: as if with O_DIRECT, where nothing is to
    /// stay in its page cache. With writeback_cache that is a file with the flag that makes every
    /// write durable: the kernel does not know it, and would keep the writes.
    fn seen_by_kernel(&self, ino: Ino, flags: OpenFlags) -> OpenFlags {
        let keeps = self.options.writeback_cache && flags.contains(OpenFlags::WRITE);
        let is_sync = || self.fs.inode_flags(ino).is_ok_and(|f| f & SYNCHRONOUS != 0);
        let is_direct = self.options.uncached || (keeps && is_sync());
        if is_direct { flags | OpenFlags::DIRECT } else { flags }
    }

    /// What a write asks for that asked for `how`: with the mount option sync, as if the file had
    /// been opened with O_SYNC. The kernel does not know of that and sends no fsync.
    fn with_sync(&self, how: OpenFlags) -> OpenFlags {
        let is_asked = self.options.sync && !how.contains(OpenFlags::WRITTEN_BACK);
        if is_asked { how | OpenFlags::SYNC } else { how }
    }

    /// Makes a file, or opens the one that is there.
    fn create_file(
        &self,
        dir: Ino,
        name: &[u8],
        node: NewNode,
        raw_flags: i32,
    ) -> Result<(Attr, Fh)> {
        let flags = attr::open_flags(raw_flags);
        let create = self.readable(flags - OpenFlags::TRUNCATE) | OpenFlags::CALLER_CACHES;
        let made = self.fs.create(dir, name, node, create);
        let exclusive = rustix::fs::OFlags::from_bits_retain(raw_flags as u32)
            .contains(rustix::fs::OFlags::EXCL);
        if let Ok((attr, fh)) = &made {
            self.note_open(*fh, attr.ino, flags);
        }
        if !matches!(made, Err(FsError::Exists)) || exclusive {
            return made;
        }
        let there = self.fs.lookup(dir, name)?;
        if there.kind != FileType::Regular {
            return Err(FsError::Exists);
        }
        let fh = self.open_file(there.ino, flags, attr::appends(raw_flags))?;
        let attr = self.fs.getattr(there.ino).inspect_err(|_| self.close_unknown(fh))?;
        Ok((attr, fh))
    }

    /// A file has been opened so, for the kernel.
    fn note_open(&self, fh: Fh, ino: Ino, flags: OpenFlags) {
        self.synced_after.note(fh, self.seen_by_kernel(ino, flags));
        self.writers.note(fh, ino, flags);
    }

    fn note_closed(&self, fh: Fh) {
        self.synced_after.forget(fh);
        self.writers.forget(fh);
    }

    /// Closes a handle that nobody learns of: the first failure is the one to report.
    fn close_unknown(&self, fh: Fh) {
        self.note_closed(fh);
        // OK to ignore, as said.
        let _ = self.fs.release(fh);
    }
}

/// Shakes hands with the other end of a connection.
pub(crate) fn session(
    mut bridge: Bridge,
    connection: OwnedFd,
    config: Config,
) -> std::io::Result<Session<Bridge>> {
    let (kernel, opened) = (Arc::clone(&bridge.kernel), Arc::clone(&bridge.opened));
    let readers = Arc::clone(&bridge.readers);
    let session = Session::connect(connection, config, |offer| {
        let wishes = bridge.wishes(offer);
        (wishes, bridge)
    })?;
    // OK to ignore: it was empty.
    let _ = kernel.set(Invalidator::of(&session, &opened));
    if matches!(session.transport(), Transport::Ring { .. })
        && let Some(threads) = ReadThreads::start()
    {
        // OK to ignore, as above.
        let _ = readers.set(threads);
    }
    Ok(session)
}

/// Answers the kernel until the mount is gone.
pub(crate) fn serve(session: Session<Bridge>) -> std::io::Result<()> {
    session.serve()?.ended();
    Ok(())
}

/// A name that is not too long.
fn name(name: &[u8]) -> Result<&[u8]> {
    if name.len() > NAME_MAX { Err(FsError::NameTooLong) } else { Ok(name) }
}
