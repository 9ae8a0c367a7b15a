use bytes::Bytes;
use steadfast_vfs::path::list;
use steadfast_vfs::{
    Attr, Fallocate, FileSystem, FileType, FsError, HostFs, Ino, NewNode, OpenFlags, RenameFlags,
    SeekTo, SetAttr, SetXattr,
};

use super::*;

/// A tree of files with these contents; a path that ends in '/' is a directory.
fn tree(files: &[(&str, &str)]) -> Tree {
    let folder = tempfile::tempdir().unwrap();
    for (path, text) in files {
        let at = folder.path().join(path);
        std::fs::create_dir_all(at.parent().unwrap()).unwrap();
        match path.ends_with('/') {
            true => std::fs::create_dir_all(at).unwrap(),
            false => std::fs::write(at, text).unwrap(),
        }
    }
    Tree::read(&HostFs::open(folder.path()).unwrap()).unwrap()
}

struct Judge {
    fs: JudgeFs,
    folder: u64,
    top: Ino,
}

impl Judge {
    fn of(tree: &Tree, printed: &str) -> Judge {
        let fs = JudgeFs::default();
        let folder = fs.begin(JudgeView { tree, printed: printed.as_bytes() }).unwrap();
        let root = fs.lookup(fs.root(), fs.name(folder).as_bytes()).unwrap().ino;
        let top = fs.lookup(root, TREE.as_bytes()).unwrap().ino;
        Judge { fs, folder, top }
    }

    fn at(&self, path: &str) -> Result<Attr> {
        let mut attr = self.fs.getattr(self.top)?;
        for name in path.split('/') {
            attr = self.fs.lookup(attr.ino, name.as_bytes())?;
        }
        Ok(attr)
    }

    fn read(&self, path: &str) -> String {
        let fh = self.fs.open(self.at(path).unwrap().ino, OpenFlags::READ).unwrap();
        let bytes = self.fs.read(fh, 0, 1 << 20).unwrap();
        self.fs.release(fh).unwrap();
        String::from_utf8(bytes.to_vec()).unwrap()
    }

    fn write(&self, path: &str, at: u64, text: &str) {
        let fh = self.fs.open(self.at(path).unwrap().ino, OpenFlags::WRITE).unwrap();
        let bytes = Bytes::copy_from_slice(text.as_bytes());
        assert_eq!(self.fs.write(fh, at, bytes), Ok(text.len()));
        self.fs.release(fh).unwrap();
    }

    fn names(&self, path: &str) -> Vec<String> {
        let dir = if path.is_empty() { self.top } else { self.at(path).unwrap().ino };
        let entries = list(&self.fs, dir).unwrap();
        entries.into_iter().map(|entry| String::from_utf8(entry.name).unwrap()).collect()
    }
}

/// Whether a judge that did this in the first tree would read the same in the others.
fn reads_the_same<const N: usize>(
    first: (&[(&str, &str)], &str),
    done: impl FnOnce(&Judge),
    others: [(&[(&str, &str)], &str); N],
) -> [bool; N] {
    let (files, printed) = (tree(first.0), first.1);
    let judge = Judge::of(&files, printed);
    done(&judge);
    let reads = judge.fs.end(judge.folder);
    let sees = |tree: &Tree, printed: &str| {
        let shown = JudgeView { tree, printed: printed.as_bytes() };
        (reads.names(shown), reads.contents(shown))
    };
    let expected = sees(&files, printed);
    others.map(|(files, printed)| sees(&tree(files), printed) == expected)
}

