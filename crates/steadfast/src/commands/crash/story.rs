//! What of a state is written to this machine: its image, and its tree.

use std::path::{Path, PathBuf};

use anyhow::Result;
use steadfast_crash::program::Tree;
use steadfast_crash::states::State;

use crate::Usage;

/// Writes the recovered tree to a folder that is made for it, where one is asked for: as files of
/// the caller without set-id bits, or with `owners` as they were recorded.
pub fn write_tree(tree: &Tree, folder: Option<&Path>, owners: bool) -> Result<()> {
    if let Some(folder) = folder {
        std::fs::create_dir(folder)
            .map_err(|e| Usage(format!("--tree {}: {e}", folder.display())))?;
        let (user, group) = (rustix::process::geteuid(), rustix::process::getegid());
        match owners {
            true => tree.write_to(folder)?,
            false => {
                let owner = (user.as_raw(), group.as_raw());
                tree.without_privileges(Some(owner)).write_to(folder)?;
            }
        }
    }
    Ok(())
}

/// Writes what the cut left, before any recovery.
pub fn write_image(state: &State, path: &Path) -> Result<()> {
    let mut paths = vec![path.to_path_buf()];
    let mut journal = path.as_os_str().to_owned();
    journal.push(".journal");
    paths.push(PathBuf::from(journal));
    for (store, path) in state.contents.iter().zip(&paths) {
        store.export(path).map_err(|e| Usage(format!("--image {}: {e}", path.display())))?;
    }
    Ok(())
}
