//! Trees copied in and out, and what a file system that is made to do harm can do.

use std::fs::{self, File, FileTimes, Permissions};
use std::os::unix::fs::{FileExt, MetadataExt, PermissionsExt, symlink};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use steadfast::tree::Options;
use steadfast::{FileSystem, Image};

use super::hostile::Hostile;

/// A tree with everything that must be kept.
fn planted(folder: &Path) {
    fs::create_dir_all(folder.join("t/deep/er")).unwrap();
    fs::write(folder.join("t/one"), "contents").unwrap();
    fs::hard_link(folder.join("t/one"), folder.join("t/deep/two")).unwrap();
    symlink("../outside/of it", folder.join("t/link")).unwrap();
    fs::set_permissions(folder.join("t/one"), Permissions::from_mode(0o4751)).unwrap();
    fs::set_permissions(folder.join("t/deep/er"), Permissions::from_mode(0o700)).unwrap();
    let sparse = File::create(folder.join("t/sparse")).unwrap();
    sparse.write_all_at(&[7; 4096], 5 << 20).unwrap();
    sparse.set_len(9 << 20).unwrap();
    let times = [UNIX_EPOCH - Duration::new(1000, 250), UNIX_EPOCH + Duration::new(1 << 30, 1)];
    let times = FileTimes::new().set_accessed(times[0]).set_modified(times[1]);
    File::options().write(true).open(folder.join("t/one")).unwrap().set_times(times).unwrap();
}

#[test]
fn what_is_copied_in_and_out_is_what_it_was() {
    let folder = tempfile::tempdir().unwrap();
    planted(folder.path());
    let image = Image::in_memory(32 << 20).mount().unwrap();
    image.copy_in(folder.path().join("t"), "/").unwrap();
    image.set_xattr("/t/one", "user.origin", b"here").unwrap();

    let one = image.metadata("/t/one").unwrap();
    assert_eq!((one.mode() & 0o7777, one.nlink(), one.len()), (0o4751, 2, 8));
    assert_eq!(one.ino(), image.metadata("/t/deep/two").unwrap().ino());
    assert_eq!(one.modified(), UNIX_EPOCH + Duration::new(1 << 30, 1));
    assert_eq!(one.accessed(), UNIX_EPOCH - Duration::new(1000, 250));
    assert_eq!(image.read_link("/t/link").unwrap(), Path::new("../outside/of it"));
    let sparse = image.metadata("/t/sparse").unwrap();
    assert!(sparse.len() == 9 << 20 && sparse.blocks() < 64, "{} blocks", sparse.blocks());

    image.copy_out("/t", folder.path().join("back")).unwrap();
    let back = |name: &str| folder.path().join("back").join(name);
    let one = back("one").metadata().unwrap();
    assert_eq!((one.mode() & 0o7777, one.nlink()), (0o4751, 2));
    assert_eq!((one.mtime(), one.mtime_nsec()), (1 << 30, 1));
    assert_eq!((one.atime(), one.atime_nsec()), (-1001, 999_999_750));
    assert_eq!(back("deep/er").metadata().unwrap().mode() & 0o7777, 0o700);
    assert_eq!(fs::read_link(back("link")).unwrap(), Path::new("../outside/of it"));
    let sparse = back("sparse").metadata().unwrap();
    assert!(sparse.len() == 9 << 20 && sparse.blocks() < 64, "{} blocks", sparse.blocks());
    let mut value = [0; 16];
    let len = rustix::fs::getxattr(back("one"), "user.origin", &mut value).unwrap();
    assert_eq!(&value[..len], b"here");
    image.unmount().unwrap();
}

#[test]
fn times_and_attributes_are_changed_by_path_and_by_file() {
    let image = Image::in_memory(16 << 20).mount().unwrap();
    image.write("/file", "x").unwrap();
    image.symlink("file", "/link").unwrap();
    let before_1970 = UNIX_EPOCH - Duration::new(5, 400_000_000);
    let times = steadfast::FileTimes::new().set_modified(before_1970);
    image.set_times("/link", times).unwrap();
    assert_eq!(image.metadata("/file").unwrap().modified(), before_1970);
    assert_ne!(image.symlink_metadata("/link").unwrap().modified(), before_1970);
    image.set_symlink_times("/link", times).unwrap();
    assert_eq!(image.symlink_metadata("/link").unwrap().modified(), before_1970);
    // What was not named stays.
    let accessed = image.metadata("/file").unwrap().accessed();
    assert!(accessed > SystemTime::now() - Duration::from_secs(600));

    let file = image.open("/file").unwrap();
    file.set_xattr("user.a", &[1; 600]).unwrap();
    image.set_xattr("/link", "user.b", b"").unwrap();
    let mut names = file.xattrs().unwrap();
    names.sort();
    assert_eq!(names, ["user.a", "user.b"]);
    assert_eq!(image.xattr("/file", "user.a").unwrap().unwrap(), [1; 600]);
    assert_eq!(image.xattr("/file", "user.b").unwrap().unwrap(), b"");
    assert_eq!(file.remove_xattr("user.none").unwrap_err().errno(), 61);
    let error = image.set_xattr("/file", "user.big", &[0; 100_000]).unwrap_err();
    assert!(matches!(error.errno(), 7 | 28 | 34), "{error}");
    drop(file);
    image.unmount().unwrap();
}

