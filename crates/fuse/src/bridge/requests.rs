//! The requests, one function each: arguments in, one call, reply out.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::time::SystemTime;

use fuser::{
    BsdFileFlags, CopyFileRangeFlags, Errno, FileAttr, FileHandle, Generation, INodeNo, IoctlFlags,
    KernelConfig, LockOwner, OpenFlags as RawFlags, PollEvents, PollFlags, PollNotifier, ReplyAttr,
    ReplyBmap, ReplyCreate, ReplyData, ReplyDirectory, ReplyDirectoryPlus, ReplyEmpty, ReplyEntry,
    ReplyIoctl, ReplyLseek, ReplyOpen, ReplyPoll, ReplyStatfs, ReplyWrite, ReplyXattr, Request,
    TimeOrNow, WriteFlags,
};
use steadfast_runtime::{OnBehalfOf, Requester, on_behalf_of};
use steadfast_vfs::{Fh, FsError, OpenFlags, RenameFlags, SetAttr};

use super::caller::Caller;
use super::copied::with_copy;
use super::inode_flags::IMMUTABLE;
use super::replies::{node, reply_empty, reply_xattr};
use super::{Bridge, attr, name, ranges};

/// Whoever records calls below learns whose they are.
fn asked(req: &Request, write_back: bool) -> OnBehalfOf {
    on_behalf_of(Requester { thread: req.pid(), write_back })
}

impl fuser::Filesystem for Bridge {
    fn init(&mut self, _req: &Request, config: &mut KernelConfig) -> std::io::Result<()> {
        self.configure(config);
        Ok(())
    }

    fn destroy(&mut self) {
        // OK to ignore: nobody asks any more.
        let _ = self.call("unmount", || {
            self.fs.let_go_all();
            Ok(())
        });
    }

    fn lookup(&self, req: &Request, parent: INodeNo, child: &OsStr, reply: ReplyEntry) {
        let _asked = asked(req, false);
        let found = self.call("lookup", || self.find_held(|| self.find(parent, child)));
        match found {
            Err(e) if e.code() == Errno::ENOENT.code() => {
                let ttl = &self.options.negative_timeout;
                if ttl.is_zero() {
                    return reply.error(e);
                }
                // Number 0 says: not there, and remember that.
                let nothing = FileAttr { ino: INodeNo(0), ..attr::nothing() };
                reply.entry(ttl, &nothing, Generation(0));
            }
            other => self.reply_entry(other, reply),
        }
    }

    fn forget(&self, _req: &Request, ino: INodeNo, lookups: u64) {
        // OK to ignore: it has no answer. A panic is seen by the next request.
        let _ = self.call("forget", || {
            self.forget_node(ino, lookups);
            Ok(())
        });
    }

    fn getattr(&self, req: &Request, ino: INodeNo, fh: Option<FileHandle>, reply: ReplyAttr) {
        let _asked = asked(req, false);
        let found = self.call("getattr", || {
            fh.map_or(Ok(()), |fh| self.before_kept_write(Fh(fh.0)))?;
            self.fs.getattr(self.ino(ino))
        });
        self.reply_attr(found, reply);
    }

