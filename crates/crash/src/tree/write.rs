//! Writing a tree into a folder of the host.

use std::ffi::OsStr;
use std::fs::{File, Permissions};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileExt, PermissionsExt, symlink};
use std::path::Path;

use steadfast_vfs::FileType;

use super::{Node, Tree, shown};

impl Tree {
    /// Whether a path stays in the folder that the tree is written to: each name is one, and all
    /// but the last are directories. A damaged directory may have a name twice, as a directory and
    /// as a symbolic link.
    fn stays_inside(&self, path: &[u8]) -> bool {
        let is_name = |name: &[u8]| !matches!(name, b"" | b"." | b"..");
        let ends = path.iter().enumerate().filter(|(_, byte)| **byte == b'/').map(|(at, _)| at);
        let is_directory = |end: usize| {
            self.get(&path[..end]).is_some_and(|node| node.attr.kind == FileType::Directory)
        };
        path.split(|byte| *byte == b'/').all(is_name) && ends.into_iter().all(is_directory)
    }

    /// Writes the tree into `folder`, which exists and is empty: hard and symbolic links,
    /// permissions, holes; owners where that is allowed. Device nodes and sockets are left out.
    ///
    /// # Errors
    /// What the host reports, with the path; a path that leads out of the folder.
    pub fn write_to(&self, folder: &Path) -> io::Result<()> {
        let mut directories = Vec::new();
        for (path, node) in &self.nodes {
            if !self.stays_inside(path) {
                let what = format!("{}: what it is in is no directory", shown(path));
                return Err(io::Error::new(io::ErrorKind::InvalidData, what));
            }
            let to = folder.join(OsStr::from_bytes(path));
            self.write_node(node, &to, folder)
                .map_err(|e| io::Error::new(e.kind(), format!("{}: {e}", to.display())))?;
            if node.attr.kind == FileType::Directory {
                directories.push((to, node.attr.mode));
            }
        }
        // At last, from the bottom up: they may be read-only.
        for (path, mode) in directories.into_iter().rev() {
            std::fs::set_permissions(&path, Permissions::from_mode(mode.into()))?;
        }
        Ok(())
    }

    fn write_node(&self, node: &Node, to: &Path, folder: &Path) -> io::Result<()> {
        if let Some(name) = &node.same_as {
            return std::fs::hard_link(folder.join(OsStr::from_bytes(name)), to);
        }
        match node.attr.kind {
            FileType::Directory => std::fs::create_dir(to)?,
            FileType::Symlink => symlink(OsStr::from_bytes(&node.target), to)?,
            FileType::Regular => {
                let file = File::create_new(to)?;
                for (offset, bytes) in &node.pieces {
                    file.write_all_at(bytes, *offset)?;
                }
                file.set_len(node.attr.size)?;
            }
            FileType::Fifo => {
                let mode = rustix::fs::Mode::from_raw_mode(node.attr.mode.into());
                rustix::fs::mknodat(rustix::fs::CWD, to, rustix::fs::FileType::Fifo, mode, 0)?;
            }
            FileType::CharDevice | FileType::BlockDevice | FileType::Socket => return Ok(()),
        }
        // Only root may give files away; whoever may not has its own files.
        let _ = std::os::unix::fs::lchown(to, Some(node.attr.uid), Some(node.attr.gid));
        if matches!(node.attr.kind, FileType::Regular) {
            std::fs::set_permissions(to, Permissions::from_mode(node.attr.mode.into()))?;
        }
        Ok(())
    }
}
