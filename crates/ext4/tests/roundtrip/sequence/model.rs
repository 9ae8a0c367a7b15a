//! A file system as plain data.

use std::collections::BTreeMap;

use steadfast_vfs::{FileType, RenameFlags};

/// Error numbers of Linux.
mod errno {
    pub const ENOENT: i32 = 2;
    pub const EEXIST: i32 = 17;
    pub const ENOTDIR: i32 = 20;
    pub const EISDIR: i32 = 21;
    pub const EINVAL: i32 = 22;
    pub const ENOTEMPTY: i32 = 39;
    pub const EPERM: i32 = 1;
}

/// Result in error numbers.
pub type Outcome<T = ()> = Result<T, i32>;

/// A file, directory or link.
#[derive(Debug, Clone)]
pub struct Node {
    pub kind: Kind,
    pub mode: u16,
    pub names: u32,
}

#[derive(Debug, Clone)]
pub enum Kind {
    File(Vec<u8>),
    Dir(BTreeMap<Vec<u8>, usize>),
    Symlink(Vec<u8>),
}

/// The tree. Nodes never move; a node without names stays as a file that was deleted.
#[derive(Debug, Clone)]
pub struct Model {
    pub nodes: Vec<Node>,
}

/// A place in the tree: the names from the root on.
pub type Path = Vec<Vec<u8>>;

pub const ROOT: usize = 0;

impl Model {
    /// An empty root directory.
    pub fn new() -> Self {
        Model { nodes: vec![Node { kind: Kind::Dir(BTreeMap::new()), mode: 0o755, names: 1 }] }
    }

    pub fn entries(&self, dir: usize) -> &BTreeMap<Vec<u8>, usize> {
        match &self.nodes[dir].kind {
            Kind::Dir(entries) => entries,
            _ => panic!("not a directory"),
        }
    }

    fn entries_mut(&mut self, dir: usize) -> &mut BTreeMap<Vec<u8>, usize> {
        match &mut self.nodes[dir].kind {
            Kind::Dir(entries) => entries,
            _ => panic!("not a directory"),
        }
    }

    pub fn is_dir(&self, node: usize) -> bool {
        matches!(self.nodes[node].kind, Kind::Dir(_))
    }

    pub fn data_mut(&mut self, file: usize) -> &mut Vec<u8> {
        match &mut self.nodes[file].kind {
            Kind::File(data) => data,
            _ => panic!("not a file"),
        }
    }

    pub fn data(&self, file: usize) -> &[u8] {
        match &self.nodes[file].kind {
            Kind::File(data) => data,
            _ => panic!("not a file"),
        }
    }

    /// All paths with their nodes, directories before what is in them.
    pub fn paths(&self) -> Vec<(Path, usize)> {
        let mut all = vec![(Vec::new(), ROOT)];
        let mut at = 0;
        while at < all.len() {
            let (path, node) = all[at].clone();
            if self.is_dir(node) {
                for (name, child) in self.entries(node) {
                    let mut path = path.clone();
                    path.push(name.clone());
                    all.push((path, *child));
                }
            }
            at += 1;
        }
        all
    }

    pub fn find(&self, dir: usize, name: &[u8]) -> Option<usize> {
        self.entries(dir).get(name).copied()
    }

    fn add(&mut self, dir: usize, name: &[u8], kind: Kind, mode: u16) -> Outcome<usize> {
        if self.find(dir, name).is_some() {
            return Err(errno::EEXIST);
        }
        self.nodes.push(Node { kind, mode, names: 1 });
        let node = self.nodes.len() - 1;
        self.entries_mut(dir).insert(name.to_vec(), node);
        Ok(node)
    }

    pub fn create(&mut self, dir: usize, name: &[u8], mode: u16) -> Outcome<usize> {
        self.add(dir, name, Kind::File(Vec::new()), mode)
    }

    pub fn mkdir(&mut self, dir: usize, name: &[u8], mode: u16) -> Outcome<usize> {
        self.add(dir, name, Kind::Dir(BTreeMap::new()), mode)
    }

