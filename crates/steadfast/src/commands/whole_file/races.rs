//! Another user, or another run, who exchanges files, links and folders meanwhile.

#![allow(clippy::print_stdout, reason = "a test that did not run says so")]

use std::fs::{self, Permissions};
use std::io::{self, Read, Seek};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown, lchown, symlink};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::fs::{CWD, Mode, OFlags, RenameFlags, renameat_with};
use tempfile::TempDir;

use super::place::{self, PathMeaning};
use super::{write, write_by};
use crate::commands::lab::outputs::{Folder, Output};

/// Nobody in particular.
const USER: u32 = 54321;
/// So often something is written while it is exchanged.
const ROUNDS: usize = 200;

/// A folder of root's with a secret, and one of another user. `None`, said aloud: not root.
fn two_users() -> Option<(TempDir, TempDir)> {
    if !rustix::process::geteuid().is_root() {
        println!("SKIPPED: needs root");
        return None;
    }
    let (root, home) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    secret(&root.path().join("report"));
    chown(home.path(), Some(USER), Some(USER)).unwrap();
    Some((root, home))
}

fn secret(at: &Path) {
    fs::write(at, "secret").unwrap();
    fs::set_permissions(at, Permissions::from_mode(0o600)).unwrap();
}

fn is_untouched(secret: &Path) {
    let about = fs::metadata(secret).unwrap();
    assert_eq!((about.uid(), about.gid(), about.mode() & 0o7777), (0, 0, 0o600));
    assert_eq!(fs::read_to_string(secret).unwrap(), "secret");
}

fn users(at: &Path, text: &str) {
    fs::write(at, text).unwrap();
    chown(at, Some(USER), Some(USER)).unwrap();
}

fn users_link(target: &Path, at: &Path) {
    symlink(target, at).unwrap();
    lchown(at, Some(USER), Some(USER)).unwrap();
}

fn exchange(a: &Path, b: &Path) {
    renameat_with(CWD, a, CWD, b, RenameFlags::EXCHANGE).unwrap();
}

/// Exchanges two names as long as the rounds go on.
fn while_exchanged(a: &Path, b: &Path, mut round: impl FnMut()) {
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !is_over.load(Ordering::Relaxed) {
                exchange(a, b);
            }
        });
        let rounds = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            (0..ROUNDS).for_each(|_| round());
        }));
        is_over.store(true, Ordering::Relaxed);
        rounds.unwrap();
    });
}

#[test]
fn a_link_that_is_exchanged_gives_nothing_away() {
    let Some((root, home)) = two_users() else { return };
    let secret = root.path().join("report");
    let at = |name: &str| home.path().join(name);
    users(&at("own"), "mine");
    users_link(&at("own"), &at("report.html"));
    users_link(&secret, &at("other"));
    while_exchanged(&at("report.html"), &at("other"), || {
        let refused = write(&at("report.html"), "a report").unwrap_err().to_string();
        assert!(refused.contains("root does not follow it"), "{refused}");
    });
    is_untouched(&secret);
    assert_eq!(fs::read_to_string(at("own")).unwrap(), "mine");
}

#[test]
fn a_file_that_is_exchanged_for_a_link_gives_nothing_away() {
    let Some((root, home)) = two_users() else { return };
    let secret = root.path().join("report");
    let at = |name: &str| home.path().join(name);
    users(&at("report.html"), "mine");
    users_link(&secret, &at("other"));
    while_exchanged(&at("report.html"), &at("other"), || {
        // Where it is a file at that instant it is written.
        let _ = write(&at("report.html"), "a report");
        let _ = Output::tried("--report", &at("report.html"));
    });
    is_untouched(&secret);
}

