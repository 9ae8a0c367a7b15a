//! What a copy keeps, both ways.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use steadfast_host::LoopDevice;

use super::desk::Desk;

fn set_times(path: &std::path::Path, secs: u64) -> (SystemTime, SystemTime) {
    let at = |nanos| UNIX_EPOCH + Duration::new(secs, nanos);
    let (read, changed) = (at(123_456_789), at(987_654_321));
    let times = std::fs::FileTimes::new().set_accessed(read).set_modified(changed);
    std::fs::File::open(path).unwrap().set_times(times).unwrap();
    (read, changed)
}

#[test]
fn holes_hard_links_modes_and_times() {
    let d = Desk::new();
    let src = d.path("src");
    std::fs::create_dir_all(src.join("sub")).unwrap();
    let file = std::fs::File::create(src.join("sparse")).unwrap();
    file.set_len(3 << 30).unwrap();
    std::os::unix::fs::FileExt::write_all_at(&file, b"data", 1 << 30).unwrap();
    drop(file);
    std::fs::write(src.join("a"), "linked\n").unwrap();
    std::fs::hard_link(src.join("a"), src.join("sub/b")).unwrap();
    std::fs::hard_link(src.join("a"), src.join("z")).unwrap();
    let mode = std::fs::Permissions::from_mode(0o1751);
    std::fs::set_permissions(src.join("sub"), mode).unwrap();
    let times = ["sparse", "a", "sub"]
        .map(|name| (name, set_times(&src.join(name), 4_000_000_000 + name.len() as u64)));
    d.good("mkfs a.img --size 32m");
    let started = std::time::Instant::now();
    d.good("put -r a.img src /");
    d.e2fsck_is_clean("a.img");
    let listed = d.good("ls a.img /src/sub").out;
    assert!(listed.contains(" 3 ") && listed.contains(" b\n"), "{listed}");
    d.good("get -r a.img /src back");
    assert!(started.elapsed() < Duration::from_secs(60), "a hole was gone through");
    let back = d.path("back");
    let of = |name: &str| back.join(name).metadata().unwrap();
    assert_eq!(of("a").ino(), of("sub/b").ino());
    assert_eq!((of("a").ino(), of("z").nlink()), (of("z").ino(), 3));
    assert_eq!(of("sparse").len(), 3 << 30);
    assert!(of("sparse").blocks() < 1000, "{} blocks", of("sparse").blocks());
    assert_eq!(of("sub").mode() & 0o7777, 0o1751);
    for (name, (read, changed)) in times {
        let now = of(name);
        assert_eq!(now.modified().unwrap(), changed, "{name}");
        assert_eq!(now.accessed().unwrap(), read, "{name}");
    }
    let file = std::fs::File::open(back.join("sparse")).unwrap();
    let mut data = [0; 6];
    std::os::unix::fs::FileExt::read_exact_at(&file, &mut data, (1 << 30) - 1).unwrap();
    assert_eq!(&data, b"\0data\0");
    // Onto itself, both ways: the same again.
    d.good("put -r a.img src /");
    d.e2fsck_is_clean("a.img");
    d.good("get -r a.img /src back");
    assert_eq!((of("a").ino(), of("z").nlink()), (of("z").ino(), 3));
    assert!(!d.good("ls -R a.img /").out.contains(".steadfast-"));
}

/// What is there already ends as the source is, whatever it was.
#[test]
fn a_replaced_file_ends_as_the_source() {
    use rustix::fs::{XattrFlags, setxattr};
    let d = Desk::new();
    for (name, contents, mode) in [("old", "old contents\n", 0o4711), ("new", "new\n", 0o640)] {
        std::fs::write(d.path(name), contents).unwrap();
        let mode = std::fs::Permissions::from_mode(mode);
        std::fs::set_permissions(d.path(name), mode).unwrap();
    }
    if setxattr(d.path("old"), "user.old", b"1", XattrFlags::empty()).is_err() {
        println!("SKIPPED: no extended attributes here");
        return;
    }
    setxattr(d.path("new"), "user.new", b"2", XattrFlags::empty()).unwrap();
    d.good("mkfs a.img --size 8m");
    d.good("put a.img old /f");
    d.good("put a.img old /other");
    d.debugfs("a.img", &["link f second", "sif f links_count 2"]);
    d.good("put a.img new /f");
    d.e2fsck_is_clean("a.img");
    assert!(d.good("ls a.img /f").out.starts_with("-rw-r----- 1 "));
    d.good("get a.img /f back");
    let mut names = Vec::with_capacity(1000);
    rustix::fs::listxattr(d.path("back"), rustix::buffer::spare_capacity(&mut names)).unwrap();
    assert_eq!(names, b"user.new\0");
    // Its other name keeps what it had.
    assert_eq!(d.good("cat a.img /second").out, "old contents\n");
    // The way back: a file of the host that is there already.
    std::fs::hard_link(d.path("old"), d.path("old-too")).unwrap();
    d.good("get a.img /f old");
    assert_eq!(std::fs::read(d.path("old")).unwrap(), b"new\n");
    assert_eq!(d.path("old").metadata().unwrap().mode() & 0o7777, 0o640);
    assert_eq!(std::fs::read(d.path("old-too")).unwrap(), b"old contents\n");
}

