//! Names that are refused, and what names do to attributes: the same with us and the kernel.

use steadfast_vfs::{
    Attr, FileSystem, FileType, FsError, Ino, NewNode, OpenFlags, RenameFlags, Result, SetAttr,
    SetTime, Timestamp,
};

use crate::image::Image;
use crate::stage::{Kernel, Ours, Stage};

const FOLDER: NewNode = NewNode { mode: 0o755, uid: 0, gid: 0, umask: 0 };

fn create(fs: &dyn FileSystem, dir: Ino, name: &[u8], node: NewNode) -> Result<Attr> {
    let (attr, fh) = fs.create(dir, name, node, OpenFlags::WRITE)?;
    fs.release(fh).unwrap();
    Ok(attr)
}

fn number<T>(outcome: Result<T>) -> i32 {
    outcome.map_or_else(|e| e.errno(), |_| 0)
}

/// Error numbers of operations with bad names, wrong types and things in the way.
fn refusals(fs: &dyn FileSystem) -> Vec<(String, i32)> {
    let root = fs.root();
    let dir = fs.mkdir(root, b"dir", FOLDER).unwrap().ino;
    let inner = fs.mkdir(dir, b"inner", FOLDER).unwrap().ino;
    let file = create(fs, root, b"file", NewNode::default()).unwrap().ino;
    fs.symlink(root, b"link", b"file", FOLDER).unwrap();
    let no_flags = RenameFlags::empty();
    let mut all = Vec::new();
    let mut note = |what: String, number: i32| all.push((what, number));
    let longest = [b'x'; 255];
    let too_long = [b'x'; 256];
    for name in [&b"nonesuch"[..], &too_long, b"file", b"dir", b"link"] {
        let shown = String::from_utf8_lossy(&name[..name.len().min(10)]).into_owned();
        note(format!("lookup {shown}"), number(fs.lookup(root, name)));
        note(format!("lookup {shown} in a file"), number(fs.lookup(file, name)));
        note(format!("unlink {shown} in a file"), number(fs.unlink(file, name)));
        note(format!("rmdir {shown}"), number(fs.rmdir(root, name)));
        if name != b"nonesuch" {
            note(format!("create {shown}"), number(create(fs, root, name, FOLDER)));
            note(format!("mkdir {shown}"), number(fs.mkdir(root, name, FOLDER)));
            note(format!("symlink {shown}"), number(fs.symlink(root, name, b"t", FOLDER)));
            note(format!("link {shown}"), number(fs.link(file, root, name)));
        }
        for flags in [no_flags, RenameFlags::NO_REPLACE, RenameFlags::EXCHANGE] {
            let onto_dir = fs.rename((root, name), (dir, b"inner"), flags);
            if name != b"dir" || flags != no_flags {
                note(format!("rename {shown} onto inner, {flags:?}"), number(onto_dir));
            }
            let into_itself = fs.rename((root, b"dir"), (inner, b"new"), flags);
            note(format!("rename into itself, {flags:?}"), number(into_itself));
        }
    }
    note("unlink a directory".into(), number(fs.unlink(root, b"dir")));
    note("rmdir what is not empty".into(), number(fs.rmdir(root, b"dir")));
    note("link a directory".into(), number(fs.link(dir, root, b"again")));
    note("mkdir with the longest name".into(), number(fs.mkdir(root, &longest, FOLDER)));
    note("no target".into(), number(fs.symlink(root, b"empty", b"", FOLDER)));
    note("long target".into(), number(fs.symlink(root, b"l", &[b't'; 1023], FOLDER)));
    note("longer target".into(), number(fs.symlink(root, b"m", &[b't'; 1024], FOLDER)));
    note("readlink of a file".into(), number(fs.readlink(file)));
    all
}

#[test]
fn what_the_kernel_refuses_we_refuse() {
    let image = || Image::mke2fs(16 << 20, &["-b", "1024"]);
    let (ours, kernel) = (Ours::mount(image()), Kernel::mount(image()));
    for (ours, kernel) in refusals(ours.fs()).into_iter().zip(refusals(kernel.fs())) {
        assert_eq!(ours, kernel);
    }
    ours.unmount().assert_clean();
}

#[test]
fn dots_slashes_and_nul_are_no_names() {
    let ours = Ours::mount(Image::mke2fs(16 << 20, &[]));
    let fs = ours.fs();
    let root = fs.root();
    for name in [&b"."[..], b".."] {
        assert_eq!(create(fs, root, name, FOLDER), Err(FsError::Exists));
        assert_eq!(fs.mkdir(root, name, FOLDER), Err(FsError::Exists));
        assert_eq!(fs.unlink(root, name), Err(FsError::IsDirectory));
        for (from, to) in [(name, &b"x"[..]), (b"x", name)] {
            let refused = fs.rename((root, from), (root, to), RenameFlags::empty());
            assert!(matches!(refused, Err(FsError::Busy { .. })), "{refused:?}");
        }
        assert_eq!(fs.lookup(root, name).map(|a| a.ino), Ok(root));
    }
    assert!(matches!(fs.rmdir(root, b"."), Err(FsError::Invalid { .. })));
    assert_eq!(fs.rmdir(root, b".."), Err(FsError::NotEmpty));
    for name in [&b"a/b"[..], b"a\0b", b"/", b"\0"] {
        let refused = create(fs, root, name, FOLDER);
        assert!(matches!(refused, Err(FsError::Invalid { .. })), "{refused:?}");
        let refused = fs.symlink(root, name, b"t", FOLDER);
        assert!(matches!(refused, Err(FsError::Invalid { .. })), "{refused:?}");
    }
    let refused = fs.symlink(root, b"l", b"a\0b", FOLDER);
    assert!(matches!(refused, Err(FsError::Invalid { .. })), "{refused:?}");
    ours.unmount().assert_clean();
}

