//! `HostFs` over temporary folders.

use std::os::unix::fs::{MetadataExt, PermissionsExt};

use bytes::Bytes;
use steadfast_vfs::{
    Fallocate, FileSystem, FileType, FsError, HostFs, Ino, NewNode, OpenFlags, RenameFlags, SeekTo,
    SetAttr, SetTime, SetXattr, Timestamp, path,
};

fn folder() -> (tempfile::TempDir, HostFs) {
    let dir = tempfile::tempdir().unwrap();
    let fs = HostFs::open(dir.path()).unwrap();
    (dir, fs)
}

const RW: OpenFlags = OpenFlags::READ.union(OpenFlags::WRITE);

fn put(fs: &HostFs, dir: Ino, name: &[u8], data: &'static [u8]) -> Ino {
    let (attr, fh) = fs.create(dir, name, NewNode::default(), RW).unwrap();
    assert_eq!(fs.write(fh, 0, Bytes::from_static(data)).unwrap(), data.len());
    fs.release(fh).unwrap();
    attr.ino
}

fn get(fs: &HostFs, ino: Ino) -> Bytes {
    let fh = fs.open(ino, OpenFlags::READ).unwrap();
    let data = fs.read(fh, 0, 1 << 30).unwrap();
    fs.release(fh).unwrap();
    data
}

#[test]
fn writes_reads_and_truncates() {
    let (dir, fs) = folder();
    let ino = put(&fs, fs.root(), b"f", b"hello world");
    assert_eq!(std::fs::read(dir.path().join("f")).unwrap(), b"hello world");
    let fh = fs.open(ino, RW).unwrap();
    assert_eq!(fs.read(fh, 6, 100).unwrap(), "world".as_bytes());
    assert_eq!(fs.read(fh, 11, 100).unwrap().len(), 0);
    fs.fsync(fh, false).unwrap();
    fs.fsync(fh, true).unwrap();
    let set = SetAttr { size: Some(5), ..SetAttr::default() };
    assert_eq!(fs.setattr(ino, set).unwrap().size, 5);
    assert_eq!(fs.read(fh, 0, 100).unwrap(), "hello".as_bytes());
    fs.release(fh).unwrap();
    assert_eq!(fs.release(fh), Err(FsError::BadHandle));
    fs.fsyncdir(fs.root()).unwrap();
    fs.sync().unwrap();
    assert!(fs.statfs().unwrap().blocks > 0);
}

#[test]
fn append_and_truncate_on_open() {
    let (_dir, fs) = folder();
    let ino = put(&fs, fs.root(), b"f", b"one");
    let fh = fs.open(ino, OpenFlags::WRITE | OpenFlags::APPEND).unwrap();
    fs.write(fh, 0, Bytes::from_static(b"two")).unwrap();
    assert_eq!(get(&fs, ino), "onetwo".as_bytes());
    let again = fs.open(ino, OpenFlags::WRITE | OpenFlags::TRUNCATE).unwrap();
    assert_eq!(fs.getattr(ino).unwrap().size, 0);
    fs.release(fh).unwrap();
    fs.release(again).unwrap();
}

#[test]
fn directories_links_and_symlinks() {
    let (dir, fs) = folder();
    let sub = fs.mkdir(fs.root(), b"sub", NewNode { mode: 0o755, ..NewNode::default() }).unwrap();
    assert_eq!((sub.kind, sub.mode), (FileType::Directory, 0o755));
    let file = put(&fs, sub.ino, b"file", b"x");
    assert_eq!(fs.link(file, fs.root(), b"other").unwrap().nlink, 2);
    let link = fs.symlink(fs.root(), b"sym", b"sub/file", NewNode::default()).unwrap();
    assert_eq!(fs.readlink(link.ino).unwrap(), b"sub/file");
    assert_eq!(path::resolve(&fs, b"/sym", true).unwrap().ino, file);
    assert_eq!(path::resolve(&fs, b"/sub/../other", true).unwrap().ino, file);
    let names: Vec<_> = path::list(&fs, fs.root()).unwrap().into_iter().map(|e| e.name).collect();
    assert_eq!(names, [&b"other"[..], b"sub", b"sym"]);
    assert_eq!(fs.readdir(fs.root(), 0).unwrap().len(), 5);

    assert_eq!(fs.rmdir(fs.root(), b"sub"), Err(FsError::NotEmpty));
    fs.unlink(sub.ino, b"file").unwrap();
    assert_eq!(fs.getattr(file).unwrap().nlink, 1);
    assert_eq!(get(&fs, file), "x".as_bytes());
    fs.rmdir(fs.root(), b"sub").unwrap();
    assert!(!dir.path().join("sub").exists());
    assert_eq!(fs.getattr(sub.ino), Err(FsError::NotFound));
}

