//! The requests, one function each: arguments in, one call, reply out.

use std::ops::Deref;

use bytes::Bytes;
use rustix::io::Errno;
use steadfast_fuse_lowlevel::{
    EntryOut, ForgetCount, Handler, InHeader, IoctlFlags, Operation, ReadSource, Reply,
    SetAttr as Asked, SetTime, StatfsOut, WriteFlags,
};
use steadfast_runtime::{OnBehalfOf, Requester, on_behalf_of};
use steadfast_vfs::{Attr, Fh, FsError, OpenFlags, RenameFlags, SetAttr};

use super::caller::Caller;
use super::copied::with_copy;
use super::inode_flags::IMMUTABLE;
use super::large_reads::LARGE;
use super::replies::{node, reply_empty, reply_xattr};
use super::{Answer, Bridge, NodeId, attr, name, ranges};

/// Whoever records calls below learns whose they are.
fn on_behalf(of: &InHeader, write_back: bool) -> OnBehalfOf {
    on_behalf_of(Requester { thread: of.pid, write_back })
}

/// A read of a file.
struct FileRead<'a> {
    bridge: &'a Bridge,
    fh: Fh,
    offset: u64,
    len: usize,
    direct: bool,
}

impl ReadSource for FileRead<'_> {
    type Bytes = Bytes;

    fn put(&self, out: &mut [u8]) -> Answer<usize> {
        let read = || self.bridge.fs.read_into(self.fh, self.offset, out, self.direct);
        self.bridge.call("read", read)
    }

    fn gather(&self) -> Answer<Bytes> {
        let read = || self.bridge.fs.read_as(self.fh, self.offset, self.len, self.direct);
        self.bridge.call("read", read)
    }
}

/// A request: who asks, and whom.
struct BridgeCall<'a> {
    bridge: &'a Bridge,
    asked: &'a InHeader,
}

impl Deref for BridgeCall<'_> {
    type Target = Bridge;

    fn deref(&self) -> &Bridge {
        self.bridge
    }
}

impl Handler for Bridge {
    fn handle(&self, asked: &InHeader, operation: Operation<'_>, reply: Reply<'_>) {
        BridgeCall { bridge: self, asked }.answer(operation, reply);
    }

    fn forget(&self, ForgetCount { nodeid, nlookup }: ForgetCount) {
        // OK to ignore: it has no answer. A panic is seen by the next request.
        let _ = self.call("forget", || {
            self.forget_node(NodeId(nodeid), nlookup);
            Ok(())
        });
    }
}

