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
use crate::commands::whole_file;
use crate::commands::whole_file::place::{self, FolderName, PathMeaning};

/// Tries `--image` and `--tree`, before minutes are spent on a state. What is there stays as it is,
/// and nothing is made.
pub fn tried(args: &CrashShow) -> Result<(), Usage> {
    let tree = args.tree.as_deref();
    if let Some(image) = &args.image {
        for path in [image, &journal_of(image)] {
            let shown = path.display();
            if is_same(path, &args.recording) {
                usage!("--image {shown}: that is the recording itself");
            }
            if tree.is_some_and(|tree| is_same(path, tree)) {
                usage!("--image and --tree name the same file, {shown}");
            }
            if !takes_images(path) {
                let what = "an image is written to a regular file only, which is not the output";
                usage!("--image {shown}: {what}; name a new file");
            }
        }
        Output::tried("--image", image)?;
    }
    let Some(tree) = tree else { return Ok(()) };
    let tried = || {
        let place = FolderName::of_new(tree)?;
        place.remove_folder(&place.make_folder()?)
    };
    tried().map_err(|e| of_tree(tree, &e))
}

/// Whether an image can be written there: it has a size and holes, and what is printed would be
/// among its bytes.
fn takes_images(path: &Path) -> bool {
    // What cannot be looked at is tried, which says why.
    let Ok(there) = fs::metadata(path) else { return true };
    let is_output =
        matches!(place::find(path), Ok(PathMeaning::Descriptor(_) | PathMeaning::Other(_)));
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
    let made = FolderName::of_new(folder).and_then(|place| {
        let open = place.make_folder()?;
        Ok((place, open))
    });
    let (place, open) = made.map_err(|e| of_tree(folder, &e))?;
    fill(tree, &place, &open, owners).map_err(|e| of_tree(folder, &e).into())
}