#[test]
fn an_unlinked_file_lives_while_it_is_open() {
    let (_dir, fs) = folder();
    let (attr, fh) = fs.create(fs.root(), b"f", NewNode::default(), RW).unwrap();
    fs.unlink(fs.root(), b"f").unwrap();
    fs.write(fh, 0, Bytes::from_static(b"still")).unwrap();
    assert_eq!(fs.getattr(attr.ino).unwrap().size, 5);
    let set = SetAttr { size: Some(2), ..SetAttr::default() };
    assert_eq!(fs.setattr(attr.ino, set).unwrap().size, 2);
    fs.release(fh).unwrap();
    assert_eq!(fs.getattr(attr.ino), Err(FsError::NotFound));
}

#[test]
fn renames() {
    let (_dir, fs) = folder();
    let root = fs.root();
    let (a, b) = (put(&fs, root, b"a", b"A"), put(&fs, root, b"b", b"B"));
    let sub = fs.mkdir(root, b"sub", NewNode { mode: 0o755, ..NewNode::default() }).unwrap().ino;
    let deep = put(&fs, sub, b"deep", b"D");

    let no = RenameFlags::NO_REPLACE;
    assert_eq!(fs.rename((root, b"a"), (root, b"b"), no), Err(FsError::Exists));
    fs.rename((root, b"a"), (root, b"b"), RenameFlags::EXCHANGE).unwrap();
    assert_eq!(fs.lookup(root, b"a").unwrap().ino, b);
    assert_eq!((get(&fs, a), get(&fs, b)), (Bytes::from("A"), Bytes::from("B")));

    fs.rename((root, b"sub"), (root, b"moved"), RenameFlags::empty()).unwrap();
    assert_eq!(get(&fs, deep), "D".as_bytes());
    fs.rename((root, b"a"), (root, b"b"), RenameFlags::empty()).unwrap();
    assert_eq!(fs.getattr(a), Err(FsError::NotFound));
    assert_eq!(get(&fs, b), "B".as_bytes());
}

#[test]
fn attributes() {
    let (dir, fs) = folder();
    let ino = put(&fs, fs.root(), b"f", b"");
    let at = Timestamp { secs: 1_000_000_000, nanos: 42 };
    let set = SetAttr { mode: Some(0o600), mtime: Some(SetTime::At(at)), ..SetAttr::default() };
    let attr = fs.setattr(ino, set).unwrap();
    assert_eq!((attr.mode, attr.mtime), (0o600, at));
    let meta = std::fs::metadata(dir.path().join("f")).unwrap();
    assert_eq!((meta.permissions().mode() & 0o7777, meta.mtime()), (0o600, at.secs));
    assert_eq!(meta.ino(), ino.0);
}

#[test]
fn nothing_leads_out_of_the_folder() {
    let (dir, fs) = folder();
    let inside = dir.path().join("inside");
    std::fs::create_dir(&inside).unwrap();
    std::fs::write(dir.path().join("secret"), "secret").unwrap();
    let inner = HostFs::open(&inside).unwrap();
    let root = inner.root();
    assert_eq!(inner.lookup(root, b"..").unwrap().ino, root);
    for name in [&b"../secret"[..], b"/etc/passwd", b"", b"a\0b", b"a/b"] {
        assert!(matches!(inner.lookup(root, name), Err(FsError::Invalid { .. })));
    }
    // A directory swapped for a link to another folder is not followed.
    let sub = inner.mkdir(root, b"sub", NewNode { mode: 0o755, ..NewNode::default() }).unwrap();
    std::fs::remove_dir(inside.join("sub")).unwrap();
    std::os::unix::fs::symlink("..", inside.join("sub")).unwrap();
    assert!(inner.lookup(sub.ino, b"secret").is_err());
    // Another file in a known file's place is not taken for it.
    let f = put(&fs, fs.root(), b"f", b"one");
    std::fs::write(dir.path().join("g"), "two").unwrap();
    std::fs::rename(dir.path().join("g"), dir.path().join("f")).unwrap();
    assert_eq!(fs.open(f, OpenFlags::READ), Err(FsError::NotFound));
}

