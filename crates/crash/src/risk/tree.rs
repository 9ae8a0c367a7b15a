//! What a recovered file system shows.

use std::collections::BTreeMap;

use steadfast_vfs::path::list;
use steadfast_vfs::{FileSystem, FileType, FsError, Ino, OpenFlags};

/// Bytes read at once.
const READ: usize = 1 << 20;
/// Files of the workload are far smaller: what claims to be larger is damage, not to be read.
const LARGEST: u64 = 64 << 20;
/// Folders of the workload are not deep: what is deeper is a loop.
const DEEPEST: usize = 8;
/// What mkfs puts into the root, and where a repair puts files that it found without a name.
const LOST_AND_FOUND: &[u8] = b"lost+found";

/// The regular files below the root, with what they hold.
#[derive(Debug, Clone, Default)]
pub struct Tree {
    /// By path, without a leading '/'.
    pub files: BTreeMap<String, Vec<u8>>,
    /// What could not be read, or is not what the workload made, in words.
    pub unreadable: Vec<String>,
}

impl Tree {
    /// Reads everything but `lost+found`. What fails is in [`unreadable`](Self::unreadable).
    pub fn read(fs: &dyn FileSystem) -> Tree {
        let mut tree = Tree::default();
        tree.folder(fs, fs.root(), "", 0);
        tree
    }

    fn folder(&mut self, fs: &dyn FileSystem, dir: Ino, path: &str, depth: usize) {
        let entries = match list(fs, dir) {
            Ok(entries) => entries,
            Err(e) => return self.complain(path, &e),
        };
        for entry in entries {
            if depth == 0 && entry.name == LOST_AND_FOUND {
                continue;
            }
            let name = String::from_utf8_lossy(&entry.name);
            let path = if path.is_empty() { name.into_owned() } else { format!("{path}/{name}") };
            let attr = match fs.lookup(dir, &entry.name) {
                Ok(attr) => attr,
                Err(e) => {
                    self.complain(&path, &e);
                    continue;
                }
            };
            match attr.kind {
                FileType::Directory if depth < DEEPEST => {
                    self.folder(fs, attr.ino, &path, depth + 1);
                }
                FileType::Regular if attr.size <= LARGEST => match contents(fs, attr.ino) {
                    Ok(held) => drop(self.files.insert(path, held)),
                    Err(e) => self.complain(&path, &e),
                },
                kind => self.unreadable.push(format!(
                    "{path} is {kind:?} of {} bytes: nobody made such a thing",
                    attr.size
                )),
            }
        }
    }

    fn complain(&mut self, path: &str, error: &FsError) {
        self.unreadable.push(format!("/{path} cannot be read after recovery: {error}"));
    }
}

fn contents(fs: &dyn FileSystem, ino: Ino) -> Result<Vec<u8>, FsError> {
    let fh = fs.open(ino, OpenFlags::READ)?;
    let mut held = Vec::new();
    let outcome = loop {
        match fs.read(fh, held.len() as u64, READ) {
            Ok(part) if part.is_empty() => break Ok(()),
            // It said that it was smaller.
            Ok(_) if held.len() as u64 > LARGEST => break Ok(()),
            Ok(part) => held.extend_from_slice(&part),
            Err(e) => break Err(e),
        }
    };
    fs.release(fh)?;
    outcome.map(|()| held)
}
