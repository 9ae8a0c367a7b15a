//! What of a state is written to this machine: its image, and its tree.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use anyhow::Result;
use steadfast_crash::program::Tree;
use steadfast_crash::states::State;

use super::cli::CrashShow;
use crate::Usage;
use crate::commands::lab::outputs::{Output, is_same};
use crate::commands::whole_file;

/// Tries `--image` and `--tree`, before minutes are spent on a state. What is there stays as it is,
/// and nothing is made.
pub fn tried(args: &CrashShow) -> Result<(), Usage> {
    let tree = args.tree.as_deref();
    if let Some(image) = &args.image {
        for path in [image, &journal_of(image)] {
            let shown = path.display();
            if is_same(path, &args.recording) {
                return Err(Usage(format!("--image {shown}: that is the recording itself")));
            }
            if tree.is_some_and(|tree| is_same(path, tree)) {
                return Err(Usage(format!("--image and --tree name the same file, {shown}")));
            }
        }
        Output::tried("--image", image)?;
    }
    let Some(tree) = tree else { return Ok(()) };
    let tried = fs::create_dir(tree).and_then(|()| fs::remove_dir(tree));
    tried.map_err(|e| of_tree(tree, &e))
}

fn of_tree(folder: &Path, e: &io::Error) -> Usage {
    match e.kind() {
        io::ErrorKind::AlreadyExists => {
            let what = "it is there already, and is not written over; name a new folder";
            Usage(format!("--tree {}: {what}", folder.display()))
        }
        _ => Usage(format!("--tree {}: {e}", folder.display())),
    }
}

/// Writes the recovered tree to a folder that is made for it, where one is asked for: as files of
/// the caller without set-id bits, or with `owners` as they were recorded. A folder that could not
/// be filled is removed.
pub fn write_tree(tree: &Tree, folder: Option<&Path>, owners: bool) -> Result<()> {
    let Some(folder) = folder else { return Ok(()) };
    fs::create_dir(folder).map_err(|e| of_tree(folder, &e))?;
    let (user, group) = (rustix::process::geteuid(), rustix::process::getegid());
    let written = match owners {
        true => tree.write_to(folder),
        false => {
            let owner = (user.as_raw(), group.as_raw());
            tree.without_privileges(Some(owner)).write_to(folder)
        }
    };
    written.map_err(|e| {
        // OK to ignore: the first failure is what counts.
        let _ = fs::remove_dir_all(folder);
        of_tree(folder, &e).into()
    })
}

/// Where the image of an external journal is.
fn journal_of(image: &Path) -> PathBuf {
    let mut journal = image.as_os_str().to_owned();
    journal.push(".journal");
    PathBuf::from(journal)
}

/// Writes what the cut left, before any recovery: each file whole or not at all.
pub fn write_image(state: &State, path: &Path) -> Result<(), Usage> {
    for (store, path) in state.contents.iter().zip([path, &journal_of(path)]) {
        whole_file::write_by(path, |to| store.export(to))
            .map_err(|e| Usage(format!("--image {}: {e}", path.display())))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use steadfast_vfs::HostFs;

    use super::*;

    #[test]
    fn a_tree_that_cannot_be_written_leaves_no_folder() {
        let desk = tempfile::tempdir().unwrap();
        let from = desk.path().join("from");
        fs::create_dir(&from).unwrap();
        fs::write(from.join("a"), "text").unwrap();
        fs::create_dir(from.join("closed")).unwrap();
        fs::set_permissions(from.join("closed"), fs::Permissions::from_mode(0o500)).unwrap();
        let long = "n".repeat(250);
        fs::write(from.join(&long), "text").unwrap();
        let tree = Tree::read(&HostFs::open(&from).unwrap()).unwrap();
        // So deep that the path of its file would be longer than any may be.
        let deep = (0..15).fold(desk.path().to_path_buf(), |at, _| at.join(&long));
        fs::create_dir_all(&deep).unwrap();
        let deep = deep.join("n".repeat(100));
        let said = write_tree(&tree, Some(&deep), false).unwrap_err().to_string();
        assert!(said.starts_with("--tree ") && !deep.exists(), "{said}");
        let there = desk.path().join("there");
        write_tree(&tree, Some(&there), false).unwrap();
        let said = write_tree(&tree, Some(&there), false).unwrap_err().to_string();
        assert!(said.contains("name a new folder"), "{said}");
        assert_eq!(fs::read_to_string(there.join("a")).unwrap(), "text");
    }
}