/// There is no room for the old and the new one together.
#[test]
fn a_large_file_is_replaced_in_a_small_image() {
    let d = Desk::new();
    d.good("mkfs a.img --size 16m -b 1024");
    for fill in [1, 2] {
        std::fs::write(d.path("f"), vec![fill; 9 << 20]).unwrap();
        d.good("put a.img f /f");
        d.e2fsck_is_clean("a.img");
    }
    d.good("get a.img /f back");
    assert!(std::fs::read(d.path("back")).unwrap() == vec![2; 9 << 20]);
}

/// The target was there before: it is the caller's, whatever the image says of its own folder.
#[test]
fn a_target_folder_that_was_there_stays_whose_it_was() {
    let d = Desk::new();
    let mode = |name: &str| fs::metadata(d.path(name)).unwrap().permissions().mode() & 0o7777;
    for folder in ["src", "src/sub", "out", "out/src", "out/src/sub"] {
        fs::create_dir(d.path(folder)).unwrap();
        let mode = if folder.starts_with("src") { 0o777 } else { 0o750 };
        fs::set_permissions(d.path(folder), PermissionsExt::from_mode(mode)).unwrap();
    }
    d.good("mkfs t.img --size 8m -E root_perms=1777");
    d.good("put -r t.img src /");
    d.good("get -r t.img / out");
    // What the caller has named is filled; what is in it is copied.
    assert_eq!((mode("out"), mode("out/src"), mode("out/src/sub")), (0o750, 0o777, 0o777));
    fs::set_permissions(d.path("out/src"), PermissionsExt::from_mode(0o750)).unwrap();
    d.good("get -r t.img /src out");
    assert_eq!((mode("out"), mode("out/src")), (0o750, 0o750));
    d.good("get -r t.img /src new");
    assert_eq!(mode("new"), 0o777);
}

/// A file that does not fit does not cost the one at its place.
#[test]
fn a_full_image_keeps_the_old_file() {
    let d = Desk::new();
    fs::write(d.path("small"), vec![1; 5 << 20]).unwrap();
    fs::write(d.path("fits"), vec![2; 4 << 20]).unwrap();
    fs::write(d.path("large"), vec![3; 20 << 20]).unwrap();
    d.good("mkfs t.img --size 10m");
    d.good("put t.img small /f");
    let said = d.bad("put t.img large /f");
    assert!(said.err.contains("space"), "{}", said.err);
    d.good("get t.img /f out");
    assert!(fs::read(d.path("out")).unwrap() == fs::read(d.path("small")).unwrap());
    // There is no room for both; without the old one there is.
    d.good("put t.img fits /f");
    d.good("get t.img /f out");
    assert!(fs::read(d.path("out")).unwrap() == fs::read(d.path("fits")).unwrap());
    d.e2fsck_is_clean("t.img");
}

/// umount(8) returns before the kernel has detached the loop device that it no longer needs.
#[test]
fn a_loop_device_that_is_being_detached_is_waited_for_and_a_kept_one_is_not() {
    if !super::desk::root("a loop device that is being detached") {
        return;
    }
    let d = Desk::new();
    d.plain_image("t.img");
    std::fs::write(d.path("f"), "text").unwrap();
    let device = LoopDevice::attach(&d.path("t.img")).unwrap();
    let said = d.run("put t.img f /f");
    assert_eq!(said.status, Some(2), "{}", said.err);
    let name = device.path().display().to_string();
    assert!(said.err.contains(&format!("is attached to {name}")), "{}", said.err);
    // While it is open it is only marked to be detached.
    let user = std::fs::File::open(device.path()).unwrap();
    let limit = std::time::Duration::from_secs(60);
    let mut losetup = std::process::Command::new("losetup");
    steadfast_suite::run_ok(limit, losetup.args(["-d", &name])).unwrap();
    let closes = std::thread::spawn(move || {
        std::thread::sleep(std::time::Duration::from_millis(150));
        drop(user);
    });
    d.good("put t.img f /f");
    closes.join().unwrap();
    assert_eq!(d.good("cat t.img /f").out, "text");
}
