//! Directory blocks: every entry, and what it says of the inode it names.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::fmt::Display;

use bytes::Bytes;
use steadfast_ext4_format::Result;
use steadfast_ext4_format::dir::STRICT_NAMES;
use steadfast_ext4_format::dir::hash::hash_name;
use steadfast_ext4_format::ondisk::csum::InodeSeed;
use steadfast_ext4_format::ondisk::{DIR_TAIL_LEN, DirEntries, DirentRef, InodeNo, file_type_code};
use steadfast_vfs::FileType;

use crate::FindingKind;
use crate::encryption::{Encryption, NAME_BYTES_MIN};
use crate::finding::Findings;
use crate::found::ScannedDirectory;
use crate::image::Image;
use crate::index::Index;
use crate::table::InodeTable;

/// What reading a directory has found so far.
pub(super) struct Reading<'a> {
    pub(super) directory: &'a ScannedDirectory,
    pub(super) seed: InodeSeed,
    pub(super) index: Option<Index>,
    pub(super) names: HashSet<Box<[u8]>>,
}

/// Directories, their entries and indices, and the tree that they make.
pub(super) struct DirectoryCheck<'c, 'a> {
    pub(super) image: &'c mut Image<'a>,
    pub(super) findings: &'c mut Findings,
    /// Names are counted here.
    pub(super) inodes: &'c mut InodeTable,
    pub(super) encryption: &'c Encryption,
    pub(super) orphans: &'c BTreeSet<InodeNo>,
    /// Parent by the entry that names a directory.
    pub(super) parents: BTreeMap<InodeNo, InodeNo>,
    /// What the ".." of each directory says.
    pub(super) dotdots: BTreeMap<InodeNo, InodeNo>,
}

impl DirectoryCheck<'_, '_> {
    /// Checks all directories in the order in which they lie on the device, which is read ahead.
    pub(super) fn check_directories(&mut self, directories: &[ScannedDirectory]) -> Result<()> {
        let mut order: Vec<&ScannedDirectory> = directories.iter().collect();
        order.sort_by_key(|d| d.runs.first().map(|(_, start, _)| *start));
        let pieces = order.iter().flat_map(|d| d.pieces());
        self.image.source.plan(pieces.map(|(_, start, len)| (start, len)).collect());
        order.into_iter().try_for_each(|directory| self.check_directory(directory))
    }

    fn check_directory(&mut self, directory: &ScannedDirectory) -> Result<()> {
        if let Some(contents) = &directory.inline {
            self.check_inline_directory(directory, contents);
            return Ok(());
        }
        let seed = self.image.layout.checksums.inode_seed(directory.ino, directory.generation);
        let index = if directory.indexed { self.load_index(directory, seed)? } else { None };
        let mut reading = Reading { directory, seed, index, names: HashSet::new() };
        let bs = self.image.layout.block_size as usize;
        for (first, start, len) in directory.pieces() {
            let bytes = self.image.source.next(start, len.into())?;
            for i in 0..len {
                let block = bytes.slice(i as usize * bs..(i as usize + 1) * bs);
                self.check_dir_block(&mut reading, first + i, &block);
            }
        }
        Ok(())
    }

    fn dir_finding(&mut self, ino: InodeNo, block: u32, kind: FindingKind, text: impl Display) {
        self.findings.add(kind, format_args!("directory inode {ino}, block {block}"), text);
    }

    fn check_dir_block(&mut self, reading: &mut Reading, number: u32, block: &Bytes) {
        let ino = reading.directory.ino;
        let is_index = number == 0 && reading.directory.indexed && reading.index.is_some();
        if reading.index.as_ref().is_some_and(|i| i.nodes.contains(&number)) {
            return;
        }
        if is_index {
            self.check_dots(reading.directory, block);
            return;
        }
        let sums = self.image.layout.checksums;
        if !sums.verify_dir_block(reading.seed, block) {
            let text = "wrong checksum, or none";
            self.dir_finding(ino, number, FindingKind::DirectoryChecksum, text);
        }
        if reading.index.as_ref().is_some_and(|i| !i.leaves.contains_key(&number)) {
            let text = "no entry of the index leads to this block";
            self.dir_finding(ino, number, FindingKind::IndexLeaf, text);
        }
        let used = block.len() - if sums.metadata() { DIR_TAIL_LEN } else { 0 };
        if number == 0 {
            self.check_dots(reading.directory, block);
        }
        for (position, entry) in DirEntries::new(block).enumerate() {
            let entry = match entry {
                Ok(entry) => entry,
                Err(text) => {
                    self.dir_finding(ino, number, FindingKind::DirectoryEntry, text);
                    return;
                }
            };
            if entry.at >= used {
                return;
            }
            if entry.at + entry.rec_len > used && sums.metadata() {
                let text = format_args!("entry at byte {} reaches into the checksum", entry.at);
                self.dir_finding(ino, number, FindingKind::DirectoryEntry, text);
            }
            let dots = number == 0 && position < 2;
            if entry.inode != InodeNo::NONE && !dots {
                self.check_entry(reading, number, &entry);
            }
        }
    }

