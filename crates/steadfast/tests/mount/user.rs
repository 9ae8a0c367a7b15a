//! Mounts of an ordinary user, through fusermount3.

use std::fs;
use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Output};

use super::bench::{Bench, text};

/// The user "nobody" and its group.
const USER: u32 = 65_534;

/// Somebody who is not root, with an image and a mount point of his own.
struct User {
    bench: Bench,
}

impl User {
    /// `None`, said aloud: no FUSE, not root, or no fusermount3 with the right to mount.
    #[allow(clippy::print_stdout, reason = "a test that did not run says so")]
    fn new() -> Option<User> {
        let bench = Bench::with_image("32m")?;
        let status = fs::read_to_string("/proc/self/status").unwrap();
        let is_set_id = |folder: &str| {
            let program = Path::new(folder).join("fusermount3");
            fs::metadata(program).is_ok_and(|m| m.permissions().mode() & 0o4000 != 0)
        };
        let path = std::env::var("PATH").unwrap_or_default();
        if status.contains("NoNewPrivs:\t1") || !path.split(':').any(is_set_id) {
            println!("SKIPPED: needs a set-user-id fusermount3");
            return None;
        }
        fs::set_permissions(bench.path(""), fs::Permissions::from_mode(0o755)).unwrap();
        // The build's folder may be closed to others.
        fs::copy(env!("CARGO_BIN_EXE_steadfast"), bench.path("steadfast")).unwrap();
        for name in ["", "disk.img", "m", "run"] {
            chown(bench.path(name), Some(USER), Some(USER)).unwrap();
        }
        Some(User { bench })
    }

    /// Has him run a program in his folder.
    fn run(&self, program: &str, line: &str) -> Output {
        Command::new("timeout")
            .args(["-s", "KILL", "60", program])
            .args(line.split_whitespace())
            .env("STEADFAST_RUNTIME_DIR", self.bench.path("run"))
            .current_dir(self.bench.path(""))
            .uid(USER)
            .gid(USER)
            .output()
            .unwrap()
    }

    fn good(&self, line: &str) {
        let out = self.run("./steadfast", line);
        assert!(out.status.success(), "{line}: {:?}\n{}", out.status, text(&out.stderr));
    }

    fn bad(&self, line: &str) -> String {
        let out = self.run("./steadfast", line);
        assert_eq!(out.status.code(), Some(1), "{line}\n{}", text(&out.stderr));
        text(&out.stderr)
    }
}

#[test]
fn an_ordinary_user_mounts_what_is_his() {
    let Some(user) = User::new() else { return };
    // The root of an image made by root is root's.
    let made = user.run("mke2fs", &format!("-q -F -t ext4 -E root_owner={USER}:{USER} disk.img"));
    assert!(made.status.success(), "{}", text(&made.stderr));
    user.good("mount disk.img m");
    let table = fs::read_to_string("/proc/self/mountinfo").unwrap();
    let line = table.lines().find(|l| l.contains(user.bench.at().to_str().unwrap())).unwrap();
    assert!(line.contains("nosuid,nodev") && line.contains("fuse.steadfast"), "{line}");
    assert!(user.run("sh", "-c echo>m/file").status.success());
    assert!(user.run("test", "-O m/file").status.success());
    // It is not even root's to look at.
    assert!(fs::metadata(user.bench.at().join("file")).is_err());
    user.good("umount m");
    user.bench.e2fsck_is_clean("disk.img");
}

#[test]
fn what_is_not_his_to_ask_for_is_refused_in_words() {
    let Some(user) = User::new() else { return };
    let said = user.bad("mount disk.img m -o dev");
    assert!(said.contains("only root may mount with the option dev"), "{said}");
    let said = user.bad("mount disk.img /usr");
    assert!(said.contains("/usr"), "{said}");
    let conf = fs::read_to_string("/etc/fuse.conf").unwrap_or_default();
    if conf.lines().any(|l| l.trim() == "user_allow_other") {
        user.good("mount disk.img m -o allow_other");
        assert!(fs::metadata(user.bench.at()).is_ok());
        user.good("umount m");
    } else {
        let said = user.bad("mount disk.img m -o allow_other");
        assert!(said.contains("user_allow_other") && said.contains("without"), "{said}");
    }
    user.bench.e2fsck_is_clean("disk.img");
}
