//! How answers are put: entries, attributes, open files, values.

use rustix::io::Errno;
use steadfast_fuse_lowlevel::{InHeader, OpenReply, Reply};
use steadfast_vfs::{Attr, Ino, NewNode, OpenFlags};

use super::{Answer, Bridge};

/// What is to be made, by whom.
pub(super) fn node(asked: &InHeader, mode: u32, umask: u32) -> NewNode {
    let (mode, umask) = ((mode & 0o7777) as u16, (umask & 0o777) as u16);
    NewNode { mode, uid: asked.uid, gid: asked.gid, umask }
}

/// What the kernel may do with an open file's pages: keep them from the last time; with O_DIRECT,
/// go past them, several writes at a time.
fn open_reply(flags: OpenFlags) -> OpenReply {
    if flags.contains(OpenFlags::DIRECT) {
        OpenReply::DIRECT_IO | OpenReply::PARALLEL_DIRECT_WRITES | OpenReply::NOFLUSH
    } else {
        OpenReply::KEEP_CACHE | OpenReply::NOFLUSH
    }
}

/// What the kernel may do with an open folder.
pub(super) fn folder() -> OpenReply {
    OpenReply::empty()
}

impl Bridge {
    /// As [`open_reply`]. Where closing promises something the kernel asks before it answers.
    pub(super) fn opened_how(&self, ino: Ino, flags: OpenFlags) -> OpenReply {
        let mut how = open_reply(self.seen_by_kernel(ino, flags));
        if self.close_promises && flags.contains(OpenFlags::WRITE) {
            how -= OpenReply::NOFLUSH;
        }
        how
    }

    pub(super) fn reply_entry(&self, done: Answer<Attr>, reply: Reply<'_>) {
        match done {
            Ok(found) => reply.entry(&self.entry(&found)),
            Err(e) => reply.error(e),
        }
    }

    pub(super) fn reply_attr(&self, done: Answer<Attr>, reply: Reply<'_>) {
        match done {
            Ok(a) => reply.attr(&self.shown(&a), self.options.attr_timeout),
            Err(e) => reply.error(e),
        }
    }
}

/// Answers that it is done, or why not.
pub(super) fn reply_empty(done: Answer<()>, reply: Reply<'_>) {
    match done {
        Ok(()) => reply.done(),
        Err(e) => reply.error(e),
    }
}

/// Answers with a value, or (`size` 0) with how long it is.
pub(super) fn reply_xattr(done: Answer<Vec<u8>>, size: u32, reply: Reply<'_>) {
    match done {
        Ok(value) if size == 0 => reply.xattr_size(value.len() as u32),
        Ok(value) if value.len() > size as usize => reply.error(Errno::RANGE),
        Ok(value) => reply.data(&value),
        Err(e) => reply.error(e),
    }
}
