//! Directories that ignore case: made by us on file systems of mke2fs, judged by e2fsck, which
//! folds and hashes the names itself. (The kernels that tests run on seldom have the tables.)

use steadfast_devices::source::{FileDevice, FileOptions};
use steadfast_ext4_check as check;
use steadfast_ext4_format::ondisk::InodeFlags;
use steadfast_vfs::{FileSystem, FsError, Ino, NewNode, OpenFlags, RenameFlags, path};

use crate::image::Image;
use crate::stage::{Ours, Stage};

const CASEFOLD: u32 = InodeFlags::CASEFOLD.bits();

fn image(encoding: &str) -> Image {
    Image::mke2fs(48 << 20, &["-b", "1024", "-O", "casefold", "-E", encoding])
}

fn caseless(fs: &dyn FileSystem, name: &str) -> Ino {
    let dir = fs.mkdir(fs.root(), name.as_bytes(), NewNode::default()).unwrap().ino;
    let flags = fs.inode_flags(dir).unwrap();
    fs.set_inode_flags(dir, flags | CASEFOLD).unwrap();
    dir
}

fn make(fs: &dyn FileSystem, dir: Ino, name: &[u8]) -> Result<Ino, FsError> {
    let (attr, fh) = fs.create(dir, name, NewNode::default(), OpenFlags::WRITE)?;
    fs.release(fh).unwrap();
    Ok(attr.ino)
}

fn assert_clean(image: &Image) {
    image.assert_clean();
    let device = FileDevice::open(image.path(), &FileOptions::default()).unwrap();
    let report = check::check(&(std::sync::Arc::new(device) as _), None).unwrap();
    assert!(report.findings.is_empty(), "{:?}", report.findings);
}

fn names(fs: &dyn FileSystem, dir: Ino) -> Vec<String> {
    let listed = path::list(fs, dir).unwrap();
    let names = listed.into_iter().map(|e| String::from_utf8_lossy(&e.name).into_owned());
    let mut names: Vec<String> = names.filter(|n| n != "." && n != "..").collect();
    names.sort();
    names
}

#[test]
fn names_are_found_in_any_spelling_and_keep_their_own() {
    let mut ours = Ours::mount(image("encoding=utf8-12.1"));
    let dir = caseless(ours.fs(), "dir");
    let fs = ours.fs();
    let readme = make(fs, dir, "ReadMe".as_bytes()).unwrap();
    let umlaut = make(fs, dir, "Größe \u{1f600}".as_bytes()).unwrap();
    for (name, ino) in [("README", readme), ("GRO\u{308}SSE \u{1f600}", umlaut)] {
        assert_eq!(fs.lookup(dir, name.as_bytes()).unwrap().ino, ino);
        assert_eq!(make(fs, dir, name.as_bytes()), Err(FsError::Exists));
        let node = NewNode::default();
        assert_eq!(fs.mkdir(dir, name.as_bytes(), node).map(drop), Err(FsError::Exists));
        assert_eq!(fs.link(readme, dir, name.as_bytes()).map(drop), Err(FsError::Exists));
    }
    assert_eq!(fs.lookup(dir, "Grosse".as_bytes()).map(drop), Err(FsError::NotFound));
    assert_eq!(names(fs, dir), ["Größe \u{1f600}", "ReadMe"]);
    // Another spelling of the same file: as two names of one inode, nothing happens.
    let none = RenameFlags::empty();
    fs.rename((dir, b"readme"), (dir, b"README"), none).unwrap();
    let no_replace = fs.rename((dir, b"readme"), (dir, b"README"), RenameFlags::NO_REPLACE);
    assert_eq!(no_replace, Err(FsError::Exists));
    assert_eq!(names(fs, dir), ["Größe \u{1f600}", "ReadMe"]);
    // What is replaced keeps its name, as with the kernel.
    make(fs, fs.root(), b"outside").unwrap();
    fs.rename((fs.root(), b"outside"), (dir, b"README"), none).unwrap();
    assert_eq!(names(fs, dir), ["Größe \u{1f600}", "ReadMe"]);
    // In other directories case counts.
    make(fs, fs.root(), b"a").unwrap();
    make(fs, fs.root(), b"A").unwrap();
    // New directories take it over, files do not.
    let below = fs.mkdir(dir, b"Below", NewNode::default()).unwrap().ino;
    assert_eq!(fs.inode_flags(below).unwrap() & CASEFOLD, CASEFOLD);
    let file = make(fs, below, b"File").unwrap();
    assert_eq!(fs.inode_flags(file).unwrap() & CASEFOLD, 0);
    fs.unlink(dir, "gRÖsse \u{1f600}".as_bytes()).unwrap();
    // What is no text is its bytes.
    make(fs, dir, b"X\xff").unwrap();
    make(fs, dir, b"x\xff").unwrap();
    ours.remount();
    let fs = ours.fs();
    assert_eq!(names(fs, dir), ["Below", "ReadMe", "X\u{fffd}", "x\u{fffd}"]);
    assert!(fs.lookup(dir, b"BELOW").is_ok() && fs.lookup(below, b"FILE").is_ok());
    assert_clean(&ours.unmount());
}

