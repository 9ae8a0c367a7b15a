//! Contents in inodes (`inline_data`).

use std::collections::HashSet;

use steadfast_ext4_format::Result;
use steadfast_ext4_format::dir::inline::rows as inline_rows;
use steadfast_ext4_format::ondisk::{DirEntries, InodeFlags, InodeNo, RawInode};
use steadfast_vfs::FileType;

use crate::FindingKind;
use crate::checker::Checker;
use crate::directory::{DirectoryCheck, Reading};
use crate::finding::as_finding;
use crate::found::ScannedDirectory;
use crate::orphans::Fate;

impl Checker<'_> {
    /// The contents of an inode that says it has them; it maps nothing, and is `charged` for the
    /// blocks of its attributes.
    pub(super) fn check_inline(
        &mut self,
        ino: InodeNo,
        inode: &RawInode,
        charged: u64,
    ) -> Result<()> {
        let contents = match inode.inline_contents(ino) {
            Ok(contents) => contents,
            Err(e) => {
                let text = as_finding(e)?;
                self.bad_inode(ino, FindingKind::InodeSize, format_args!("in the inode: {text}"));
                return Ok(());
            }
        };
        let (size, kind) = (inode.size(), inode.file_type());
        let len = contents.len() as u64;
        let wrong = match kind {
            Some(FileType::Directory) => size != len,
            Some(FileType::Symlink) => {
                let end = contents.iter().position(|b| *b == 0).unwrap_or(contents.len());
                size == 0 || size != end as u64
            }
            Some(FileType::Regular) => false,
            _ => true,
        };
        self.check_sectors(ino, inode, charged);
        if self.fate(ino, inode) == Fate::Deleted {
            return Ok(());
        }
        if wrong {
            let text = format_args!("size {size}, or its type, does not go with {len} bytes in it");
            self.bad_inode(ino, FindingKind::InodeSize, text);
        }
        if kind == Some(FileType::Directory) {
            self.directories.push(ScannedDirectory {
                ino,
                generation: inode.generation(),
                indexed: false,
                runs: Vec::new(),
                blocks: 0,
                encrypted: inode.flags().contains(InodeFlags::ENCRYPTED),
                casefold: inode.flags().contains(InodeFlags::CASEFOLD),
                inline: Some(contents),
            });
        }
        Ok(())
    }
}

impl DirectoryCheck<'_, '_> {
    /// The entries of a directory in its inode.
    pub(super) fn check_inline_directory(&mut self, directory: &ScannedDirectory, contents: &[u8]) {
        let ino = directory.ino;
        let parent = contents.first_chunk::<4>().map_or(0, |b| u32::from_le_bytes(*b));
        let parent = InodeNo(parent);
        if parent == InodeNo::NONE || parent.0 > self.image.layout.inodes_count {
            let text = format_args!("its parent is said to be inode {parent}");
            let place = format_args!("directory inode {ino}");
            self.findings.add(FindingKind::DirectoryDots, place, text);
        } else {
            self.dotdots.insert(ino, parent);
            self.count_link(parent);
        }
        self.count_link(ino);
        let seed = self.image.layout.checksums.inode_seed(ino, directory.generation);
        let mut reading = Reading { directory, seed, index: None, names: HashSet::new() };
        for entry in inline_rows(contents).into_iter().flat_map(DirEntries::new) {
            match entry {
                Ok(entry) if entry.inode == InodeNo::NONE => {}
                Ok(entry) => self.check_entry(&mut reading, 0, &entry),
                Err(text) => {
                    let place = format_args!("directory inode {ino}");
                    let kind = FindingKind::DirectoryEntry;
                    self.findings.add(kind, place, text);
                }
            }
        }
    }
}
