//! The tree of directories as a whole: everything in it hangs from the root, by as many names as
//! it says.

use std::collections::BTreeSet;

use steadfast_ext4_format::ondisk::{InodeNo, RoCompat};
use steadfast_vfs::FileType;

use crate::FindingKind;
use crate::directory::DirectoryCheck;
use crate::found::ScannedDirectory;

/// Links of a directory beyond which it counts no more (`EXT4_LINK_MAX`).
const LINK_MAX: u32 = 65_000;

impl DirectoryCheck<'_, '_> {
    pub(super) fn check_tree(&mut self, directories: &[ScannedDirectory]) {
        self.check_parents(directories);
        self.check_loops(directories);
        self.check_links();
    }

    /// Each directory has one name, in the directory that its ".." says.
    fn check_parents(&mut self, directories: &[ScannedDirectory]) {
        if !self.inodes.get(InodeNo::ROOT).is_some_and(|k| k.used) {
            self.findings.add(FindingKind::Unattached, "inode 2", "there is no root directory");
        }
        for ScannedDirectory { ino, .. } in directories {
            let dotdot = self.dotdots.get(ino).copied();
            let parent = if *ino == InodeNo::ROOT {
                Some(InodeNo::ROOT)
            } else {
                self.parents.get(ino).copied()
            };
            let place = format_args!("directory inode {ino}");
            match (parent, dotdot) {
                (Some(parent), Some(dotdot)) if parent != dotdot => {
                    let text =
                        format_args!("\"..\" is inode {dotdot}, but its name is in {parent}");
                    self.findings.add(FindingKind::DirectoryDots, place, text);
                }
                (None, _) if !self.orphans.contains(ino) => {
                    self.findings.add(FindingKind::Unattached, place, "the directory has no name");
                }
                _ => {}
            }
        }
    }

    /// Going up from any directory leads to the root.
    fn check_loops(&mut self, directories: &[ScannedDirectory]) {
        let mut safe = BTreeSet::from([InodeNo::ROOT]);
        for ScannedDirectory { ino, .. } in directories {
            let (mut path, mut at) = (BTreeSet::new(), *ino);
            while !safe.contains(&at) {
                if !path.insert(at) {
                    let text = "the directory is above itself";
                    let place = format_args!("directory inode {at}");
                    self.findings.add(FindingKind::DirectoryLoop, place, text);
                    break;
                }
                // One without a name was found before.
                let Some(parent) = self.parents.get(&at) else { break };
                at = *parent;
            }
            safe.extend(path);
        }
    }

    fn check_links(&mut self) {
        let first = self.image.layout.first_inode;
        let sb = &self.image.sb;
        let project = sb.project_quota_inode.get();
        let special = [sb.orphan_file_inode.get(), sb.journal_inode.get(), project];
        let counts_stop = self.image.layout.features.ro_compat.contains(RoCompat::DIR_NLINK);
        for group in self.image.layout.all_groups() {
            for (index, known) in (0..).zip(self.inodes.group(group)) {
                let ino = self.image.layout.inode_number(group, index);
                let in_tree = ino >= first || ino == InodeNo::ROOT;
                if !known.used || !in_tree || special.contains(&ino.0) {
                    continue;
                }
                let orphan = known.links == 0 && self.orphans.contains(&ino);
                let directory = known.kind == Some(FileType::Directory);
                let many = directory && known.found > LINK_MAX && counts_stop;
                let expected = if many { 1 } else { known.found };
                let place = format_args!("inode {ino}");
                if orphan {
                    continue;
                }
                if known.found == 0 {
                    let text = "it is in use, but has no name";
                    self.findings.add(FindingKind::Unattached, place, text);
                } else if u32::from(known.links) != expected {
                    let text = format_args!("{} links, but {} names", known.links, known.found);
                    self.findings.add(FindingKind::LinkCount, place, text);
                }
            }
        }
    }
}