#[test]
fn only_what_was_read_counts() {
    let files = [("a", "text"), ("b", "other"), ("dir/c", "3")];
    let others: [(&[(&str, &str)], &str); 7] = [
        (&[("a", "text"), ("b", "OTHER"), ("dir/c", "3")], "2"),
        (&[("a", "TEXT"), ("b", "other"), ("dir/c", "3")], "1"),
        (&[("a", "text+"), ("b", "other"), ("dir/c", "3")], "1"),
        (&[("b", "other"), ("dir/c", "3")], "1"),
        (&[("a", "text"), ("dir/", "")], "1"),
        (&[("a", "text"), ("dir/", ""), ("missing", "")], "1"),
        (&[("a", "text"), ("dir/", ""), ("new", "")], "1"),
    ];
    let looks = |judge: &Judge| {
        judge.read("a");
        assert!(judge.at("missing").is_err());
    };
    let same = [true, false, false, false, true, false, true];
    assert_eq!(reads_the_same((&files, "1"), looks, others), same);
    let lists = |judge: &Judge| {
        assert_eq!(judge.names(""), ["a", "b", "dir"]);
    };
    let same = [true, true, true, false, false, false, false];
    assert_eq!(reads_the_same((&files, "1"), lists, others), same);
    let reads_lines = |judge: &Judge| {
        let root = judge.fs.lookup(judge.top, b"..").unwrap().ino;
        let lines = judge.fs.lookup(root, PRINTED.as_bytes()).unwrap().ino;
        let fh = judge.fs.open(lines, OpenFlags::READ).unwrap();
        assert_eq!(judge.fs.read(fh, 0, 9).unwrap(), "1");
    };
    let same = [false, true, true, true, true, true, true];
    assert_eq!(reads_the_same((&files, "1"), reads_lines, others), same);
}

#[test]
fn what_the_judge_has_written_is_no_reading() {
    let files = [("data", "aaaabbbbcccc"), ("log", "old")];
    let recovers = |judge: &Judge| {
        judge.write("data", 4, "new!");
        assert_eq!(judge.read("data"), "aaaanew!cccc");
        let log = judge.at("log").unwrap().ino;
        judge.fs.setattr(log, SetAttr { size: Some(0), ..SetAttr::default() }).unwrap();
        assert_eq!(judge.read("log"), "");
    };
    let others: [(&[(&str, &str)], &str); 4] = [
        (&[("data", "aaaa----cccc"), ("log", "OLD")], ""),
        (&[("data", "aaa-bbbbcccc"), ("log", "old")], ""),
        (&[("data", "aaaabbbb-ccc"), ("log", "old")], ""),
        (&[("data", "aaaabbbbcccc"), ("log", "longer")], ""),
    ];
    // The size was asked for with the name.
    assert_eq!(reads_the_same((&files, ""), recovers, others), [true, false, false, false]);
}

#[test]
fn what_an_operation_says_is_a_reading() {
    let files = [("d/", ""), ("a", "1")];
    let others: [(&[(&str, &str)], &str); 2] =
        [(&[("d/x", ""), ("a", "1")], ""), (&[("d/", ""), ("a", "2")], "")];
    let removes = |judge: &Judge| judge.fs.rmdir(judge.top, b"d").unwrap();
    assert_eq!(reads_the_same((&files, ""), removes, others), [false, true]);
    let replaces = |judge: &Judge| {
        judge.fs.mkdir(judge.top, b"e", NewNode::default()).unwrap();
        let (from, to) = ((judge.top, &b"e"[..]), (judge.top, &b"d"[..]));
        judge.fs.rename(from, to, RenameFlags::empty()).unwrap();
    };
    assert_eq!(reads_the_same((&files, ""), replaces, others), [false, true]);
    let links = |judge: &Judge| assert_eq!(judge.fs.getattr(judge.top).unwrap().nlink, 3);
    let others: [(&[(&str, &str)], &str); 2] = [(&[("d/", ""), ("e/", "")], ""), (&files, "")];
    assert_eq!(reads_the_same((&files, ""), links, others), [false, true]);
}