impl BridgeCall<'_> {
    /// The inode that it is about.
    fn here(&self) -> NodeId {
        NodeId(self.asked.nodeid)
    }

    fn answer(&self, operation: Operation<'_>, reply: Reply<'_>) {
        let (asked, here) = (self.asked, self.here());
        let write_back = matches!(
            operation,
            Operation::Write { write_flags, .. } if write_flags.contains(WriteFlags::CACHE)
        );
        let _asked = on_behalf(asked, write_back);
        match operation {
            Operation::Lookup { name } => self.lookup(here, name, reply),
            Operation::Getattr { fh } => self.getattr(here, fh.map(Fh), reply),
            Operation::Statx { fh } => self.statx(here, fh.map(Fh), reply),
            Operation::Setattr(set) => self.setattr(set, reply),
            Operation::Readlink => self.readlink(here, reply),
            Operation::Symlink { name, target } => self.symlink(name, target, reply),
            Operation::Mknod { name, mode, umask, rdev } => {
                self.mknod(name, (mode, umask), rdev, reply);
            }
            Operation::Mkdir { name, mode, umask } => self.mkdir(name, (mode, umask), reply),
            Operation::Unlink { name } => self.unlink(here, name, reply),
            Operation::Rmdir { name } => self.rmdir(here, name, reply),
            Operation::Rename { name, to_dir, to_name, flags } => {
                self.rename((here, name), (NodeId(to_dir), to_name), flags, reply);
            }
            Operation::Link { from, name } => self.link(NodeId(from), here, name, reply),
            Operation::Open { flags } => self.open(flags, reply),
            Operation::Create { name, flags, mode, umask } => {
                self.create(name, flags, (mode, umask), reply);
            }
            Operation::Tmpfile { flags, mode, umask } => {
                self.tmpfile(flags, (mode, umask), reply);
            }
            Operation::Read { fh, offset, size, flags } => {
                self.read((Fh(fh), offset), size, flags, reply);
            }
            Operation::Write { fh, offset, data, write_flags, flags } => {
                self.write((Fh(fh), offset), data, (write_flags, flags), reply);
            }
            // Asked only where close(2) promises something; fsync reports errors of write-back.
            Operation::Flush { fh } => {
                reply_empty(self.call("close", || self.fs.flush(Fh(fh))), reply);
            }
            Operation::Release { fh } => {
                self.note_closed(Fh(fh));
                reply_empty(self.call("close", || self.fs.release(Fh(fh))), reply);
            }
            Operation::Fsync { fh, data_only } => {
                reply_empty(self.call("fsync", || self.fs.fsync(Fh(fh), data_only)), reply);
            }
            Operation::Fsyncdir => {
                reply_empty(self.call("fsync", || self.fs.fsyncdir(self.ino(here))), reply);
            }
            Operation::Syncfs => reply_empty(self.call("sync", || self.fs.sync()), reply),
            // A folder's handle carries nothing.
            Operation::Opendir => reply.opened(0, super::replies::folder()),
            Operation::Releasedir => reply.done(),
            Operation::Readdir { offset, size } => self.list(here, offset, size, reply),
            Operation::Readdirplus { offset, size } => {
                self.list_with_attributes(here, offset, size, reply);
            }
            Operation::Statfs => self.statfs(reply),
            Operation::Setxattr { name, value, flags } => {
                let done = self.call("setxattr", || {
                    let caller = Caller::of(self.asked);
                    self.set_attribute(self.ino(here), name, value, flags, caller)
                });
                reply_empty(done, reply);
            }
            Operation::Getxattr { name, size } => {
                let done = self.call("getxattr", || self.fs.getxattr(self.ino(here), name));
                reply_xattr(done, size, reply);
            }
            Operation::Listxattr { size } => {
                let caller = || Caller::of(self.asked);
                let names = || self.attribute_names(self.ino(here), caller);
                reply_xattr(self.call("listxattr", names), size, reply);
            }
            Operation::Removexattr { name } => {
                let removed = || self.fs.removexattr(self.ino(here), name);
                reply_empty(self.call("removexattr", removed), reply);
            }
            Operation::Ioctl { command, flags, data, out_size } => {
                self.ioctl((command, flags), data, out_size, reply);
            }
            Operation::Fallocate { fh, offset, length, mode } => {
                self.fallocate(Fh(fh), (offset, length), mode, reply);
            }
            Operation::Lseek { fh, offset, whence } => self.lseek(Fh(fh), offset, whence, reply),
            Operation::CopyFileRange { from, from_offset, to_node, to, to_offset, len, wide } => {
                let (from, to) = ((Fh(from), from_offset), (Fh(to), to_offset));
                match self.copy_file_range(from, (NodeId(to_node), to), len) {
                    Ok(copied) if wide => reply.copied(copied.into()),
                    Ok(copied) => reply.written(copied),
                    Err(e) => reply.error(e),
                }
            }
            // Files are always ready, and blocks move without the kernel's knowledge (FIBMAP, of
            // mounts of block devices only): after this answer the kernel asks no more. ACCESS it
            // does not ask with default_permissions.
            Operation::Poll | Operation::Bmap | Operation::Access => reply.error(Errno::NOSYS),
            Operation::Unknown => reply.error(Errno::NOSYS),
        }
    }

    fn lookup(&self, parent: NodeId, child: &[u8], reply: Reply<'_>) {
        let found = self.call("lookup", || self.find_held(|| self.find(parent, child)));
        match found {
            Err(e) if e == Errno::NOENT => {
                let ttl = self.options.negative_timeout;
                if ttl.is_zero() {
                    return reply.error(e);
                }
                // Number 0 says: not there, and remember that.
                let nothing = EntryOut::new((0, 0), attr::nothing(), ttl, ttl);
                reply.entry(&nothing);
            }
            other => self.reply_entry(other, reply),
        }
    }

    fn attributes(&self, node: NodeId, fh: Option<Fh>) -> Answer<Attr> {
        self.call("getattr", || {
            fh.map_or(Ok(()), |fh| self.before_kept_write(fh))?;
            self.fs.getattr(self.ino(node))
        })
    }

    fn getattr(&self, node: NodeId, fh: Option<Fh>, reply: Reply<'_>) {
        self.reply_attr(self.attributes(node, fh), reply);
    }

    fn statx(&self, node: NodeId, fh: Option<Fh>, reply: Reply<'_>) {
        match self.attributes(node, fh) {
            Ok(a) => {
                reply.statx(&self.shown(&a), attr::birth(&a), self.options.attr_timeout);
            }
            Err(e) => reply.error(e),
        }
    }

    fn setattr(&self, wanted: Asked, reply: Reply<'_>) {
        let node = self.here();
        let Asked { mode, uid, gid, size, atime, mtime, ctime, fh } = wanted;
        // With an open file the kernel sends times only before an fsync, a close and the like:
        // those of the writes that it has kept. utimensat(2) comes without one.
        let only_times = (size, mode, uid, gid).eq(&(None, None, None, None));
        let keeps_times = self.options.writeback_cache && only_times;
        let of_writes = keeps_times && atime.is_none() && fh.is_some() && ctime.is_some();
        // Both times to now, which is allowed also where other times are not: in this mode the
        // kernel says for the second one what now is, as it does for the time of change.
        let touches = keeps_times
            && matches!(
                (atime, mtime),
                (Some(SetTime::Now), Some(SetTime::At(secs, nanos)))
                    if Some((secs, nanos)) == ctime
            );
        let may_touch = |flags: u32| flags & IMMUTABLE == 0;
        let written_back =
            of_writes || (touches && self.fs.inode_flags(self.ino(node)).is_ok_and(may_touch));
        let set = SetAttr {
            size,
            mode: mode.map(|m| (m & 0o7777) as u16),
            uid,
            gid,
            atime: atime.map(attr::set_time),
            mtime: mtime.map(attr::set_time),
            written_back,
        };
        let caller = Caller::of(self.asked);
        let change = || {
            let changed = self.change_attributes(self.ino(node), set, caller)?;
            // The kernel keeps them and answers stat(2) from them: the file system is to know that
            // somebody has its times. (For an entry it knows by its hold.)
            Ok(self.fs.getattr(changed.ino).unwrap_or(changed))
        };
        let done = self.change("setattr", node, change);
        self.reply_attr(done, reply);
    }

    fn readlink(&self, node: NodeId, reply: Reply<'_>) {
        match self.call("readlink", || self.fs.readlink(self.ino(node))) {
            Ok(target) => reply.data(&target),
            Err(e) => reply.error(e),
        }
    }

    fn mknod(&self, child: &[u8], (mode, umask): (u32, u32), rdev: u32, reply: Reply<'_>) {
        let parent = self.here();
        let done = self.change_names("mknod", &[(parent, child)], || {
            let kind = attr::kind_of_mode(mode).ok_or(FsError::Invalid { what: "file type" })?;
            let (dir, node) = (self.ino(parent), node(self.asked, mode, umask));
            self.held(self.fs.mknod(dir, name(child)?, (kind, attr::decode_device(rdev)), node)?)
        });
        self.reply_entry(done, reply);
    }

    fn mkdir(&self, child: &[u8], (mode, umask): (u32, u32), reply: Reply<'_>) {
        let (parent, node) = (self.here(), node(self.asked, mode, umask));
        let done = self.change_names("mkdir", &[(parent, child)], || {
            self.held(self.fs.mkdir(self.ino(parent), name(child)?, node)?)
        });
        self.reply_entry(done, reply);
    }

    fn unlink(&self, parent: NodeId, child: &[u8], reply: Reply<'_>) {
        let done = self.change_names("unlink", &[(parent, child)], || {
            self.fs.unlink(self.ino(parent), name(child)?)
        });
        reply_empty(done, reply);
    }

    fn rmdir(&self, parent: NodeId, child: &[u8], reply: Reply<'_>) {
        let done = self.change_names("rmdir", &[(parent, child)], || {
            self.fs.rmdir(self.ino(parent), name(child)?)
        });
        reply_empty(done, reply);
    }

    fn symlink(&self, child: &[u8], target: &[u8], reply: Reply<'_>) {
        let parent = self.here();
        let done = self.change_names("symlink", &[(parent, child)], || {
            let (dir, node) = (self.ino(parent), node(self.asked, 0o777, 0));
            self.held(self.fs.symlink(dir, name(child)?, target, node)?)
        });
        self.reply_entry(done, reply);
    }

    fn rename(
        &self,
        (parent, from): (NodeId, &[u8]),
        (to_parent, to): (NodeId, &[u8]),
        flags: u32,
        reply: Reply<'_>,
    ) {
        let done = self.change_names("rename", &[(parent, from), (to_parent, to)], || {
            let flags =
                RenameFlags::from_bits(flags).ok_or(FsError::Invalid { what: "rename flags" })?;
            let from = (self.ino(parent), name(from)?);
            self.fs.rename(from, (self.ino(to_parent), name(to)?), flags)
        });
        reply_empty(done, reply);
    }

    fn link(&self, node: NodeId, parent: NodeId, child: &[u8], reply: Reply<'_>) {
        let done = self.change_names("link", &[(parent, child)], || {
            self.held(self.fs.link(self.ino(node), self.ino(parent), name(child)?)?)
        });
        if done.as_ref().is_err_and(|e| self.may_have_changed(*e)) {
            // As for the name: the number of links.
            self.attributes_changed(self.ino(node));
        }
        self.reply_entry(done, reply);
    }

    fn open(&self, raw: i32, reply: Reply<'_>) {
        let node = self.here();
        let flags = attr::open_flags(raw);
        let opened = self.change("open", node, || {
            let ino = self.ino(node);
            if flags.contains(OpenFlags::WRITE) {
                self.note_capabilities(ino);
            }
            let fh = self.open_file(ino, flags, attr::appends(raw))?;
            if flags.contains(OpenFlags::TRUNCATE) {
                self.before_change(ino, Caller::of(self.asked))?;
            }
            Ok(fh)
        });
        match opened {
            Ok(fh) => {
                self.opened.add(node.0);
                reply.opened(fh.0, self.opened_how(self.ino(node), flags));
            }
            Err(e) => reply.error(e),
        }
    }

    fn create(&self, child: &[u8], raw: i32, (mode, umask): (u32, u32), reply: Reply<'_>) {
        let parent = self.here();
        let made = self.change_names("create", &[(parent, child)], || {
            let node = node(self.asked, mode, umask);
            let (made, fh) = self.create_file(self.ino(parent), name(child)?, node, raw)?;
            let held = self.held(made).inspect_err(|_| self.close_unknown(fh))?;
            Ok((held, fh))
        });
        self.reply_created(made, raw, reply);
    }

    /// A file without a name (O_TMPFILE).
    fn tmpfile(&self, raw: i32, (mode, umask): (u32, u32), reply: Reply<'_>) {
        let parent = self.here();
        let made = self.call("tmpfile", || {
            let flags = attr::open_flags(raw);
            let how = self.readable(flags - OpenFlags::TRUNCATE) | OpenFlags::CALLER_CACHES;
            let node = node(self.asked, mode, umask);
            let (made, fh) = self.fs.tmpfile(self.ino(parent), node, how)?;
            self.note_open(fh, made.ino, flags);
            let held = self.held(made).inspect_err(|_| self.close_unknown(fh))?;
            Ok((held, fh))
        });
        self.reply_created(made, raw, reply);
    }

    fn reply_created(&self, made: Answer<(Attr, Fh)>, raw: i32, reply: Reply<'_>) {
        match made {
            Ok((found, fh)) => {
                let entry = self.entry(&found);
                self.opened.add(entry.nodeid);
                let flags = self.opened_how(found.ino, attr::open_flags(raw));
                reply.created(&entry, fh.0, flags);
            }
            Err(e) => reply.error(e),
        }
    }

    fn read(&self, (fh, offset): (Fh, u64), size: u32, flags: i32, reply: Reply<'_>) {
        let direct = OpenFlags::from_raw(flags).contains(OpenFlags::DIRECT);
        let len = size as usize;
        let bridge = self.bridge;
        let goes_on = size >= LARGE && !direct && reply.has_room_for_later();
        if let Some(threads) = self.readers.get().filter(|_| goes_on) {
            let (bridge, asked, reply) = (bridge.clone(), *self.asked, reply.later());
            return threads.run(Box::new(move || {
                let _asked = on_behalf(&asked, false);
                reply.read(len, &FileRead { bridge: &bridge, fh, offset, len, direct });
            }));
        }
        reply.read(len, &FileRead { bridge, fh, offset, len, direct });
    }

    fn write(
        &self,
        (fh, offset): (Fh, u64),
        data: &[u8],
        (write_flags, flags): (WriteFlags, i32),
        reply: Reply<'_>,
    ) {
        let node = self.here();
        let done = self.change("write", node, || {
            let loses = write_flags.contains(WriteFlags::KILL_SUIDGID);
            self.before_write(self.ino(node), loses.then(|| Caller::of(self.asked)))?;
            let how = self.with_sync(self.synced_after.how(fh, flags, write_flags));
            with_copy(data, |data| self.fs.write_as(fh, offset, data, how))
        });
        match done {
            Ok(written) => reply.written(written as u32),
            Err(e) => {
                if write_flags.contains(WriteFlags::CACHE) {
                    self.page_refused(node, e);
                }
                reply.error(e);
            }
        }
    }

    fn statfs(&self, reply: Reply<'_>) {
        match self.call("statfs", || self.fs.statfs()) {
            Ok(s) => reply.statfs(&StatfsOut {
                blocks: s.blocks,
                bfree: s.blocks_free,
                bavail: s.blocks_available,
                files: s.inodes,
                ffree: s.inodes_free,
                bsize: s.block_size,
                namelen: s.name_max,
                frsize: s.block_size,
                ..StatfsOut::default()
            }),
            Err(e) => reply.error(e),
        }
    }

    fn ioctl(
        &self,
        (command, flags): (u32, IoctlFlags),
        data: &[u8],
        out_size: u32,
        reply: Reply<'_>,
    ) {
        let (here, caller) = (self.here(), Caller::of(self.asked));
        let node = self.ino(here);
        let answer = move |bridge: &Bridge, data: &[u8]| {
            let work = || bridge.control(node, caller, command, flags, data);
            let mut answer = bridge.call("ioctl", work)?;
            answer.resize((out_size as usize).min(answer.len().max(8)), 0);
            Ok(answer)
        };
        if self.ends_writing(node, command, flags, data) {
            self.once_written_out(here, data, answer, reply.later());
        } else {
            match answer(self.bridge, data) {
                Ok(data) => reply.ioctl(&data),
                Err(e) => reply.error(e),
            }
        }
    }

    fn fallocate(&self, fh: Fh, (offset, length): (u64, u64), mode: i32, reply: Reply<'_>) {
        let node = self.here();
        let done = self.change("fallocate", node, || {
            let what = ranges::allocation(mode)?;
            self.before_change(self.ino(node), Caller::of(self.asked))?;
            self.fs.fallocate(fh, what, offset, length)
        });
        if let Err(e) = &done {
            self.range_failed(node, mode, *e);
        }
        reply_empty(done, reply);
    }

    fn lseek(&self, fh: Fh, offset: i64, whence: i32, reply: Reply<'_>) {
        if self.options.writeback_cache {
            // The kernel has pages that we have not seen: for SEEK_DATA all up to the size is
            // data to it after this answer.
            return reply.error(Errno::NOSYS);
        }
        let done = self.call("seek", || {
            let offset = u64::try_from(offset).map_err(|_| FsError::NoAddress)?;
            self.fs.seek(fh, offset, ranges::sought(whence)?)
        });
        match done {
            Ok(at) => reply.offset(at),
            Err(e) => reply.error(e),
        }
    }

    fn copy_file_range(
        &self,
        from: (Fh, u64),
        (to_node, to): (NodeId, (Fh, u64)),
        len: u64,
    ) -> Answer<u32> {
        let copy = || self.copy(from, to, self.ino(to_node), len, Caller::of(self.asked));
        self.change("copy", to_node, copy)
    }
}