    /// The first two entries of block 0.
    fn check_dots(&mut self, directory: &ScannedDirectory, block: &[u8]) {
        let ino = directory.ino;
        let mut entries = DirEntries::new(block).map_while(std::result::Result::ok);
        let (dot, dotdot) = (entries.next(), entries.next());
        let bad = |this: &mut Self, text: &str| {
            this.dir_finding(ino, 0, FindingKind::DirectoryDots, text);
        };
        match dot {
            Some(e) if e.inode != InodeNo::NONE && e.name == b"." => {
                if e.inode != ino {
                    bad(self, "\".\" is another inode");
                }
                if block.get(e.at + 9) != Some(&0) {
                    bad(self, "\".\" is not followed by a zero byte");
                }
                self.check_dot_type(ino, &e);
                self.count_link(e.inode);
            }
            _ => bad(self, "the first entry is not \".\""),
        }
        match dotdot {
            Some(e) if e.inode != InodeNo::NONE && e.name == b".." => {
                if block.get(e.at + 10) != Some(&0) {
                    bad(self, "\"..\" is not followed by a zero byte");
                }
                self.check_dot_type(ino, &e);
                self.dotdots.insert(ino, e.inode);
                self.count_link(e.inode);
            }
            _ => bad(self, "the second entry is not \"..\""),
        }
    }

    fn check_dot_type(&mut self, ino: InodeNo, entry: &DirentRef) {
        if entry.type_code != 0 && entry.type_code != file_type_code(FileType::Directory) {
            let text = format_args!("\".\" or \"..\" has type {}", entry.type_code);
            self.dir_finding(ino, 0, FindingKind::EntryType, text);
        }
    }

    pub(super) fn count_link(&mut self, ino: InodeNo) {
        if let Some(known) = self.inodes.get_mut(ino) {
            known.found = known.found.saturating_add(1);
        }
    }

    /// An entry other than "." and ".." of the beginning.
    pub(super) fn check_entry(&mut self, reading: &mut Reading, number: u32, entry: &DirentRef) {
        let dir = reading.directory.ino;
        let shown = String::from_utf8_lossy(entry.name).into_owned();
        let name = entry.name;
        if name.is_empty() || name == b"." || name == b".." {
            let text = format_args!("an entry is named {shown:?}");
            return self.dir_finding(dir, number, FindingKind::EntryName, text);
        }
        let encrypted = reading.directory.encrypted;
        if encrypted && name.len() < NAME_BYTES_MIN {
            let text = format_args!("the name {shown:?} is too short for an encrypted one");
            self.dir_finding(dir, number, FindingKind::EntryName, text);
        }
        if !encrypted && name.iter().any(|b| matches!(b, b'/' | 0)) {
            let text = format_args!("the name {shown:?} holds a slash or a zero byte");
            self.dir_finding(dir, number, FindingKind::EntryName, text);
        }
        let casefold = reading.directory.casefold;
        let folded = casefold.then(|| steadfast_ext4_format::dir::casefold::fold(name));
        let strict = casefold && self.image.sb.encoding_flags.get() & STRICT_NAMES != 0;
        if strict && std::str::from_utf8(name).is_err() {
            let text = format_args!("the name {shown:?} is no UTF-8 text");
            self.dir_finding(dir, number, FindingKind::EntryName, text);
        }
        let folded = folded.flatten();
        let name = folded.as_deref().unwrap_or(name);
        if !reading.names.insert(name.into()) {
            let text = format_args!("the name {shown:?} is there twice");
            self.dir_finding(dir, number, FindingKind::DuplicateName, text);
        }
        self.check_entry_inode(dir, number, entry, &shown);
        let Some(index) = &reading.index else { return };
        let Some(range) = index.leaves.get(&number) else { return };
        let hash = hash_name(index.version, &index.seed, name).major;
        if !range.holds(hash) {
            let text = format_args!("the name {shown:?} (hash {hash:#010x}) is in the wrong block");
            self.dir_finding(dir, number, FindingKind::IndexLeaf, text);
        }
    }

    fn check_entry_inode(&mut self, dir: InodeNo, number: u32, entry: &DirentRef, shown: &str) {
        let ino = entry.inode;
        let bad = |this: &mut Self, text: &str| {
            let text = format_args!("{shown:?} names inode {ino}, {text}");
            this.dir_finding(dir, number, FindingKind::EntryInode, text);
        };
        if ino == InodeNo::ROOT {
            return bad(self, "the root");
        }
        if self.image.layout.is_reserved(ino) || ino.0 > self.image.layout.inodes_count {
            return bad(self, "which no entry may name");
        }
        let Some(known) = self.inodes.get(ino).copied().filter(|k| k.used) else {
            return bad(self, "which is free");
        };
        if known.links == 0 {
            bad(self, "which is an orphan without links");
        }
        if known.bad {
            bad(self, "whose fields make no sense");
        }
        let expected = known.kind.map_or(0, file_type_code);
        // No type at all is allowed: readers then look at the inode.
        if entry.type_code != 0 && entry.type_code != expected {
            let text =
                format_args!("{shown:?} has type {}, inode {ino} has {expected}", entry.type_code);
            self.dir_finding(dir, number, FindingKind::EntryType, text);
        }
        if let Some(text) = self.encryption.problem(dir, ino, known.kind) {
            let text = format_args!("{shown:?} names inode {ino}, {text}");
            self.dir_finding(dir, number, FindingKind::EntryPolicy, text);
        }
        self.count_link(ino);
        if known.kind == Some(FileType::Directory)
            && let Some(other) = self.parents.insert(ino, dir)
        {
            let text = format_args!("{shown:?} is a second name of a directory, also in {other}");
            self.dir_finding(dir, number, FindingKind::EntryInode, text);
        }
    }
}