#[test]
fn nothing_leaves_the_target_folder() {
    let folder = tempfile::tempdir().unwrap();
    let (target, outside) = (folder.path().join("target"), folder.path().join("outside"));
    fs::create_dir(&target).unwrap();
    fs::create_dir(&outside).unwrap();
    let hostile = FileSystem::over(Arc::new(Hostile::new(&outside)), "hostile");
    let mut failures = Vec::new();
    let options = Options::new().on_failure(|error| failures.push(error.to_string()));
    options.copy_out(&hostile, "/", &target).unwrap();
    for why in ["'/' in it", "NUL in it", "this name twice", "a cycle", "empty name"] {
        assert!(failures.iter().any(|f| f.contains(why)), "{why}: {failures:#?}");
    }
    assert_eq!(fs::read_dir(&outside).unwrap().count(), 0);
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2);
    // What is as it should be came through.
    assert_eq!(fs::read(target.join("good")).unwrap(), Hostile::CONTENTS);
    assert!(target.join("evil").symlink_metadata().unwrap().is_symlink());
    // The first failure ends it where nobody asks for more.
    let error = hostile.copy_out("/", folder.path().join("second")).unwrap_err();
    assert!(
        error.to_string().contains("refused") || error.to_string().contains("twice"),
        "{error}"
    );
}

#[test]
fn walks_of_a_hostile_tree_end() {
    let hostile = FileSystem::over(Arc::new(Hostile::new(Path::new("/tmp"))), "hostile");
    let (mut good, mut bad) = (0, 0);
    for entry in hostile.walk("/").unwrap() {
        match entry {
            Ok(entry) => {
                let path = entry.path().to_str().unwrap();
                assert!(path.starts_with('/') && !path.contains(".."), "{path}");
                good += 1;
            }
            Err(_) => bad += 1,
        }
    }
    assert!(good >= 3 && bad >= 4, "{good} good, {bad} bad");
    let folders: Vec<_> = hostile.folders("/").unwrap().collect();
    assert!(folders.iter().any(|f| !f.entered) && folders.len() < 10, "{}", folders.len());
    assert!(folders[0].errors.len() >= 3);
}

#[test]
fn a_full_target_ends_the_copy_and_a_single_failure_does_not() {
    let folder = tempfile::tempdir().unwrap();
    for n in 0..30 {
        fs::write(folder.path().join(format!("{n:02}")), vec![n; 1 << 20]).unwrap();
    }
    let image = Image::in_memory(16 << 20).mount().unwrap();
    let name = folder.path().file_name().unwrap().to_str().unwrap();
    let in_the_way = format!("/in/{name}/03");
    image.create_dir_all(&in_the_way).unwrap();
    let failed = std::cell::RefCell::new(Vec::new());
    let options = Options::new().on_failure(|e| failed.borrow_mut().push(e.to_string()));
    let error = options.copy_in(&image, folder.path(), "/in").unwrap_err();
    assert_eq!(error.errno(), 28, "{error}");
    assert!(failed.borrow().iter().all(|f| f.starts_with(&in_the_way)), "{failed:?}");
    // What is there is whole; nothing is left of what did not fit.
    for entry in image.walk("/in").unwrap() {
        let entry = entry.unwrap();
        if entry.metadata().is_file() {
            let n: u8 = entry.file_name().to_str().unwrap().parse().unwrap();
            let contents = image.read(entry.path()).unwrap();
            assert!(contents.iter().all(|b| *b == n), "{entry:?}");
        }
    }
    Options::new().remove(&image, "/in").unwrap();
    assert!(!image.exists("/in").unwrap());
    image.unmount().unwrap();
}
