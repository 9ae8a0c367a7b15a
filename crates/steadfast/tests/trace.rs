//! `steadfast trace` and `lab compare` as a person uses them: programs recorded, replayed,
//! compared; texts imported; traces that are none.

// What is skipped is said aloud.
#![allow(clippy::print_stdout)]

#[path = "trace/bad.rs"]
mod bad;
#[path = "trace/compared.rs"]
mod compared;
#[path = "trace/imported.rs"]
mod imported;
#[path = "trace/recorded.rs"]
mod recorded;

use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Output};
use std::time::Duration;

use steadfast_host::Folder;

/// How long a command may take.
const LIMIT: Duration = Duration::from_secs(300);
const NOBODY: u32 = 65534;

struct Desk(Folder);

impl Desk {
    fn new() -> Self {
        let folder = Folder::new("steadfast-trace-").unwrap();
        let all = std::os::unix::fs::PermissionsExt::from_mode(0o777);
        std::fs::set_permissions(folder.path(), all).unwrap();
        Desk(folder)
    }

    fn path(&self) -> &Path {
        self.0.path()
    }

    fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_steadfast"));
        command.args(words).current_dir(self.path()).env("HOME", self.path());
        command
    }

    /// As an ordinary user.
    fn run(&self, words: &[&str]) -> Output {
        let mut command = self.command(words);
        if rustix::process::geteuid().is_root() {
            command.uid(NOBODY).gid(NOBODY);
        }
        steadfast_suite::output(LIMIT, &mut command).unwrap()
    }

    /// What it prints, where it ends with a status.
    fn prints(&self, status: i32, words: &[&str]) -> String {
        Desk::printed(status, words, &self.run(words))
    }

    /// The same of a recording, by whoever runs the test: not everybody may open /dev/fuse here.
    fn records(&self, status: i32, options: &[&str], program: &[&str]) -> String {
        let words = [&["trace", "record"], options, &["--"], program].concat();
        let out = steadfast_suite::output(LIMIT, &mut self.command(&words)).unwrap();
        Desk::printed(status, &words, &out)
    }

    fn printed(status: i32, words: &[&str], out: &Output) -> String {
        let text = String::from_utf8_lossy(&out.stdout).into_owned();
        let errors = String::from_utf8_lossy(&out.stderr).into_owned();
        assert_eq!(out.status.code(), Some(status), "{words:?}: {text}{errors}");
        if status == 2 { errors } else { text }
    }
}

/// Whether programs can be recorded here.
fn has_fuse() -> bool {
    let there = Path::new("/dev/fuse").exists();
    if !there {
        println!("SKIPPED: there is no /dev/fuse");
    }
    there
}
