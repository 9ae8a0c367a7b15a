//! A folder, and the program.

use std::path::PathBuf;
use std::process::{Command, Output};

use serde_json::Value;
use tempfile::TempDir;

/// A folder of one test.
pub struct Lab {
    folder: TempDir,
}

impl Lab {
    /// `None`, said aloud: no FUSE here, or not root.
    #[allow(clippy::print_stdout, reason = "a test that did not run says so")]
    pub fn new() -> Option<Lab> {
        let root = rustix::process::geteuid().is_root();
        if !root || std::fs::File::open("/dev/fuse").is_err() {
            println!("SKIPPED: needs root and /dev/fuse");
            return None;
        }
        Some(Lab { folder: tempfile::tempdir().unwrap() })
    }

    /// A path in the folder.
    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Writes a shell script; its path.
    pub fn script(&self, name: &str, text: &str) -> String {
        std::fs::write(self.path(name), text).unwrap();
        self.path(name).display().to_string()
    }

    /// Runs `steadfast crash` with these words.
    pub fn crash(&self, words: &[&str]) -> Output {
        self.command(words).output().unwrap()
    }

    /// The same, to be run; it ends within five minutes. A run reports all that it has found.
    pub fn command(&self, words: &[&str]) -> Command {
        let is_text = words.first() == Some(&"run") && !words.contains(&"--json");
        let wide: &[&str] = if is_text { &["run", "--wide"] } else { &[] };
        self.plain(&[wide, &words[usize::from(is_text)..]].concat())
    }

    /// With no other words.
    pub fn plain(&self, words: &[&str]) -> Command {
        let mut command = Command::new("timeout");
        command
            .args(["-s", "KILL", "300", env!("CARGO_BIN_EXE_steadfast"), "crash"])
            .args(words)
            .env("TMPDIR", self.folder.path())
            .current_dir(self.folder.path());
        command
    }

    /// Runs `steadfast crash run --json`; its report, and whether something was found.
    pub fn run(&self, words: &[&str]) -> (Value, bool) {
        let (report, found) = self.run_several(words);
        assert_eq!(report["troubles"], Value::from(Vec::<Value>::new()), "{report:#}");
        assert_eq!(report["without_cut"], Value::Null, "{report:#}");
        (report, found)
    }

    /// The same on several file systems.
    pub fn run_several(&self, words: &[&str]) -> (Value, bool) {
        let out = self.crash(&[&["run", "--json"], words].concat());
        let (said, errors) = (text(&out.stdout), text(&out.stderr));
        let report: Value = serde_json::from_str(&said)
            .unwrap_or_else(|e| panic!("{words:?}: {:?}: {e}\n{said}\n{errors}", out.status));
        assert!(matches!(out.status.code(), Some(0 | 1)), "{:?}\n{errors}", out.status);
        (report, out.status.code() == Some(1))
    }
}

pub fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// What `cargo xtask soak` multiplies.
pub fn soak() -> u64 {
    std::env::var("STEADFAST_SOAK").ok().and_then(|n| n.parse().ok()).unwrap_or(1)
}
