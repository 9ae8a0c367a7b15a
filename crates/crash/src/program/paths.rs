//! The names under which inodes were seen.
//!
//! A request names an inode by its number; a person, and a judge, know it by its path. The paths
//! are put together from every answer that shows a name: lookups, listings, what was made, linked
//! and moved. An inode that none of them has shown has no path, and is not taken for another.

use std::collections::HashMap;

use steadfast_vfs::{HardLinks, Ino};

/// Longest path in names: the tree of the paths may have a circle for a moment.
const NAMES_MAX: usize = 4096;

/// Names by inode.
#[derive(Default)]
pub(super) struct Paths {
    /// The names of each inode.
    names: HashMap<Ino, HardLinks>,
    /// How often names were made, moved or removed.
    changes: u64,
}

/// A path, as far as it is known.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(super) struct Path {
    /// Without a leading '/'. If it is not whole, what is known of its end.
    pub bytes: Vec<u8>,
    /// It begins at the root.
    pub whole: bool,
}

impl Paths {
    /// Names are about to change, or have changed.
    pub fn change(&mut self) {
        self.changes += 1;
    }

    /// A number that is another one once names have changed.
    pub fn age(&self) -> u64 {
        self.changes
    }

    /// The inode has this name now.
    pub fn found(&mut self, ino: Ino, dir: Ino, name: &[u8]) {
        if name == b"." || name == b".." {
            return;
        }
        self.names.entry(ino).or_default().add(dir, name);
    }

    /// The inode was seen under this name by who began to look at the given age: where names have
    /// changed since, what was learnt from a change is newer.
    pub fn seen(&mut self, age: u64, ino: Ino, dir: Ino, name: &[u8]) {
        if age == self.changes || !self.names.contains_key(&ino) {
            self.found(ino, dir, name);
        }
    }

    /// The inode no longer has this name.
    pub fn lost(&mut self, ino: Ino, dir: Ino, name: &[u8]) {
        if let Some(names) = self.names.get_mut(&ino) {
            names.remove(dir, name);
            if names.last().is_none() {
                self.names.remove(&ino);
            }
        }
    }

    /// The path of an inode.
    pub fn path(&self, root: Ino, ino: Ino) -> Path {
        let mut names: Vec<&[u8]> = Vec::new();
        let mut at = ino;
        while at != root && names.len() < NAMES_MAX {
            let Some((dir, name)) = self.names.get(&at).and_then(HardLinks::last) else {
                break;
            };
            names.push(name);
            at = dir;
        }
        names.reverse();
        Path { bytes: names.join(&b'/'), whole: at == root }
    }

    /// The path of a name in a directory.
    pub fn place(&self, root: Ino, dir: Ino, name: &[u8]) -> Path {
        let Path { mut bytes, whole } = self.path(root, dir);
        if !bytes.is_empty() {
            bytes.push(b'/');
        }
        bytes.extend_from_slice(name);
        Path { bytes, whole }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROOT: Ino = Ino(2);

    fn path(paths: &Paths, ino: u64) -> (String, bool) {
        let path = paths.path(ROOT, Ino(ino));
        (String::from_utf8(path.bytes).unwrap(), path.whole)
    }

    #[test]
    fn what_was_never_seen_has_no_path() {
        let mut paths = Paths::default();
        assert_eq!(path(&paths, 2), (String::new(), true));
        assert_eq!(path(&paths, 12), (String::new(), false));
        paths.found(Ino(13), Ino(12), b"f");
        assert_eq!(path(&paths, 13), ("f".into(), false));
        paths.found(Ino(12), ROOT, b"d");
        assert_eq!(path(&paths, 13), ("d/f".into(), true));
        assert_eq!(paths.place(ROOT, Ino(12), b"g").bytes, b"d/g");
        paths.found(Ino(12), ROOT, b".");
        assert_eq!(path(&paths, 12), ("d".into(), true));
    }

    #[test]
    fn a_name_that_is_gone_leaves_the_others() {
        let mut paths = Paths::default();
        paths.found(Ino(12), ROOT, b"one");
        paths.found(Ino(12), ROOT, b"two");
        assert_eq!(path(&paths, 12), ("two".into(), true));
        paths.lost(Ino(12), ROOT, b"two");
        assert_eq!(path(&paths, 12), ("one".into(), true));
        paths.lost(Ino(12), ROOT, b"one");
        assert_eq!(path(&paths, 12), (String::new(), false));
    }

    #[test]
    fn an_old_listing_does_not_take_a_new_name_away() {
        let mut paths = Paths::default();
        let before = paths.age();
        paths.change();
        paths.found(Ino(12), ROOT, b"new");
        paths.seen(before, Ino(12), ROOT, b"old");
        assert_eq!(path(&paths, 12), ("new".into(), true));
        paths.seen(paths.age(), Ino(12), ROOT, b"link");
        assert_eq!(path(&paths, 12), ("link".into(), true));
    }

    #[test]
    fn a_circle_ends() {
        let mut paths = Paths::default();
        paths.found(Ino(12), Ino(13), b"a");
        paths.found(Ino(13), Ino(12), b"b");
        assert!(!paths.path(ROOT, Ino(12)).whole);
    }
}