#[test]
fn an_index_is_by_folded_names() {
    let mut ours = Ours::mount(image("encoding=utf8-12.1"));
    let dir = caseless(ours.fs(), "dir");
    let name = |i: u32| format!("Ünder-{i}-ŠTRAẞE-{}", "Ω".repeat(i as usize % 50));
    let other = |i: u32| format!("u\u{308}NDER-{i}-s\u{30c}traSSe-{}", "ω".repeat(i as usize % 50));
    let inos: Vec<Ino> =
        (0..1500).map(|i| make(ours.fs(), dir, name(i).as_bytes()).unwrap()).collect();
    // No UTF-8 but folded nevertheless. (Of what is not folded e2fsck 1.47 knows no hash.)
    for i in 0..50 {
        make(ours.fs(), dir, &[format!("{i} From ").as_bytes(), b"\x96 To"].concat()).unwrap();
    }
    ours.remount();
    let fs = ours.fs();
    assert!(fs.lookup(dir, b"7 FROM \x96 TO").is_ok());
    for (i, ino) in (0..).zip(&inos) {
        assert_eq!(fs.lookup(dir, other(i).as_bytes()).unwrap().ino, *ino, "{i}");
        assert_eq!(make(fs, dir, other(i).as_bytes()), Err(FsError::Exists));
    }
    assert!(fs.inode_flags(dir).unwrap() & InodeFlags::INDEX.bits() != 0);
    let image = ours.unmount();
    let index = image.debugfs_says("htree_dump dir");
    assert!(index.contains("Indirect levels: 1"), "two levels: {}", &index[..400]);
    assert_clean(&image);
    let ours = Ours::mount(image);
    let fs = ours.fs();
    for i in (0..1500).step_by(3) {
        fs.unlink(dir, other(i).as_bytes()).unwrap();
    }
    for i in (1..1500).step_by(3) {
        let to = format!("Moved {i}");
        fs.rename((dir, other(i).as_bytes()), (dir, to.as_bytes()), RenameFlags::empty()).unwrap();
    }
    assert_eq!(names(fs, dir).len(), 1050);
    assert!(fs.lookup(dir, b"MOVED 31").is_ok());
    assert_clean(&ours.unmount());
}

#[test]
fn names_change_places_in_any_spelling() {
    // Small directories stand in their inodes.
    let options = ["-b", "1024", "-I", "256", "-O", "casefold,inline_data"];
    let mut ours = Ours::mount(Image::mke2fs(48 << 20, &options));
    let dir = caseless(ours.fs(), "dir");
    let other = ours.fs().mkdir(ours.fs().root(), b"other", NewNode::default()).unwrap().ino;
    let fs = ours.fs();
    let one = make(fs, dir, "Ä".as_bytes()).unwrap();
    let two = make(fs, dir, b"Two").unwrap();
    let three = make(fs, other, b"Three").unwrap();
    assert_eq!(make(fs, dir, "a\u{308}".as_bytes()), Err(FsError::Exists));
    let exchange = RenameFlags::EXCHANGE;
    fs.rename((dir, "ä".as_bytes()), (dir, b"TWO"), exchange).unwrap();
    fs.rename((dir, b"two"), (other, b"Three"), exchange).unwrap();
    let absent = fs.rename((dir, b"two"), (other, b"THREE"), exchange);
    assert_eq!(absent, Err(FsError::NotFound), "there case counts");
    ours.remount();
    let fs = ours.fs();
    assert_eq!(names(fs, dir), ["Two", "Ä"]);
    let ino = |dir, name: &str| fs.lookup(dir, name.as_bytes()).unwrap().ino;
    assert_eq!((ino(dir, "A\u{308}"), ino(dir, "tWO"), ino(other, "Three")), (two, three, one));
    fs.mkdir(dir, b"Sub", NewNode::default()).unwrap();
    fs.rmdir(dir, b"SUB").unwrap();
    fs.rename((dir, b"TWO"), (other, b"new"), RenameFlags::empty()).unwrap();
    assert_eq!(names(fs, dir), ["Ä"]);
    assert_clean(&ours.unmount());
}

