//! The calls of a file system, each noted and passed on.

use bytes::Bytes;
use steadfast_vfs::{
    Attr, DirBlock, Dirent, Fallocate, Fh, FileExtent, FileSystem, FileType, FsError, Ino, NewNode,
    OpenFlags, RenameFlags, Result, SeekTo, SetAttr, SetXattr, Shutdown, StatFs, TransactPolicy,
};

use super::{DURABLE, OpenHandle, RecordedFs, files};
use crate::format::{CallFlag, CallOp};

/// Calls of which nothing is noted, as the file system below has them.
macro_rules! pass_on {
    ($($call:ident($($arg:ident: $type:ty),*) $(-> $answer:ty)?;)*) => {$(
        fn $call(&self, $($arg: $type),*) $(-> $answer)? {
            self.next.$call($($arg),*)
        }
    )*};
}

/// Calls that the kernel makes for itself: their time is none of the program's.
macro_rules! pass_aside {
    ($($call:ident($($arg:ident: $type:ty),*) -> $answer:ty;)*) => {$(
        fn $call(&self, $($arg: $type),*) -> $answer {
            self.aside(|| self.next.$call($($arg),*))
        }
    )*};
}

impl FileSystem for RecordedFs {
    pass_aside! {
        getattr(ino: Ino) -> Result<Attr>;
        readlink(ino: Ino) -> Result<Vec<u8>>;
        flush(fh: Fh) -> Result<()>;
        seek(fh: Fh, offset: u64, to: SeekTo) -> Result<u64>;
        getxattr(ino: Ino, name: &[u8]) -> Result<Vec<u8>>;
        listxattr(ino: Ino) -> Result<Vec<Vec<u8>>>;
    }

    pass_on! {
        root() -> Ino;
        names_have_one_spelling() -> bool;
        hold_number(ino: Ino);
        let_go(ino: Ino, holds: u64) -> bool;
        let_go_all();
        by_number(ino: Ino) -> Result<Attr>;
        readdir_block(dir: Ino, from: u64) -> Result<Option<DirBlock>>;
        forget_inode(ino: Ino);
        extents(ino: Ino, offset: u64, len: u64) -> Result<Vec<FileExtent>>;
        inode_flags(ino: Ino) -> Result<u32>;
        project(ino: Ino) -> Result<u32>;
        label() -> Result<Vec<u8>>;
        set_label(label: &[u8]) -> Result<()>;
        transact_policy() -> Result<TransactPolicy>;
        set_transact_policy(policy: TransactPolicy) -> Result<()>;
        begin_group() -> Result<()>;
        end_group(commit: bool) -> Result<()>;
        rollback() -> Result<()>;
        shutdown(how: Shutdown) -> Result<()>;
    }

    fn lookup(&self, dir: Ino, name: &[u8]) -> Result<Attr> {
        if matches!(name, b"." | b"..") {
            return self.next.lookup(dir, name);
        }
        let begun = self.on_name(CallOp::Lookup, dir, name);
        let answer = self.next.lookup(dir, name);
        let file = answer.as_ref().ok().map(|attr| self.found(attr, dir, name));
        self.finish(begun, &answer, |_, call, _| call.file = file);
        answer
    }

    fn statfs(&self) -> Result<StatFs> {
        self.aside(|| self.below.time(|| self.next.statfs()))
    }

    fn hold(&self, ino: Ino) -> Result<Attr> {
        self.aside(|| match self.next.hold(ino) {
            // Known by its number from a listing only.
            Err(FsError::NotFound) => {
                let listed = self.seen().listed.get(&ino).cloned();
                let (dir, name) = listed.ok_or(FsError::NotFound)?;
                self.next.lookup(dir, &name)
            }
            held => held,
        })
    }

    fn setattr(&self, ino: Ino, set: SetAttr) -> Result<Attr> {
        let op = if set.size.is_some() { CallOp::Truncate } else { CallOp::Attributes };
        let mut begun = self.on_inode(op, ino);
        begun.call.offset = set.size.unwrap_or(0);
        self.changed(begun, || self.next.setattr(ino, set))
    }