#[test]
fn special_files_are_not_opened() {
    let (dir, fs) = folder();
    let fifo = dir.path().join("fifo");
    assert!(std::process::Command::new("mkfifo").arg(&fifo).status().unwrap().success());
    let attr = fs.lookup(fs.root(), b"fifo").unwrap();
    assert_eq!(attr.kind, FileType::Fifo);
    assert!(matches!(fs.open(attr.ino, OpenFlags::READ), Err(FsError::Invalid { .. })));
    assert_eq!(fs.open(fs.root(), OpenFlags::READ), Err(FsError::IsDirectory));
}

/// Direct I/O where the temporary folder's file system has it; where not, a clear refusal that
/// leaves no file behind.
#[test]
fn direct_io_is_aligned_or_refused() {
    let (dir, fs) = folder();
    let flags = RW | OpenFlags::DIRECT | OpenFlags::SYNC;
    let (attr, fh) = match fs.create(fs.root(), b"d", NewNode::default(), flags) {
        Ok(made) => made,
        Err(e) => {
            assert!(matches!(&e, FsError::Unsupported { what } if what.contains("O_DIRECT")));
            assert!(!dir.path().join("d").exists());
            return;
        }
    };
    // Data at an odd address.
    let data = Bytes::from(vec![7_u8; 8193]).slice(1..);
    assert_eq!(fs.write(fh, 0, data.clone()).unwrap(), 8192);
    assert_eq!(fs.read(fh, 0, 8192).unwrap(), data);
    assert_eq!(fs.read(fh, 4096, 1 << 30).unwrap().len(), 4096);
    assert_eq!(fs.getattr(attr.ino).unwrap().size, 8192);
    let odd = fs.write(fh, 3, Bytes::from_static(b"odd"));
    assert!(matches!(odd, Ok(3) | Err(FsError::Invalid { .. })), "{odd:?}");
    fs.release(fh).unwrap();
}

#[test]
fn a_number_never_stands_for_another_file() {
    let (dir, fs) = folder();
    let root = fs.root();
    let old = put(&fs, root, b"f", b"old");
    // Somebody else replaces the name: the number is of the file that is gone.
    std::fs::write(dir.path().join("new"), "new").unwrap();
    std::fs::rename(dir.path().join("new"), dir.path().join("f")).unwrap();
    assert_eq!(fs.getattr(old), Err(FsError::NotFound));
    assert_eq!(fs.open(old, OpenFlags::READ), Err(FsError::NotFound));
    assert_eq!(fs.setattr(old, SetAttr { mode: Some(0), ..SetAttr::default() }).ok(), None);
    assert!(fs.setxattr(old, b"user.a", b"x", SetXattr::Any).is_err());
    let new = fs.lookup(root, b"f").unwrap().ino;
    assert_ne!(new, old);
    assert_eq!(get(&fs, new), "new".as_bytes());
    // A folder that is moved away takes what is below along; its old place is somebody else's.
    let sub = fs.mkdir(root, b"sub", NewNode { mode: 0o755, ..NewNode::default() }).unwrap().ino;
    let below = put(&fs, sub, b"below", b"below");
    std::fs::rename(dir.path().join("sub"), dir.path().join("moved")).unwrap();
    std::fs::create_dir(dir.path().join("sub")).unwrap();
    std::fs::write(dir.path().join("sub/below"), "another").unwrap();
    for result in [fs.getattr(below).map(drop), fs.open(below, OpenFlags::READ).map(drop)] {
        assert_eq!(result, Err(FsError::NotFound));
    }
    // Looked up anew it is found.
    let moved = fs.lookup(root, b"moved").unwrap().ino;
    let below = fs.lookup(moved, b"below").unwrap().ino;
    assert_eq!(get(&fs, below), "below".as_bytes());
}