#[test]
fn a_folder_that_is_exchanged_for_a_link_gives_nothing_away() {
    let Some((root, home)) = two_users() else { return };
    let at = |name: &str| home.path().join(name);
    fs::create_dir(at("dir")).unwrap();
    chown(at("dir"), Some(USER), Some(USER)).unwrap();
    users(&at("dir/report"), "mine");
    users_link(root.path(), &at("link"));
    while_exchanged(&at("dir"), &at("link"), || {
        let _ = write(&at("dir/report"), "a report");
        // Nothing has this name, in either folder.
        let _ = Output::tried("--report", &at("dir/new"));
    });
    is_untouched(&root.path().join("report"));
    assert_eq!(fs::read_dir(root.path()).unwrap().count(), 1);
    // While it is filled: each time.
    let dir = if at("dir").is_symlink() { at("link") } else { at("dir") };
    let link = if dir == at("dir") { at("link") } else { at("dir") };
    for fails in [false, true] {
        for name in ["report", "fresh"] {
            let filled = write_by(&dir.join(name), |to| {
                exchange(&dir, &link);
                secret(&root.path().join("fresh"));
                fs::write(to, "filled")?;
                if fails { Err(io::Error::other("full")) } else { Ok(()) }
            });
            assert_eq!(filled.is_err(), fails, "{filled:?}");
            is_untouched(&root.path().join("report"));
            is_untouched(&root.path().join("fresh"));
            exchange(&dir, &link);
            assert_eq!(dir.join("fresh").exists(), name == "fresh" && !fails);
            if name == "fresh" && !fails {
                fs::remove_file(dir.join("fresh")).unwrap();
            }
        }
    }
}

/// Another user's file stays that user's; one that has a second name might be root's.
#[test]
fn in_another_users_folder_the_owner_stays() {
    let Some((root, home)) = two_users() else { return };
    let at = |name: &str| home.path().join(name);
    users(&at("own"), "mine");
    write(&at("own"), "a report").unwrap();
    assert_eq!(fs::metadata(at("own")).unwrap().uid(), USER);
    assert_eq!(fs::read_to_string(at("own")).unwrap(), "a report");
    // Root's own link may be exchanged.
    symlink("own", at("root's")).unwrap();
    let refused = write(&at("root's"), "again").unwrap_err().to_string();
    assert!(refused.contains("root does not follow it"), "{refused}");
    fs::hard_link(root.path().join("report"), at("second")).unwrap();
    let refused = write(&at("second"), "a report").unwrap_err().to_string();
    assert!(refused.contains("another name"), "{refused}");
    is_untouched(&root.path().join("report"));
    // A link that only root can have put there is followed, whoever owns it.
    users_link(&root.path().join("report"), &root.path().join("link"));
    write(&root.path().join("link"), "by root").unwrap();
    assert_eq!(fs::read_to_string(root.path().join("report")).unwrap(), "by root");
}

/// Recordings are several files, made one after the other.
#[test]
fn recordings_of_root_go_to_folders_of_root() {
    let Some((root, home)) = two_users() else { return };
    let at = |name: &str| home.path().join(name);
    fs::create_dir(at("theirs")).unwrap();
    chown(at("theirs"), Some(USER), Some(USER)).unwrap();
    let refused = Folder::tried(&at("theirs")).err().unwrap().to_string();
    assert!(refused.contains("another user may change this folder"), "{refused}");
    users_link(root.path(), &at("link"));
    assert!(Folder::tried(&at("link/new")).is_err() && !root.path().join("new").exists());
    let folder = Folder::tried(&at("a/b")).unwrap();
    fs::rename(at("a"), at("moved")).unwrap();
    users_link(root.path(), &at("a"));
    fs::write(folder.path().join("devices.jsonl"), "rows").unwrap();
    assert_eq!(fs::read_to_string(at("moved/b/devices.jsonl")).unwrap(), "rows");
    assert_eq!(fs::read_dir(root.path()).unwrap().count(), 1);
}

/// Two runs may have one output.
#[test]
fn another_file_that_took_the_name_is_replaced() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    fs::write(at("report"), "old").unwrap();
    fs::write(at("other"), "another run's").unwrap();
    write_by(&at("report"), |to| {
        fs::rename(at("other"), at("report")).unwrap();
        fs::write(to, "new")
    })
    .unwrap();
    assert_eq!(fs::read_to_string(at("report")).unwrap(), "new");
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
}

/// A file that another program makes between the look and the trial is not removed by the trial.
#[test]
fn a_trial_removes_only_what_it_made() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    // The name is there, and a link that leads nowhere, by turns.
    fs::write(at("kept"), "kept").unwrap();
    symlink("kept", at("report")).unwrap();
    symlink("nowhere", at("other")).unwrap();
    while_exchanged(&at("report"), &at("other"), || {
        Output::tried("--report", &at("report")).unwrap();
        assert_eq!(fs::read_to_string(at("kept")).unwrap(), "kept");
    });
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 3);
    fs::remove_file(at("kept")).unwrap();
    // Of two runs one makes the file while the other tries it.
    std::thread::scope(|scope| {
        let trial = scope.spawn(|| {
            (0..ROUNDS).for_each(|_| drop(Output::tried("--report", &at("both")).unwrap()));
        });
        for round in 0..ROUNDS {
            let made = at(&format!("made-{round}"));
            fs::write(&made, "result").unwrap();
            fs::rename(made, at("both")).unwrap();
            assert_eq!(fs::read_to_string(at("both")).unwrap(), "result");
            fs::remove_file(at("both")).unwrap();
        }
        trial.join().unwrap();
    });
}

