use std::fs::{File, Permissions};
use std::os::unix::fs::{FileExt, PermissionsExt, symlink};
use std::path::Path;

use steadfast_vfs::HostFs;

use super::*;

#[test]
fn a_tree_is_written_as_it_was_read() {
    let (from, to) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let at = |name: &str| from.path().join(name);
    std::fs::create_dir_all(at("a/b")).unwrap();
    std::fs::write(at("a/file"), "text").unwrap();
    std::fs::hard_link(at("a/file"), at("a/b/link")).unwrap();
    symlink("../a", at("a/sym")).unwrap();
    std::fs::set_permissions(at("a/b"), Permissions::from_mode(0o500)).unwrap();
    let sparse = File::create(at("sparse")).unwrap();
    sparse.set_len(10 << 20).unwrap();
    sparse.write_all_at(b"here", 5 << 20).unwrap();
    let read = |folder: &Path| Tree::read(&HostFs::open(folder).unwrap()).unwrap();
    let tree = read(from.path());
    tree.write_to(to.path()).unwrap();
    let again = read(to.path());
    assert_eq!(again.digest(), tree.digest());
    assert_eq!(again.nodes.len(), 6);
    let file = again.get(b"sparse").unwrap();
    assert_eq!(file.bytes((5 << 20) - 1, 6), b"\0here\0");
    assert!(file.pieces.iter().map(|(_, bytes)| bytes.len()).sum::<usize>() <= CHUNK);
    assert_eq!(again.get(b"a/file").unwrap().same_as.as_deref(), Some(&b"a/b/link"[..]));
    std::fs::write(to.path().join("a/file"), "teXT").unwrap();
    let changed = read(to.path());
    assert_ne!(changed.digest(), tree.digest());
    let differs =
        |path: &[u8]| first_difference(changed.get(path).unwrap(), tree.get(path).unwrap());
    assert_eq!((differs(b"a/file"), differs(b"sparse")), (Some(2), None));
    std::fs::set_permissions(at("a/b"), Permissions::from_mode(0o700)).unwrap();
}

#[test]
fn nothing_is_written_outside_of_the_folder() {
    let (from, to) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let outside = tempfile::tempdir().unwrap();
    std::fs::create_dir(from.path().join("a")).unwrap();
    std::fs::write(from.path().join("a/x"), "text").unwrap();
    symlink(outside.path(), from.path().join("b")).unwrap();
    let mut tree = Tree::read(&HostFs::open(from.path()).unwrap()).unwrap();
    // As a directory with one name twice.
    let link = tree.nodes[&b"b"[..]].clone();
    tree.nodes.insert(b"a".to_vec(), link);
    tree.nodes.remove(&b"b"[..]);
    let refused = tree.write_to(to.path()).unwrap_err();
    assert!(refused.to_string().contains("a/x"), "{refused}");
    assert_eq!(std::fs::read_dir(outside.path()).unwrap().count(), 0);
    let file = tree.nodes[&b"a/x"[..]].clone();
    for path in ["../x", "x/../../y", "/etc/x"] {
        let nodes = [(path.as_bytes().to_vec(), file.clone())].into();
        assert!(Tree { nodes }.write_to(to.path()).is_err(), "{path}");
    }
}

/// Nobody else may enter it meanwhile, and not at all if something is missing.
#[test]
fn a_folder_is_the_callers_alone_until_all_is_there() {
    let (from, to) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    std::fs::write(from.path().join("file"), "text").unwrap();
    let tree = Tree::read(&HostFs::open(from.path()).unwrap()).unwrap();
    let mode = |at: &Path| std::fs::metadata(at).unwrap().permissions().mode() & 0o7777;
    std::fs::set_permissions(to.path(), Permissions::from_mode(0o711)).unwrap();
    tree.write_to(to.path()).unwrap();
    assert_eq!(mode(to.path()), 0o711);
    // What holds anything is nobody's to change.
    let full = tree.write_to(to.path()).unwrap_err();
    assert_eq!((full.kind(), mode(to.path())), (std::io::ErrorKind::DirectoryNotEmpty, 0o711));
    assert_eq!(std::fs::read_to_string(to.path().join("file")).unwrap(), "text");
    let (mut bad, empty) = (tree.clone(), tempfile::tempdir().unwrap());
    bad.nodes.insert(b"no/folder".to_vec(), tree.nodes[&b"file"[..]].clone());
    assert!(bad.write_to(empty.path()).is_err());
    assert_eq!((std::fs::read_dir(empty.path()).unwrap().count(), mode(empty.path())), (0, 0o700));
}