#[test]
fn a_judge_may_change_everything() {
    let judge = Judge::of(&tree(&[("a", "1"), ("dir/b", "2"), ("empty/", "")]), "");
    let (fs, top) = (&judge.fs, judge.top);
    let node = NewNode::default();
    let (made, fh) = fs.create(top, b"new", node, OpenFlags::WRITE).unwrap();
    assert_eq!(fs.write(fh, 3, Bytes::from_static(b"x")), Ok(1));
    assert_eq!(judge.read("new"), "\0\0\0x");
    assert_eq!(fs.create(top, b"new", node, OpenFlags::WRITE), Err(FsError::Exists));
    fs.link(made.ino, judge.at("dir").unwrap().ino, b"too").unwrap();
    assert_eq!(judge.at("dir/too").unwrap().nlink, 2);
    // A file that is open lives on.
    fs.unlink(top, b"new").unwrap();
    let dir = judge.at("dir").unwrap().ino;
    fs.unlink(dir, b"too").unwrap();
    assert_eq!(fs.write(fh, 4, Bytes::from_static(b"y")), Ok(1));
    let reader = fs.open(made.ino, OpenFlags::READ).unwrap();
    assert_eq!(fs.read(reader, 0, 9).unwrap(), "\0\0\0xy");
    fs.release(fh).unwrap();
    fs.release(reader).unwrap();
    assert_eq!(fs.rmdir(top, b"dir"), Err(FsError::NotEmpty));
    fs.rename((dir, b"b"), (top, b"a"), RenameFlags::empty()).unwrap();
    assert_eq!(judge.read("a"), "2");
    let not_replaced = fs.rename((top, b"a"), (top, b"dir"), RenameFlags::NO_REPLACE);
    assert_eq!(not_replaced, Err(FsError::Exists));
    fs.rename((top, b"a"), (top, b"empty"), RenameFlags::EXCHANGE).unwrap();
    assert_eq!(judge.at("a").unwrap().kind, FileType::Directory);
    fs.rmdir(top, b"a").unwrap();
    fs.symlink(top, b"link", b"empty", node).unwrap();
    assert_eq!(fs.readlink(judge.at("link").unwrap().ino).unwrap(), b"empty");
    fs.mkdir(dir, b"deep", node).unwrap();
    fs.rename((dir, b"deep"), (top, b"up"), RenameFlags::empty()).unwrap();
    let up = judge.at("up").unwrap().ino;
    assert_eq!(fs.lookup(up, b"..").unwrap().ino, top);
    assert_eq!(judge.names(""), ["dir", "empty", "link", "up"]);
    assert_eq!((fs.getattr(top).unwrap().nlink, fs.getattr(dir).unwrap().nlink), (4, 2));
    fs.setxattr(up, b"user.a", b"1", SetXattr::Any).unwrap();
    assert_eq!(fs.setxattr(up, b"user.a", b"1", SetXattr::Create), Err(FsError::Exists));
    assert_eq!(fs.getxattr(up, b"user.a").unwrap(), b"1");
    fs.removexattr(up, b"user.a").unwrap();
    assert_eq!(fs.getxattr(up, b"user.a"), Err(FsError::NoData));
    // A group that a directory gives, and a umask.
    let group = SetAttr { mode: Some(0o2775), gid: Some(7), ..SetAttr::default() };
    fs.setattr(up, group).unwrap();
    let made = fs.mkdir(up, b"in", NewNode { mode: 0o777, umask: 0o22, ..node }).unwrap();
    assert_eq!((made.gid, made.mode), (7, 0o2755));
}