/// Fills a folder that was made; or another one, by now, of which nothing is removed.
fn fill(tree: &Tree, place: &FolderName, open: &OwnedFd, owners: bool) -> io::Result<()> {
    let (user, group) = (rustix::process::geteuid(), rustix::process::getegid());
    let written = match owners {
        true => tree.write_into(open),
        false => {
            let owner = (user.as_raw(), group.as_raw());
            tree.without_privileges(Some(owner)).write_into(open)
        }
    };
    if written.as_ref().is_err_and(|e| e.kind() != io::ErrorKind::DirectoryNotEmpty) {
        // What was made in it is gone. OK to ignore: the first failure is what counts.
        let _ = place.remove_folder(open);
    }
    written
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
#[allow(clippy::print_stdout, reason = "a test that did not run says so")]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use steadfast_vfs::HostFs;

    use super::*;

    /// It would be a stream of bytes without a size, or the text's place.
    #[test]
    fn images_go_to_regular_files() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        let mode = rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR;
        rustix::fs::mkfifoat(rustix::fs::CWD, at("pipe"), mode).unwrap();
        let open = fs::File::create(at("open")).unwrap();
        fs::write(at("old"), "old").unwrap();
        for path in [at("pipe"), at("open"), "/dev/full".into(), "/dev/stdout".into()] {
            assert!(!takes_images(&path), "{}", path.display());
        }
        drop(open);
        for name in ["open", "old", "new", "none/new"] {
            assert!(takes_images(&at(name)), "{name}");
        }
    }

    #[test]
    fn a_tree_that_cannot_be_written_leaves_no_folder() {
        let desk = tempfile::tempdir().unwrap();
        let from = desk.path().join("from");
        fs::create_dir(&from).unwrap();
        fs::write(from.join("a"), "text").unwrap();
        fs::create_dir(from.join("closed")).unwrap();
        fs::set_permissions(from.join("closed"), fs::Permissions::from_mode(0o500)).unwrap();
        fs::write(from.join("large"), [7; 100_000]).unwrap();
        let tree = Tree::read(&HostFs::open(&from).unwrap()).unwrap();
        let there = desk.path().join("there");
        write_tree(&tree, Some(&there), false).unwrap();
        let said = write_tree(&tree, Some(&there), false).unwrap_err().to_string();
        assert!(said.contains("name a new folder"), "{said}");
        assert_eq!(fs::read_to_string(there.join("a")).unwrap(), "text");
        let mode = |at: &Path| fs::metadata(at).unwrap().permissions().mode() & 0o777;
        fs::create_dir(desk.path().join("plain")).unwrap();
        assert_eq!(mode(&there), mode(&desk.path().join("plain")));
        assert_eq!(mode(&there.join("closed")), 0o500);
        let Some(small) = Small::at(desk.path().join("small")) else { return };
        let said = write_tree(&tree, Some(&small.0.join("tree")), false).unwrap_err().to_string();
        assert!(said.starts_with("--tree ") && said.contains("large"), "{said}");
        assert_eq!(fs::read_dir(&small.0).unwrap().count(), 0);
    }

    /// Between making the folder and opening it somebody exchanges it for a full one of root's.
    #[test]
    fn a_full_folder_in_its_place_stays_as_it_is() {
        let desk = tempfile::tempdir().unwrap();
        let at = |name: &str| desk.path().join(name);
        for folder in ["from", "full", "full/folder"] {
            fs::create_dir(at(folder)).unwrap();
        }
        fs::write(at("from/a"), "text").unwrap();
        fs::write(at("full/folder/kept"), "kept").unwrap();
        fs::set_permissions(at("full"), fs::Permissions::from_mode(0o755)).unwrap();
        let tree = Tree::read(&HostFs::open(at("from")).unwrap()).unwrap();
        let place = FolderName::of_new(&at("there")).unwrap();
        place.make_folder().unwrap();
        fs::remove_dir(at("there")).unwrap();
        fs::rename(at("full"), at("there")).unwrap();
        let open: OwnedFd = fs::File::open(at("there")).unwrap().into();
        for owners in [false, true] {
            let refused = fill(&tree, &place, &open, owners).unwrap_err();
            assert_eq!(refused.kind(), io::ErrorKind::DirectoryNotEmpty);
            assert_eq!(fs::read_to_string(at("there/folder/kept")).unwrap(), "kept");
            assert_eq!(fs::metadata(at("there")).unwrap().permissions().mode() & 0o7777, 0o755);
        }
    }

    /// A file system of 32 KiB, mounted.
    struct Small(PathBuf);

    impl Small {
        /// `None`, said aloud: not permitted.
        fn at(folder: PathBuf) -> Option<Small> {
            fs::create_dir(&folder).unwrap();
            let flags = rustix::mount::MountFlags::empty();
            match rustix::mount::mount("none", &folder, "tmpfs", flags, c"size=32k") {
                Ok(()) => Some(Small(folder)),
                Err(e) => {
                    println!("SKIPPED: cannot mount: {e}");
                    None
                }
            }
        }
    }

    impl Drop for Small {
        fn drop(&mut self) {
            rustix::mount::unmount(&self.0, rustix::mount::UnmountFlags::empty()).unwrap();
        }
    }

    /// Somebody exchanges the folder that it is in for a link into a folder of root's.
    #[test]
    fn a_tree_in_another_users_folder_stays_in_it() {
        use std::os::unix::fs::{MetadataExt, chown, lchown, symlink};
        use std::sync::atomic::{AtomicBool, Ordering};

        use rustix::fs::{CWD, RenameFlags, renameat_with};

        if !rustix::process::geteuid().is_root() {
            println!("SKIPPED: needs root");
            return;
        }
        let desk = tempfile::tempdir().unwrap();
        let at = |name: &str| desk.path().join(name);
        for folder in ["from", "root", "home", "home/dir"] {
            fs::create_dir(at(folder)).unwrap();
        }
        fs::write(at("from/a"), "text").unwrap();
        fs::create_dir(at("from/d")).unwrap();
        fs::write(at("from/d/b"), "text").unwrap();
        chown(at("from/d"), Some(54321), Some(54321)).unwrap();
        let tree = Tree::read(&HostFs::open(at("from")).unwrap()).unwrap();
        for theirs in ["home", "home/dir"] {
            chown(at(theirs), Some(54321), Some(54321)).unwrap();
        }
        symlink(at("root"), at("home/link")).unwrap();
        lchown(at("home/link"), Some(54321), Some(54321)).unwrap();
        let is_over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !is_over.load(Ordering::Relaxed) {
                    let (dir, link) = (at("home/dir"), at("home/link"));
                    renameat_with(CWD, dir, CWD, link, RenameFlags::EXCHANGE).unwrap();
                }
            });
            for round in 0..200 {
                // It is written to the user's folder, or refused.
                let folder = at("home/dir").join(format!("tree-{round}"));
                let _ = write_tree(&tree, Some(&folder), true);
            }
            is_over.store(true, Ordering::Relaxed);
        });
        assert_eq!(fs::read_dir(at("root")).unwrap().count(), 0);
        let dir = if at("home/dir").is_symlink() { at("home/link") } else { at("home/dir") };
        for written in fs::read_dir(dir).unwrap().flatten() {
            let owner = |name: &str| fs::metadata(written.path().join(name)).unwrap().uid();
            assert_eq!((owner("a"), owner("d"), owner("d/b")), (0, 54321, 0));
        }
    }
}
