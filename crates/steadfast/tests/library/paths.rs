//! What paths lead to, and what is refused.

use std::ffi::OsStr;
use std::io::{ErrorKind, Read, Seek, SeekFrom, Write};
use std::os::unix::ffi::OsStrExt;

use steadfast::{DataMode, Error, FileSystem, Image, OpenOptions};

fn memory() -> FileSystem {
    Image::in_memory(16 << 20).mount().unwrap()
}

fn errno<T: std::fmt::Debug>(done: Result<T, Error>) -> i32 {
    done.unwrap_err().errno()
}

#[test]
fn names_are_bytes() {
    let fs = memory();
    let name = OsStr::from_bytes(b"/\xff\x01 name");
    fs.write(name, "x").unwrap();
    let entries: Vec<_> = fs.read_dir("/").unwrap().map(|e| e.unwrap().file_name()).collect();
    assert!(entries.iter().any(|e| e.as_bytes() == b"\xff\x01 name"));
    let error = fs.create_dir(name).unwrap_err();
    assert_eq!(error.to_string(), "create_dir /\\377\\001 name: file exists");
    assert_eq!(errno(fs.write("/a\0b", "")), libc::EINVAL);
    assert_eq!(errno(fs.write("n".repeat(256), "")), libc::ENAMETOOLONG);
    fs.unmount().unwrap();
}

#[test]
fn links_are_followed_inside_and_not_for_ever() {
    let fs = memory();
    fs.create_dir_all("/a/b").unwrap();
    fs.symlink("../../../../../a/file", "/a/b/link").unwrap();
    fs.write("/a/b/link", "through a dangling link").unwrap();
    assert_eq!(fs.read_to_string("/a/file").unwrap(), "through a dangling link");
    fs.symlink("/loop", "/loop").unwrap();
    assert_eq!(errno(fs.read("/loop")), libc::ELOOP);
    assert_eq!(errno(fs.read("/loop/x")), libc::ELOOP);
    // 40 are followed.
    fs.symlink("/a/file", "/l0").unwrap();
    for n in 1..=40 {
        fs.symlink(format!("/l{}", n - 1), format!("/l{n}")).unwrap();
    }
    assert!(fs.read("/l39").is_ok());
    assert_eq!(errno(fs.read("/l40")), libc::ELOOP);
    assert!(fs.exists("/../../etc/passwd").is_ok_and(|there| !there));
    fs.remove_dir_all("/a").unwrap();
    fs.unmount().unwrap();
}

#[test]
fn a_tree_is_removed_and_what_its_links_name_is_not() {
    let folder = tempfile::tempdir().unwrap();
    let here = FileSystem::host(folder.path()).unwrap();
    for fs in [memory(), here] {
        fs.create_dir_all("/a/b/c").unwrap();
        fs.create_dir("/kept").unwrap();
        for n in 0..500 {
            fs.write(format!("/a/b/c/{n}"), "").unwrap();
        }
        fs.symlink("../../../kept", "/a/b/c/link").unwrap();
        fs.symlink("a", "/link").unwrap();
        fs.remove_dir_all("/link").unwrap();
        assert!(fs.exists("/a/b/c/499").unwrap());
        fs.remove_dir_all("/a").unwrap();
        assert!(!fs.exists("/a").unwrap() && fs.exists("/kept").unwrap());
    }
}

#[test]
fn each_wrong_use_has_its_error() {
    let fs = memory();
    fs.create_dir("/folder").unwrap();
    fs.write("/file", "12345").unwrap();
    let open = |options: &mut OpenOptions, path: &str| errno(options.open(&fs, path));
    let new = OpenOptions::new;
    assert_eq!(open(&mut new(), "/file"), libc::EINVAL);
    assert_eq!(open(new().read(true).create(true), "/file"), libc::EINVAL);
    assert_eq!(open(new().append(true).truncate(true), "/file"), libc::EINVAL);
    assert_eq!(open(new().write(true).create_new(true), "/file"), libc::EEXIST);
    assert_eq!(open(new().write(true), "/folder"), libc::EISDIR);
    assert_eq!(open(new().write(true).create(true), "/new/"), libc::EISDIR);
    assert_eq!(open(new().read(true), "/file/"), libc::ENOTDIR);
    assert_eq!(errno(fs.read("/folder")), libc::EISDIR);
    assert_eq!(errno(fs.read_dir("/file")), libc::ENOTDIR);
    assert_eq!(errno(fs.create_dir("/")), libc::EEXIST);
    assert_eq!(errno(fs.create_dir_all("/file/x")), libc::ENOTDIR);
    assert_eq!(errno(fs.remove_dir("/")), libc::EBUSY);
    assert_eq!(errno(fs.remove_dir_all("/folder/..")), libc::EINVAL);
    assert_eq!(errno(fs.remove_dir_all("/file")), libc::ENOTDIR);
    assert_eq!(errno(fs.remove_file("/folder")), libc::EISDIR);
    assert_eq!(errno(fs.rename("/folder", "/folder/in/itself")), libc::ENOENT);
    assert_eq!(errno(fs.rename("/folder", "/folder/itself")), libc::EINVAL);
    assert_eq!(errno(fs.hard_link("/folder", "/other")), libc::EPERM);
    assert_eq!(errno(fs.transaction_point()), libc::EOPNOTSUPP);
    fs.hard_link("/file", "/same").unwrap();
    assert_eq!(errno(fs.copy("/file", "/same")), libc::EINVAL);
    assert_eq!(errno(fs.copy("/folder", "/other")), libc::EISDIR);
    assert_eq!(fs.read_to_string("/file").unwrap(), "12345");
    let error = fs.rename("/none", "/other").unwrap_err();
    assert_eq!(error.to_string(), "rename /none -> /other: no such file or directory");
    let error = Image::open("/no/such/image").mount().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound);
    let wrong = Image::in_memory(16 << 20).block_size(3000).mount();
    assert!(wrong.unwrap_err().to_string().contains("3000"));
    assert!(Image::open("/etc/passwd").size(1 << 20).mount().is_err());
    let none = Image::in_memory(1000).mount();
    assert!(none.is_err());
    fs.unmount().unwrap();
}

