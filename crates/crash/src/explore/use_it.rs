//! Use of a recovered file system: it is not enough that it can be read.

use std::collections::BTreeSet;

use steadfast_vfs::path::list;
use steadfast_vfs::{FileSystem, FileType, NewNode, OpenFlags};

use crate::tree::LOST_AND_FOUND;

/// The name that no workload uses.
const NEW_FILE: &[u8] = b"new file of the judge";

/// Makes a file in every directory, then removes everything.
///
/// # Errors
/// What cannot be done, in words.
pub(super) fn use_it(fs: &dyn FileSystem) -> crate::Result<()> {
    let mut folders = vec![(Vec::new(), fs.root())];
    let mut at = 0;
    while let Some((path, folder)) = folders.get(at).cloned() {
        at += 1;
        let said = |what: &str, e: &dyn std::fmt::Display| {
            format!("/{}: {what}: {e}", String::from_utf8_lossy(&path))
        };
        let entries = list(fs, folder).map_err(|e| said("cannot be listed", &e))?;
        let opened = fs.create(folder, NEW_FILE, NewNode::default(), OpenFlags::WRITE);
        let (_, fh) = opened.map_err(|e| said("no file can be made there", &e))?;
        fs.release(fh).map_err(|e| said("closing", &e))?;
        fs.unlink(folder, NEW_FILE).map_err(|e| said("a new file cannot be removed", &e))?;
        let mut gone = BTreeSet::new();
        for entry in entries {
            let name = &entry.name[..];
            let skipped = matches!(name, b"." | b"..") || path.is_empty() && name == LOST_AND_FOUND;
            if skipped || !gone.insert(name.to_vec()) {
                continue;
            }
            let shown = String::from_utf8_lossy(name).into_owned();
            let found = fs.lookup(folder, name).map_err(|e| said(&shown, &e))?;
            match found.kind {
                FileType::Directory => {
                    let below = [&path[..], name, b"/"].concat();
                    folders.push((below, found.ino));
                }
                _ => fs.unlink(folder, name).map_err(|e| said(&format!("removing {shown}"), &e))?,
            }
        }
    }
    // The deepest come last.
    for (path, _) in folders.iter().skip(1).rev() {
        let path = path.strip_suffix(b"/").unwrap_or(path);
        let removed = steadfast_vfs::path::parent_and_name(fs, path)
            .and_then(|(folder, name)| fs.rmdir(folder, name));
        removed.map_err(|e| {
            format!("{}: cannot be removed when empty: {e}", String::from_utf8_lossy(path))
        })?;
    }
    Ok(())
}
