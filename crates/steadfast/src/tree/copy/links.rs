//! Hard links: an inode is copied at its first name, and gets its other names after that.

use std::collections::HashMap;

use steadfast_vfs::{Attr, FileType, Ino};

/// Inodes with more names than were met so far.
#[derive(Debug, Default)]
pub(in crate::tree) struct Links(HashMap<Ino, Link>);

#[derive(Debug)]
struct Link {
    copy: Ino,
    /// Names that are still to come, if all are in the tree.
    more: u32,
}

impl Links {
    /// The copy of an inode that was met before.
    pub fn copy_of(&self, attr: &Attr) -> Option<Ino> {
        self.0.get(&attr.ino).map(|l| l.copy)
    }

    /// An inode was copied, for the first time or once more.
    pub fn copied(&mut self, attr: &Attr, copy: Ino) {
        if let Some(link) = self.0.get_mut(&attr.ino) {
            link.copy = copy;
        } else if attr.nlink > 1 && attr.kind != FileType::Directory {
            self.0.insert(attr.ino, Link { copy, more: attr.nlink - 1 });
        }
    }

    /// A further name was met. After the last one the inode is forgotten; returns its copy then.
    pub fn met(&mut self, attr: &Attr) -> Option<Ino> {
        let link = self.0.get_mut(&attr.ino)?;
        link.more = link.more.saturating_sub(1);
        if link.more > 0 {
            return None;
        }
        self.0.remove(&attr.ino).map(|l| l.copy)
    }

    /// Whether further names of the inode may follow.
    pub fn expects(&self, ino: Ino) -> bool {
        self.0.contains_key(&ino)
    }

    /// Whether no inode waits for further names.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}
