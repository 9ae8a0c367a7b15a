//! Files that a shell has opened, and those of other users.

use std::os::unix::fs::{PermissionsExt, chown, lchown, symlink};
use std::path::Path;
use std::process::Command;

use super::{Desk, LIMIT};

/// A document that `lab show` reads.
fn results() -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/results");
    folder.join("ramdisk-mirror.json").display().to_string()
}

#[test]
fn a_log_that_a_shell_appends_to_keeps_what_it_held() {
    let d = Desk::new();
    let log = d.path().join("log");
    let program = env!("CARGO_BIN_EXE_steadfast");
    for (place, opened) in
        [("/dev/fd/3", "3>> log"), ("link", "4>> log"), ("/dev/stdin", "0>> log")]
    {
        std::fs::write(&log, "before\n").unwrap();
        let link = d.path().join("link");
        // OK to ignore: from the second time on it is there.
        let _ = symlink("/proc/self/fd/4", link);
        let line = format!("{program} lab show {} --report {place} {opened}", results());
        let mut command = Command::new("sh");
        command.args(["-c", &line]).current_dir(d.path());
        let out = steadfast_suite::output(LIMIT, &mut command).unwrap();
        assert!(out.status.success(), "{line}: {out:?}");
        let text = std::fs::read_to_string(&log).unwrap();
        assert!(text.starts_with("before\n<!DOCTYPE"), "{line}: {:.60}", text);
    }
}

#[test]
fn root_follows_no_link_of_another_user() {
    if !rustix::process::geteuid().is_root() {
        println!("SKIPPED: needs root");
        return;
    }
    let d = Desk::new();
    let at = |name: &str| d.path().join(name);
    std::fs::create_dir(at("home")).unwrap();
    std::fs::write(at("secret"), "secret").unwrap();
    std::fs::set_permissions(at("secret"), PermissionsExt::from_mode(0o600)).unwrap();
    symlink("../secret", at("home/report.html")).unwrap();
    chown(at("home"), Some(54321), Some(54321)).unwrap();
    lchown(at("home/report.html"), Some(54321), Some(54321)).unwrap();
    let said = d.bad(&format!("lab show {} --report home/report.html", results()), 2);
    let what = "cannot write home/report.html: report.html is a symbolic link of user 54321";
    assert!(said.contains(what) && said.contains("run this as that user"), "{said}");
    assert_eq!(std::fs::read_to_string(at("secret")).unwrap(), "secret");
    d.good(&format!("lab show {} --report home/new.html", results()));
}

/// `sudo -u somebody` in a folder that only root may search.
#[test]
fn an_absolute_path_needs_nothing_of_the_current_folder() {
    if !rustix::process::geteuid().is_root() {
        println!("SKIPPED: needs root");
        return;
    }
    let d = Desk::new();
    let at = |name: &str| d.path().join(name);
    std::fs::set_permissions(d.path(), PermissionsExt::from_mode(0o755)).unwrap();
    for (folder, mode, owner) in [("private", 0o700, 0), ("home", 0o755, 54321)] {
        std::fs::create_dir(at(folder)).unwrap();
        std::fs::set_permissions(at(folder), PermissionsExt::from_mode(mode)).unwrap();
        chown(at(folder), Some(owner), Some(owner)).unwrap();
    }
    std::fs::copy(env!("CARGO_BIN_EXE_steadfast"), at("steadfast")).unwrap();
    std::fs::copy(results(), at("results.json")).unwrap();
    let mut command = Command::new("sh");
    let line = "cd private && exec setpriv --reuid 54321 --regid 54321 --clear-groups \
                \"$0/steadfast\" lab show \"$0/results.json\" --report \"$0/home/report.html\"";
    command.args(["-c", line]).arg(d.path()).current_dir(d.path());
    let out = steadfast_suite::output(LIMIT, &mut command).unwrap();
    assert!(out.status.success(), "{out:?}");
    assert!(at("home/report.html").exists());
}

#[test]
fn root_makes_no_image_through_a_link_of_another_user() {
    if !rustix::process::geteuid().is_root() {
        println!("SKIPPED: needs root");
        return;
    }
    let d = Desk::new();
    let at = |name: &str| d.path().join(name);
    for folder in ["home", "roots"] {
        std::fs::create_dir(at(folder)).unwrap();
    }
    symlink("../roots", at("home/link")).unwrap();
    chown(at("home"), Some(54321), Some(54321)).unwrap();
    lchown(at("home/link"), Some(54321), Some(54321)).unwrap();
    for line in ["mkfs home/link/image --size 16m", "pmem create --emulate 16m home/link/image"] {
        let said = d.bad(line, 2);
        assert!(said.contains("home/link/image: cannot create it: link is a symbolic"), "{said}");
        assert_eq!(std::fs::read_dir(at("roots")).unwrap().count(), 0, "{line}");
    }
}

/// What has no end is not read to one.
#[test]
fn of_a_file_without_an_end_no_more_is_read_than_a_limit() {
    let d = Desk::new();
    let said = d.bad("serve -f /dev/zero", 2);
    assert!(said.contains("/dev/zero: it is longer than 1 MiB, and no more is read"), "{said}");
    let said = d.bad("lab check /dev/zero", 2);
    assert!(said.contains("it is longer than 1 MiB"), "{said}");
    let said = d.bad("lab show /dev/zero", 2);
    assert!(said.contains("it is longer than 64 MiB"), "{said}");
    let said = d.bad("crash show /dev/zero --cut 1", 2);
    assert!(said.contains("it is no recording of steadfast crash run"), "{said}");
}
