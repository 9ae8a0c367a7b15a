//! What a task's folder should look like.

use std::collections::BTreeMap;

use super::random::SplitMix64;

/// A file, whatever names it has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct FileId(u64);

/// What a name stands for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Node {
    File(FileId),
    Folder,
    Symlink(String),
}

/// Content and attribute of a file.
#[derive(Debug, Clone, Default)]
pub(super) struct File {
    pub(super) bytes: Vec<u8>,
    /// The value of `user.stress`.
    pub(super) attribute: Option<Vec<u8>>,
}

/// A tree; paths are relative to the task's folder, without a slash in front.
#[derive(Debug, Clone, Default)]
pub(super) struct TreeModel {
    pub(super) names: BTreeMap<String, Node>,
    pub(super) files: BTreeMap<FileId, File>,
    next: u64,
}

impl TreeModel {
    pub(super) fn create(&mut self, path: &str) {
        let id = FileId(self.next);
        self.next += 1;
        self.files.insert(id, File::default());
        self.names.insert(path.to_owned(), Node::File(id));
    }

    pub(super) fn links(&self, id: FileId) -> u64 {
        self.names.values().filter(|n| **n == Node::File(id)).count() as u64
    }

    /// Takes a name away; the file goes with its last one.
    pub(super) fn remove(&mut self, path: &str) {
        if let Some(Node::File(id)) = self.names.remove(path)
            && self.links(id) == 0
        {
            self.files.remove(&id);
        }
    }

    /// Moves a name and what is below it.
    pub(super) fn rename(&mut self, old: &str, new: &str) {
        if old == new {
            return;
        }
        if let (Some(a), Some(b)) = (self.names.get(old), self.names.get(new))
            && matches!(a, Node::File(_))
            && a == b
        {
            // Two names of one file: rename does nothing.
            return;
        }
        self.remove(new);
        self.rename_plain(old, new);
    }

    /// Two names change places, with what is below them.
    pub(super) fn exchange(&mut self, a: &str, b: &str) {
        const ASIDE: &str = "\0aside";
        self.rename_plain(a, ASIDE);
        self.rename_plain(b, a);
        self.rename_plain(ASIDE, b);
    }

    fn rename_plain(&mut self, old: &str, new: &str) {
        let below = format!("{old}/");
        let is_moved = |path: &String| path == old || path.starts_with(&below);
        let moved: Vec<String> = self.names.keys().filter(|p| is_moved(p)).cloned().collect();
        for path in moved {
            if let Some(node) = self.names.remove(&path) {
                self.names.insert(format!("{new}{}", &path[old.len()..]), node);
            }
        }
    }

    pub(super) fn is_empty_folder(&self, path: &str) -> bool {
        let below = format!("{path}/");
        !self.names.keys().any(|p| p.starts_with(&below))
    }

    /// Some name of that sort, if there is one.
    pub(super) fn pick(
        &self,
        random: &mut SplitMix64,
        fits: impl Fn(&Node) -> bool,
    ) -> Option<String> {
        let all: Vec<&String> =
            self.names.iter().filter(|(_, n)| fits(n)).map(|(p, _)| p).collect();
        if all.is_empty() { None } else { Some(all[random.below(all.len())].clone()) }
    }

    pub(super) fn pick_file(&self, random: &mut SplitMix64) -> Option<(String, FileId)> {
        let path = self.pick(random, |n| matches!(n, Node::File(_)))?;
        match self.names[&path] {
            Node::File(id) => Some((path, id)),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_move_with_what_is_in_them() {
        let mut m = TreeModel::default();
        m.names.insert("d".into(), Node::Folder);
        m.create("d/a");
        m.create("e");
        m.rename("d", "f");
        assert_eq!(m.names.keys().collect::<Vec<_>>(), ["e", "f", "f/a"]);
        m.exchange("e", "f");
        assert_eq!(m.names.keys().collect::<Vec<_>>(), ["e", "e/a", "f"]);
        assert_eq!(m.names["e"], Node::Folder);
        m.rename("f", "e/a");
        assert_eq!((m.names.len(), m.files.len()), (2, 1));
        assert!(!m.is_empty_folder("e"));
    }
}
