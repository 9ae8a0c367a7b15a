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