/// Which of mtime and ctime an operation moves, for each of some inodes.
fn moved<T>(
    fs: &dyn FileSystem,
    inos: &[Ino],
    operation: impl FnOnce() -> Result<T>,
) -> Vec<Option<(bool, bool)>> {
    let long_ago = Timestamp { secs: 1000, nanos: 0 };
    let set = SetAttr { mtime: Some(SetTime::At(long_ago)), ..SetAttr::default() };
    let before: Vec<_> = inos.iter().map(|ino| fs.setattr(*ino, set).unwrap().ctime).collect();
    // A tick of the clock of either.
    std::thread::sleep(std::time::Duration::from_millis(15));
    operation().unwrap();
    let after = inos.iter().zip(before).map(|(ino, ctime)| {
        let attr = fs.getattr(*ino).ok()?;
        Some((attr.mtime != long_ago, attr.ctime != ctime))
    });
    after.collect()
}

fn moved_by_all(fs: &dyn FileSystem) -> Vec<Vec<Option<(bool, bool)>>> {
    let folder = |dir, name: &[u8]| fs.mkdir(dir, name, FOLDER).unwrap().ino;
    let (a, b) = (folder(fs.root(), b"a"), folder(fs.root(), b"b"));
    let sub = folder(a, b"sub");
    let file = create(fs, a, b"file", NewNode::default()).unwrap().ino;
    let other = create(fs, b, b"other", NewNode::default()).unwrap().ino;
    fs.link(other, b, b"other2").unwrap();
    let all = [a, b, sub, file, other];
    let rename =
        |from, name: &[u8], to, new: &[u8], flags| fs.rename((from, name), (to, new), flags);
    let none = RenameFlags::empty();
    vec![
        moved(fs, &all, || create(fs, a, b"new", NewNode::default())),
        moved(fs, &all, || fs.unlink(a, b"new")),
        moved(fs, &all, || fs.mkdir(a, b"newdir", FOLDER)),
        moved(fs, &all, || fs.rmdir(a, b"newdir")),
        moved(fs, &all, || fs.symlink(a, b"sym", b"t", FOLDER)),
        moved(fs, &all, || fs.link(file, b, b"file2")),
        moved(fs, &all, || fs.unlink(b, b"file2")),
        moved(fs, &all, || rename(a, b"sub", b, b"sub", none)),
        moved(fs, &all, || rename(a, b"file", b, b"other", none)),
        moved(fs, &all, || rename(b, b"other", b, b"other2", RenameFlags::EXCHANGE)),
        moved(fs, &all, || rename(b, b"sub", a, b"sym", RenameFlags::EXCHANGE)),
    ]
}

#[test]
fn times_move_as_with_the_kernel() {
    let image = || Image::mke2fs(16 << 20, &[]);
    let (ours, kernel) = (Ours::mount(image()), Kernel::mount(image()));
    assert_eq!(moved_by_all(ours.fs()), moved_by_all(kernel.fs()));
}

#[test]
fn a_set_group_id_directory_hands_its_group_on() {
    let ours = Ours::mount(Image::mke2fs(16 << 20, &[]));
    let fs = ours.fs();
    let dir =
        fs.mkdir(fs.root(), b"dir", NewNode { mode: 0o2775, uid: 7, gid: 70, umask: 0 }).unwrap();
    let file =
        create(fs, dir.ino, b"file", NewNode { mode: 0o640, uid: 8, gid: 80, umask: 0 }).unwrap();
    assert_eq!((file.uid, file.gid, file.mode), (8, 70, 0o640));
    let sub =
        fs.mkdir(dir.ino, b"sub", NewNode { mode: 0o755, uid: 8, gid: 80, umask: 0 }).unwrap();
    assert_eq!((sub.uid, sub.gid, sub.mode), (8, 70, 0o2755));
    let link =
        fs.symlink(dir.ino, b"link", b"t", NewNode { mode: 0, uid: 8, gid: 80, umask: 0 }).unwrap();
    assert_eq!((link.kind, link.gid, link.mode), (FileType::Symlink, 70, 0o777));
    ours.unmount().assert_clean();
}

#[test]
fn a_failed_operation_changes_nothing() {
    // 16 inodes, of which 5 are free, and hardly a block.
    let ours =
        Ours::mount(Image::mke2fs(2 << 20, &["-b", "1024", "-N", "16", "-O", "^has_journal"]));
    let fs = ours.fs();
    let root = fs.root();
    let made = (0..20)
        .take_while(|i| create(fs, root, format!("f{i}").as_bytes(), NewNode::default()).is_ok());
    let made = made.count();
    assert!(made > 0 && made < 16);
    let before = (fs.getattr(root).unwrap(), fs.statfs().unwrap());
    let full = fs.mkdir(root, b"one more", FOLDER);
    assert!(matches!(full, Err(FsError::NoSpace { what: "inodes" })), "{full:?}");
    assert_eq!(fs.lookup(root, b"one more"), Err(FsError::NotFound));
    assert_eq!((fs.getattr(root).unwrap(), fs.statfs().unwrap()), before);
    ours.unmount().assert_clean();
}
