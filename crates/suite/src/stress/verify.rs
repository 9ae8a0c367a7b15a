//! Comparing a folder with its model.

use std::collections::BTreeSet;
use std::path::Path;

use rustix::fs::FileType;

use super::contents::differ;
use super::model::{Node, TreeModel};
use super::task::{Fault, call};

/// The whole tree, with all contents.
pub(super) fn tree(root: &Path, model: &TreeModel) -> Result<(), Fault> {
    let of = |what: Fault| format!("{}: {what}", root.display());
    folder(root, model, "").map_err(of)?;
    for (path, node) in &model.names {
        if *node == Node::Folder {
            folder(root, model, path).map_err(of)?;
        }
        name(root, model, path, true).map_err(of)?;
    }
    Ok(())
}

/// The names in a folder.
pub(super) fn folder(root: &Path, model: &TreeModel, path: &str) -> Result<(), Fault> {
    let prefix = if path.is_empty() { String::new() } else { format!("{path}/") };
    let below = model.names.keys().filter_map(|p| p.strip_prefix(&prefix));
    let expected: BTreeSet<String> =
        below.filter(|rest| !rest.contains('/')).map(str::to_owned).collect();
    let entries =
        std::fs::read_dir(root.join(path)).map_err(|e| format!("readdir '{path}': {e}"))?;
    let mut found = BTreeSet::new();
    for entry in entries {
        let entry = entry.map_err(|e| format!("readdir '{path}': {e}"))?;
        let name = entry.file_name().to_string_lossy().into_owned();
        if !found.insert(name.clone()) {
            return Err(format!("'{path}' has '{name}' twice"));
        }
    }
    let missing: Vec<_> = expected.difference(&found).collect();
    let foreign: Vec<_> = found.difference(&expected).collect();
    if missing.is_empty() && foreign.is_empty() {
        return Ok(());
    }
    Err(format!("folder '{path}': missing {missing:?}, not expected {foreign:?}"))
}

/// One name: kind, size, links; its content too, if `whole`.
pub(super) fn name(root: &Path, model: &TreeModel, path: &str, whole: bool) -> Result<(), Fault> {
    let full = root.join(path);
    let stat = call(&format!("lstat {path}"), rustix::fs::lstat(&full))?;
    let kind = FileType::from_raw_mode(stat.st_mode);
    let of = |what: Fault| format!("{path}: {what}");
    match &model.names[path] {
        Node::Folder if kind == FileType::Directory => Ok(()),
        Node::Symlink(target) if kind == FileType::Symlink => {
            let found = call("readlink", rustix::fs::readlink(&full, Vec::new())).map_err(of)?;
            differ("target", found.as_bytes(), target.as_bytes()).map_err(of)
        }
        Node::File(id) if kind == FileType::RegularFile => {
            let file = &model.files[id];
            let (size, links) = (stat.st_size as usize, stat.st_nlink);
            if (size, links) != (file.bytes.len(), model.links(*id)) {
                return Err(format!(
                    "{path}: {size} bytes and {links} links, expected {} and {}",
                    file.bytes.len(),
                    model.links(*id)
                ));
            }
            if whole {
                let found = std::fs::read(&full).map_err(|e| format!("{path}: read: {e}"))?;
                differ("content", &found, &file.bytes).map_err(of)?;
            }
            attribute(&full, file.attribute.as_deref()).map_err(of)
        }
        node => Err(format!("{path} is a {kind:?}, expected {node:?}")),
    }
}

fn attribute(path: &Path, expected: Option<&[u8]>) -> Result<(), Fault> {
    let Some(expected) = expected else { return Ok(()) };
    let mut value = vec![0; 65536];
    let n = call("getxattr", rustix::fs::getxattr(path, "user.stress", &mut value[..]))?;
    differ("attribute", &value[..n], expected)
}