    fn create(&self, dir: Ino, name: &[u8], node: NewNode, flags: OpenFlags) -> Result<(Attr, Fh)> {
        let mut begun = self.on_name(CallOp::Create, dir, name);
        begun.call.flags = files::flags(flags - DURABLE);
        let answer = self.next.create(dir, name, node, flags);
        self.made(begun, answer, |(attr, fh)| (*attr, Some((*fh, flags))))
    }

    fn mkdir(&self, dir: Ino, name: &[u8], node: NewNode) -> Result<Attr> {
        let begun = self.on_name(CallOp::Mkdir, dir, name);
        let answer = self.next.mkdir(dir, name, node);
        self.made(begun, answer, |attr| (*attr, None))
    }

    fn symlink(&self, dir: Ino, name: &[u8], target: &[u8], node: NewNode) -> Result<Attr> {
        let mut begun = self.on_name(CallOp::Symlink, dir, name);
        begun.call.to = self.name(target);
        let answer = self.next.symlink(dir, name, target, node);
        self.made(begun, answer, |attr| (*attr, None))
    }

    fn mknod(&self, dir: Ino, name: &[u8], what: (FileType, u64), node: NewNode) -> Result<Attr> {
        let begun = self.on_name(CallOp::Mknod, dir, name);
        let answer = self.next.mknod(dir, name, what, node);
        self.made(begun, answer, |attr| (*attr, None))
    }

    fn tmpfile(&self, dir: Ino, node: NewNode, flags: OpenFlags) -> Result<(Attr, Fh)> {
        let mut begun = self.on_inode(CallOp::Tmpfile, dir);
        begun.call.flags = files::flags(flags - DURABLE);
        let answer = self.next.tmpfile(dir, node, flags);
        self.made(begun, answer, |(attr, fh)| (*attr, Some((*fh, flags))))
    }

    fn link(&self, ino: Ino, dir: Ino, name: &[u8]) -> Result<Attr> {
        let text = self.name(name);
        let folder = self.on_folder(dir);
        let mut begun = self.on_inode(CallOp::Link, ino);
        (begun.call.to_dir, begun.call.to) = (folder, text);
        self.changed(begun, || self.next.link(ino, dir, name))
    }

    fn unlink(&self, dir: Ino, name: &[u8]) -> Result<()> {
        self.removed(CallOp::Unlink, (dir, name), || self.next.unlink(dir, name))
    }

    fn rmdir(&self, dir: Ino, name: &[u8]) -> Result<()> {
        self.removed(CallOp::Rmdir, (dir, name), || self.next.rmdir(dir, name))
    }

    fn rename(&self, from: (Ino, &[u8]), to: (Ino, &[u8]), flags: RenameFlags) -> Result<()> {
        let found = |(dir, name): (Ino, &[u8])| {
            let attr = self.next.lookup(dir, name).ok()?;
            Some(self.found(&attr, dir, name))
        };
        let file = found(from);
        // What is replaced is a file of the trace, too.
        found(to);
        let exchange = flags.contains(RenameFlags::EXCHANGE);
        let folder = self.on_folder(to.0);
        let mut begun =
            self.on_name(if exchange { CallOp::Exchange } else { CallOp::Rename }, from.0, from.1);
        begun.call.file = file;
        (begun.call.to_dir, begun.call.to) = (folder, self.name(to.1));
        if flags.contains(RenameFlags::NO_REPLACE) {
            begun.call.flags.push(CallFlag::NoReplace);
        }
        self.changed(begun, || self.next.rename(from, to, flags))
    }

    fn open(&self, ino: Ino, flags: OpenFlags) -> Result<Fh> {
        let mut begun = self.on_inode(CallOp::Open, ino);
        begun.call.flags = files::flags(flags - DURABLE);
        let answer = self.next.open(ino, flags);
        self.finish(begun, &answer, |fh, call, seen| {
            call.handle = Some(fh.0);
            seen.opened.insert(*fh, OpenHandle::new(ino, flags, call.thread));
        });
        answer
    }

    fn release(&self, fh: Fh) -> Result<()> {
        let opened = self.seen().opened.get(&fh).copied();
        let file = opened.and_then(|opened| self.seen().files.number(opened.ino));
        let mut begun = self.start_of(CallOp::Close, opened.map(|opened| opened.user));
        (begun.call.handle, begun.call.file) = (Some(fh.0), file);
        let answer = self.next.release(fh);
        self.finish(begun, &answer, |(), _, _| ());
        self.seen().opened.remove(&fh);
        answer
    }

