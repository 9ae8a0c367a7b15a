//! What of a state is written to this machine: its image, and its tree.

use std::fs;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use anyhow::Result;
use steadfast_crash::program::Tree;
use steadfast_crash::states::State;

use super::cli::CrashShow;
use crate::Usage;
use crate::commands::lab::outputs::{Output, is_same};
use crate::commands::whole_file::place::{self, Found, Place, path_of};
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
            if !takes_images(path) {
                let what = "an image is written to a regular file only, which is not the output";
                return Err(Usage(format!("--image {shown}: {what}; name a new file")));
            }
        }
        Output::tried("--image", image)?;
    }
    let Some(tree) = tree else { return Ok(()) };
    let tried = || {
        let place = Place::of_new(tree)?;
        place.remove_folder(&place.make_folder()?)
    };
    tried().map_err(|e| of_tree(tree, &e))
}

/// Whether an image can be written there: it has a size and holes, and what is printed would be
/// among its bytes.
fn takes_images(path: &Path) -> bool {
    // What cannot be looked at is tried, which says why.
    let Ok(there) = fs::metadata(path) else { return true };
    let is_output = matches!(place::find(path), Ok(Found::Descriptor(_) | Found::Other(_)));
    // A folder is refused in its own words.
    there.is_dir() || (there.is_file() && !is_output && !whole_file::is_ours(&there, &[]))
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
    let made = Place::of_new(folder).and_then(|place| {
        let open = place.make_folder()?;
        Ok((place, open))
    });
    let (place, open) = made.map_err(|e| of_tree(folder, &e))?;
    let (user, group) = (rustix::process::geteuid(), rustix::process::getegid());
    let written = match owners {
        true => tree.write_into(&open),
        false => {
            let owner = (user.as_raw(), group.as_raw());
            tree.without_privileges(Some(owner)).write_into(&open)
        }
    };
    written.map_err(|e| {
        // OK to ignore: the first failure is what counts.
        let _ = empty(&open).and_then(|()| place.remove_folder(&open));
        of_tree(folder, &e).into()
    })
}

/// Removes what is in a folder.
fn empty(folder: &OwnedFd) -> io::Result<()> {
    for entry in fs::read_dir(path_of(folder))? {
        let entry = entry?;
        match entry.file_type()?.is_dir() {
            true => fs::remove_dir_all(entry.path())?,
            false => fs::remove_file(entry.path())?,
        }
    }
    Ok(())
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