    fn setattr(
        &self,
        req: &Request,
        ino: INodeNo,
        mode: Option<u32>,
        uid: Option<u32>,
        gid: Option<u32>,
        size: Option<u64>,
        atime: Option<TimeOrNow>,
        mtime: Option<TimeOrNow>,
        ctime: Option<SystemTime>,
        fh: Option<FileHandle>,
        _crtime: Option<SystemTime>,
        _chgtime: Option<SystemTime>,
        _bkuptime: Option<SystemTime>,
        _flags: Option<BsdFileFlags>,
        reply: ReplyAttr,
    ) {
        let _asked = asked(req, false);
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
                (Some(TimeOrNow::Now), Some(TimeOrNow::SpecificTime(m))) if Some(m) == ctime
            );
        let may_touch = |flags: u32| flags & IMMUTABLE == 0;
        let written_back =
            of_writes || (touches && self.fs.inode_flags(self.ino(ino)).is_ok_and(may_touch));
        let set = SetAttr {
            size,
            mode: mode.map(|m| (m & 0o7777) as u16),
            uid,
            gid,
            atime: atime.map(attr::set_time),
            mtime: mtime.map(attr::set_time),
            written_back,
        };
        let caller = Caller::of(req);
        let change = || {
            let changed = self.change_attributes(self.ino(ino), set, caller)?;
            // The kernel keeps them and answers stat(2) from them: the file system is to know that
            // somebody has its times. (For an entry it knows by its hold.)
            Ok(self.fs.getattr(changed.ino).unwrap_or(changed))
        };
        let done = self.change("setattr", ino, change);
        self.reply_attr(done, reply);
    }

    fn readlink(&self, req: &Request, ino: INodeNo, reply: ReplyData) {
        let _asked = asked(req, false);
        match self.call("readlink", || self.fs.readlink(self.ino(ino))) {
            Ok(target) => reply.data(&target),
            Err(e) => reply.error(e),
        }
    }

    fn mknod(
        &self,
        req: &Request,
        parent: INodeNo,
        child: &OsStr,
        mode: u32,
        umask: u32,
        rdev: u32,
        reply: ReplyEntry,
    ) {
        let _asked = asked(req, false);
        let done = self.change_names("mknod", &[(parent, child)], || {
            let kind = attr::kind_of_mode(mode).ok_or(FsError::Invalid { what: "file type" })?;
            let (dir, node) = (self.ino(parent), node(req, mode, umask));
            self.held(self.fs.mknod(dir, name(child)?, (kind, attr::decode_device(rdev)), node)?)
        });
        self.reply_entry(done, reply);
    }

    fn mkdir(
        &self,
        req: &Request,
        parent: INodeNo,
        child: &OsStr,
        mode: u32,
        umask: u32,
        reply: ReplyEntry,
    ) {
        let _asked = asked(req, false);
        let node = node(req, mode, umask);
        let done = self.change_names("mkdir", &[(parent, child)], || {
            self.held(self.fs.mkdir(self.ino(parent), name(child)?, node)?)
        });
        self.reply_entry(done, reply);
    }

    fn unlink(&self, req: &Request, parent: INodeNo, child: &OsStr, reply: ReplyEmpty) {
        let _asked = asked(req, false);
        let done = self.change_names("unlink", &[(parent, child)], || {
            self.fs.unlink(self.ino(parent), name(child)?)
        });
        reply_empty(done, reply);
    }

    fn rmdir(&self, req: &Request, parent: INodeNo, child: &OsStr, reply: ReplyEmpty) {
        let _asked = asked(req, false);
        let done = self.change_names("rmdir", &[(parent, child)], || {
            self.fs.rmdir(self.ino(parent), name(child)?)
        });
        reply_empty(done, reply);
    }

    fn symlink(
        &self,
        req: &Request,
        parent: INodeNo,
        child: &OsStr,
        target: &Path,
        reply: ReplyEntry,
    ) {
        let _asked = asked(req, false);
        let done = self.change_names("symlink", &[(parent, child)], || {
            let target = target.as_os_str().as_bytes();
            let (dir, node) = (self.ino(parent), node(req, 0o777, 0));
            self.held(self.fs.symlink(dir, name(child)?, target, node)?)
        });
        self.reply_entry(done, reply);
    }

    fn rename(
        &self,
        req: &Request,
        parent: INodeNo,
        from: &OsStr,
        to_parent: INodeNo,
        to: &OsStr,
        flags: fuser::RenameFlags,
        reply: ReplyEmpty,
    ) {
        let _asked = asked(req, false);
        let done = self.change_names("rename", &[(parent, from), (to_parent, to)], || {
            let flags = RenameFlags::from_bits(flags.bits())
                .ok_or(FsError::Invalid { what: "rename flags" })?;
            let from = (self.ino(parent), name(from)?);
            self.fs.rename(from, (self.ino(to_parent), name(to)?), flags)
        });
        reply_empty(done, reply);
    }

    fn link(&self, req: &Request, ino: INodeNo, parent: INodeNo, child: &OsStr, reply: ReplyEntry) {
        let _asked = asked(req, false);
        let done = self.change_names("link", &[(parent, child)], || {
            self.held(self.fs.link(self.ino(ino), self.ino(parent), name(child)?)?)
        });
        if done.as_ref().is_err_and(|e| self.may_have_changed(*e)) {
            // As for the name: the number of links.
            self.attributes_changed(self.ino(ino));
        }
        self.reply_entry(done, reply);
    }

    fn open(&self, req: &Request, ino: INodeNo, raw: RawFlags, reply: ReplyOpen) {
        let _asked = asked(req, false);
        let flags = attr::open_flags(raw.0);
        let opened = self.change("open", ino, || {
            let ino = self.ino(ino);
            if flags.contains(OpenFlags::WRITE) {
                self.note_capabilities(ino);
            }
            let fh = self.open_file(ino, flags, attr::appends(raw.0))?;
            if flags.contains(OpenFlags::TRUNCATE) {
                self.before_change(ino, Caller::of(req))?;
            }
            Ok(fh)
        });
        match opened {
            Ok(fh) => {
                self.opened.add(ino.0);
                reply.opened(FileHandle(fh.0), self.opened_how(self.ino(ino), flags));
            }
            Err(e) => reply.error(e),
        }
    }

    fn create(
        &self,
        req: &Request,
        parent: INodeNo,
        child: &OsStr,
        mode: u32,
        umask: u32,
        raw: i32,
        reply: ReplyCreate,
    ) {
        let _asked = asked(req, false);
        let made = self.change_names("create", &[(parent, child)], || {
            let node = node(req, mode, umask);
            let (made, fh) = self.create_file(self.ino(parent), name(child)?, node, raw)?;
            let held = self.held(made).inspect_err(|_| self.close_unknown(fh))?;
            Ok((held, fh))
        });
        match made {
            Ok((found, fh)) => {
                let (attr, generation) = self.entry(&found);
                self.opened.add(attr.ino.0);
                let flags = self.opened_how(found.ino, attr::open_flags(raw));
                let ttl = self.options.entry_timeout.min(self.options.attr_timeout);
                reply.created(&ttl, &attr, generation, FileHandle(fh.0), flags);
            }
            Err(e) => reply.error(e),
        }
    }

    fn read(
        &self,
        req: &Request,
        _ino: INodeNo,
        fh: FileHandle,
        offset: u64,
        size: u32,
        flags: RawFlags,
        _lock_owner: Option<LockOwner>,
        reply: ReplyData,
    ) {
        let _asked = asked(req, false);
        let direct = OpenFlags::from_raw(flags.0).contains(OpenFlags::DIRECT);
        match self.call("read", || self.fs.read_as(Fh(fh.0), offset, size as usize, direct)) {
            Ok(data) => reply.data(&data),
            Err(e) => reply.error(e),
        }
    }

    fn write(
        &self,
        req: &Request,
        ino: INodeNo,
        fh: FileHandle,
        offset: u64,
        data: &[u8],
        write_flags: WriteFlags,
        flags: RawFlags,
        _lock_owner: Option<LockOwner>,
        reply: ReplyWrite,
    ) {
        let write_back = write_flags.contains(WriteFlags::FUSE_WRITE_CACHE);
        let _asked = asked(req, write_back);
        let done = self.change("write", ino, || {
            let loses = write_flags.contains(WriteFlags::FUSE_WRITE_KILL_SUIDGID);
            self.before_write(self.ino(ino), loses.then(|| Caller::of(req)))?;
            let how = self.with_sync(self.synced_after.how(Fh(fh.0), flags.0, write_flags));
            with_copy(data, |data| self.fs.write_as(Fh(fh.0), offset, data, how))
        });
        match done {
            Ok(written) => reply.written(written as u32),
            Err(e) => {
                if write_back {
                    self.page_refused(ino, e);
                }
                reply.error(e);
            }
        }
    }

    fn flush(
        &self,
        req: &Request,
        _ino: INodeNo,
        fh: FileHandle,
        _owner: LockOwner,
        reply: ReplyEmpty,
    ) {
        let _asked = asked(req, false);
        // Asked only where close(2) promises something; fsync reports errors of write-back.
        reply_empty(self.call("close", || self.fs.flush(Fh(fh.0))), reply);
    }

    fn release(
        &self,
        req: &Request,
        _ino: INodeNo,
        fh: FileHandle,
        _flags: RawFlags,
        _lock_owner: Option<LockOwner>,
        _flush: bool,
        reply: ReplyEmpty,
    ) {
        let _asked = asked(req, false);
        self.note_closed(Fh(fh.0));
        reply_empty(self.call("close", || self.fs.release(Fh(fh.0))), reply);
    }

    fn fsync(&self, req: &Request, _ino: INodeNo, fh: FileHandle, data: bool, reply: ReplyEmpty) {
        let _asked = asked(req, false);
        reply_empty(self.call("fsync", || self.fs.fsync(Fh(fh.0), data)), reply);
    }

    fn fsyncdir(
        &self,
        req: &Request,
        ino: INodeNo,
        _fh: FileHandle,
        _data: bool,
        reply: ReplyEmpty,
    ) {
        let _asked = asked(req, false);
        reply_empty(self.call("fsync", || self.fs.fsyncdir(self.ino(ino))), reply);
    }

    fn readdir(
        &self,
        req: &Request,
        ino: INodeNo,
        _fh: FileHandle,
        offset: u64,
        reply: ReplyDirectory,
    ) {
        let _asked = asked(req, false);
        self.list(ino, offset, reply);
    }

    fn readdirplus(
        &self,
        req: &Request,
        ino: INodeNo,
        _fh: FileHandle,
        offset: u64,
        reply: ReplyDirectoryPlus,
    ) {
        let _asked = asked(req, false);
        self.list_with_attributes(ino, offset, reply);
    }

    fn statfs(&self, req: &Request, _ino: INodeNo, reply: ReplyStatfs) {
        let _asked = asked(req, false);
        match self.call("statfs", || self.fs.statfs()) {
            Ok(s) => reply.statfs(
                s.blocks,
                s.blocks_free,
                s.blocks_available,
                s.inodes,
                s.inodes_free,
                s.block_size,
                s.name_max,
                s.block_size,
            ),
            Err(e) => reply.error(e),
        }
    }

    fn setxattr(
        &self,
        req: &Request,
        ino: INodeNo,
        key: &OsStr,
        value: &[u8],
        flags: i32,
        _position: u32,
        reply: ReplyEmpty,
    ) {
        let _asked = asked(req, false);
        let done = self.call("setxattr", || {
            self.set_attribute(self.ino(ino), key.as_bytes(), value, flags, Caller::of(req))
        });
        reply_empty(done, reply);
    }

    fn getxattr(&self, req: &Request, ino: INodeNo, key: &OsStr, size: u32, reply: ReplyXattr) {
        let _asked = asked(req, false);
        let done = self.call("getxattr", || self.fs.getxattr(self.ino(ino), key.as_bytes()));
        reply_xattr(done, size, reply);
    }

    fn listxattr(&self, req: &Request, ino: INodeNo, size: u32, reply: ReplyXattr) {
        let _asked = asked(req, false);
        let done =
            self.call("listxattr", || self.attribute_names(self.ino(ino), || Caller::of(req)));
        reply_xattr(done, size, reply);
    }

    fn removexattr(&self, req: &Request, ino: INodeNo, key: &OsStr, reply: ReplyEmpty) {
        let _asked = asked(req, false);
        let done = self.call("removexattr", || self.fs.removexattr(self.ino(ino), key.as_bytes()));
        reply_empty(done, reply);
    }

    fn ioctl(
        &self,
        req: &Request,
        ino: INodeNo,
        _fh: FileHandle,
        flags: IoctlFlags,
        command: u32,
        data: &[u8],
        out_size: u32,
        reply: ReplyIoctl,
    ) {
        let (node, caller) = (self.ino(ino), Caller::of(req));
        let answer = move |bridge: &Bridge, data: &[u8]| {
            let work = || bridge.control(node, caller, command, flags, data);
            match bridge.call("ioctl", work) {
                Ok(mut answer) => {
                    answer.resize((out_size as usize).min(answer.len().max(8)), 0);
                    reply.ioctl(0, &answer);
                }
                Err(e) => reply.error(e),
            }
        };
        if self.ends_writing(node, command, flags, data) {
            self.once_written_out(ino, data, answer);
        } else {
            answer(self, data);
        }
    }

    fn fallocate(
        &self,
        req: &Request,
        ino: INodeNo,
        fh: FileHandle,
        offset: u64,
        length: u64,
        mode: i32,
        reply: ReplyEmpty,
    ) {
        let _asked = asked(req, false);
        let done = self.change("fallocate", ino, || {
            let what = ranges::allocation(mode)?;
            self.before_change(self.ino(ino), Caller::of(req))?;
            self.fs.fallocate(Fh(fh.0), what, offset, length)
        });
        if let Err(e) = &done {
            self.range_failed(ino, mode, *e);
        }
        reply_empty(done, reply);
    }

    fn lseek(
        &self,
        req: &Request,
        _ino: INodeNo,
        fh: FileHandle,
        offset: i64,
        whence: i32,
        reply: ReplyLseek,
    ) {
        let _asked = asked(req, false);
        if self.options.writeback_cache {
            // The kernel has pages that we have not seen: for SEEK_DATA all up to the size is
            // data to it after this answer.
            return reply.error(Errno::ENOSYS);
        }
        let done = self.call("seek", || {
            let offset = u64::try_from(offset).map_err(|_| FsError::NoAddress)?;
            self.fs.seek(Fh(fh.0), offset, ranges::sought(whence)?)
        });
        match done {
            Ok(at) => reply.offset(at as i64),
            Err(e) => reply.error(e),
        }
    }

    fn copy_file_range(
        &self,
        req: &Request,
        _ino_in: INodeNo,
        fh_in: FileHandle,
        offset_in: u64,
        ino_out: INodeNo,
        fh_out: FileHandle,
        offset_out: u64,
        len: u64,
        _flags: CopyFileRangeFlags,
        reply: ReplyWrite,
    ) {
        let _asked = asked(req, false);
        let (from, to) = ((Fh(fh_in.0), offset_in), (Fh(fh_out.0), offset_out));
        let copy = || self.copy(from, to, self.ino(ino_out), len, Caller::of(req));
        match self.change("copy", ino_out, copy) {
            Ok(copied) => reply.written(copied),
            Err(e) => reply.error(e),
        }
    }

    fn poll(
        &self,
        _req: &Request,
        _ino: INodeNo,
        _fh: FileHandle,
        _notifier: PollNotifier,
        _events: PollEvents,
        _flags: PollFlags,
        reply: ReplyPoll,
    ) {
        // Files are always ready: after this answer the kernel asks no more.
        reply.error(Errno::ENOSYS);
    }

    fn bmap(&self, _req: &Request, _ino: INodeNo, _size: u32, _block: u64, reply: ReplyBmap) {
        // Asked of block devices' mounts only (FIBMAP): blocks move without the kernel's knowledge.
        reply.error(Errno::ENOSYS);
    }
}