/// As `--report /dev/fd/3 3>> log`, and by a link to that.
#[test]
fn what_is_named_as_a_descriptor_is_not_emptied() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    fs::write(at("log"), "before\n").unwrap();
    let mut log = fs::OpenOptions::new().read(true).append(true).open(at("log")).unwrap();
    let number = log.as_raw_fd();
    symlink(format!("/dev/fd/{number}"), at("link")).unwrap();
    let own = std::process::id();
    for path in [
        format!("/dev/fd/{number}"),
        format!("/proc/self/fd/{number}"),
        format!("/proc/{own}/fd/{number}"),
        at("link").display().to_string(),
    ] {
        Output::tried("--report", path.as_ref()).unwrap();
        write(path.as_ref(), "line\n").unwrap();
    }
    let mut all = String::new();
    log.rewind().unwrap();
    log.read_to_string(&mut all).unwrap();
    assert_eq!(all, "before\nline\nline\nline\nline\n");
    let read = fs::File::open(at("log")).unwrap();
    let path = format!("/dev/fd/{}", read.as_raw_fd());
    let refused = write(path.as_ref(), "x").unwrap_err().to_string();
    assert!(refused.contains("not open for writing"), "{refused}");
    assert!(write("/dev/fd/99999".as_ref(), "x").is_err());
    assert!(write("/dev/fd".as_ref(), "x").is_err());
}

#[test]
fn paths_are_followed_as_the_kernel_does() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    fs::create_dir_all(at("a/b")).unwrap();
    symlink("a/b", at("link")).unwrap();
    symlink("../../file", at("a/b/up")).unwrap();
    symlink("round", at("round")).unwrap();
    write(&at("link/../b/./up"), "text").unwrap();
    assert_eq!(fs::read_to_string(at("file")).unwrap(), "text");
    let errno = |path: &Path| write(path, "x").unwrap_err().raw_os_error();
    for path in ["round", "none/file", "file/file", "a", "link/", "link/.."] {
        let kernels = fs::File::create(at(path)).unwrap_err().raw_os_error();
        assert_eq!(errno(&at(path)), kernels, "{path}");
    }
    // With O_CREAT the kernel calls both a folder.
    assert_eq!((errno(&at("new/")), errno(&at("file/"))), (Some(2), Some(20)));
    assert_eq!(errno(Path::new("")), Some(2));
}

/// Its reader would decide how long root waits, and it may be one of root's that another user has
/// given a name here, where the host lets him.
#[test]
fn root_does_not_write_to_pipes_in_another_users_folder() {
    let Some((root, home)) = two_users() else { return };
    let mode = Mode::RUSR | Mode::WUSR;
    for (name, user) in [("theirs", USER), ("own", 0)] {
        let pipe = home.path().join(name);
        rustix::fs::mkfifoat(CWD, &pipe, mode).unwrap();
        chown(&pipe, Some(user), Some(user)).unwrap();
        let PathMeaning::Named(place) = place::find(&pipe).unwrap() else { panic!() };
        let tried = Output::tried("--report", &pipe).err().unwrap().to_string();
        let written = write(&pipe, "a report").unwrap_err().to_string();
        for refused in [tried, written, place.append().unwrap_err().to_string()] {
            assert!(refused.contains("root does not write to it"), "{refused}");
        }
    }
    // With a reader, too.
    let reading = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let reader = rustix::fs::open(home.path().join("own"), reading, Mode::empty()).unwrap();
    let PathMeaning::Named(place) = place::find(&home.path().join("own")).unwrap() else {
        panic!()
    };
    assert!(place.append().is_err());
    drop(reader);
    // Nor to a file of root's by another name.
    fs::hard_link(root.path().join("report"), home.path().join("second")).unwrap();
    let PathMeaning::Named(place) = place::find(&home.path().join("second")).unwrap() else {
        panic!()
    };
    assert!(place.append().is_err());
    is_untouched(&root.path().join("report"));
}
