//! A file of a judge's folder.

use std::collections::BTreeMap;

use steadfast_ext4_format::RangeSet;
use steadfast_vfs::{Attr, Ino};

use super::now;
use super::reads::Place;
use crate::tree::Pieces;

/// Names with the number of what they name, and their position in a listing, which stays.
pub(super) type Entries = BTreeMap<Vec<u8>, (u64, u64)>;

/// What a file holds.
pub(super) enum Body {
    Directory(Entries),
    File(Pieces),
    Link(Vec<u8>),
    Other,
}

impl Body {
    /// A directory without names.
    pub fn empty() -> Body {
        Body::Directory(Entries::new())
    }

    /// A regular file that holds nothing.
    pub fn empty_file() -> Body {
        Body::File(Pieces::default())
    }

    pub fn is_directory(&self) -> bool {
        matches!(self, Body::Directory(_))
    }

    /// Nobody will read it any more.
    pub fn clear(&mut self) {
        if let Body::File(pieces) = self {
            *pieces = Pieces::default();
        }
    }
}

/// A file of a judge's folder, or the folder.
pub(super) struct FileNode {
    /// Whose folder it is in; 0 of the folder of all.
    pub judge: u64,
    pub attr: Attr,
    pub body: Body,
    /// Where the program has left it; `None`: the judge has made it.
    pub origin: Option<Place>,
    /// The directory that a directory is in.
    pub above: u64,
    /// Bytes that the judge has read as the program had left them.
    pub read: RangeSet,
    /// Bytes that the judge has changed.
    pub written: RangeSet,
    pub xattrs: BTreeMap<Vec<u8>, Vec<u8>>,
    /// So many handles are open.
    pub opened: u32,
}

impl FileNode {
    pub fn new(judge: u64, attr: Attr, body: Body) -> FileNode {
        FileNode {
            judge,
            attr,
            body,
            origin: None,
            above: super::ROOT,
            read: RangeSet::new(),
            written: RangeSet::new(),
            xattrs: BTreeMap::new(),
            opened: 0,
        }
    }

    /// The same, as the program has left it there.
    pub fn left_at(self, origin: Place) -> FileNode {
        FileNode { origin: Some(origin), ..self }
    }

    /// The same, by this number.
    pub fn numbered(mut self, number: u64) -> FileNode {
        self.attr.ino = Ino(number);
        self
    }

    /// What `stat` says of it.
    pub fn shown(&self) -> Attr {
        Attr { blocks_512: self.len().div_ceil(512), ..self.attr }
    }

    /// Bytes in memory.
    pub fn len(&self) -> u64 {
        if let Body::File(pieces) = &self.body { pieces.len() } else { 0 }
    }

    /// A directory in it has gone. (Of btrfs a directory has one link only.)
    pub fn lose_link(&mut self) {
        self.attr.nlink = self.attr.nlink.saturating_sub(1);
    }

    /// Its contents have changed.
    pub fn changed(&mut self) {
        let now = now();
        (self.attr.mtime, self.attr.ctime) = (now, now);
    }

    /// Bytes are to be read that the judge has not changed.
    pub fn note_read(&mut self, from: u64, to: u64) {
        if self.origin.is_none() {
            return;
        }
        let mut at = from;
        for (begin, end) in self.written.within(from, to) {
            self.read.insert(at, begin);
            at = end;
        }
        self.read.insert(at, to);
    }

    /// Makes the file so long; what is cut off, and what is new, reads as zeros from then on.
    pub fn resize(&mut self, size: u64) {
        if let Body::File(pieces) = &mut self.body {
            pieces.clear(size, u64::MAX);
            self.written.insert(size.min(self.attr.size), u64::MAX);
            self.attr.size = size;
            self.changed();
        }
    }
}