#[test]
fn holes_are_holes() {
    let judge = Judge::of(&tree(&[("a", "")]), "");
    let fs = &judge.fs;
    let ino = judge.at("a").unwrap().ino;
    let fh = fs.open(ino, OpenFlags::WRITE).unwrap();
    fs.write(fh, 1 << 40, Bytes::from_static(b"end")).unwrap();
    let seek = |at, to| fs.seek(fh, at, to);
    assert_eq!(seek(0, SeekTo::Data), Ok(1 << 40));
    assert_eq!(seek(0, SeekTo::Hole), Ok(0));
    assert_eq!(seek(1 << 40, SeekTo::Hole), Ok((1 << 40) + 3));
    assert_eq!(seek((1 << 40) + 3, SeekTo::Data), Err(FsError::NoAddress));
    fs.fallocate(fh, Fallocate::PunchHole, 0, 2 << 40).unwrap();
    assert_eq!(seek(0, SeekTo::Data), Err(FsError::NoAddress));
    fs.fallocate(fh, Fallocate::Allocate { keep_size: false }, 0, 2 << 40).unwrap();
    let attr = fs.getattr(ino).unwrap();
    assert_eq!((attr.size, attr.blocks_512), (2 << 40, 0));
    let too_large = fs.write(fh, u64::MAX - 1, Bytes::from_static(b"end"));
    assert_eq!(too_large, Err(FsError::FileTooLarge));
}

#[test]
fn a_judge_cannot_take_all_memory() {
    let judge = Judge::of(&tree(&[("a", "")]), "");
    let fh = judge.fs.open(judge.at("a").unwrap().ino, OpenFlags::WRITE).unwrap();
    // The same bytes again and again in memory: only our count of them is as large.
    let megabyte = Bytes::from(vec![1; 1 << 20]);
    let write = |n: u64| judge.fs.write(fh, n << 20, megabyte.clone());
    let mut refused = (0..2048).filter(|n| write(*n).is_err());
    let first = refused.next().unwrap();
    assert!((1024..1024 + 128).contains(&first), "{first}");
    assert_eq!(write(first), Err(FsError::NoSpace { what: "blocks" }));
    // What was written again takes no more.
    let other = Judge::of(&tree(&[("a", "")]), "");
    let fh = other.fs.open(other.at("a").unwrap().ino, OpenFlags::WRITE).unwrap();
    assert!((0..4096).all(|n| other.fs.write(fh, (n % 16) << 20, megabyte.clone()).is_ok()));
}

#[test]
fn judges_do_not_see_each_other() {
    let judge = Judge::of(&tree(&[("a", "1")]), "");
    let shown = tree(&[("a", "2")]);
    let second = judge.fs.begin(JudgeView { tree: &shown, printed: b"" }).unwrap();
    let root = judge.fs.lookup(judge.fs.root(), judge.fs.name(second).as_bytes()).unwrap().ino;
    let top = judge.fs.lookup(root, TREE.as_bytes()).unwrap().ino;
    let moved = judge.fs.rename((judge.top, b"a"), (top, b"b"), RenameFlags::empty());
    assert!(matches!(moved, Err(FsError::CrossDevice { .. })));
    let made = judge.fs.mkdir(judge.fs.root(), b"x", NewNode::default());
    assert!(matches!(made, Err(FsError::NotPermitted { .. })), "{made:?}");
    // Beside its files a judge may have others.
    judge.fs.mkdir(root, b"x", NewNode::default()).unwrap();
    judge.fs.rename((root, TREE.as_bytes()), (root, b"old"), RenameFlags::empty()).unwrap();
    let gone = judge.at("a").unwrap().ino;
    judge.fs.end(judge.folder);
    assert_eq!(judge.fs.getattr(gone), Err(FsError::NotFound));
    assert_eq!(judge.fs.lookup(top, b"a").unwrap().size, 1);
}

#[test]
fn a_listing_goes_on_while_names_go() {
    let files: Vec<String> = (0..100).map(|n| format!("{n:03}")).collect();
    let files: Vec<(&str, &str)> = files.iter().map(|name| (&name[..], "")).collect();
    let judge = Judge::of(&tree(&files), "");
    let (mut from, mut seen) = (0, 0);
    loop {
        let entries = judge.fs.readdir(judge.top, from).unwrap();
        let Some(entry) = entries.first() else { break };
        from = entry.next;
        if entry.name.len() == 3 {
            judge.fs.unlink(judge.top, &entry.name).unwrap();
            seen += 1;
        }
    }
    assert_eq!((seen, judge.names("").len()), (100, 0));
}
