//! Paths over a folder of the host, which are also what the kernel makes of them.

use std::fs;
use std::os::unix::fs::symlink;

use super::*;
use crate::HostFs;

fn folder() -> (tempfile::TempDir, HostFs) {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    fs::create_dir_all(at("a/b/c")).unwrap();
    fs::write(at("a/file"), "x").unwrap();
    symlink("../file", at("a/b/up")).unwrap();
    symlink("/a/b", at("absolute")).unwrap();
    symlink("nowhere", at("dangling")).unwrap();
    symlink("loop", at("loop")).unwrap();
    symlink("../../../../etc", at("out")).unwrap();
    let host = HostFs::open(folder.path()).unwrap();
    (folder, host)
}

fn path_of(host: &HostFs, path: &str) -> Result<String> {
    let place = place(host, path.as_bytes(), true)?;
    Ok(String::from_utf8(place.path()).unwrap())
}

#[test]
fn links_and_dots_are_followed_inside() {
    let (_folder, host) = folder();
    for (path, leads_to) in [
        ("", "/"),
        ("/..//.", "/"),
        ("a/b/../file", "/a/file"),
        ("a/b/up", "/a/file"),
        ("absolute/up", "/a/file"),
        ("absolute/c/../..", "/a"),
        ("../../a", "/a"),
        ("dangling", "/nowhere"),
        ("a/new", "/a/new"),
    ] {
        assert_eq!(path_of(&host, path).as_deref(), Ok(leads_to), "{path}");
    }
    // No path leads out: there is no "etc" inside.
    assert_eq!(path_of(&host, "out").as_deref(), Ok("/etc"));
    assert_eq!(resolve(&host, b"out", true), Err(FsError::NotFound));
    assert_eq!(resolve(&host, b"out/passwd", true), Err(FsError::NotFound));
    let link = resolve(&host, b"absolute", false).unwrap();
    assert_eq!(link.kind, FileType::Symlink);
    assert_eq!(resolve(&host, b"absolute/", false).unwrap().kind, FileType::Directory);
}

#[test]
fn wrong_paths_are_refused() {
    let (_folder, host) = folder();
    for (path, error) in [
        ("a/file/", FsError::NotDirectory),
        ("a/file/x", FsError::NotDirectory),
        ("a/file/..", FsError::NotDirectory),
        ("loop", FsError::Loop),
        ("none/x", FsError::NotFound),
        ("a\0b", FsError::Invalid { what: "NUL in the path" }),
    ] {
        assert_eq!(path_of(&host, path), Err(error), "{path}");
    }
}
