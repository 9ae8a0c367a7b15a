//! Directories: their names, with or without attributes.

use std::time::Duration;

use steadfast_fuse_lowlevel::{EntryOut, Listing, Reply};
use steadfast_vfs::path::{shown, why_refused};

use super::{Bridge, NodeId, attr};

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
    pub(super) fn list(&self, ino: NodeId, offset: u64, size: u32, reply: Reply<'_>) {
        match self.call("readdir", || self.fs.readdir(self.ino(ino), offset)) {
            Ok(entries) => {
                let mut listing = Listing::new(size);
                for e in entries.iter().filter(|e| self.can_be_sent(&e.name)) {
                    if !listing.add(e.ino.0, e.next, attr::kind(e.kind), &e.name) {
                        break;
                    }
                }
                reply.listing(&listing);
            }
            Err(e) => reply.error(e),
        }
    }

    /// The same with what a lookup of each would find.
    pub(super) fn list_with_attributes(
        &self,
        ino: NodeId,
        offset: u64,
        size: u32,
        reply: Reply<'_>,
    ) {
        let mut listing = Listing::new(size);
        let done = self.call("readdir", || {
            let valid = self.options.entry_timeout;
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
                let entry = match found {
                    Some(a) => {
                        let shown = self.shown(&a);
                        EntryOut::new((e.ino.0, a.generation.into()), shown, valid, valid)
                    }
                    None => {
                        let none = Duration::ZERO;
                        EntryOut::new((e.ino.0, 0), attr::unread(e), none, none)
                    }
                };
                if !listing.add_entry(&entry, e.next, &e.name) {
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
            Ok(()) => reply.listing(&listing),
            Err(e) => reply.error(e),
        }
    }
}
