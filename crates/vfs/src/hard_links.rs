//! The names of an inode that are known.

use std::collections::BTreeSet;

use crate::Ino;

/// The names under which an inode was seen, and the one that was seen last. A file may have tens of
/// thousands, so nothing here takes time in proportion to their number.
#[derive(Debug, Default, Clone)]
pub struct HardLinks {
    /// The directory, and the name in it.
    last: Option<(Ino, Vec<u8>)>,
    /// Mostly none, which takes no memory.
    others: BTreeSet<(Ino, Vec<u8>)>,
}

impl HardLinks {
    /// It was seen under this name.
    pub fn add(&mut self, dir: Ino, name: &[u8]) {
        if self.is_last(dir, name) {
            return;
        }
        let link = (dir, name.to_vec());
        self.others.remove(&link);
        self.others.extend(self.last.replace(link));
    }

    /// It has this name no more.
    pub fn remove(&mut self, dir: Ino, name: &[u8]) {
        if self.is_last(dir, name) {
            self.last = self.others.pop_last();
        } else if !self.others.is_empty() {
            self.others.remove(&(dir, name.to_vec()));
        }
    }

    /// The name that was seen last, and its directory; any of the others, if that is gone.
    pub fn last(&self) -> Option<(Ino, &[u8])> {
        self.last.as_ref().map(|(dir, name)| (*dir, &name[..]))
    }

    fn is_last(&self, dir: Ino, name: &[u8]) -> bool {
        self.last() == Some((dir, name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn last(links: &HardLinks) -> Option<(u64, &str)> {
        links.last().map(|(dir, name)| (dir.0, std::str::from_utf8(name).unwrap()))
    }

    #[test]
    fn the_last_is_known_and_the_others_are_not_lost() {
        let mut links = HardLinks::default();
        assert_eq!(last(&links), None);
        for (dir, name) in [(2, "a"), (2, "b"), (3, "a"), (2, "a")] {
            links.add(Ino(dir), name.as_bytes());
            assert_eq!(last(&links), Some((dir, name)));
        }
        links.remove(Ino(2), b"b");
        links.remove(Ino(2), b"never there");
        links.remove(Ino(2), b"a");
        assert_eq!(last(&links), Some((3, "a")));
        links.remove(Ino(3), b"a");
        assert_eq!(last(&links), None);
        links.remove(Ino(3), b"a");
    }

    /// As many names as a file of ext4 can have, each twice. One after the other was compared.
    #[test]
    fn many_names_of_one_inode() {
        let mut links = HardLinks::default();
        let names: Vec<String> = (0..65_000).map(|n| format!("{n:06}")).collect();
        let all = || names.iter().chain(names.iter().rev());
        all().for_each(|name| links.add(Ino(2), name.as_bytes()));
        assert_eq!(last(&links), Some((2, "000000")));
        names.iter().for_each(|name| links.remove(Ino(2), name.as_bytes()));
        assert_eq!(last(&links), None);
    }
}
