//! Which file is which, and what each was at first.

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};

use steadfast_vfs::{Attr, FileType, Ino, OpenFlags};

use crate::format::{CallFlag, FileKind, FileState, name_text};

/// The files that have been seen: an inode number with its generation is one file.
#[derive(Default)]
pub(super) struct KnownFiles {
    next: u64,
    known: HashMap<Ino, (u64, u32)>,
}

impl KnownFiles {
    /// The number of a file that is new: the inode's earlier ones are gone.
    pub fn known(&mut self, attr: &Attr) -> u64 {
        let number = self.next;
        self.next += 1;
        self.known.insert(attr.ino, (number, attr.generation));
        number
    }

    /// The number of this very file.
    pub fn same(&self, attr: &Attr) -> Option<u64> {
        let (number, generation) = self.known.get(&attr.ino)?;
        (*generation == attr.generation).then_some(*number)
    }

    /// The number of the last file that an inode was.
    pub fn number(&self, ino: Ino) -> Option<u64> {
        self.known.get(&ino).map(|(number, _)| *number)
    }
}

/// What a file is at its first touch.
pub(super) fn state(
    attr: &Attr,
    file: u64,
    dir: Option<u64>,
    name: String,
    target: &[u8],
) -> FileState {
    let kind = match attr.kind {
        FileType::Regular => FileKind::Regular,
        FileType::Directory => FileKind::Folder,
        FileType::Symlink => FileKind::Symlink,
        _ => FileKind::Other,
    };
    let size = if kind == FileKind::Regular { attr.size } else { 0 };
    FileState { file, kind, size, dir, name, target: name_text(target) }
}

/// The flags that a trace knows.
pub(super) fn flags(flags: OpenFlags) -> Vec<CallFlag> {
    let all = [
        (OpenFlags::READ, CallFlag::Read),
        (OpenFlags::WRITE, CallFlag::Write),
        (OpenFlags::APPEND, CallFlag::Append),
        (OpenFlags::TRUNCATE, CallFlag::Truncate),
        (OpenFlags::DIRECT, CallFlag::Direct),
        (OpenFlags::SYNC, CallFlag::Sync),
        (OpenFlags::DSYNC, CallFlag::Dsync),
    ];
    all.into_iter().filter(|(known, _)| flags.contains(*known)).map(|(_, flag)| flag).collect()
}

/// A name that says nothing but which name of this trace it is: `key` is drawn for each recording.
pub(super) fn hashed(key: &RandomState, name: &[u8]) -> String {
    format!("n{:016x}", key.hash_one(name))
}
