//! What a result may replace, and what stays.

use std::fs;
use std::io::{Error, Seek, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{PermissionsExt, symlink};

use super::{write, write_by};

#[test]
fn a_failure_leaves_what_was_there_and_nothing_else() {
    let folder = tempfile::tempdir().unwrap();
    let (old, new) = (folder.path().join("old"), folder.path().join("new"));
    fs::write(&old, "old").unwrap();
    for path in [&old, &new] {
        let failed = write_by(path, |to| {
            fs::write(to, "half")?;
            Err(Error::from_raw_os_error(28))
        });
        let said = failed.unwrap_err().to_string();
        assert!(said.contains("No space left"), "{said}");
        assert_eq!(said.contains("as it was"), path == &old, "{said}");
    }
    assert_eq!(fs::read_to_string(&old).unwrap(), "old");
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
}

#[test]
fn modes_and_links_are_kept() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    fs::write(at("file"), "old").unwrap();
    fs::set_permissions(at("file"), fs::Permissions::from_mode(0o604)).unwrap();
    symlink("file", at("link")).unwrap();
    write(&at("link"), "new").unwrap();
    assert!(fs::symlink_metadata(at("link")).unwrap().is_symlink());
    assert_eq!(fs::read_to_string(at("file")).unwrap(), "new");
    assert_eq!(fs::metadata(at("file")).unwrap().permissions().mode() & 0o777, 0o604);
    // Two names of one file stay that.
    fs::hard_link(at("file"), at("other")).unwrap();
    write(&at("other"), "both").unwrap();
    assert_eq!(fs::read_to_string(at("file")).unwrap(), "both");
    symlink("nothing yet", at("dangling")).unwrap();
    write(&at("dangling"), "made").unwrap();
    assert_eq!(fs::read_to_string(at("nothing yet")).unwrap(), "made");
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 5);
    write(std::path::Path::new("/dev/null"), "nobody reads it").unwrap();
    // A name may be as long as any.
    let long = at(&"n".repeat(255));
    write(&long, "1").unwrap();
    write(&long, "2").unwrap();
    assert_eq!(fs::read_to_string(&long).unwrap(), "2");
    assert!(write(std::path::Path::new("/dev/full"), "x").is_err());
}

/// A folder may give what is made in it an access list.
#[test]
fn what_a_folder_gives_new_files_an_old_one_does_not_get() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("file");
    fs::write(&path, "old").unwrap();
    // Version 2; owner, user 1000, group, mask and others: tag, rights, number.
    let entries: [(u16, u16, u32); 5] = [
        (0x01, 6, u32::MAX),
        (0x02, 7, 1000),
        (0x04, 4, u32::MAX),
        (0x10, 7, u32::MAX),
        (0x20, 0, u32::MAX),
    ];
    let mut list = 2u32.to_le_bytes().to_vec();
    for (tag, rights, id) in entries {
        list.extend([tag.to_le_bytes(), rights.to_le_bytes()].concat());
        list.extend(id.to_le_bytes());
    }
    let name = "system.posix_acl_default";
    let flags = rustix::fs::XattrFlags::empty();
    match rustix::fs::setxattr(folder.path(), name, &list, flags) {
        Err(rustix::io::Errno::NOTSUP) => return,
        set => set.unwrap(),
    }
    write(&path, "new").unwrap();
    assert_eq!(fs::read_to_string(&path).unwrap(), "new");
    assert_eq!(rustix::fs::listxattr(&path, &mut [0u8; 100][..]), Ok(0));
}

#[test]
fn a_pipe_with_a_name_is_opened_once() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("pipe");
    let mode = rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR;
    rustix::fs::mkfifoat(rustix::fs::CWD, &path, mode).unwrap();
    let reader = std::thread::spawn({
        let path = path.clone();
        move || fs::read_to_string(path).unwrap()
    });
    write(&path, "all of it").unwrap();
    assert_eq!(reader.join().unwrap(), "all of it");
}

#[test]
fn a_pipe_that_nobody_reads_is_not_waited_for() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("pipe");
    rustix::fs::mkfifoat(rustix::fs::CWD, &path, 0o600.into()).unwrap();
    super::try_out(&path).unwrap();
    let said = write(&path, "text").unwrap_err().to_string();
    assert!(said.contains("nobody reads"), "{said}");
}

