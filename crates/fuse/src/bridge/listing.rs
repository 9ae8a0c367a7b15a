//! Directories: their names, with or without attributes.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::time::Duration;

use fuser::{Generation, INodeNo, ReplyDirectory, ReplyDirectoryPlus};

use steadfast_vfs::path::{shown, why_refused};

use super::{Bridge, attr};

impl Bridge {
    /// Whether the kernel takes a name. For one that it does not take it throws the whole answer
    /// away (EIO), with the other names in it.
    fn can_be_sent(&self, name: &[u8]) -> bool {
        let refused = match name {
            b"." | b".." => None,
            _ => why_refused(name),
        };
        if let Some(why) = refused {
            let message = format!("{}: {why}", shown(name));
            self.errors.error("readdir", &message, || format!("readdir: {message}"));
        }
        refused.is_none()
    }

    /// Names from a position on, as many as fit.
    pub(super) fn list(&self, ino: INodeNo, offset: u64, mut reply: ReplyDirectory) {
        match self.call("readdir", || self.fs.readdir(self.ino(ino), offset)) {
            Ok(entries) => {
                for e in entries.iter().filter(|e| self.can_be_sent(&e.name)) {
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
            let entries = self.fs.readdir(self.ino(ino), offset)?;
            for e in entries.iter().filter(|e| self.can_be_sent(&e.name)) {
                // A name whose inode cannot be read is listed; a later request reports why. "."
                // and ".." the kernel does not count.
                let is_dots = matches!(&e.name[..], b"." | b"..");
                let found = match is_dots {
                    true => self.fs.getattr(e.ino).ok(),
                    // The kernel counts it also where it is told no attributes.
                    false => self.fs.hold(e.ino).ok().or_else(|| {
                        self.fs.hold_number(e.ino);
                        None
                    }),
                };
                let (attr, generation, ttl) = match found {
                    Some(a) => (self.shown(&a), Generation(a.generation.into()), ttl),
                    None => (attr::unread(e), Generation(0), &none),
                };
                let number = INodeNo(e.ino.0);
                if reply.add(number, e.next, OsStr::from_bytes(&e.name), ttl, &attr, generation) {
                    // It did not fit.
                    if !is_dots {
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