#[test]
fn names_that_are_none_are_refused_by_every_call() {
    let (dir, fs) = folder();
    let (root, node) = (fs.root(), NewNode { mode: 0o755, ..NewNode::default() });
    let file = put(&fs, root, b"f", b"x");
    let flags = RenameFlags::empty();
    let long = [b'n'; 256];
    for name in [&b""[..], b".", b"..", b"a/b", b"/f", b"a\0", &long] {
        assert!(fs.create(root, name, node, RW).is_err(), "{name:?}");
        assert!(fs.mkdir(root, name, node).is_err(), "{name:?}");
        assert!(fs.symlink(root, name, b"to", node).is_err(), "{name:?}");
        assert!(fs.mknod(root, name, (FileType::Fifo, 0), node).is_err(), "{name:?}");
        assert!(fs.link(file, root, name).is_err(), "{name:?}");
        assert!(fs.unlink(root, name).is_err(), "{name:?}");
        assert!(fs.rmdir(root, name).is_err(), "{name:?}");
        assert!(fs.rename((root, b"f"), (root, name), flags).is_err(), "{name:?}");
        assert!(fs.rename((root, name), (root, b"g"), flags).is_err(), "{name:?}");
    }
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1);
    // The longest there is.
    fs.mkdir(root, &long[..255], node).unwrap();
    assert_eq!(fs.lookup(root, &long).err().map(|e| e.errno()), Some(36));
}

#[test]
fn holes_and_data_are_where_they_were_made() {
    let (_dir, fs) = folder();
    let ino = put(&fs, fs.root(), b"f", b"");
    let fh = fs.open(ino, RW).unwrap();
    fs.write(fh, 1 << 20, Bytes::from_static(&[7; 4096])).unwrap();
    let set = SetAttr { size: Some(4 << 20), ..SetAttr::default() };
    fs.setattr(ino, set).unwrap();
    assert_eq!(fs.seek(fh, 0, SeekTo::Data), Ok(1 << 20));
    assert_eq!(fs.seek(fh, 1 << 20, SeekTo::Hole), Ok((1 << 20) + 4096));
    for at in [(1 << 20) + 4096, 4 << 20, 1 << 40] {
        assert_eq!(fs.seek(fh, at, SeekTo::Data), Err(FsError::NoAddress), "{at}");
    }
    fs.fallocate(fh, Fallocate::PunchHole, 1 << 20, 4096).unwrap();
    assert_eq!(fs.seek(fh, 0, SeekTo::Data), Err(FsError::NoAddress));
    assert_eq!(fs.read(fh, 1 << 20, 16).unwrap(), [0; 16].as_slice());
    // Offsets that no file has.
    for at in [u64::MAX, u64::MAX >> 1] {
        assert!(fs.write(fh, at, Bytes::from_static(b"x")).is_err(), "{at}");
        assert!(fs.read(fh, at, 16).is_ok_and(|b| b.is_empty()) || fs.read(fh, at, 16).is_err());
    }
    assert_eq!(fs.getattr(ino).unwrap().size, 4 << 20);
    fs.release(fh).unwrap();
}

#[test]
fn a_large_folder_is_read_part_by_part_while_it_changes() {
    let (dir, fs) = folder();
    for n in 0..3000 {
        std::fs::write(dir.path().join(format!("{n:04}")), "").unwrap();
    }
    let (mut from, mut seen) = (0, std::collections::BTreeSet::new());
    loop {
        let part = fs.readdir(fs.root(), from).unwrap();
        let Some(last) = part.last() else { break };
        assert!(from == 0 || last.next != from, "it moves on");
        from = last.next;
        for entry in part.into_iter().filter(|e| e.name.len() == 4) {
            assert!(seen.insert(entry.name.clone()), "{:?} twice", entry.name);
            // What was read may go: the rest is still met.
            fs.unlink(fs.root(), &entry.name).unwrap();
        }
    }
    assert_eq!(seen.len(), 3000);
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
}