/// None of its names is there to be linked to.
#[test]
fn a_socket_with_two_names_is_left_out() {
    let (from, to) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let at = |name: &str| from.path().join(name);
    let _socket = std::os::unix::net::UnixListener::bind(at("sock.tmp")).unwrap();
    std::fs::hard_link(at("sock.tmp"), at("sock")).unwrap();
    std::fs::write(at("file"), "text").unwrap();
    let tree = Tree::read(&HostFs::open(from.path()).unwrap()).unwrap();
    assert_eq!(tree.get(b"sock.tmp").unwrap().same_as.as_deref(), Some(&b"sock"[..]));
    tree.write_to(to.path()).unwrap();
    let names = std::fs::read_dir(to.path()).unwrap().map(|entry| entry.unwrap().file_name());
    assert_eq!(names.collect::<Vec<_>>(), ["file"]);
}

/// Each name is a step of its own: the path is longer than a call takes.
#[test]
fn a_deep_tree_is_written_like_another() {
    let to = tempfile::tempdir().unwrap();
    let from = tempfile::tempdir().unwrap();
    std::fs::create_dir(from.path().join("d")).unwrap();
    std::fs::write(from.path().join("d/file"), "text").unwrap();
    let shallow = Tree::read(&HostFs::open(from.path()).unwrap()).unwrap();
    let [folder, file] = [&b"d"[..], b"d/file"].map(|path| shallow.nodes[path].clone());
    let mut nodes = std::collections::BTreeMap::new();
    let mut path = vec![b'n'; 250];
    for _ in 0..20 {
        nodes.insert(path.clone(), folder.clone());
        path.push(b'/');
        path.extend([b'n'; 250]);
    }
    nodes.insert(path, file.clone());
    let mut link = file;
    link.same_as = nodes.keys().next_back().cloned();
    nodes.insert(b"second".to_vec(), link);
    let tree = Tree { nodes };
    tree.write_to(to.path()).unwrap();
    assert_eq!(std::fs::read_to_string(to.path().join("second")).unwrap(), "text");
    let again = Tree::read(&HostFs::open(to.path()).unwrap()).unwrap();
    assert_eq!(again.nodes.len(), 22);
}

#[test]
fn privileges_are_left_behind() {
    let from = tempfile::tempdir().unwrap();
    let file = from.path().join("file");
    std::fs::write(&file, "text").unwrap();
    std::fs::set_permissions(&file, Permissions::from_mode(0o6755)).unwrap();
    let tree = Tree::read(&HostFs::open(from.path()).unwrap()).unwrap();
    let attr = |tree: &Tree| tree.get(b"file").unwrap().attr;
    let (own, mine) = (attr(&tree), attr(&tree.without_privileges(Some((7, 8)))));
    assert_eq!((mine.mode & 0o7777, mine.uid, mine.gid), (0o755, 7, 8));
    let kept = attr(&tree.without_privileges(None));
    assert_eq!((kept.mode & 0o7777, kept.uid, kept.gid), (0o755, own.uid, own.gid));
}

#[test]
fn digests_do_not_depend_on_the_pieces() {
    let whole = vec![(0, Bytes::from(vec![7; 3000]))];
    let parts = vec![
        (0, Bytes::from(vec![7; 700])),
        (700, Bytes::from(vec![7; 2300])),
        (4096, Bytes::from(vec![0; 512])),
    ];
    assert_eq!(digest(5000, &whole), digest(5000, &parts));
    assert_ne!(digest(5000, &whole), digest(5001, &parts));
}

/// Files of terabytes are compared by what they hold, and bytes by their digest, piece by piece.
#[test]
fn holes_of_terabytes_cost_nothing() {
    const SIZE: u64 = 4 << 40;
    let from = tempfile::tempdir().unwrap();
    let make = |name: &str, end: &[u8]| {
        let file = File::create(from.path().join(name)).unwrap();
        file.set_len(SIZE).unwrap();
        file.write_all_at(end, SIZE - 8).unwrap();
    };
    make("one", b"an end");
    make("other", b"an End");
    let tree = Tree::read(&HostFs::open(from.path()).unwrap()).unwrap();
    let (one, other) = (tree.get(b"one").unwrap(), tree.get(b"other").unwrap());
    assert_eq!(first_difference(one, other), Some(SIZE - 8 + 3));
    assert_eq!(first_difference(one, one), None);
    for len in [0, 1, 8, 13, CHUNK as u64 - 3, CHUNK as u64, 2 * CHUNK as u64 + 11] {
        let bytes = one.bytes(SIZE - len, len);
        let holds = Contents { size: len, digest: Digest::of(&bytes) };
        assert!(one.holds(SIZE - len, holds), "{len}");
        assert_eq!(other.holds(SIZE - len, holds), len < 8, "{len}");
        assert!(!one.holds(SIZE - len + 1, holds), "{len}");
    }
    assert!(!one.holds(u64::MAX, Contents { size: 2, digest: 0 }));
}
