//! Directories: their names, with or without attributes.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::time::Duration;

use fuser::{Generation, INodeNo, ReplyDirectory, ReplyDirectoryPlus};

use super::{Bridge, attr};

impl Bridge {
    /// Names from a position on, as many as fit.
    pub(super) fn list(&self, ino: INodeNo, offset: u64, mut reply: ReplyDirectory) {
        match self.call("readdir", || self.fs.readdir(self.ino(ino), offset)) {
            Ok(entries) => {
                for e in entries {
                    let name = OsStr::from_bytes(&e.name);
                    if reply.add(INodeNo(e.ino.0), e.next, attr::kind(e.kind), name) {
                        break;
                    }
                }
                reply.ok();
            }
            Err(e) => reply.error(e),
        }
    }

    /// The same with what a lookup of each would find.
    pub(super) fn list_with_attributes(
        &self,
        ino: INodeNo,
        offset: u64,
        mut reply: ReplyDirectoryPlus,
    ) {
        let done = self.call("readdir", || {
            let (ttl, none) = (&self.options.entry_timeout, Duration::ZERO);
            for e in self.fs.readdir(self.ino(ino), offset)? {
                // A name whose inode cannot be read is listed; a later request reports why. "."
                // and ".." the kernel does not count.
                let is_dots = matches!(&e.name[..], b"." | b"..");
                let found = match is_dots {
                    true => self.fs.getattr(e.ino).ok(),
                    false => self.fs.hold(e.ino).ok(),
                };
                let is_held = found.is_some() && !is_dots;
                let (attr, generation, ttl) = match found {
                    Some(a) => (self.shown(&a), Generation(a.generation.into()), ttl),
                    None => (attr::unread(&e), Generation(0), &none),
                };
                let number = INodeNo(e.ino.0);
                if reply.add(number, e.next, OsStr::from_bytes(&e.name), ttl, &attr, generation) {
                    // It did not fit.
                    if is_held {
                        self.let_go(e.ino);
                    }
                    break;
                }
            }
            Ok(())
        });
        match done {
            Ok(()) => reply.ok(),
            Err(e) => reply.error(e),
        }
    }
}
