//! A mount as a value: every program sees it while the value lives.

use std::path::Path;
use std::sync::mpsc::channel;
use std::time::Duration;

use steadfast::Image;
use steadfast_suite::OtherNamespace;

/// FUSE is there, and this user may use it.
pub fn has_fuse() -> bool {
    let has = Path::new("/dev/fuse").exists() && rustix::process::geteuid().is_root();
    if !has {
        println!("SKIPPED: needs root and /dev/fuse");
    }
    has
}

#[test]
fn a_mount_is_seen_by_system_calls_and_given_back() {
    if !has_fuse() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let fs = Image::in_memory(16 << 20).mount().unwrap();
    fs.write("/before", "in process").unwrap();
    let mounted = fs.mount_at(folder.path()).unwrap();
    let at = |name: &str| mounted.path().join(name);
    assert_eq!(std::fs::read_to_string(at("before")).unwrap(), "in process");
    std::fs::write(at("after"), "by a system call").unwrap();
    let fs = mounted.unmount().unwrap();
    assert!(!folder.path().join("before").exists());
    assert_eq!(fs.read_to_string("/after").unwrap(), "by a system call");
    fs.unmount().unwrap();
}

/// What has a copy of the mount gets errors, and nothing waits for its end.
#[test]
fn a_copy_in_another_mount_namespace_is_cut_off() {
    if !has_fuse() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let mounted = Image::in_memory(16 << 20).mount().unwrap().mount_at(folder.path()).unwrap();
    std::fs::write(mounted.path().join("file"), "text").unwrap();
    let other = OtherNamespace::new().unwrap();
    // As that process sees it.
    let path = mounted.path().strip_prefix("/").unwrap().join("file");
    let copy = Path::new("/proc").join(other.process().to_string()).join("root").join(path);
    assert_eq!(std::fs::read_to_string(&copy).unwrap(), "text");
    let (done, is_done) = channel();
    std::thread::spawn(move || done.send(mounted.unmount()));
    let unmounted = is_done.recv_timeout(Duration::from_secs(60));
    let fs = unmounted.expect("it waits for another mount namespace").unwrap();
    assert!(std::fs::read_to_string(&copy).is_err());
    drop(other);
    assert_eq!(fs.read_to_string("/file").unwrap(), "text");
    fs.unmount().unwrap();
}

#[test]
fn a_guard_that_is_dropped_takes_the_mount_away() {
    if !has_fuse() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let image = folder.path().join("disk.img");
    let at = folder.path().join("mnt");
    std::fs::create_dir(&at).unwrap();
    let mounted = Image::create(&image).size(16 << 20).mount().unwrap().mount_at(&at).unwrap();
    std::fs::write(at.join("file"), "x").unwrap();
    drop(mounted);
    assert!(!at.join("file").exists());
    let fs = Image::open(&image).mount().unwrap();
    assert_eq!(fs.read_to_string("/file").unwrap(), "x");
    fs.unmount().unwrap();
    let image = Image::open(&image).mount().unwrap();
    assert!(image.mount_at(folder.path().join("none")).is_err());
}