    fn read(&self, fh: Fh, offset: u64, len: usize) -> Result<Bytes> {
        self.read_from((fh, offset, len), || self.next.read(fh, offset, len))
    }

    fn read_as(&self, fh: Fh, offset: u64, len: usize, direct: bool) -> Result<Bytes> {
        self.read_from((fh, offset, len), || self.next.read_as(fh, offset, len, direct))
    }

    fn write(&self, fh: Fh, offset: u64, data: Bytes) -> Result<usize> {
        let how = self.seen().opened.get(&fh).map_or(OpenFlags::empty(), |opened| opened.flags);
        self.wrote((fh, offset), (&data, how), || self.next.write(fh, offset, data.clone()))
    }

    fn write_as(&self, fh: Fh, offset: u64, data: Bytes, how: OpenFlags) -> Result<usize> {
        let write = || self.next.write_as(fh, offset, data.clone(), how);
        self.wrote((fh, offset), (&data, how), write)
    }

    fn fsync(&self, fh: Fh, data_only: bool) -> Result<()> {
        let op = if data_only { CallOp::Fdatasync } else { CallOp::Fsync };
        self.synced(op, fh, || self.next.fsync(fh, data_only))
    }

    fn readdir(&self, dir: Ino, from: u64) -> Result<Vec<Dirent>> {
        let mut begun = self.on_inode(CallOp::List, dir);
        begun.call.offset = from;
        let answer = self.next.readdir(dir, from);
        self.finish(begun, &answer, |entries, call, seen| {
            call.result = entries.len() as i64;
            for entry in entries.iter().filter(|e| !matches!(&e.name[..], b"." | b"..")) {
                if seen.files.number(entry.ino).is_none() {
                    seen.listed.insert(entry.ino, (dir, entry.name.clone()));
                }
            }
        });
        answer
    }

    fn fsyncdir(&self, dir: Ino) -> Result<()> {
        let begun = self.on_inode(CallOp::Fsyncdir, dir);
        self.changed(begun, || self.next.fsyncdir(dir))
    }

    fn sync(&self) -> Result<()> {
        let begun = self.start(CallOp::Sync);
        self.changed(begun, || self.next.sync())
    }

    fn transact(&self) -> Result<()> {
        let begun = self.start(CallOp::Sync);
        self.changed(begun, || self.next.transact())
    }

    fn fallocate(&self, fh: Fh, what: Fallocate, offset: u64, len: u64) -> Result<()> {
        let op = match what {
            Fallocate::Allocate { keep_size: false } => CallOp::Allocate,
            Fallocate::Allocate { keep_size: true } => CallOp::Reserve,
            Fallocate::PunchHole => CallOp::Punch,
            Fallocate::ZeroRange { .. } => CallOp::Zero,
            Fallocate::CollapseRange => CallOp::Collapse,
            Fallocate::InsertRange => CallOp::Insert,
        };
        let mut begun = self.on_handle(op, fh);
        (begun.call.offset, begun.call.len) = (offset, len);
        if what == (Fallocate::ZeroRange { keep_size: true }) {
            begun.call.flags.push(CallFlag::KeepSize);
        }
        self.changed(begun, || self.next.fallocate(fh, what, offset, len))
    }

    fn setxattr(&self, ino: Ino, name: &[u8], value: &[u8], how: SetXattr) -> Result<()> {
        let begun = self.on_inode(CallOp::Attributes, ino);
        self.changed(begun, || self.next.setxattr(ino, name, value, how))
    }

    fn removexattr(&self, ino: Ino, name: &[u8]) -> Result<()> {
        let begun = self.on_inode(CallOp::Attributes, ino);
        self.changed(begun, || self.next.removexattr(ino, name))
    }

    fn set_inode_flags(&self, ino: Ino, flags: u32) -> Result<()> {
        let begun = self.on_inode(CallOp::Attributes, ino);
        self.changed(begun, || self.next.set_inode_flags(ino, flags))
    }

    fn set_project(&self, ino: Ino, project: u32) -> Result<()> {
        let begun = self.on_inode(CallOp::Attributes, ino);
        self.changed(begun, || self.next.set_project(ino, project))
    }
}