    pub fn symlink(&mut self, dir: usize, name: &[u8], target: &[u8]) -> Outcome<usize> {
        self.add(dir, name, Kind::Symlink(target.to_vec()), 0o777)
    }

    pub fn link(&mut self, of: usize, dir: usize, name: &[u8]) -> Outcome {
        if self.find(dir, name).is_some() {
            return Err(errno::EEXIST);
        }
        if self.is_dir(of) {
            return Err(errno::EPERM);
        }
        self.nodes[of].names += 1;
        self.entries_mut(dir).insert(name.to_vec(), of);
        Ok(())
    }

    pub fn unlink(&mut self, dir: usize, name: &[u8]) -> Outcome {
        let node = self.find(dir, name).ok_or(errno::ENOENT)?;
        if self.is_dir(node) {
            return Err(errno::EISDIR);
        }
        self.drop_name(dir, name);
        Ok(())
    }

    pub fn rmdir(&mut self, dir: usize, name: &[u8]) -> Outcome {
        let node = self.find(dir, name).ok_or(errno::ENOENT)?;
        if !self.is_dir(node) {
            return Err(errno::ENOTDIR);
        }
        if !self.entries(node).is_empty() {
            return Err(errno::ENOTEMPTY);
        }
        self.drop_name(dir, name);
        Ok(())
    }

    fn drop_name(&mut self, dir: usize, name: &[u8]) {
        if let Some(node) = self.entries_mut(dir).remove(name) {
            self.nodes[node].names -= 1;
        }
    }

    fn is_within(&self, dir: usize, above: usize) -> bool {
        dir == above
            || (self.is_dir(above) && self.entries(above).values().any(|n| self.is_within(dir, *n)))
    }

    pub fn rename(
        &mut self,
        (from_dir, from): (usize, &[u8]),
        (to_dir, to): (usize, &[u8]),
        flags: RenameFlags,
    ) -> Outcome {
        let source = self.find(from_dir, from).ok_or(errno::ENOENT)?;
        let target = self.find(to_dir, to);
        let exchange = flags.contains(RenameFlags::EXCHANGE);
        if target.is_some() && flags.contains(RenameFlags::NO_REPLACE) {
            return Err(errno::EEXIST);
        }
        if target.is_none() && exchange {
            return Err(errno::ENOENT);
        }
        if self.is_dir(source) && self.is_within(to_dir, source) {
            return Err(errno::EINVAL);
        }
        if let Some(target) = target {
            if self.is_dir(target) && self.is_within(from_dir, target) && from_dir != to_dir {
                return Err(if exchange { errno::EINVAL } else { errno::ENOTEMPTY });
            }
            if target == source {
                return Ok(());
            }
            if exchange {
                self.entries_mut(from_dir).insert(from.to_vec(), target);
                self.entries_mut(to_dir).insert(to.to_vec(), source);
                return Ok(());
            }
            match (self.is_dir(source), self.is_dir(target)) {
                (true, false) => return Err(errno::ENOTDIR),
                (false, true) => return Err(errno::EISDIR),
                (true, true) if !self.entries(target).is_empty() => return Err(errno::ENOTEMPTY),
                _ => self.drop_name(to_dir, to),
            }
        }
        self.entries_mut(from_dir).remove(from);
        self.entries_mut(to_dir).insert(to.to_vec(), source);
        Ok(())
    }

    pub fn write(&mut self, file: usize, offset: usize, bytes: &[u8]) {
        let data = self.data_mut(file);
        if data.len() < offset + bytes.len() {
            data.resize(offset + bytes.len(), 0);
        }
        data[offset..offset + bytes.len()].copy_from_slice(bytes);
    }

    pub fn kind(&self, node: usize) -> FileType {
        match self.nodes[node].kind {
            Kind::File(_) => FileType::Regular,
            Kind::Dir(_) => FileType::Directory,
            Kind::Symlink(_) => FileType::Symlink,
        }
    }
}
