//! The inode table: inode numbers, and their last known path.

use std::collections::BTreeMap;

use rustix::fs::Statx;

use crate::{FsError, HardLinks, Ino, Result};

/// Deeper than any path the system can make in one call; a longer way up is a loop that somebody
/// else's renames have made in our table.
const DEPTH_MAX: usize = 100_000;

/// Numbers from here on stand for inodes of other file systems mounted below the folder.
const FOREIGN: u64 = 1 << 63;

/// What the host calls an inode.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct HostInode {
    /// Device, major << 32 | minor.
    device: u64,
    /// The host's inode number.
    ino: u64,
}

impl HostInode {
    /// By the device number and the inode number of stat(2).
    pub(super) fn new(device: u64, ino: u64) -> HostInode {
        let (major, minor) = (rustix::fs::major(device), rustix::fs::minor(device));
        HostInode { device: u64::from(major) << 32 | u64::from(minor), ino }
    }

    pub(super) fn of(x: &Statx) -> HostInode {
        let device = u64::from(x.stx_dev_major) << 32 | u64::from(x.stx_dev_minor);
        HostInode { device, ino: x.stx_ino }
    }
}

/// The parent, and the name in it.
type Name = (Ino, Vec<u8>);

struct Node {
    identity: HostInode,
    /// Parent and name; a directory has one at most.
    places: HardLinks,
}

/// The table. On the root's own device our number is the host's; inodes on other devices get
/// numbers from [`FOREIGN`] on.
pub(super) struct Nodes {
    root: Ino,
    root_device: u64,
    nodes: BTreeMap<Ino, Node>,
    foreign: BTreeMap<HostInode, Ino>,
}

impl Nodes {
    pub(super) fn new(root: HostInode) -> Nodes {
        let mut nodes = Nodes {
            root: Ino(root.ino),
            root_device: root.device,
            nodes: BTreeMap::new(),
            foreign: BTreeMap::new(),
        };
        nodes.nodes.insert(Ino(root.ino), Node { identity: root, places: HardLinks::default() });
        nodes
    }

    pub(super) fn root(&self) -> Ino {
        self.root
    }

    /// The number of an inode, given one if it has none.
    pub(super) fn number(&mut self, identity: HostInode) -> Ino {
        if identity.device == self.root_device && identity.ino < FOREIGN {
            return Ino(identity.ino);
        }
        let next = Ino(FOREIGN + self.foreign.len() as u64);
        *self.foreign.entry(identity).or_insert(next)
    }

    /// The number of an inode of which only the inode number is known (a directory entry): that
    /// of the root's device.
    pub(super) fn number_on_root(&mut self, ino: u64) -> Ino {
        let device = self.root_device;
        self.number(HostInode { device, ino })
    }

    /// Records that an inode was seen at a place.
    pub(super) fn add_node(&mut self, identity: HostInode, parent: Ino, name: &[u8]) -> Ino {
        let ino = self.number(identity);
        if ino == self.root {
            return ino;
        }
        let new = || Node { identity, places: HardLinks::default() };
        self.nodes.entry(ino).or_insert_with(new).places.add(parent, name);
        ino
    }

    pub(super) fn forget_place(&mut self, ino: Ino, parent: Ino, name: &[u8]) {
        if let Some(node) = self.nodes.get_mut(&ino) {
            node.places.remove(parent, name);
        }
    }

    /// Drops an inode that has no known place, so that its number may be used again.
    pub(super) fn forget_if_unlinked(&mut self, ino: Ino) {
        if ino != self.root && self.nodes.get(&ino).is_some_and(|n| n.places.last().is_none()) {
            self.nodes.remove(&ino);
        }
    }

    /// Drops an inode and all places where it was seen.
    pub(super) fn remove(&mut self, ino: Ino) {
        if ino != self.root {
            self.nodes.remove(&ino);
        }
    }

    /// Where the inode was seen last, if that is known, and what must be found there.
    pub(super) fn place(&self, ino: Ino) -> Result<(Option<Name>, HostInode)> {
        let node = self.nodes.get(&ino).ok_or(FsError::NotFound)?;
        let last = node.places.last().map(|(parent, name)| (parent, name.to_vec()));
        Ok((last, node.identity))
    }

    /// The directory that holds a directory; the root holds itself.
    pub(super) fn parent(&self, ino: Ino) -> Result<Ino> {
        let node = self.nodes.get(&ino).ok_or(FsError::NotFound)?;
        Ok(node.places.last().map_or(self.root, |(parent, _)| parent))
    }

    /// The names from the root down to the directory `ino`, and what must be found there.
    pub(super) fn path_to(&self, ino: Ino) -> Result<(Vec<Vec<u8>>, HostInode)> {
        let expected = self.nodes.get(&ino).ok_or(FsError::NotFound)?.identity;
        let (mut names, mut at) = (Vec::new(), ino);
        while at != self.root {
            let node = self.nodes.get(&at).ok_or(FsError::NotFound)?;
            let (parent, name) = node.places.last().ok_or(FsError::NotFound)?;
            names.push(name.to_vec());
            at = parent;
            if names.len() > DEPTH_MAX {
                return Err(FsError::Loop);
            }
        }
        names.reverse();
        Ok((names, expected))
    }
}