#[test]
fn an_image_is_mounted_once() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("disk.img");
    let fs = Image::create(&path).size(16 << 20).mount().unwrap();
    assert_eq!(errno(Image::open(&path).mount()), libc::EBUSY);
    // A file that is open keeps the mount; the last of its users ends it.
    let file = fs.create("/file").unwrap();
    assert_eq!(errno(fs.unmount()), libc::EBUSY);
    file.write_all_at(b"late", 0).unwrap();
    drop(file);
    let fs = Image::open(&path).mount().unwrap();
    assert_eq!(fs.read_to_string("/file").unwrap(), "late");
    fs.unmount().unwrap();
}

#[test]
fn files_read_write_and_seek_as_those_of_std() {
    let fs = memory();
    let options = OpenOptions::new().read(true).write(true).create(true).clone();
    let mut file = options.open(&fs, "/file").unwrap();
    file.write_all(&vec![7; 3 << 20]).unwrap();
    assert_eq!(file.stream_position().unwrap(), 3 << 20);
    assert_eq!(file.seek(SeekFrom::End(-2)).unwrap(), (3 << 20) - 2);
    let mut rest = Vec::new();
    (&file).read_to_end(&mut rest).unwrap();
    assert_eq!(rest, [7, 7]);
    assert_eq!(
        file.seek(SeekFrom::Current(-10_000_000)).unwrap_err().kind(),
        ErrorKind::InvalidInput
    );
    file.set_len(4).unwrap();
    assert_eq!(fs.read("/file").unwrap(), [7; 4]);
    let mut reader = fs.open("/file").unwrap();
    assert!(reader.write(b"x").is_err() && reader.set_len(0).is_err());
    let mut four = [0; 4];
    reader.read_exact(&mut four).unwrap();
    assert_eq!(reader.read(&mut four).unwrap(), 0);
    let appended = OpenOptions::new().append(true).open(&fs, "/file").unwrap();
    appended.write_all_at(b"end", 0).unwrap();
    assert_eq!(fs.read("/file").unwrap(), b"\x07\x07\x07\x07end");
    // A file without a name is read as long as it is open.
    fs.remove_file("/file").unwrap();
    assert_eq!(file.read_at(&mut four, 3).unwrap(), 4);
    drop((file, reader, appended));
    fs.unmount().unwrap();
}

#[test]
fn several_threads_use_one_file_system() {
    let fs = memory();
    std::thread::scope(|scope| {
        for n in 0..4 {
            let fs = fs.clone();
            scope.spawn(move || {
                let folder = format!("/{n}");
                fs.create_dir(&folder).unwrap();
                for m in 0..50 {
                    fs.write(format!("{folder}/{m}"), m.to_string()).unwrap();
                }
            });
        }
    });
    for n in 0..4 {
        assert_eq!(fs.read_dir(format!("/{n}")).unwrap().count(), 50);
        assert_eq!(fs.read_to_string(format!("/{n}/49")).unwrap(), "49");
    }
    fs.unmount().unwrap();
}

#[test]
fn a_transaction_that_panics_is_taken_back() {
    let fs = Image::in_memory(16 << 20).data(DataMode::Transact).mount().unwrap();
    fs.write("/file", "before").unwrap();
    let work = std::panic::AssertUnwindSafe(|| {
        let _: Result<(), Error> = fs.transaction(|fs| {
            fs.write("/file", "half").unwrap();
            panic!("on the way");
        });
    });
    assert!(std::panic::catch_unwind(work).is_err());
    assert_eq!(fs.read_to_string("/file").unwrap(), "before");
    fs.unmount().unwrap();
}