/// Whatever protected_regular is set to: what is written there would be the other user's.
#[test]
fn what_another_user_has_put_where_all_may_is_not_written_to() {
    if !rustix::process::geteuid().is_root() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("file");
    fs::write(&path, "old").unwrap();
    std::os::unix::fs::chown(&path, Some(65534), None).unwrap();
    // In a folder of root's alone root has put it there.
    write(&path, "root's").unwrap();
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o1777)).unwrap();
    let said = write(&path, "new").unwrap_err().to_string();
    assert!(said.contains("user 65534"), "{said}");
    assert_eq!(fs::read_to_string(&path).unwrap(), "root's");
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
    std::os::unix::fs::chown(folder.path(), Some(65534), None).unwrap();
    write(&path, "in their own folder").unwrap();
}

/// Nobody can put a link where it is, so that another file gets its owner.
#[test]
fn what_is_being_filled_has_no_name_or_is_reached_without_it() {
    let folder = tempfile::tempdir().unwrap();
    let (path, other) = (folder.path().join("file"), folder.path().join("other"));
    fs::write(&path, "old").unwrap();
    fs::write(&other, "another's").unwrap();
    write_by(&path, |to| {
        for entry in fs::read_dir(folder.path()).unwrap().flatten() {
            if entry.file_name().to_string_lossy().starts_with(super::ASIDE) {
                fs::rename(entry.path(), folder.path().join("taken")).unwrap();
                symlink(&other, entry.path()).unwrap();
            }
        }
        fs::write(to, "new")
    })
    .unwrap();
    assert_eq!(fs::read_to_string(&other).unwrap(), "another's");
}

/// As `> file` of a shell, that goes on writing to it.
#[test]
fn what_this_process_has_open_is_written_in_its_place() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("output");
    let mut open = fs::File::create(&path).unwrap();
    write(&path, "a result\n").unwrap();
    open.seek(std::io::SeekFrom::End(0)).unwrap();
    open.write_all(b"what follows\n").unwrap();
    assert_eq!(fs::read_to_string(&path).unwrap(), "a result\nwhat follows\n");
    let descriptor = format!("/proc/self/fd/{}", open.as_raw_fd());
    fs::remove_file(&path).unwrap();
    write(descriptor.as_ref(), "no name").unwrap();
}

#[test]
fn attributes_stay_and_protected_files_are_not_replaced() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("file");
    fs::write(&path, "old").unwrap();
    let flags = rustix::fs::XattrFlags::empty();
    match rustix::fs::setxattr(&path, "user.note", b"mine", flags) {
        Err(rustix::io::Errno::NOTSUP) => {}
        set => {
            set.unwrap();
            write(&path, "new").unwrap();
            let mut value = [0; 8];
            let len = rustix::fs::getxattr(&path, "user.note", &mut value[..]).unwrap();
            assert_eq!(&value[..len], b"mine");
        }
    }
    fs::set_permissions(&path, fs::Permissions::from_mode(0o444)).unwrap();
    let may = fs::OpenOptions::new().write(true).open(&path).is_ok();
    assert_eq!(write(&path, "mine now").is_ok(), may, "root may");
}

/// Who is ended in the middle leaves no half of it.
#[test]
fn a_new_file_has_its_name_when_it_is_whole() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("file");
    write_by(&path, |to| {
        fs::write(to, "half")?;
        assert!(!path.exists());
        fs::write(to, "whole")
    })
    .unwrap();
    assert_eq!(fs::read_to_string(&path).unwrap(), "whole");
    // The rights of any new file.
    fs::write(folder.path().join("other"), "").unwrap();
    let mode_of = |name: &str| fs::metadata(folder.path().join(name)).unwrap().permissions().mode();
    assert_eq!(mode_of("file"), mode_of("other"));
    // What another program makes meanwhile is replaced, not lost by halves.
    let late = folder.path().join("late");
    let made = std::cell::Cell::new(false);
    write_by(&late, |to| {
        if !made.replace(true) {
            fs::write(&late, "another program's, and longer").unwrap();
        }
        fs::write(to, "ours")
    })
    .unwrap();
    assert_eq!(fs::read_to_string(&late).unwrap(), "ours");
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 3);
}
