//! What is found in a folder, and whether it is what the model says.

use std::collections::BTreeMap;

use steadfast_vfs::path::list;
use steadfast_vfs::{Attr, FileSystem, FsError, Ino, OpenFlags};

use super::{Difference, Names, Node, NodeKind};
use crate::operation::{ATTRIBUTE, attribute};

/// Bytes that are read at a time.
const PIECE: usize = 1 << 20;

/// One name that was found.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct NodeView {
    /// What it is.
    pub kind: NodeKind,
    /// Inode number.
    pub ino: u64,
    /// Permissions.
    pub mode: u16,
    /// Links.
    pub links: u32,
    /// A symbolic link's target.
    pub target: String,
    /// The value of [`ATTRIBUTE`]; nothing if it has none.
    pub attribute: Vec<u8>,
    /// What a file holds.
    pub data: Vec<u8>,
}

/// What was found in a task's folder, by path; the folder itself is "".
pub type Views = BTreeMap<String, NodeView>;

impl Names {
    /// Whether what was found is this; if not, where it differs. What files hold is not compared.
    ///
    /// # Errors
    /// The first difference, in words.
    pub fn compare(&self, seen: &Views) -> Result<(), Difference> {
        if let Some(name) = self.entries.keys().find(|n| !seen.contains_key(*n)) {
            return Err(Difference(format!("'{name}' is missing")));
        }
        let mut numbers: BTreeMap<u64, Node> = BTreeMap::new();
        for (name, found) in seen {
            let Some(node) = self.node(name) else {
                return Err(Difference(format!("'{name}' is there")));
            };
            let info = &self.nodes[&node];
            if *numbers.entry(found.ino).or_insert(node) != node {
                return Err(Difference(format!("'{name}' shares its inode with another file")));
            }
            let links = self.links(node);
            let same = (found.kind, found.mode, found.links) == (info.kind, info.mode, links)
                && (info.kind != NodeKind::Symlink || found.target == info.target);
            if found.attribute != attribute(info.attribute) {
                let (has, due) = (found.attribute.len(), info.attribute);
                return Err(Difference(format!(
                    "'{name}' has an attribute of {has} bytes, not {due}"
                )));
            }
            if !same {
                return Err(Difference(format!(
                    "'{name}' is {:?} {:o} with {} links, target '{}', not {:?} {:o} with {links}, \
                     '{}'",
                    found.kind,
                    found.mode,
                    found.links,
                    found.target,
                    info.kind,
                    info.mode,
                    info.target
                )));
            }
        }
        Ok(())
    }
}

/// Reads what is in a folder.
///
/// # Errors
/// What cannot be read, or is nothing that an operation makes.
pub fn look(fs: &dyn FileSystem, folder: Ino) -> steadfast_vfs::Result<Views> {
    let (mut views, mut todo) = (Views::new(), vec![(String::new(), fs.getattr(folder)?)]);
    while let Some((path, attr)) = todo.pop() {
        let kind = NodeKind::of(attr.kind).ok_or_else(|| FsError::Io {
            what: format!("{path} is a {:?}, which nobody made", attr.kind),
        })?;
        if kind == NodeKind::Folder {
            for entry in list(fs, attr.ino)? {
                let found = fs.lookup(attr.ino, &entry.name)?;
                if (found.ino, found.kind) != (entry.ino, entry.kind) {
                    return Err(FsError::Io { what: format!("{path}: entry and inode differ") });
                }
                let slash = if path.is_empty() { "" } else { "/" };
                let name = String::from_utf8_lossy(&entry.name);
                todo.push((format!("{path}{slash}{name}"), found));
            }
        }
        if let Some(twice) = views.insert(path, view(fs, kind, attr)?) {
            return Err(FsError::Io { what: format!("a name is there twice: {twice:?}") });
        }
    }
    Ok(views)
}

fn view(fs: &dyn FileSystem, kind: NodeKind, attr: Attr) -> steadfast_vfs::Result<NodeView> {
    let Attr { ino, mode, nlink: links, .. } = attr;
    let target = match kind {
        NodeKind::Symlink => String::from_utf8_lossy(&fs.readlink(ino)?).into_owned(),
        _ => String::new(),
    };
    let attribute = match kind {
        NodeKind::File | NodeKind::Folder => match fs.getxattr(ino, ATTRIBUTE) {
            Err(FsError::NoData | FsError::Unsupported { .. }) => Vec::new(),
            value => value?,
        },
        _ => Vec::new(),
    };
    let data = if kind == NodeKind::File { read(fs, ino)? } else { Vec::new() };
    Ok(NodeView { kind, ino: ino.0, mode, links, target, attribute, data })
}

/// All bytes of a file.
///
/// # Errors
/// Those of the file system.
pub fn read(fs: &dyn FileSystem, ino: Ino) -> steadfast_vfs::Result<Vec<u8>> {
    let fh = fs.open(ino, OpenFlags::READ)?;
    let mut all = Vec::new();
    let outcome = loop {
        match fs.read(fh, all.len() as u64, PIECE) {
            Ok(part) if part.is_empty() => break Ok(()),
            Ok(part) => all.extend_from_slice(&part),
            Err(e) => break Err(e),
        }
    };
    fs.release(fh)?;
    outcome.map(|()| all)
}
