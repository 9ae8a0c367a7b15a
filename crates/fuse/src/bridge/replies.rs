//! How answers are put: entries, attributes, open files, values.

use fuser::{Errno, FopenFlags, ReplyAttr, ReplyEmpty, ReplyEntry, ReplyXattr, Request};
use steadfast_vfs::{Attr, Ino, NewNode, OpenFlags};

use super::{Answer, Bridge};

/// What is to be made, by whom.
pub(super) fn node(req: &Request, mode: u32, umask: u32) -> NewNode {
    let (mode, umask) = ((mode & 0o7777) as u16, (umask & 0o777) as u16);
    NewNode { mode, uid: req.uid(), gid: req.gid(), umask }
}

/// What the kernel may do with an open file's pages: keep them from the last time; with O_DIRECT,
/// go past them, several writes at a time.
fn open_reply(flags: OpenFlags) -> FopenFlags {
    if flags.contains(OpenFlags::DIRECT) {
        FopenFlags::FOPEN_DIRECT_IO
            | FopenFlags::FOPEN_PARALLEL_DIRECT_WRITES
            | FopenFlags::FOPEN_NOFLUSH
    } else {
        FopenFlags::FOPEN_KEEP_CACHE | FopenFlags::FOPEN_NOFLUSH
    }
}

impl Bridge {
    /// As [`open_reply`]. Where closing promises something the kernel asks before it answers.
    pub(super) fn opened_how(&self, ino: Ino, flags: OpenFlags) -> FopenFlags {
        let mut how = open_reply(self.seen_by_kernel(ino, flags));
        if self.close_promises && flags.contains(OpenFlags::WRITE) {
            how -= FopenFlags::FOPEN_NOFLUSH;
        }
        how
    }

    pub(super) fn reply_entry(&self, done: Answer<Attr>, reply: ReplyEntry) {
        match done {
            Ok(found) => {
                let (attr, generation) = self.entry(&found);
                let (t, e) = (&self.options.attr_timeout, &self.options.entry_timeout);
                reply.entry_with_ttls(t, e, &attr, generation);
            }
            Err(e) => reply.error(e),
        }
    }

    pub(super) fn reply_attr(&self, done: Answer<Attr>, reply: ReplyAttr) {
        match done {
            Ok(a) => reply.attr(&self.options.attr_timeout, &self.shown(&a)),
            Err(e) => reply.error(e),
        }
    }
}

/// Answers that it is done, or why not.
pub(super) fn reply_empty(done: Answer<()>, reply: ReplyEmpty) {
    match done {
        Ok(()) => reply.ok(),
        Err(e) => reply.error(e),
    }
}

/// Answers with a value, or (`size` 0) with how long it is.
pub(super) fn reply_xattr(done: Answer<Vec<u8>>, size: u32, reply: ReplyXattr) {
    match done {
        Ok(value) if size == 0 => reply.size(value.len() as u32),
        Ok(value) if value.len() > size as usize => reply.error(Errno::ERANGE),
        Ok(value) => reply.data(&value),
        Err(e) => reply.error(e),
    }
}