#[test]
fn names_that_are_one_are_found_by_the_check() {
    let ours = Ours::mount(image("encoding=utf8-12.1"));
    let fs = ours.fs();
    let dir = fs.mkdir(fs.root(), b"dir", NewNode::default()).unwrap().ino;
    for name in ["Größe", "GRÖSSE", "a"] {
        make(fs, dir, name.as_bytes()).unwrap();
    }
    let image = ours.unmount();
    assert_clean(&image);
    image.debugfs(&format!("set_inode_field dir flags {:#x}", CASEFOLD | 0x8_0000));
    let device = FileDevice::open(image.path(), &FileOptions::default()).unwrap();
    let report = check::check(&(std::sync::Arc::new(device) as _), None).unwrap();
    let twice = |f: &check::Finding| f.kind == check::FindingKind::DuplicateName;
    assert_eq!(report.findings.iter().filter(|f| twice(f)).count(), 1, "{:?}", report.findings);
}

#[test]
fn a_strict_file_system_takes_only_text() {
    let ours = Ours::mount(image("encoding=utf8-12.1,encoding_flags=strict"));
    let fs = ours.fs();
    let dir = caseless(fs, "dir");
    let invalid = |made: Result<(), FsError>| {
        assert!(matches!(made, Err(FsError::Invalid { .. })), "{made:?}");
    };
    let file = make(fs, dir, "Wörter".as_bytes()).unwrap();
    for name in [&b"a\xff"[..], b"\xc0\x80", b"\xed\xa0\x80"] {
        invalid(make(fs, dir, name).map(drop));
        invalid(fs.mkdir(dir, name, NewNode::default()).map(drop));
        invalid(fs.link(file, dir, name).map(drop));
        invalid(fs.rename((dir, b"w\xc3\xb6rter"), (dir, name), RenameFlags::empty()));
        invalid(fs.lookup(dir, name).map(drop));
        invalid(fs.unlink(dir, name));
        make(fs, fs.root(), name).unwrap();
    }
    assert_eq!(names(fs, dir), ["Wörter"]);
    assert_clean(&ours.unmount());
}

#[test]
fn only_an_empty_directory_changes() {
    let ours = Ours::mount(image("encoding=utf8-12.1"));
    let fs = ours.fs();
    let dir = caseless(fs, "dir");
    let set = |dir, flag: u32| {
        let flags = fs.inode_flags(dir).unwrap() & !CASEFOLD;
        fs.set_inode_flags(dir, flags | flag)
    };
    make(fs, dir, b"a").unwrap();
    assert_eq!(set(dir, 0), Err(FsError::NotEmpty));
    fs.unlink(dir, b"A").unwrap();
    set(dir, 0).unwrap();
    make(fs, dir, b"a").unwrap();
    make(fs, dir, b"A").unwrap();
    assert_eq!(set(dir, CASEFOLD), Err(FsError::NotEmpty));
    let file = fs.lookup(dir, b"a").unwrap().ino;
    assert!(matches!(set(file, CASEFOLD), Err(FsError::Unsupported { .. })));
    fs.unlink(dir, b"a").unwrap();
    fs.unlink(dir, b"A").unwrap();
    set(dir, CASEFOLD).unwrap();
    make(fs, dir, b"b").unwrap();
    assert!(fs.lookup(dir, b"B").is_ok());
    assert_clean(&ours.unmount());
    // Without the feature there is no such thing.
    let ours = Ours::mount(Image::mke2fs(16 << 20, &[]));
    let fs = ours.fs();
    let dir = fs.mkdir(fs.root(), b"dir", NewNode::default()).unwrap().ino;
    let flags = fs.inode_flags(dir).unwrap();
    let set = fs.set_inode_flags(dir, flags | CASEFOLD);
    assert!(matches!(set, Err(FsError::Unsupported { .. })), "{set:?}");
    assert_clean(&ours.unmount());
}
